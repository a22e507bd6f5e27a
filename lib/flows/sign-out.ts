import type { FastifyReply, FastifyRequest } from 'fastify'
import { type AuthChannel, announceRevoke } from '../channel.js'
import { endSession } from '../session/principal.js'

/**
 * Signs a user out: ends the session, clears its cookie, then announces `revoke` on the channel. An
 * anonymous session ends too and announces nothing; of several calls at once, one announces.
 *
 * @throws AuthError `unavailable`
 */
export async function signOut (request: FastifyRequest, reply: FastifyReply, channel: AuthChannel): Promise<void> {
  const principal = await endSession(request, reply)
  if (principal !== null) announceRevoke(channel, principal.userId, request)
}
