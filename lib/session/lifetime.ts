import type { FastifySessionOptions } from '@fastify/session'
import type { Session } from 'fastify'
import type { SentRequest } from '../schema/sessions.js'
import { DAY_MS } from '../base/values.js'
import { PENDING_MS } from './store.js'

export type CookieOptions = NonNullable<FastifySessionOptions['cookie']>

/**
 * Returns when a session ends that begins now, in milliseconds since the epoch and however often
 * the user visits, and when its cookie does: null for when the browser is closed.
 *
 * @param remembered the lifetime of a remembered session in milliseconds; null for what the cookie
 *   of the options says
 * @see OWASP ASVS 7.3.2
 */
export function chosenLifetime (
  remembered: number | null, isRemembered: boolean
): { until?: number, cookieEnd?: Date | null } {
  if (remembered === null) return {}
  const until = Date.now() + (isRemembered ? remembered : DAY_MS)
  return { until, cookieEnd: isRemembered ? new Date(until) : null }
}

/** The flags of the cookie of a session, for @fastify/cookie, whose defaults may be others. */
export function cookieFlags ({ cookie }: Session) {
  const { path = '/', domain, httpOnly = true, secure, sameSite }: Session['cookie'] = cookie
  const { partitioned = false } = cookie as { partitioned?: boolean }
  // @fastify/session uses null for an absent flag.
  const flags = { path, httpOnly, secure: secure === true, sameSite: sameSite ?? false, partitioned }
  return { ...flags, ...(domain && { domain }) }
}

/** The lifetime of a session whose cookie has none: the browser keeps it until it is closed. */
export const BROWSER_SESSION_MS = 7 * DAY_MS

/** Makes the cookie of a session end at a time that visits do not move. */
export function endCookie ({ cookie }: Session, end: Date | null): void {
  cookie.originalMaxAge = null
  cookie.expires = end
}

/** When the cookie of a session ends, as it was read: @fastify/session moves `expires` on. */
export function cookieEndOf ({ cookie }: Session): Date | null {
  const { originalExpires, expires = null }: Session['cookie'] & { originalExpires?: Date } = cookie
  return originalExpires ?? expires
}

/** Whether a session has reached the end of its lifetime; its store may have it still. */
export function isOver (session: Session | null | undefined): boolean {
  const until = session?.svcAuth?.until
  return until !== undefined && !(until > Date.now())
}

/**
 * Returns a cookie that was read as @fastify/session must have it. Otherwise it would give a cookie
 * without a lifetime the lifetime of the options.
 */
export function withoutMaxAge (cookie: Session['cookie']): Session['cookie'] {
  return Object.assign(cookie, { maxAge: null })
}

/** What is noted in a session without a user that lives as long as an entry. */
interface LifetimeNote {
  /** Of a session that holds more than entries: milliseconds, a date; null for no limit. */
  fullLifetime: { maxAge: number | null, expires: string | Date | null }
  /** The hash of the entry that it was saved for. */
  firstEntry?: string
  /** The names of the application's members that it has from the session which it replaced. */
  preserved?: readonly string[]
  sent?: SentRequest
}

/** The names of the application's members of a session. */
export function membersIn (session: Session): string[] {
  return Object.keys(session).filter(name => name !== 'cookie' && name !== 'svcAuth')
}

/**
 * Makes a new session end with the entry that it is saved for, and notes how long it would live
 * otherwise: anyone can start a sign-in, and most of them are never finished.
 */
export function shortenLifetime (session: Session, what: Omit<LifetimeNote, 'fullLifetime'>): void {
  const { cookie } = session
  const fullLifetime = { maxAge: cookie.originalMaxAge, expires: cookie.expires ?? null }
  Object.assign(session, { svcAuth: { fullLifetime, ...what } satisfies LifetimeNote })
  cookie.maxAge = PENDING_MS
}

/** Gives a session that holds more than entries, or that replaces another, its full lifetime. */
export function restoreLifetime (session: Session, from = session): void {
  const { fullLifetime } = noteIn(from)
  if (fullLifetime === undefined) return
  delete session.svcAuth
  const { maxAge, expires } = fullLifetime
  if (maxAge !== null) session.cookie.maxAge = maxAge
  else endCookie(session, expires === null ? null : new Date(expires))
}

export function noteIn ({ svcAuth }: Session): Partial<LifetimeNote> {
  return Object(svcAuth)
}

/** The request that has started a session, with a user or without. */
export function sentIn (session: Session): SentRequest | undefined {
  return noteIn(session).sent
}
