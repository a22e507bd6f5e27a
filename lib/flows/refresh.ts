import { isDeepStrictEqual } from 'node:util'
import type { FastifyRequest } from 'fastify'
import { mergeClaims } from '../claims.js'
import { AuthError } from '../errors.js'
import { leaveSession, updatePrincipal } from '../session/principal.js'
import { type Principal, principalOf } from '../session/record.js'
import { type AuthStore, answerOfStore } from '../store/store.js'

/**
 * Brings the principal of a session up to date with the store. Whoever is gone from there, or has come in by a link that is gone, is
 * signed out.
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
 * The principal of a session, for as long as his account exists; whoever was deleted is signed out. What he may do is what the session
 * says.
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
 * The principal of a session, as the store knows it now: where the session's word is not enough.
 *
 * @throws AuthError `unauthenticated` for an anonymous session and for one that a refresh would end, `unavailable`
 */
export async function confirmedPrincipal (request: FastifyRequest, store: AuthStore): Promise<Principal> {
  const inSession = principalOf(request)
  const principal = inSession === null ? null : await currentPrincipal(store, inSession)
  if (principal === null) throw new AuthError('unauthenticated')
  return principal
}

/** A principal as the store knows it now; null when the user is gone, or the link by which he came in. */
export async function currentPrincipal (store: AuthStore, { userId, provider }: Principal): Promise<Principal | null> {
  const [user, links] = await answerOfStore(() => Promise.all([store.findUser({ userId }), store.links(userId)]))
  const link = links.find(link => link.provider === provider)
  return user === null || link === undefined ? null : { userId, provider, claims: mergeClaims(link.claims, user.claims) }
}
