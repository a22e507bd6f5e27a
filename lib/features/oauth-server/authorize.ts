/** The authorization endpoint (RFC 6749 section 3.1): a page that asks, and the form behind it. */
import { randomBytes } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { secondFactorAt } from '../../authentication.js'
import { digestOf } from '../../base/values.js'
import { type Act, type Mountpoint, pathOf } from '../../core/act.js'
import { type AuthContext, needed } from '../../core/context.js'
import { type CurrentUser, current, currentUser } from '../../core/current-user.js'
import { form } from '../../core/form.js'
import { button } from '../../core/pages/elements.js'
import { leadTo } from '../../core/pages/lead-to.js'
import type { Page, View } from '../../core/pages/layout.js'
import { page, redirected } from '../../core/pages/page.js'
import { withError, withQuery } from '../../core/redirects.js'
import { assertCanAsk, factorsOf } from '../../core/methods.js'
import { AuthError } from '../../errors.js'
import { PENDING_MS } from '../../session/store.js'
import { signInPath } from '../pages/parts.js'
import { isRecent } from '../recent.js'
import type { OAuthClient } from './client.js'
import { isDocumentUrl } from './client-documents.js'
import { giveGrant, newCode } from './consent.js'
import { clientName, consentPage, failurePage, origins, seenOf } from './consent-page.js'
import {
  type ClientRequest, type Parameters, type RedirectedFailure, answerUrl,
  authorizationRequest, isTrusted, parametersOf
} from './request.js'
import type { Server } from './oauth-server.js'

export const hasServer = ({ parts }: Pick<AuthContext, 'parts'>): boolean => parts.oauthServer !== null

export const serverOf = ({ parts }: Pick<AuthContext, 'parts'>): Server => needed(parts.oauthServer, 'oauthServer')

/** A request that waits for the user: it is longer than what `next` may be. */
interface Waiting {
  readonly id: string
  readonly parameters: Parameters
  readonly startedAt: number
}

const WAITING = 'oauth-request'

const keyOf = (id: string) => ({ hash: digestOf(`${WAITING} ${id}`), kind: WAITING, owner: digestOf(id) })

const waitingPath = (auth: Mountpoint, id: string): string =>
  withQuery(pathOf(auth, 'oauth/authorize'), { waiting: id })

async function wait ({ records }: AuthContext, parameters: Parameters): Promise<Waiting> {
  const id = randomBytes(18).toString('base64url')
  const startedAt = Date.now()
  await records.put({ ...keyOf(id), content: { parameters, startedAt }, startedAt }, 1)
  return { id, parameters, startedAt }
}

async function findWaiting ({ records }: AuthContext, id: unknown): Promise<Waiting | null> {
  const found = typeof id === 'string' ? await records.find(keyOf(id)) as Omit<Waiting, 'id'> | null : null
  return found !== null && found.startedAt > Date.now() - PENDING_MS ? { id: String(id), ...found } : null
}

/**
 * Shows what a client asks for, once the user is signed in and authenticated as the resource says.
 * The client learns nothing until its redirect URI is known to be its own.
 */
const authorizationPage = page({ path: '/oauth/authorize', when: hasServer, isChecked: true }, async (auth, view) => {
  const { request, reply, typed } = view
  const server = serverOf(auth)
  const { waiting: id = typed.waiting, ...query }: Record<string, unknown> = Object(request.query)
  let waiting = id === undefined ? null : await findWaiting(auth, id)
  if (id !== undefined && waiting === null) return failurePage(auth, view, 'expired')
  if (waiting === null) await auth.limits.start(request)
  const parameters = waiting?.parameters ?? parametersOf(query)
  if (parameters === null) return failurePage(auth, view, 'repeated')
  const here = async (): Promise<string> => {
    waiting ??= await wait(auth, parameters)
    return waitingPath(auth, waiting.id)
  }

  const present = await currentUser(auth, request)
  // A document is fetched for a user alone: a stranger could make this server ask any address.
  const isChecked = present !== null || !isDocumentUrl(parameters.client_id ?? '')
  const asked = isChecked ? await authorizationRequest(server, request, parameters) : null
  if (typeof asked === 'string') return failurePage(auth, view, asked)
  if (asked !== null && 'error' in asked) return refuse(auth, view, asked)
  if (present === null || asked === null) return redirected(reply, signInPath(auth, request, await here()))

  const isSilent = asked.prompt.has('none')
  const step = dueStep(auth, { present, asked, since: waiting?.startedAt ?? Date.now() })
  if (isSilent && (step !== null || !isTrusted(asked))) {
    return refuse(auth, view, { ...asked, error: 'interaction_required', description: 'The user must be asked.' })
  }
  if (step !== null) return redirected(reply, await goOn(auth, request, step, await here()))
  if (!isTrusted(asked)) {
    const path = await here()
    return consentPage(auth, view, { asked, present, waitingId: String(waiting?.id), path })
  }
  await here()
  const url = await answerWithCode(auth, request, { asked, present, consentId: String(waiting?.id) })
  return leave(auth, reply, asked.client, url)
})

/** Where the user goes first. */
type Step = 'reauthenticate' | 'second-factor' | 'set-up'

export function dueStep (
  auth: Pick<AuthContext, 'methods' | 'offered'>, { present: { user, record }, asked: { resource, prompt }, since }:
  { present: CurrentUser, asked: Pick<ClientRequest, 'resource' | 'prompt'>, since: number }
): Step | null {
  const { within, secondFactor } = resource
  const provenAt = secondFactor ? secondFactorAt(record.methods) : record.at
  if (provenAt === null) {
    assertCanAsk(auth, user)
    if (factorsOf(auth, user).length === 0) return 'set-up'
  }
  const isFresh = provenAt !== null && (within === null || isRecent(provenAt, within)) &&
    (!prompt.has('login') || record.at >= since)
  return isFresh ? null : secondFactor ? 'second-factor' : 'reauthenticate'
}

export async function goOn (
  { redirects }: Pick<AuthContext, 'redirects'>, request: FastifyRequest, step: Step, here: string
): Promise<string> {
  const setUp = redirects.linkTo(request, 'secondFactor', here)
  if (step === 'set-up' && setUp !== null) return withError(setUp, 'second_factor_missing')
  const target = redirects.forStep(request, 'reauthenticate', here, step === 'second-factor')
  if (step === 'set-up') throw new AuthError('second_factor_missing')
  if (target === null) throw new AuthError('reauthenticate')
  return target
}

/**
 * Sends the browser to the client with a failure. To one that the application does not know the
 * user goes by a click: an attacker who has registered a client could lead users anywhere by a link
 * to this site.
 *
 * @see RFC 9700 section 4.11.2
 */
function refuse (auth: AuthContext, { reply, texts }: View, failure: RedirectedFailure): Page | null {
  const { client, error, description } = failure
  const url = answerUrl(failure, serverOf(auth).issuer, { error, error_description: description })
  if (client.kind === 'configured') return leave(auth, reply, client, url)
  return {
    title: texts.oauth.failed,
    content: [origins(texts, client, failure.redirectUri), button(url, texts.common.continue)]
  }
}

/**
 * Leads the browser to the client, by a page: it may have come by redirects behind a form, to
 * whose target browsers apply the policy of the form's page.
 */
function leave (auth: AuthContext, reply: FastifyReply, client: OAuthClient, url: string): null {
  leadTo(auth, reply, url, ({ oauth }) => ({ title: clientName(client), text: oauth.leaving }))
  return null
}

async function answerWithCode (
  auth: Pick<AuthContext, 'connectionRule' | 'parts' | 'mailer' | 'records'>, request: FastifyRequest,
  { asked, present, consentId }: { asked: ClientRequest, present: CurrentUser, consentId: string }
): Promise<string> {
  const server = serverOf(auth)
  const { client, redirectUri, challenge } = asked
  const { grantId } = await giveGrant(auth, server, request, present, asked, consentId)
  const code = await newCode(auth, { grantId, clientId: client.id, redirectUri, challenge })
  return answerUrl(asked, server.issuer, { code })
}

const decide = form({
  path: '/oauth/authorize',
  when: hasServer,
  summary: 'Allow a client to act for the signed-in user, or not',
  description: 'Browsers are sent back to the client.',
  user: 'signed-in',
  fields: {
    waiting: { type: 'string', maxLength: 100, description: 'The request, as the page names it' },
    seen: { type: 'string', maxLength: 100, description: 'What the page has shown' },
    decision: { type: 'string', enum: ['allow', 'deny'] }
  },
  required: ['waiting', 'seen', 'decision'],
  answers: {
    200: { type: 'object', properties: { location: { type: 'string' } }, description: 'Where the browser goes' }
  },
  refuses: ['invalid_state', 'unauthenticated', 'reauthenticate', 'sso_required', 'unavailable']
}, async (auth, { request, reply, fields: { waiting: id, seen, decision } }) => {
  const server = serverOf(auth)
  const present = await current(auth, request)
  const waiting = await findWaiting(auth, id)
  if (waiting === null) throw new AuthError('invalid_state')
  const asked = await authorizationRequest(server, request, waiting.parameters)
  if (typeof asked === 'string' || 'error' in asked) throw new AuthError('invalid_state')
  // The page shows anew what has changed: the client's document, the user, their generation.
  if (seen !== seenOf(present.user, asked)) throw new AuthError('invalid_state')
  if (dueStep(auth, { present, asked, since: waiting.startedAt }) !== null) {
    throw new AuthError('reauthenticate')
  }
  const location = decision === 'allow'
    ? await answerWithCode(auth, request, { asked, present, consentId: id })
    : answerUrl(asked, server.issuer, { error: 'access_denied', error_description: 'The user has refused.' })
  return { status: 200, body: { location }, show: () => reply.redirect(location, 303) }
})

export const AUTHORIZE_ACTS: readonly Act[] = [authorizationPage, decide]
