import type { FastifyReply, FastifyRequest } from 'fastify'
import { audit } from '../../audit.js'
import { digestOf } from '../../base/values.js'
import { WHILE_IMPERSONATING, refuseImpersonation } from '../../core/acting.js'
import type { AuthContext, WithAccounts } from '../../core/context.js'
import { current, currentPrincipal } from '../../core/current-user.js'
import { guestOf } from '../../core/guests.js'
import { assertUserRecent } from '../recent.js'
import { isText } from '../../claims.js'
import { AuthError } from '../../errors.js'
import { type ProviderIdentity, callHook, creating } from '../../hooks.js'
import { refuseForeignResource, wantsHtml } from '../../core/site.js'
import type { Outbox } from '../../core/mail-links.js'
import { checkedIdentity } from '../../providers/identity.js'
import type { Authentication, ExternalProvider } from '../../providers/provider.js'
import { sessionAt } from '../../session/at-provider.js'
import { WITHOUT_SESSION } from '../../session/cookies.js'
import { type PendingSignIn, takePendingSignIn } from './pending-sign-ins.js'
import { type SessionRecord, principalOf, recordIn } from '../../session/record.js'
import { noteOf, noteRequest } from '../../session/sent-requests.js'
import { forgetStarts } from '../../session/start-cookies.js'
import { reauthenticateAs } from '../../core/complete-sign-in.js'
import { signIn } from '../../core/sign-in.js'
import { type Act, type Mounting, type Mountpoint, keepNotice, pathOf, routeOfProvider, urlOf } from '../../core/act.js'
import { operation, operationIdOf, redirect, undocumented } from '../../core/schema.js'
import { runOnce, wasSentBefore } from '../../core/sent-again.js'
import { type Failure, NO_SIGN_IN, callProvider, failAtProvider, mountLogin } from './login.js'
import { hasFactors } from '../../core/methods.js'
import { refuseOtherSignIn } from '../../core/required-connection.js'
import { sessionsOf } from '../../session/request-sessions.js'
import { isLinkedTo, linkIdentity, userOfIdentity } from './linking.js'
import { type ProviderRoute, providerRoutes } from './provider-route.js'

const REFUSALS = [
  'invalid_request', 'invalid_state', 'unauthenticated', 'cross_origin', 'reauthenticate', 'rate_limited',
  'provider_error', 'provider_unavailable', 'unavailable'
] as const

const callbackSchema = ({ path, title, refuses }: ProviderRoute) => ({
  ...operation({
    summary: `Finish a sign-in at ${title}`,
    description: 'The redirect URI of the provider; its query is the authorization response (RFC 6749 section 4.1.2).',
    operationId: operationIdOf(`${path}/callback`),
    user: 'signed-in',
    answers: { 302: redirect },
    refuses: [
      ...REFUSALS, ...refuses, 'access_denied', 'not_allowed', 'blocked', 'sso_required', 'account_exists',
      'already_linked'
    ]
  }),
  querystring: { type: 'object', properties: { code: {}, state: {}, iss: {}, error: {} } }
})

/**
 * How browsers post a response to the callback (OAuth 2.0 Form Post Response Mode). It is passed on
 * to the GET of a redirect, with which they send cookies that are `SameSite=Lax`.
 */
const FORM_POST = {
  schema: {
    ...undocumented,
    headers: { properties: { 'content-type': { pattern: '^application/x-www-form-urlencoded *(;|$)' } } },
    // A field that comes twice is a list.
    body: { type: 'object', required: ['state'], additionalProperties: { type: 'string' } }
  },
  config: WITHOUT_SESSION,
  bodyLimit: 16_384,
  onRequest: refuseForeignResource
} as const

export const EXTERNAL_ACTS: readonly Act[] = [{
  async mount (mounting) {
    for (const route of providerRoutes(mounting.auth)) {
      await mountLogin(mounting, route)
      mountCallback(mounting, route)
    }
  }
}]

/** The provider redirects to the callback: authorization response. */
function mountCallback ({ scope, auth }: Mounting, route: ProviderRoute): void {
  const { redirects, limits, mailer } = auth
  const { path, nameOf, providerOf } = route
  const errorHandler = async (error: Error, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> =>
    failAtProvider(auth, nameOf(request), { error, request, reply }, {
      startedOn: redirects.ofStart(request, undefined), next: null
    })

  const failed = async (failure: Failure, start: SpentSignIn | null): Promise<FastifyReply> => {
    const { error, request } = failure
    const isRefused = error instanceof AuthError && error.code === 'invalid_state'
    if (isRefused && start !== null) return answerSpent(auth, nameOf(request), failure, start)
    const { next = null } = noteOf(request)
    const startedOn = start === null ? redirects.ofStart(request, undefined) : start.startedOn
    return failAtProvider(auth, nameOf(request), failure, { startedOn, next })
  }

  scope.get(`/${path}/callback`, {
    schema: callbackSchema(route),
    // A HEAD request would use up a sign-in.
    exposeHeadRoute: false,
    config: WHILE_IMPERSONATING,
    onRequest: [
      refuseForeignResource,
      async request => { if (!await wasSentBefore(request)) await limits.callback(request) }
    ],
    onSend: endFragment,
    errorHandler
  }, async (request, reply) => {
    const parameters = new URLSearchParams(request.url.replace(/^[^?]*/, ''))
    let start: SpentSignIn | null = null
    let isTest = false
    try {
      const next = await runOnce(auth, request, {
        async run () {
          const { pending, ...spent } = await pendingSignIn(request, nameOf(request), parameters)
          start = pending ?? { ...spent, startedOn: redirects.ofStart(request, undefined) }
          if (pending === null) throw new AuthError('invalid_state')
          noteRequest(request, { next: pending.next })
          const outbox = mailer?.outbox(request, reply) ?? null
          const callback = { provider: await providerOf(request), parameters, pending, outbox }
          isTest = pending.purpose === 'test'
          if (isTest) await test(auth, reply, callback.provider, async () => authenticate(auth, callback))
          else await finishSignIn(auth, request, callback)
          if (pending.purpose === 'link') keepNotice(auth, request, reply, { target: pending.next, word: 'saved' })
          return pending.next
        },
        again: next => redirects.afterSuccess(request, next)
      }, () => limits.callback(request))
      forgetStarts(reply, digestOf(String(parameters.get('state'))))
      return isTest && reply.sent ? reply : reply.redirect(next, 302)
    } catch (error) {
      return failed({ error, request, reply }, start)
    }
  })

  const methods = route.responseMode === 'form_post' ? ['GET', 'POST'] : ['GET']
  if (methods.includes('POST')) {
    scope.post(`/${path}/callback`, { ...FORM_POST, preHandler: limits.callback, errorHandler },
      async ({ body }, reply) => reply.redirect(withResponse(pathOf(auth, `${path}/callback`), Object(body)), 303))
  }
  scope.route({
    method: scope.supportedMethods.filter(method => !methods.includes(method)),
    url: `/${path}/callback`,
    schema: undocumented,
    errorHandler,
    async handler (_request, reply) {
      reply.header('Allow', methods.join(', '))
      throw new AuthError('invalid_request', { statusCode: 405, message: 'A callback is a GET request.' })
    }
  })
}

/**
 * Ends the URL of a redirect with `#`: without it browsers keep the fragment that the provider has
 * sent, such as `#_=_` of Facebook (RFC 9110 section 10.2.2).
 */
async function endFragment (_request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const location = reply.getHeader('Location')
  if (typeof location === 'string' && !location.includes('#')) reply.header('Location', `${location}#`)
}

/** Adds the fields of a response, but no tokens, which URLs must not have. */
function withResponse (callback: string, fields: Readonly<Record<string, string>>): string {
  const { id_token: _, access_token: __, error_description: description, ...others } = fields
  const url = `${callback}?${new URLSearchParams(others)}`
  // Servers and proxies take 8 KB at least.
  const [longest, words] = [8192, new URLSearchParams(description && { error_description: description })]
  if (url.length > longest) throw new AuthError('invalid_request')
  // A description is cut, not in the middle of a byte: it is for the log.
  return `${url}&${words}`.slice(0, longest).replace(/&$|%.?$/, '')
}

/** An authorization response (RFC 6749 section 4.1.2), and the sign-in that it belongs to. */
interface Callback {
  provider: ExternalProvider
  parameters: URLSearchParams
  pending: PendingSignIn
  outbox: Outbox | null
}

/** Takes the sign-in of an authorization response, which may be used once: before all else. */
async function pendingSignIn (
  request: FastifyRequest, provider: string, parameters: URLSearchParams
): Promise<{ state: string, pending: PendingSignIn | null, next: string | null }> {
  const [state, ...others] = parameters.getAll('state')
  if (state === undefined || state === '' || others.length > 0) throw new AuthError('invalid_state')
  return { state, ...await takePendingSignIn(request, provider, state) }
}

async function finishSignIn (auth: AuthContext, request: FastifyRequest, callback: Callback): Promise<void> {
  const { purpose } = callback.pending
  if (purpose !== 'sign-in') refuseImpersonation(request)
  if (purpose === 'link') return finishLinking(auth, request, callback)
  if (purpose === 'reauthentication') return finishReauthentication(auth, request, callback)
  const authentication = await authenticate(auth, callback)
  const { identity, tokens, signed, isLinkedOnly = false } = authentication
  await assertSameUser(auth, request, callback.pending, identity)
  if (isLinkedOnly && await auth.accounts.findUser(identity) === null) throw new AuthError('not_allowed')
  const { provider: { signOut }, pending: { remember, state, next }, outbox } = callback
  const user = await userOfIdentity(auth, request, identity, {
    outbox, guest: await guestOf(auth, request), onCreate: creating(auth, { method: 'provider', identity, request })
  })
  const { hintFor } = signOut === true ? await import('./sign-out.js') : {}
  const hint = await hintFor?.(auth, identity.provider, user.user.userId, authentication)
  const ofCallback = { ...hint, ...beganAt(callback, authentication), callback: { state: digestOf(state), next } }
  await signIn(auth, request, { ...user, identity, method: 'provider', tokens, signed, remember, outbox, ofCallback })
}

/** What the session keeps of the one at the provider, if that may end it. */
function beganAt (
  { provider, pending: { startedAt } }: Callback, { identity: { subject }, atProvider }: Authentication
): Pick<SessionRecord, 'atProvider'> {
  if (provider.backChannelLogout !== true) return {}
  const { sid, sub = subject } = atProvider ?? {}
  return { atProvider: sessionAt(provider.name, { sid: isText(sid) ? sid : undefined, sub }, startedAt) }
}

/**
 * Refuses to sign in another user than the present one by a sign-in that was started before they
 * signed in. An attacker could have started it and planted its session in the user's browser.
 */
async function assertSameUser (
  auth: WithAccounts, request: FastifyRequest, { startedBy }: PendingSignIn, { provider, subject }: ProviderIdentity
): Promise<void> {
  const present = principalOf(request)?.userId ?? null
  if (present === null || present === startedBy) return
  const owner = await auth.accounts.findUser({ provider, subject })
  if (owner?.userId !== present) throw new AuthError('invalid_state')
}

/**
 * Finishes the linking of another identity, or a consent with one of the user. The user who started
 * it must still be signed in; to add an identity, by a recent authentication: otherwise a session
 * stolen long ago would become a recent one by the new identity. The session does not change.
 */
async function finishLinking (auth: AuthContext, request: FastifyRequest, callback: Callback): Promise<void> {
  const { accounts, onLink } = auth
  const userId = assertStarter(request, callback.pending)
  const { identity, tokens } = await authenticate(auth, callback)
  await assertSessionActive(request)
  // The user may have been deleted meanwhile, or the link of the session removed.
  const present = await current(auth, request)
  const isConsent = await isLinkedTo(accounts, userId, identity)
  if (!isConsent) {
    await assertUserRecent(auth, present)
    await refuseOtherSignIn(auth, { ...present, identity }, 'provider')
  }
  if (onLink !== null) {
    await callHook(() => onLink({ request, userId, identity, tokens }))
    await assertSessionActive(request)
  }
  // Not if the sessions of the user were ended since: a squatter would keep a link to the account
  // that its owner recovers meanwhile.
  const { generation } = present.record
  const linked = await linkIdentity(accounts, { userId, generation }, identity)
  if (linked === null) return
  audit('link', { userId, provider: identity.provider, by: 'request' }, request)
  callback.outbox?.notice('identity-linked', linked)
}

/** Finishes a reauthentication: the provider proves by `auth_time` that it came after the start. */
async function finishReauthentication (
  auth: Mountpoint & WithAccounts, request: FastifyRequest, callback: Callback
): Promise<void> {
  const { pending } = callback
  assertStarter(request, pending)
  const maxAge = Math.ceil((Date.now() - pending.startedAt) / 1000)
  const asked = { ...pending.asked, maxAge }
  const authentication = await authenticate(auth, { ...callback, pending: { ...pending, asked } })
  await reauthenticateAs(auth, request, authentication.identity, beganAt(callback, authentication))
}

/** Answers with what a test of a connection has found, and signs nobody in. */
async function test (
  auth: AuthContext, reply: FastifyReply, provider: ExternalProvider, run: () => Promise<Authentication>
): Promise<void> {
  const { showTest } = await import('../connections/test-page.js')
  await showTest(auth, reply, provider, { isStart: false, run })
}

/** Returns the id of the user who started a sign-in; refuses to go on for another one. */
function assertStarter (request: FastifyRequest, { startedBy }: PendingSignIn): string {
  const userId = principalOf(request)?.userId
  if (userId === undefined || userId !== startedBy) throw new AuthError('invalid_state')
  return userId
}

async function authenticate (
  auth: Mountpoint, { provider, parameters, pending }: Callback
): Promise<Authentication & { identity: ProviderIdentity }> {
  const { asked, state, nonce, codeVerifier } = pending
  const redirectUri = urlOf(auth, routeOfProvider(provider.name, 'callback'))
  return callProvider(async () => {
    const { identity, ...others } = await provider.authenticate({
      ...asked, parameters, redirectUri, state, nonce, codeVerifier
    })
    return { ...others, identity: { provider: provider.name, ...checkedIdentity(identity) } }
  })
}

/** A sign-in that is not finished; `next` is null where this browser has not started it. */
type SpentSignIn = Pick<PendingSignIn, 'state' | 'startedOn'> & { next: string | null }

/**
 * Answers a callback whose sign-in is used, too old, unknown or refused, as a reload or another tab
 * sends it. Nothing changes: where the session came by this very callback the user goes on, and
 * another user sees who they are.
 */
async function answerSpent (
  auth: AuthContext,
  provider: string,
  failure: Failure,
  { state, startedOn, next: asked }: SpentSignIn
): Promise<FastifyReply> {
  const { request, reply } = failure
  // The one that the browser has kept is not checked.
  const next = auth.redirects.asked(request, asked)
  const isSignIn = wantsHtml(request) && !state.endsWith(NO_SIGN_IN)
  const target = isSignIn ? await targetOfSession(auth, request, digestOf(state)) : null
  if (target !== null) return reply.redirect(target, 302)
  const principal = isSignIn ? await currentPrincipal(auth, request) : null
  const hasPage = startedOn !== null || auth.redirects.login(request) !== null
  if (!isSignIn || (principal === null && hasPage)) return failAtProvider(auth, provider, failure, { startedOn, next })
  const { showSpent } = await import('./pages.js')
  return showSpent(auth, failure, { provider, principal, next })
}

/** Where the callback has led by which the session of a request came; null for another session. */
async function targetOfSession (auth: AuthContext, request: FastifyRequest, state: string): Promise<string | null> {
  const record = recordIn(request.session)
  if (record?.callback?.state === state) return record.callback.next
  if (record !== null || !hasFactors(auth)) return null
  const { pendingSecondFactor } = await import('../second-factor/sign-in.js')
  const { callback } = (await pendingSecondFactor(auth, request))?.ofCallback ?? {}
  return callback?.state === state ? auth.redirects.forStep(request, 'step', callback.next) : null
}

/** Refuses a session that ended while the request was under way: `invalid_state`. */
async function assertSessionActive (request: FastifyRequest): Promise<void> {
  const present = await sessionsOf(request).backend.read(request.session.sessionId)
  if (present === null) throw new AuthError('invalid_state')
}
