import { STATUS_CODES } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { wantsHtml, wantsJson } from '../http/accept.js'
import { auditEntry, publish } from '../audit.js'
import { AuthError } from '../errors.js'
import type { ResolvedOptions } from '../options.js'
import { ownOrigin } from '../http/own-origin.js'
import { ProviderFailure } from '../providers/failures.js'
import { publicPath, sameOriginPath, startsLinking, withError } from '../http/redirects.js'

/** How a failure is answered. */
export interface FailureAnswer {
  /** A path of this application on which the error can be shown; null where scripts call, whom a redirect would look like a success. */
  page: string | null
  /** The provider of the sign-in that failed, when it was one. */
  signInAt?: string
}

/** Where a browser goes after a success: `next` if it stays on this origin, else the root of the application. */
export function nextPath (request: FastifyRequest, options: ResolvedOptions, next: unknown): string {
  return redirectPath(request, options, next) ?? publicPath('/', options.baseUrl)
}

/** Where a browser is shown an error: the page that `error_next` names, the page that the request came from, or the login page. */
export function errorPage (request: FastifyRequest, options: ResolvedOptions, errorNext?: unknown): string | null {
  return startPage(request, options, errorNext) ?? loginPage(request, options)
}

/** Where an error is shown of a sign-in that was started by this request: the page that `error_next` names, or the page that it came from. */
export function startPage (request: FastifyRequest, options: ResolvedOptions, errorNext: unknown): string | null {
  return redirectPath(request, options, errorNext) ?? redirectPath(request, options, request.headers.referer)
}

/** The application's login page, for a page request. A login page that starts a sign-in itself shows no errors. */
export function loginPage (request: FastifyRequest, { loginPage, providers, prefix, baseUrl }: ResolvedOptions): string | null {
  const startsSignIn = providers.some(({ name }) => loginPage?.startsWith(publicPath(`${prefix}/${name}/`, baseUrl)))
  return wantsHtml(request) && !startsSignIn ? loginPage : null
}

/** Logs a failure and answers it: status and JSON for a JSON client, else a redirect to the page with `?error=<code>`, else status and JSON. */
export function answerFailure (request: FastifyRequest, reply: FastifyReply, failure: unknown, { page, signInAt }: FailureAnswer): FastifyReply {
  const refusal = refusalOf(failure)
  const { code, statusCode } = refusal
  logFailure(request, refusal, signInAt)
  if (refusal.retryAfter !== undefined) reply.header('Retry-After', refusal.retryAfter)
  if (page !== null && !wantsJson(request)) {
    // After a POST 303, so that the page is fetched with GET (RFC 9110 section 15.4.4).
    return reply.redirect(withError(page, code), request.method === 'POST' ? 303 : 302)
  }
  // As a string, which neither a serializer nor a hook of the application changes: Fastify's own errors are sent so too.
  return reply.code(statusCode).type('application/json; charset=utf-8').send(JSON.stringify(failureBody(refusal)))
}

/** The body of an error in the shape of Fastify's own error responses: `error` holds the words of the status. */
export interface ErrorBody {
  statusCode: number
  code: string
  error: string
  message: string
}

/** The body that a JSON client receives. */
export function failureBody (failure: unknown): ErrorBody {
  const { statusCode, code, message } = refusalOf(failure)
  return { statusCode, code, error: STATUS_CODES[statusCode] ?? 'Unknown', message }
}

/** A failure as a refusal with a code. What nobody foresaw is a store or a session that does not answer as it should: unavailable. */
function refusalOf (failure: unknown): AuthError {
  if (failure instanceof AuthError) return failure
  const { validation, statusCode, message } = failure as { validation?: unknown, statusCode?: number, message?: string }
  if (validation !== undefined) {
    return new AuthError('invalid_request', { message: `The request is not of the expected form: ${message}.`, cause: failure })
  }
  if (statusCode === 429) return new AuthError('rate_limited', { cause: failure })
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) return new AuthError('invalid_request', { statusCode, cause: failure })
  return new AuthError('unavailable', { cause: failure })
}

/** A refusal is everyday; what only the operator can mend is an error, with its cause. */
function logFailure (request: FastifyRequest, refusal: AuthError, signInAt: string | undefined): void {
  const { code, statusCode, message, cause } = refusal
  const entry = signInAt === undefined ? { code } : { ...auditEntry('failure'), provider: signInAt, code }
  const isEveryday = statusCode < 500 || code === 'busy'
  if (cause instanceof ProviderFailure ? cause.isEveryday : isEveryday) {
    // Other causes stay out: a parser's message quotes what it could not read, and that may be a password.
    const isProviders = cause instanceof Error && (cause instanceof ProviderFailure || code === 'access_denied')
    request.log.info({ ...entry, ...(isProviders && { reason: cause.message }) }, message)
  } else {
    request.log.error({ ...entry, err: refusal }, message)
  }
  if (signInAt !== undefined) publish('failure', { provider: signInAt, code }, request)
}

/** A path of this application to which a browser may be sent: none that would add an identity to an account without a click of its owner. */
function redirectPath (request: FastifyRequest, { baseUrl }: ResolvedOptions, target: unknown): string | null {
  const path = sameOriginPath(target, ownOrigin(request, baseUrl))
  return path === null || startsLinking(path) ? null : path
}
