import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { auditEntry, failureEvent, publish } from '../audit.js'
import { isText } from '../claims.js'
import { AuthError, type AuthErrorCode } from '../errors.js'
import { ProviderFailure } from '../providers/failures.js'
import { principalOf } from '../session/record.js'
import { noteOf } from '../session/sent-requests.js'
import { type AuthContext, needed } from './context.js'
import { methodNamesOf } from './current-user.js'
import { ANY_ORIGIN, isOwnPath, withError } from './redirects.js'
import { wantsJson } from './site.js'

/** What users do: a form, a page or another route. */
export interface Act {
  /** Whether the options of the application ask for it; default always. */
  readonly when?: ((auth: AuthContext) => boolean) | undefined
  readonly mount: (mounting: Mounting) => void | Promise<void>
}

export interface Mounting {
  readonly scope: FastifyInstance
  readonly auth: AuthContext
  /** The pages of the plugin that show the failures of their forms, by their paths. */
  readonly failurePages: Map<string, FailurePage>
}

/** Answers a form of a page, which failed, with that page as it is with this query. */
export type FailurePage = (
  request: FastifyRequest, reply: FastifyReply, error: AuthError, query: URLSearchParams
) => Promise<FastifyReply>

export async function mountActs (scope: FastifyInstance, auth: AuthContext, acts: readonly Act[]): Promise<void> {
  const mounting = { scope, auth, failurePages: new Map() }
  for (const act of acts) if (act.when?.(auth) ?? true) await act.mount(mounting)
}

/** Where the routes are. */
export type Mountpoint = Pick<AuthContext, 'site' | 'prefix'>

/** Returns the path of a route below the prefix, such as `logout`, as browsers see it. */
export function pathOf ({ site, prefix }: Mountpoint, route: string): string {
  return site.routePath(`${prefix}/${route}`)
}

/** Returns the public URL of a route below the prefix, as it is registered with a provider. */
export function urlOf ({ site, prefix }: Mountpoint, route: string): string {
  return `${site.baseUrl}${prefix}/${route}`
}

// Routes of providers. One that is added while the application runs has a kind and an id in its
// name, `connection:{id}`, and its routes are below `connections/{id}`.

export function isAddedProvider (provider: string): boolean {
  return provider.includes(':')
}

type ProviderRouteName = 'login' | 'callback' | 'backchannel-logout'

/** Returns the route of a provider below the prefix, such as `google/login`. */
export function routeOfProvider (provider: string, route: ProviderRouteName): string {
  return `${provider.replace(':', 's/')}/${route}`
}

/** Returns where forms that start something at a provider lead; undefined where none is mounted. */
export function startPathOf ({ formPaths }: Pick<AuthContext, 'formPaths'>, provider: string): string | undefined {
  const [kind, id] = provider.split(':')
  const route = routeOfProvider(id === undefined ? provider : `${kind}::id`, 'login')
  const path = formPaths.get(route)
  return id === undefined ? path : path?.replace(':id', id)
}

/** Returns the provider at which a path starts a sign-in; null for another path. */
export function startedProvider (
  auth: Mountpoint & Pick<AuthContext, 'providers' | 'formPaths'>, path: string
): string | null {
  const [, kind, id] = /\/(\w+)s\/([^/]+)\/login$/.exec(path) ?? []
  const names = [...auth.providers.map(({ name }) => name), ...kind === undefined ? [] : [`${kind}:${id}`]]
  return names.find(name => startPathOf(auth, name) === path) ?? null
}

// The page after the link of a mail, in the browser that asked for the mail.

/** Not in the link: a stranger may have asked for the mail, and chosen the page. */
const NEXT_COOKIE = 'svc_next'

/** The time of the links that live longest. */
const NEXT_MAX_AGE_S = 24 * 60 * 60

/**
 * Keeps the page that `target`, where the form of a mail leads, has as its own `next`; forgets the
 * one of an earlier mail.
 */
export function keepNextOfMail (auth: AuthContext, request: FastifyRequest, reply: FastifyReply, target: string): void {
  const next = isOwnPath(target) ? new URL(target, ANY_ORIGIN).searchParams.get('next') : null
  const path = auth.redirects.asked(request, next)
  if (path === null || !isOwnPath(path)) return forgetNextOfMail(auth, request, reply)
  setOwnCookie(auth, reply, { name: NEXT_COOKIE, value: path, maxAge: NEXT_MAX_AGE_S })
}

export function forgetNextOfMail (auth: Mountpoint, request: FastifyRequest, reply: FastifyReply): void {
  if (request.cookies[NEXT_COOKIE] !== undefined) reply.clearCookie(NEXT_COOKIE, { path: pathOf(auth, '') })
}

/** Returns the page that was kept, a path of this application; null for none. */
export function nextOfMail ({ redirects }: Pick<AuthContext, 'redirects'>, request: FastifyRequest): string | null {
  const path = redirects.asked(request, request.cookies[NEXT_COOKIE])
  return path !== null && isOwnPath(path) ? path : null
}

/** Not imported: that would load all that node:http exports, also WebSocket, at each start. */
const { STATUS_CODES } = process.getBuiltinModule('node:http')

/** How a failure is answered. */
export interface FailureAnswer {
  /** A path that can show the error; null for scripts: a redirect would look like a success. */
  page: string | null
  /** How the user goes on, if what the request lacks is an authentication. */
  step?: AuthenticationStep | null
  /** What the page is told in place of the code. */
  word?: string
  /** The provider of the sign-in that failed; undefined for other requests. */
  signInAt?: string | undefined
}

/** The codes of refusals that say themselves how the client goes on. */
const OWN_DETAILS: ReadonlySet<string> = new Set(['choice_required', 'sso_required'])

/**
 * Logs a failure and answers it: a browser is redirected to the page with `?error=<code>`; a JSON
 * client, or a browser without a page, gets the status and a JSON body.
 */
export function answerFailure (
  request: FastifyRequest, reply: FastifyReply, failure: unknown, { page, step = null, word, signInAt }: FailureAnswer
): FastifyReply {
  const refusal = recordFailure(request, reply, failure, signInAt)
  const { code, statusCode } = refusal
  const target = step?.page ?? (page === null || wantsJson(request) ? null : withError(page, word ?? code))
  // After a POST 303, so that the browser fetches the page with GET (RFC 9110 section 15.4.4).
  if (target !== null) return reply.redirect(target, request.method === 'POST' ? 303 : 302)
  // A string, like Fastify's own errors: serializers and hooks of the application do not change it.
  const details = OWN_DETAILS.has(code) ? refusal.details : step?.details
  const body = JSON.stringify({ ...failureBody(refusal), ...details })
  return reply.code(statusCode).type('application/json; charset=utf-8').send(body)
}

/** Answers with the status and a JSON body to every client: for routes that only scripts ask. */
export function answerWithStatus (error: Error, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return answerFailure(request, reply, error, { page: null })
}

/** Logs a failure, tells the client when to try again, and returns it as an error with a code. */
export function recordFailure (
  request: FastifyRequest, reply: FastifyReply, failure: unknown, signInAt?: string
): AuthError {
  const refusal = refusalOf(failure)
  // A sign-in that waits for a second factor has not failed.
  const failedAt = refusal.code === 'second_factor_required' ? undefined : signInAt
  if (noteOf(request).hasSameFailure !== true) logFailure(request, refusal, failedAt)
  if (refusal.retryAfter !== undefined) reply.header('Retry-After', refusal.retryAfter)
  return refusal
}

/** Returns the body of a failure, as Fastify's own: `error` is the HTTP reason phrase. */
export function failureBody (failure: unknown): object {
  const { statusCode, code, message } = refusalOf(failure)
  return { statusCode, code, error: STATUS_CODES[statusCode] ?? 'Unknown', message }
}

/** The codes for errors of the application that have a status and no code. */
const CODES: Readonly<Record<number, AuthErrorCode>> = { 401: 'unauthenticated', 403: 'forbidden', 404: 'not_found' }

/** Returns an error with a code: what a hook of the application throws keeps its own. */
function refusalOf (failure: unknown): AuthError {
  if (failure instanceof AuthError) return failure
  const { validation, statusCode = 0, code, message = '' }: Partial<FastifyError> = Object(failure)
  if (validation !== undefined) {
    return new AuthError('invalid_request', {
      message: `The request does not have the expected form: ${message}.`,
      cause: failure
    })
  }
  if (statusCode === 429) return new AuthError('rate_limited', { cause: failure })
  const isDeliberate = statusCode >= 400 && statusCode < 600 && statusCode !== 500
  if (!isDeliberate) return new AuthError('internal_error', { cause: failure })
  const options = { statusCode, cause: failure }
  const known = statusCode < 500 ? CODES[statusCode] ?? 'invalid_request' : 'internal_error'
  // Of a parser or the router.
  if (isText(code) && code.startsWith('FST_ERR_')) return new AuthError(known, options)
  const own = new AuthError(known, statusCode < 500 ? { ...options, message } : options)
  return isText(code) ? Object.assign(own, { code }) : own
}

/** Logs refusals as info; what only the operator can repair as an error, with its cause. */
function logFailure (request: FastifyRequest, refusal: AuthError, signInAt: string | undefined): void {
  const { code, statusCode, message, cause } = refusal
  const failure = signInAt === undefined ? null : failureEvent(request, signInAt, code)
  const what = failure === null ? { code } : { ...auditEntry('failure'), ...failure }
  const entry = { ...what, ...originsOf(request, code) }
  const isEveryday = statusCode < 500 || code === 'busy'
  if (cause instanceof ProviderFailure ? cause.isEveryday : isEveryday) {
    // Other causes are not logged: a parser quotes its input, which may be a password.
    const isOfProvider = cause instanceof ProviderFailure ||
      (cause instanceof Error && ['access_denied', 'not_allowed'].includes(code))
    const { endpoint }: Partial<ProviderFailure> = Object(cause)
    request.log.info({ ...entry, ...(isOfProvider && { reason: cause.message, endpoint }) }, message)
  } else {
    // The sentence for the client is the message of the entry; the reason is that of the error.
    request.log.error({ ...entry, err: cause ?? refusal }, message)
  }
  if (failure !== null) publish('failure', failure, request)
}

/** What differs where a cookie or a page is of another origin than the request: for the log. */
function originsOf ({ headers: { origin, referer }, protocol, host }: FastifyRequest, code: string): object {
  if (code !== 'cross_origin' && code !== 'invalid_state') return {}
  return { origins: { page: origin ?? URL.parse(referer ?? '')?.origin ?? null, request: `${protocol}://${host}` } }
}

/** How a user goes on who lacks an authentication. */
export interface AuthenticationStep {
  details: Readonly<Record<string, unknown>>
  page: string | null
}

/**
 * Says how a user goes on if a request lacks a recent authentication, or a second factor.
 *
 * @param from `next`: the page after the sign-in; `needing`: the page that needs a recent one
 */
export async function nextAuthenticationStep (
  auth: AuthContext,
  request: FastifyRequest,
  error: unknown,
  { next, needing }: { next: string | null, needing: string | null }
): Promise<AuthenticationStep | null> {
  const { code, details = {} }: Partial<AuthError> = Object(error)
  if (code === 'second_factor_required') return { details, page: auth.redirects.forStep(request, 'step', next) }
  const principal = code === 'reauthenticate' ? principalOf(request) : null
  if (principal === null) return null
  // What needs a second factor names those that the user has.
  const needsFactor = details.methods !== undefined
  return {
    details: needsFactor ? details : { methods: await methodNamesOf(auth, principal.userId) },
    page: auth.redirects.forStep(request, 'reauthenticate', needing, needsFactor)
  }
}

// What a page says, once, of the form that led to it.

/**
 * The cookie with the word of a sentence. A parameter, signed or not, would say it to everyone who
 * opens the link: that their account was deleted, say. After that there is no session to keep it.
 */
const NOTICE_COOKIE = 'svc_notice'

/** Keeps the word of a sentence for the next page, if that is one of the plugin. */
export function keepNotice (
  auth: AuthContext, request: FastifyRequest, reply: FastifyReply, { target, word }: { target: string, word: unknown }
): void {
  if (!auth.hasPages || !target.startsWith(pathOf(auth, 'pages/'))) return
  if (typeof word !== 'string' || sentenceOf(auth, request, word) === null) return
  // Ten minutes: a page of recovery codes, or of a provider, may come before.
  setOwnCookie(auth, reply, { name: NOTICE_COOKIE, value: word, maxAge: 600 })
}

/** Sets a cookie that the routes of the plugin alone get; `maxAge` in seconds. */
function setOwnCookie (
  auth: Mountpoint, reply: FastifyReply, { name, value, maxAge }: { name: string, value: string, maxAge: number }
): void {
  const secure = auth.site.originOf(reply.request).startsWith('https:')
  reply.setCookie(name, value, { path: pathOf(auth, ''), httpOnly: true, sameSite: 'lax', secure, maxAge })
}

/** Returns the sentence that was kept for this page; null for none. It is shown once. */
export function takeNotice (
  auth: Mountpoint & Pick<AuthContext, 'layout'>, request: FastifyRequest, reply: FastifyReply
): string | null {
  const word = request.cookies[NOTICE_COOKIE]
  if (word === undefined) return null
  reply.clearCookie(NOTICE_COOKIE, { path: pathOf(auth, '') })
  return sentenceOf(auth, request, word)
}

function sentenceOf ({ layout }: Pick<AuthContext, 'layout'>, request: FastifyRequest, word: string): string | null {
  const { common: { saved, sent }, notices } = needed(layout, 'pages').textsFor(request)
  return new Map(Object.entries({ saved, sent, ...notices })).get(word) ?? null
}
