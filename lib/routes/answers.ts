import type { FastifyReply, FastifyRequest } from 'fastify'
import Negotiator from 'negotiator'
import { AuthError } from '../errors.js'
import { ProviderFailure } from '../providers/failures.js'
import { sameOriginPath, withError } from '../redirects.js'
import { ownOrigin } from './own-origin.js'

/** A JSON client is one whose Accept prefers application/json to text/html (RFC 9110 section 12.5.1). */
export function wantsJson (request: FastifyRequest): boolean {
  return new Negotiator(request).mediaType(['text/html', 'application/json']) === 'application/json'
}

/** Where a browser goes after a success: `next` if it stays on this origin, else `/`. */
export function nextPath (request: FastifyRequest, baseUrl: string | null, next: unknown): string {
  return sameOriginPath(next, ownOrigin(request, baseUrl)) ?? '/'
}

/** The page of this application that the request came from; a foreign one is none of our business. */
export function refererPath (request: FastifyRequest, baseUrl: string | null): string | null {
  return sameOriginPath(request.headers.referer, ownOrigin(request, baseUrl))
}

/**
 * Logs a failure and answers it: status and JSON for a JSON client, else a redirect to `page` with `?error=<code>`, else status and JSON.
 *
 * @param page a path of this application on which the error can be shown
 */
export function answerFailure (request: FastifyRequest, reply: FastifyReply, failure: unknown, page: string | null): FastifyReply {
  const error = authErrorOf(failure)
  logFailure(request, error)
  if (error.retryAfter !== undefined) reply.header('Retry-After', error.retryAfter)
  if (page !== null && !wantsJson(request)) {
    // After a POST 303, so that the page is fetched with GET (RFC 9110 section 15.4.4).
    return reply.redirect(withError(page, error.code), request.method === 'POST' ? 303 : 302)
  }
  return reply.code(error.statusCode).send({ error: error.code, message: error.message })
}

/** A failure as one of our codes. What nobody foresaw is a store or a session that does not answer as it should: unavailable. */
function authErrorOf (failure: unknown): AuthError {
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
function logFailure (request: FastifyRequest, error: AuthError): void {
  const { code, statusCode, message, cause } = error
  const isEveryday = statusCode < 500 || code === 'busy'
  if (cause instanceof ProviderFailure ? cause.isEveryday : isEveryday) {
    // Other causes stay out: a parser's message quotes what it could not read, and that may be a password.
    const isProviders = cause instanceof Error && (cause instanceof ProviderFailure || code === 'access_denied')
    request.log.info({ code, ...(isProviders && { reason: cause.message }) }, message)
  } else {
    request.log.error({ err: error, code }, message)
  }
}
