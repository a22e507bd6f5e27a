import type { FastifyRequest } from 'fastify'
import { audit } from '../audit.js'
import { checkedName } from '../claims.js'
import { AuthError } from '../errors.js'
import type { CredentialRules } from './credentials.js'
import { recentRecord } from './methods.js'
import { confirmedPrincipal, refreshPrincipal } from '../current-user/refresh.js'
import { endOtherSessions } from './sign-out.js'

/**
 * Changes the name of the signed-in user; an empty one removes it.
 *
 * @throws AuthError `unauthenticated`, `invalid_request`, `unavailable`
 */
export async function rename (
  request: FastifyRequest, { store, accounts }: Pick<CredentialRules, 'store' | 'accounts'>, name: string
): Promise<void> {
  const { userId } = await confirmedPrincipal(request, store)
  await accounts.changeUser(userId, { name: checkedName(name) })
  await refreshPrincipal(request, store)
}

/**
 * Removes a sign-in method of the signed-in user, who must have authenticated recently. The session
 * gets a new id; all other sessions of the user end.
 *
 * @param provider its name, or `local` for the password
 * @throws AuthError `unauthenticated`, `reauthenticate`, `last_link`, `not_found`, `unavailable`
 */
export async function removeMethod (
  request: FastifyRequest,
  rules: Pick<CredentialRules, 'store' | 'factors' | 'accounts' | 'channel'>,
  provider: string
): Promise<void> {
  const { store, accounts, channel } = rules
  const { principal: { userId }, generation } = await recentRecord(request, rules)
  const links = await store.links(userId)
  if (!links.some(link => link.provider === provider)) {
    throw new AuthError('not_found', { message: 'The user has no such sign-in method.' })
  }
  await accounts.removeLink(userId, provider, generation)
  audit('unlink', { userId, provider }, request)
  await endOtherSessions(request, channel, userId)
}
