import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { auditEntry, failureEvent, publish } from '../audit.js'
import { isText } from '../claims.js'
import { canonicalEmail } from '../email.js'
import { AuthError, type AuthErrorCode } from '../errors.js'
import { ProviderFailure } from '../providers/failures.js'
import { principalOf } from '../session/record.js'
import { noteOf } from '../session/sent-requests.js'
import { type AuthContext, needed } from './context.js'
import { MAIL_INTERVAL_MS } from './mail.js'
import { methodNamesOf } from './current-user.js'
import { ANY_ORIGIN, isOwnPath } from './redirects.js'

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
  if (path === null || !isOwnPath(path)) return forgetCookie(auth, request, reply, NEXT_COOKIE)
  setOwnCookie(auth, reply, { name: NEXT_COOKIE, value: path, maxAge: NEXT_MAX_AGE_S })
}

/** Forgets what was kept for the link of a mail, and for the page before: it was used. */
export function forgetMail (auth: Mountpoint, request: FastifyRequest, reply: FastifyReply): void {
  for (const name of [NEXT_COOKIE, ASKED_COOKIE]) forgetCookie(auth, request, reply, name)
}

/** Returns the page that was kept, a path of this application; null for none. */
export function nextOfMail ({ redirects }: Pick<AuthContext, 'redirects'>, request: FastifyRequest): string | null {
  const path = redirects.asked(request, request.cookies[NEXT_COOKIE])
  return path !== null && isOwnPath(path) ? path : null
}

/** Not imported: that would load all that node:http exports, also WebSocket, at each start. */
const { STATUS_CODES } = process.getBuiltinModule('node:http')

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

/** The cookie with the address to which a form asks for a mail: URLs are logged, and sent on. */
const ASKED_COOKIE = 'svc_asked'

/** A mail that a form of a page asks for. */
export interface AskedMail {
  readonly form: 'register' | 'forgot-password'
  /** In canonical form. */
  readonly email: string
}

/** Keeps the word of a sentence, and what was asked for, for the next page, if of the plugin. */
export function keepNotice (
  auth: AuthContext, request: FastifyRequest, reply: FastifyReply,
  { target, word, asked }: { target: string, word: unknown, asked?: AskedMail | undefined }
): void {
  if (!auth.hasPages || !target.startsWith(pathOf(auth, 'pages/'))) return
  if (asked !== undefined) {
    const { form, email } = asked
    const before = askedMail(request)
    const isSame = before?.form === form && before.email === email
    // Where nothing was sent this time, the time to wait does not begin again.
    const wait = (isSame && before.wait) || MAIL_INTERVAL_MS
    const value = `${form} ${Date.now() + wait} ${email}`
    setOwnCookie(auth, reply, { name: ASKED_COOKIE, value, maxAge: 600 })
  }
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

function forgetCookie (auth: Mountpoint, request: FastifyRequest, reply: FastifyReply, name: string): void {
  if (request.cookies[name] !== undefined) reply.clearCookie(name, { path: pathOf(auth, '') })
}

/**
 * Returns the mail that was asked for, and for how many milliseconds its mailbox may get no other;
 * null for none. The cookie may be of another application of the domain: it names an address, and
 * nothing else.
 */
export function askedMail ({ cookies }: FastifyRequest): AskedMail & { wait: number } | null {
  const [form, until, typed = ''] = cookies[ASKED_COOKIE]?.split(' ') ?? []
  const email = canonicalEmail(typed)
  if (email === null || (form !== 'register' && form !== 'forgot-password')) return null
  const wait = Number(until) - Date.now()
  return { form, email, wait: wait > 0 && wait <= MAIL_INTERVAL_MS ? wait : 0 }
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
