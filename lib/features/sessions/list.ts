import type { FastifyRequest } from 'fastify'
import { type RevokeSource, audit } from '../../audit.js'
import { digestOf } from '../../base/values.js'
import { AuthError } from '../../errors.js'
import { type AuthenticationState, shownSession } from '../../session/record.js'
import { signOutRow } from '../../session/row-sessions.js'
import type { ListedSession, StoredSessions } from '../../session/store.js'
import type { AuthContext } from '../../core/context.js'
import { announceSignOut } from '../../core/sign-out.js'

/** An open session of a user. */
export interface UserSession {
  /** Names the session in `endSession`. It signs no one in, unlike the id in the cookie. */
  id: string
  /** Whether it is the session of the request that was passed. */
  current: boolean
  /** When it got its id: at the sign-in, at a reauthentication or when all others were ended. */
  createdAt: Date
  /** The last request, to a tenth of the lifetime. */
  lastSeenAt: Date
  /** The header `User-Agent` of the browser, at most 256 characters; null without one. */
  userAgent: string | null
  /** How and when the user authenticated whose session it is. */
  methods: AuthenticationState['methods']
  /** The id of the user as whom the user sees the application in it; null for none. */
  impersonating: string | null
  /**
   * The id of the user whose session it is, where that one sees the application as this user; null
   * for a session of this user.
   */
  impersonator: string | null
}

/**
 * Lists the open sessions of a user, then those in which another one is shown this user, the last
 * used ones first.
 *
 * @param current a request whose session is marked
 * @throws AuthError `unknown_user`, `unsupported`
 */
export async function sessionsOfUser (
  auth: AuthContext, userId: string, current?: FastifyRequest
): Promise<UserSession[]> {
  const listed = await listOf(auth, userId)
  const currentHash = current === undefined ? null : idHashOf(current)
  return listed.map(session => ({
    id: publicId(session),
    current: session.idHash === currentHash,
    ...shownSession(session),
    impersonating: session.impersonator === null ? session.proofs.acting?.user.userId ?? null : null,
    impersonator: session.impersonator
  }))
}

/**
 * Ends one session of a user and announces it like a sign-out. One in which another user is shown
 * this one ends as a whole.
 *
 * @returns false when the user has no open session with this id
 * @throws AuthError `unknown_user`, `unsupported`
 */
export async function endSessionOfUser (
  auth: AuthContext, { userId, id }: { userId: string, id: string }, source: RevokeSource
): Promise<boolean> {
  const session = (await listOf(auth, userId)).find(session => publicId(session) === id)
  const ended = session === undefined ? null : await signOutRow(rowsIn(auth), session.idHash)
  if (ended === null) return false
  audit('session-end', { userId }, source)
  await announceSignOut(auth, ended, source)
  return true
}

/** Whether the session of a request has an id of {@link UserSession}. */
export function isSessionOf (request: FastifyRequest, id: string): boolean {
  return publicId({ idHash: idHashOf(request) }) === id
}

function rowsIn ({ listedSessions }: AuthContext): StoredSessions {
  if (listedSessions !== null) return listedSessions
  throw new AuthError('unsupported', {
    message: 'A session store of the application does not tell which sessions a user has.'
  })
}

interface Listed extends ListedSession { impersonator: string | null }

async function listOf (auth: AuthContext, userId: string): Promise<Listed[]> {
  const rows = rowsIn(auth)
  const status = await auth.accounts.status(userId)
  if (status === null) throw new AuthError('unknown_user')
  const now = Date.now()
  const [own, showing = []] = await Promise.all([
    rows.ofUser(userId, status.generation, now),
    auth.mayAct === null ? [] : rows.showing?.(userId, now)
  ])
  const present = showing.filter(({ proofs: { acting } }) =>
    acting !== undefined && acting.generation === status.generation && acting.until > now)
  return [
    ...own.map(session => ({ ...session, impersonator: null })),
    ...present.map(({ userId: impersonator, ...session }) => ({ ...session, impersonator }))
  ]
}

/** A hash of what is in the store: neither that nor the id in the cookie can be found from it. */
function publicId ({ idHash }: Pick<ListedSession, 'idHash'>): string {
  return digestOf(`listed session:${idHash}`)
}

function idHashOf ({ session }: FastifyRequest): string {
  // A destroyed session is null, and outside the path of its cookie it has no id.
  return digestOf(session?.sessionId ?? '')
}
