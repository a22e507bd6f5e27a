import { isDeepStrictEqual } from 'node:util'
import type { FastifyRequest } from 'fastify'
import { mergeClaims } from '../claims.js'
import { AuthError } from '../errors.js'
import { leaveSession, updatePrincipal } from '../session/principal.js'
import { type Principal, principalOf } from '../session/record.js'
import { type AuthStore, answerOfStore } from '../store/store.js'

/**
 * Updates the principal of a session from the store. Signs the user out when the user, or the link
 * by which they signed in, no longer exists.
 *
 * @throws AuthError `unavailable`
 */
export async function refreshPrincipal (request: FastifyRequest, store: AuthStore): Promise<Principal | null> {
  const before = principalOf(request)
  if (before === null) return null
  const principal = await currentPrincipal(store, before)
  if (principal === null) await leaveSession(request)
  else if (!isDeepStrictEqual(principal, before)) await updatePrincipal(request, principal)
  return principal
}

/**
 * Returns the principal of a session if the user still exists, else signs the user out. The claims
 * are those of the session.
 *
 * @throws AuthError `unavailable`
 */
export async function presentPrincipal (request: FastifyRequest, store: AuthStore): Promise<Principal | null> {
  const principal = principalOf(request)
  if (principal === null) return null
  if (await answerOfStore(() => store.findUser({ userId: principal.userId })) !== null) return principal
  await leaveSession(request)
  return null
}

/**
 * Returns the principal of a session with the claims that the store has now.
 *
 * @throws AuthError `unauthenticated` for an anonymous session and for one that a refresh would
 * end, `unavailable`
 */
export async function confirmedPrincipal (request: FastifyRequest, store: AuthStore): Promise<Principal> {
  const inSession = principalOf(request)
  const principal = inSession === null ? null : await currentPrincipal(store, inSession)
  if (principal === null) throw new AuthError('unauthenticated')
  return principal
}

/**
 * Returns a principal with the claims that the store has now; null when the user, or the link by
 * which they signed in, no longer exists.
 */
export async function currentPrincipal (
  store: AuthStore,
  { userId, provider }: Principal
): Promise<Principal | null> {
  const [user, links] = await answerOfStore(() => Promise.all([store.findUser({ userId }), store.links(userId)]))
  const link = links.find(link => link.provider === provider)
  if (user === null || link === undefined) return null
  return { userId, provider, claims: mergeClaims(link.claims, user.claims) }
}
