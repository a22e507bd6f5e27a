/** The page after the link of a mail, in the browser that asked for the mail. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { AuthContext } from '../context.js'
import { ANY_ORIGIN, isOwnPath } from '../http/redirects.js'
import { pathOf } from './act.js'
import { setOwnCookie } from './notices.js'

/** Not in the link: a stranger may have asked for the mail, and chosen the page. */
const COOKIE = 'svc_next'

/** The time of the links that live longest. */
const MAX_AGE_S = 24 * 60 * 60

/**
 * Keeps the page that `target`, where the form of a mail leads, has as its own `next`; forgets the
 * one of an earlier mail.
 */
export function keepNextOfMail (auth: AuthContext, request: FastifyRequest, reply: FastifyReply, target: string): void {
  const next = isOwnPath(target) ? new URL(target, ANY_ORIGIN).searchParams.get('next') : null
  const path = auth.pages.asked(request, next)
  if (path === null || !isOwnPath(path)) return forgetNextOfMail(auth, request, reply)
  setOwnCookie(auth, reply, { name: COOKIE, value: path, maxAge: MAX_AGE_S })
}

export function forgetNextOfMail (auth: AuthContext, request: FastifyRequest, reply: FastifyReply): void {
  if (request.cookies[COOKIE] !== undefined) reply.clearCookie(COOKIE, { path: pathOf(auth, '') })
}

/** Returns the page that was kept, a path of this application; null for none. */
export function nextOfMail ({ pages }: AuthContext, request: FastifyRequest): string | null {
  const path = pages.asked(request, request.cookies[COOKIE])
  return path !== null && isOwnPath(path) ? path : null
}
