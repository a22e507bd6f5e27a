import type { EventEmitter } from 'node:events'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type AuditSource, type RevokeSource, announceRevoke, callListeners, sourceOf } from '../audit.js'
import { renewSession, signOutSession } from '../session/lifecycle.js'
import { type SignedOut, recordIn } from '../session/record.js'
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
export async function announceSignOut (
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
