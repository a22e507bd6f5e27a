import type { FastifyReply, FastifyRequest } from 'fastify'
import type { AuthError } from '../errors.js'
import { type AuthenticationStep, failureBody, recordFailure } from './act.js'
import type { AuthContext } from './context.js'
import { withError } from './redirects.js'
import { wantsHtml, wantsJson } from './site.js'

/** How a failure is answered. */
export interface FailureAnswer {
  /** A path that can show the error; null for none. */
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
 * Logs a failure and answers it: a browser is redirected to the page with `?error=<code>`; without
 * one, the option `pages` has a page for it. All others get the status and a JSON body.
 */
export async function answerFailure (
  auth: AuthContext, request: FastifyRequest, reply: FastifyReply, failure: unknown,
  { page, step = null, word, signInAt }: FailureAnswer
): Promise<FastifyReply> {
  const refusal = recordFailure(request, reply, failure, signInAt)
  const target = step?.page ?? (page === null || wantsJson(request) ? null : withError(page, word ?? refusal.code))
  // After a POST 303, so that the browser fetches the page with GET (RFC 9110 section 15.4.4).
  if (target !== null) return reply.redirect(target, request.method === 'POST' ? 303 : 302)
  if (!auth.hasPages || !wantsHtml(request)) return sendFailure(reply, refusal, step)
  return (await import('./pages/page.js')).showFailure(auth, request, reply, refusal)
}

/** Answers with the status and a JSON body to every client: for routes that only scripts ask. */
export function answerWithStatus (error: Error, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return sendFailure(reply, recordFailure(request, reply, error))
}

function sendFailure (reply: FastifyReply, refusal: AuthError, step: AuthenticationStep | null = null): FastifyReply {
  const details = OWN_DETAILS.has(refusal.code) ? refusal.details : step?.details
  // A string, like Fastify's own errors: serializers and hooks of the application do not change it.
  const body = JSON.stringify({ ...failureBody(refusal), ...details })
  return reply.code(refusal.statusCode).type('application/json; charset=utf-8').send(body)
}
