import type { FastifyReply, FastifyRequest } from 'fastify'
import { type AuthChannel, announceRevoke } from '../channel.js'
import { audit } from '../audit.js'
import { renewSession, signOutSession } from '../session/principal.js'
import { recordIn } from '../session/record.js'
import { type AuthStore, answerOfStore, managedAccounts } from '../store/store.js'
import { presentPrincipal } from './refresh.js'

/**
 * Signs a user out everywhere: ends all of their sessions, then the one of the request.
 *
 * @throws AuthError `unsupported` when the store cannot end sessions, `unavailable`
 */
export async function signOutEverywhere (
  request: FastifyRequest,
  reply: FastifyReply,
  { store, channel }: { store: AuthStore, channel: AuthChannel }
): Promise<void> {
  const accounts = managedAccounts(store, 'signing out everywhere')
  // A session that has ended already must not end those of a later sign-in.
  const principal = await presentPrincipal(request, store)
  if (principal !== null) {
    const { userId } = principal
    await answerOfStore(() => accounts.changeUser(userId, { endSessions: true }))
    audit('sign-out-everywhere', { userId }, request)
  }
  await signOut(request, reply, channel)
}

/**
 * Keeps the session of a request when all sessions of its user were ended: it gets a new id and the
 * next generation. A session that had ended before is not kept, because its generation was lower.
 *
 * @throws AuthError `invalid_state` when the user signed out meanwhile, `unavailable`
 */
async function keepSession (request: FastifyRequest, userId: string): Promise<void> {
  const record = recordIn(request.session)
  if (record?.principal.userId !== userId) return
  await renewSession(request, { ...record, generation: record.generation + 1 })
}

/**
 * Announces that all sessions of a user were ended, and keeps that of the request: see
 * {@link keepSession}. Announces first: the sessions have ended, also when this one cannot be kept.
 *
 * @throws AuthError `invalid_state`, `unavailable`
 */
export async function endOtherSessions (
  request: FastifyRequest,
  channel: AuthChannel,
  userId: string
): Promise<void> {
  announceRevoke(channel, userId, request)
  await keepSession(request, userId)
}

/**
 * Signs a user out: ends the session, clears its cookie, then announces `revoke` on the channel. An
 * anonymous session ends too and announces nothing; of several calls at once, one announces.
 *
 * @throws AuthError `unavailable`
 */
export async function signOut (request: FastifyRequest, reply: FastifyReply, channel: AuthChannel): Promise<void> {
  const principal = await signOutSession(request, reply)
  if (principal !== null) announceRevoke(channel, principal.userId, request)
}
