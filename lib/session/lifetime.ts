import type { Session } from 'fastify'

/** The lifetime of a session in which the user did not ask to be remembered. */
const NOT_REMEMBERED_MS = 24 * 60 * 60 * 1000

/** How long a session lasts whose user was asked, however often they visit. */
export interface Lifetime {
  /** The end, in milliseconds since the epoch. */
  until: number
  /** When the browser forgets the cookie; null for when it is closed. */
  cookieEnd: Date | null
}

/**
 * Returns the lifetime of a session that begins now.
 *
 * @param remembered the lifetime of a remembered session, in milliseconds
 * @see OWASP ASVS 7.3.2
 */
export function chosenLifetime (remembered: number, isRemembered: boolean): Lifetime {
  const until = Date.now() + (isRemembered ? remembered : NOT_REMEMBERED_MS)
  return { until, cookieEnd: isRemembered ? new Date(until) : null }
}

/** Makes the cookie of a session end at a time that visits do not move. */
export function endCookie ({ cookie }: Session, end: Date | null): void {
  cookie.originalMaxAge = null
  cookie.expires = end
}

/** Makes the cookie of a session that was read end when it ended before. */
export function keepEnd ({ cookie }: Session): void {
  const { originalExpires } = cookie as { originalExpires?: Date }
  if (originalExpires !== undefined) cookie.expires = originalExpires
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

/** Returns a session of a store of the application with the lifetime that it was saved with. */
export function withOwnLifetime (session: Session): Session {
  if (session.svcAuth?.until === undefined) return session
  // A store in memory may hand out the session that was saved, whose cookie computes its members.
  const cookie: Session['cookie'] = JSON.parse(JSON.stringify(session.cookie))
  return { ...session, cookie: withoutMaxAge(cookie) }
}
