import type { EventEmitter } from 'node:events'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type AuditSource, type RevokeSource, announceRevoke, audit, callListeners, sourceOf } from '../audit.js'
import { digestOf } from '../base/values.js'
import { AuthError } from '../errors.js'
import { renewSession, signOutSession } from '../session/lifecycle.js'
import { type AuthenticationState, type SignedOut, recordIn, shownSession } from '../session/record.js'
import { signOutRow } from '../session/row-sessions.js'
import type { ListedSession, StoredSessions } from '../session/store.js'
import type { AuthContext } from './context.js'

/**
 * Announces that all sessions of a user were ended, and keeps the session of the request: it gets a
 * new id and the next generation. A session that had ended before is not kept, because its
 * generation was lower. Announces first: the sessions have ended, also when this one cannot be
 * kept.
 *
 * @param source who has ended them
 * @throws AuthError `invalid_state` when the user signed out meanwhile
 */
export async function endOtherSessions (
  { channel }: AuthContext, request: FastifyRequest, userId: string, source: AuditSource = sourceOf(request)
): Promise<void> {
  announceRevoke(channel, userId, { ...source, log: request.log })
  const record = recordIn(request.session)
  if (record?.principal.userId !== userId) return
  await renewSession(request, { ...record, generation: record.generation + 1 })
}

/**
 * Signs a user out: ends the session, clears its cookie, then announces `revoke` on the channel, in
 * the other processes too. An anonymous session ends too and announces nothing; of several calls at
 * once, one announces.
 *
 * @param announced the user whose sign-out is announced already
 */
export async function signOut (
  auth: Pick<AuthContext, 'capabilities' | 'channel'>, request: FastifyRequest, reply: FastifyReply, announced?: string
): Promise<void> {
  const source = sourceOf(request)
  for (const signedOut of await signOutSession(request, reply, announced)) {
    if (signedOut.userId !== announced) await announceSignOut(auth, signedOut, source)
  }
}

/** Announces that a user was signed out of one session, in each process. */
async function announceSignOut (
  { capabilities: kept, channel }: Pick<AuthContext, 'capabilities' | 'channel'>,
  { userId, isRecorded }: SignedOut,
  source: RevokeSource
): Promise<void> {
  announceRevoke(channel, userId, source)
  if (isRecorded) return
  await kept.revocations?.record(userId).catch((error: unknown) => {
    // The session has ended: to fail now would say that it has not.
    source.log.error({ err: error, event: 'revoke' }, 'other processes will not hear of a sign-out')
  })
}

/** Announces the revocations of other processes, once the application listens to the channel. */
export function followRevocations (
  { capabilities: { revocations }, channel }: Pick<AuthContext, 'capabilities' | 'channel'>, log: RevokeSource['log']
): void {
  if (revocations === null) return
  // The type of the channel has its own events only.
  const emitter: EventEmitter = channel
  const follow = (event: string | symbol): void => {
    if (event !== 'revoke') return
    emitter.off('newListener', follow)
    revocations.follow({ log, revoked: userId => { callListeners(channel, userId, log) } }).catch((error: unknown) => {
      log.error({ err: error, event: 'revoke' }, 'sign-outs in other processes cannot be heard of')
    })
  }
  emitter.on('newListener', follow)
}

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
  /** How and when the user authenticated. */
  methods: AuthenticationState['methods']
}

/**
 * Lists the open sessions of a user, the last used ones first.
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
    ...shownSession(session)
  }))
}

/**
 * Ends one session of a user and announces it like a sign-out.
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

async function listOf (auth: AuthContext, userId: string): Promise<ListedSession[]> {
  const rows = rowsIn(auth)
  const status = await auth.accounts.status(userId)
  if (status === null) throw new AuthError('unknown_user')
  return rows.ofUser(userId, status.generation, Date.now())
}

/** A hash of what is in the store: neither that nor the id in the cookie can be found from it. */
function publicId ({ idHash }: Pick<ListedSession, 'idHash'>): string {
  return digestOf(`listed session:${idHash}`)
}

function idHashOf ({ session }: FastifyRequest): string {
  // A destroyed session is null, and outside the path of its cookie it has no id.
  return digestOf(session?.sessionId ?? '')
}
