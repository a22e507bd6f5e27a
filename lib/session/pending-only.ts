import type { FastifySessionOptions } from '@fastify/session'
import type { Session } from 'fastify'
import { PENDING_MS } from '../store/one-time-entries.js'
import { endCookie } from './lifetime.js'

type CookieOptions = NonNullable<FastifySessionOptions['cookie']>

/** What is noted in a session without a user that lives as long as an entry. */
interface LifetimeNote {
  /** Of a session that holds more than entries: milliseconds, a date; null for no limit. */
  fullLifetime: { maxAge: number | null, expires: string | Date | null }
  /** The hash of the entry that it was saved for. */
  firstEntry?: string
  /** The names of the members of the application that it has from the session which it replaced. */
  kept?: readonly string[]
}

/** The names of the application's members of a session. */
export function membersIn (session: Session): string[] {
  return Object.keys(session).filter(name => name !== 'cookie' && name !== 'svcAuth')
}

/**
 * Makes a new session end with the entry that it is saved for, and notes how long it would live
 * otherwise: anyone can start a sign-in, and most of them are never finished.
 */
export function shortenLifetime (session: Session, what: Pick<LifetimeNote, 'firstEntry' | 'kept'>): void {
  const { cookie } = session
  const fullLifetime = { maxAge: cookie.originalMaxAge, expires: cookie.expires ?? null }
  Object.assign(session, { svcAuth: { fullLifetime, ...what } satisfies LifetimeNote })
  cookie.maxAge = PENDING_MS
}

/** Gives a session that is {@link isOutgrown}, or that replaces another, its full lifetime. */
export function restoreLifetime (session: Session, from = session): void {
  const { fullLifetime } = noteIn(from)
  if (fullLifetime === undefined) return
  delete session.svcAuth
  const { maxAge, expires } = fullLifetime
  if (maxAge !== null) session.cookie.maxAge = maxAge
  else endCookie(session, expires === null ? null : new Date(expires))
}

/** Returns a session of which the pending entries are all that is known. */
export function pendingOnlySession ({ maxAge, expires }: CookieOptions): Session {
  const note: LifetimeNote = { fullLifetime: { maxAge: maxAge ?? null, expires: expires ?? null } }
  const session: Session = { cookie: { originalMaxAge: PENDING_MS, expires: new Date(Date.now() + PENDING_MS) } }
  return Object.assign(session, { svcAuth: note })
}

/** Whether a session holds nothing but pending entries. */
export function isPendingOnly (session: Session): boolean {
  return noteIn(session).fullLifetime !== undefined && membersIn(session).length === 0
}

/** Whether a session was shortened, and the application has written something into it since. */
export function isOutgrown (session: Session): boolean {
  const { fullLifetime, kept = [] } = noteIn(session)
  return fullLifetime !== undefined && membersIn(session).some(name => !kept.includes(name))
}

/** The hash of the entry that a session was saved for; null for other sessions. */
export function firstEntryIn (session: Session): string | null {
  return noteIn(session).firstEntry ?? null
}

function noteIn ({ svcAuth }: Session): Partial<LifetimeNote> {
  return Object(svcAuth)
}
