/** How users leave for a provider: authorization requests (RFC 6749 section 4.1.1). */
import { randomBytes } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Act, type Mounting, nextAuthenticationStep, routeOfProvider, urlOf } from '../../core/act.js'
import { answerFailure } from '../../core/failure-answer.js'
import { WHILE_IMPERSONATING, refuseImpersonation } from '../../core/acting.js'
import type { AuthContext } from '../../core/context.js'
import { type CurrentUser, current } from '../../core/current-user.js'
import { form } from '../../core/form.js'
import { assertUserRecent } from '../recent.js'
import { refuseOtherWays } from '../../core/required-connection.js'
import {
  type SchemaTypes, errorNext, isChecked, next, operation, operationIdOf, redirect, remember
} from '../../core/schema.js'
import { refuseForeignResource, wantsJson } from '../../core/site.js'
import { AuthError, invalidRequest } from '../../errors.js'
import { providerFailure } from '../../providers/failures.js'
import type { ExternalProvider, SignInParameters } from '../../providers/provider.js'
import { principalOf, sessionBinding } from '../../session/record.js'
import { type PendingSignIn, addPendingSignIn } from './pending-sign-ins.js'
import type { ProviderRoute } from './provider-route.js'

const flag = { type: 'string', enum: ['true', 'false'] } as const

const link = {
  ...flag,
  description: '`true`: adds the identity to the account of the signed-in user, whose last authentication must be ' +
    'less than ten minutes old'
} as const

const reauthenticate = { ...flag, description: '`true`: the signed-in user reauthenticates' } as const

const signed = {
  type: 'string',
  maxLength: 8192,
  description: 'What the application asks of the provider, as `app.auth.signInUrl` signed it'
} as const

const REFUSALS = [
  'invalid_request', 'invalid_state', 'unauthenticated', 'rate_limited', 'provider_error', 'provider_unavailable'
] as const

/** Mounts the login routes of a provider: a link, and a form. */
export async function mountLogin (mounting: Mounting, route: ProviderRoute): Promise<void> {
  mountLink(mounting, route)
  await startByForm(route).mount(mounting)
}

/**
 * A link starts a sign-in at once, and nothing else. Where more is asked for it shows the page with
 * the button: any page could have led the user here.
 */
function mountLink ({ scope, auth }: Mounting, { path, title, refuses, nameOf, providerOf }: ProviderRoute): void {
  const { redirects, limits, redirectToBaseUrl } = auth
  scope.withTypeProvider<SchemaTypes>().get(`/${path}/login`, {
    schema: {
      ...operation({
        summary: `Start a sign-in at ${title}`,
        description: 'With `link`, `reauthenticate` or a consent that is `signed`: shows the page whose button ' +
          'starts it by POST.',
        operationId: operationIdOf(`${path}/login`),
        user: 'signed-in-or-not',
        answers: {
          200: { description: 'A page with a button', content: { 'text/html': { schema: {} } } }, 302: redirect
        },
        refuses: [...REFUSALS, ...refuses, 'cross_origin', 'unavailable']
      }),
      querystring: {
        type: 'object', properties: { next, error_next: errorNext, link, reauthenticate, remember, signed }
      }
    },
    // Fastify would answer HEAD with the GET handler, which starts a sign-in.
    exposeHeadRoute: false,
    config: WHILE_IMPERSONATING,
    onRequest: [redirectToBaseUrl, refuseForeignResource, limits.start],
    errorHandler: async (error, request, reply) => {
      const startedOn = redirects.ofStart(request, Object(request.query).error_next)
      // A failure of this page is not shown on it.
      const isHere = redirects.isAt(request, startedOn)
      const shownOn = { startedOn: isHere ? null : startedOn, next: null }
      return failAtProvider(auth, nameOf(request), { error, request, reply }, shownOn)
    }
  }, async (request, reply) => {
    const { query } = request
    const provider = await providerOf(request)
    const { name } = provider
    const start = startOf(auth, request, provider, query)
    if (start.purpose === 'sign-in' || start.purpose === 'test') {
      const url = await leaveOrTell(auth, reply, provider, query, start)
      return url === null ? reply : reply.redirect(url.href, 302)
    }
    refuseImpersonation(request)
    const present = await current(auth, request)
    if (wantsJson(request)) {
      throw invalidRequest('A linking, a consent and a reauthentication start with a POST to this path.')
    }
    const { showStart } = await import('./pages.js')
    const what = isConsent(start, present, name) ? 'consent' : start.purpose
    return showStart(auth, { request, reply, query, name, present, what })
  })
}

/** Starts a sign-in, a linking, a consent or a reauthentication by the user's own click. */
const startByForm = ({ path, title, refuses, nameOf, providerOf }: ProviderRoute): Act => form({
  path: `/${path}/login`,
  operationId: operationIdOf(`${path}/start`),
  summary: `Start a sign-in, a linking, a consent or a reauthentication at ${title}`,
  user: 'signed-in-or-not',
  fields: { link, reauthenticate, remember, signed },
  answers: {
    200: {
      description: 'The URL at the provider, or a page that opens it',
      content: {
        'application/json': { schema: { properties: { url: { type: 'string' } } } }, 'text/html': { schema: {} }
      }
    }
  },
  refuses: [...REFUSALS, ...refuses, 'reauthenticate', 'sso_required'],
  limits: ['start'],
  signInAt: nameOf,
  whileImpersonating: true
}, async (auth, { request, reply, fields }) => {
  const provider = await providerOf(request)
  const start = startOf(auth, request, provider, fields)
  if (start.purpose === 'test') throw invalidRequest('The test of a connection starts with a GET of its path.')
  if (start.purpose !== 'sign-in') {
    refuseImpersonation(request)
    const present = await current(auth, request)
    const isAdded = start.purpose === 'link' && !isConsent(start, present, provider.name)
    // What is linked signs in.
    if (isAdded) {
      await assertUserRecent(auth, present)
      await refuseOtherWays(auth, present.user, provider.name)
    }
  }
  const { href } = await leave(auth, reply, provider, fields, start)
  return {
    status: 200,
    body: { url: href },
    show: async () => (await import('../../core/pages/lead-to.js')).leadToProvider(auth, reply, provider.name, href)
  }
})

/** What is started, and what the provider is asked for. */
interface Start {
  readonly purpose: PendingSignIn['purpose']
  /** Whether the application asks for a consent of the signed-in user. */
  readonly isAskedByApplication: boolean
  readonly asked: SignInParameters
}

interface LoginFields {
  readonly next?: string
  readonly error_next?: string
  readonly link?: string
  readonly reauthenticate?: string
  readonly remember?: unknown
  readonly signed?: string
}

/** Reads what is asked for: by `signInUrl`, and by the purpose of the sign-in. */
function startOf (
  auth: Pick<AuthContext, 'signedRequests'>,
  request: FastifyRequest,
  { name, provesAuthTime }: ExternalProvider,
  { link, reauthenticate, signed }: LoginFields
): Start {
  const { linkFor, isTest = false, ...asked } = signed === undefined ? {} : auth.signedRequests.verify(name, signed)
  // One that was made for another user, or for an earlier session.
  if (linkFor !== undefined && linkFor !== sessionBinding(request)) throw new AuthError('invalid_state')
  const isAskedByApplication = linkFor !== undefined
  if (isTest) return { purpose: 'test', isAskedByApplication, asked }
  if (reauthenticate !== 'true') {
    return { purpose: link === 'true' || isAskedByApplication ? 'link' : 'sign-in', isAskedByApplication, asked }
  }
  if (provesAuthTime !== true) {
    throw invalidRequest(
      'This provider does not prove when the user authenticated; reauthenticate by another method.')
  }
  return { purpose: 'reauthentication', isAskedByApplication, asked: { ...asked, prompt: 'login', maxAge: 0 } }
}

/** A consent is a linking unless the user has an identity there. */
function isConsent ({ isAskedByApplication }: Start, { links }: CurrentUser, name: string): boolean {
  return isAskedByApplication && links.some(({ provider }) => provider === name)
}

/** As {@link leave}; null where it was a test, whose failure the answer says. */
async function leaveOrTell (...given: Parameters<typeof leave>): Promise<URL | null> {
  const [auth, reply, provider, , { purpose }] = given
  if (purpose !== 'test') return leave(...given)
  return leave(...given).catch(async (error: unknown) => {
    const { showTest } = await import('../connections/test-page.js')
    await showTest(auth, reply, provider, { isStart: true, run: async () => { throw error } })
    return null
  })
}

/** Notes the sign-in in the session, and returns the URL of the authorization request. */
async function leave (
  auth: AuthContext,
  reply: FastifyReply,
  provider: ExternalProvider,
  fields: LoginFields,
  { purpose, asked }: Start
): Promise<URL> {
  const { redirects } = auth
  const { request } = reply
  const state = purpose === 'sign-in' ? randomToken() : randomToken() + NO_SIGN_IN
  const checks = { state, nonce: randomToken(), codeVerifier: randomToken() }
  const redirectUri = urlOf(auth, routeOfProvider(provider.name, 'callback'))
  const url = await callProvider(() => provider.authorizationUrl({ ...asked, ...checks, redirectUri }))
  await addPendingSignIn(reply, {
    ...checks,
    next: redirects.afterSuccess(request, fields.next),
    remember: isChecked(fields.remember),
    asked,
    startedOn: redirects.ofStart(request, fields.error_next),
    purpose,
    startedBy: principalOf(request)?.userId ?? null,
    provider: provider.name,
    startedAt: Date.now()
  })
  return url
}

/** 256 random bits as 43 characters: a valid code verifier too (RFC 7636 section 4.1). */
function randomToken (): string {
  return randomBytes(32).toString('base64url')
}

/** Ends the state of a linking, a consent or a reauthentication: a spent one is told so. */
export const NO_SIGN_IN = '-act'

export interface Failure { error: unknown, request: FastifyRequest, reply: FastifyReply }

/** Answers a failure on the page of the start, or where the authentication that lacks is asked. */
export async function failAtProvider (
  auth: AuthContext,
  provider: string,
  { error, request, reply }: Failure,
  { startedOn, next }: { startedOn: string | null, next: string | null }
): Promise<FastifyReply> {
  const step = await nextAuthenticationStep(auth, request, error, { next, needing: startedOn })
  const after = next === auth.site.publicPath('/') ? null : next
  const page = startedOn ?? (auth.redirects.login(request) && auth.redirects.loginWith(request, after))
  return answerFailure(auth, request, reply, error, { page, step, signInAt: provider })
}

/** Turns every error of a provider, also of one of the application, into a failure of it. */
export async function callProvider<T> (ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw providerFailure(error)
  }
}
