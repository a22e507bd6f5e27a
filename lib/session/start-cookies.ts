/**
 * The cookies of sign-ins that a browser has started without a session. Of several tabs that start
 * at the same instant, as when a browser restores them, each gets a session, and the browser keeps
 * the session cookie of the last answer alone.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { MAX_PENDING, PENDING_MS } from './store.js'
import { cookieFlags } from './lifetime.js'
import { signerOf, unsigned } from './cookies.js'

/** Longer than a sign-in may take: the page after it is known for one that took too long. */
const MAX_AGE = 3 * PENDING_MS / 1000

/** The length of a page after the sign-in that is kept: all headers of a request may have 8 KB. */
const MAX_NEXT = 256

/**
 * Lets the browser keep the session of a new sign-in beside its session cookie. It gives no more
 * than that: a session that signs a user in gets another id. The end of the value makes it useless
 * as the session cookie.
 *
 * @param hash of the state
 */
export function keepStart (reply: FastifyReply, hash: string, next: string): void {
  const { request, request: { session } } = reply
  if (namesIn(request).length >= MAX_PENDING) forgetStarts(reply)
  const kept = Buffer.from(next.length > MAX_NEXT ? '' : next).toString('base64url')
  const value = `${session.encryptedSessionId}.${kept}`
  reply.setCookie(nameOf(request, hash), value, { ...cookieFlags(session), maxAge: MAX_AGE })
}

/**
 * Returns the id of the session that has started a sign-in, if the browser has it, and the page
 * after it, which is not checked.
 */
export function startOf (request: FastifyRequest, hash: string): { id: string, next: string } | null {
  const value = request.cookies[nameOf(request, hash)] ?? ''
  const end = value.lastIndexOf('.')
  const id = unsigned(signerOf(request.session), value.slice(0, end))
  return id === null ? null : { id, next: Buffer.from(value.slice(end + 1), 'base64url').toString() }
}

/**
 * Lets the browser forget a start, or by default all of them: a sign-in that was started does not
 * outlive a sign-out.
 */
export function forgetStarts (reply: FastifyReply, hash?: string): void {
  const { request, request: { session } } = reply
  for (const name of namesIn(request, hash).slice(0, MAX_PENDING)) reply.clearCookie(name, cookieFlags(session))
}

function namesIn (request: FastifyRequest, hash?: string): string[] {
  return Object.keys(request.cookies).filter(name => name.startsWith(nameOf(request, hash)))
}

/** Where browsers accept it, with the prefix by which no other host can set the cookie. */
function nameOf ({ session }: FastifyRequest, hash = ''): string {
  const { secure, path, domain } = cookieFlags(session)
  return `${secure && path === '/' && domain === undefined ? '__Host-' : ''}svc_start_${hash.slice(0, 12)}`
}
