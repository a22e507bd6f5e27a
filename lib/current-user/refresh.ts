import { isDeepStrictEqual } from 'node:util'
import type { FastifyRequest } from 'fastify'
import { mergeClaims } from '../claims.js'
import { AuthError } from '../errors.js'
import { endSession, updatePrincipal } from '../session/lifecycle.js'
import { type Principal, ReadRecord, type SessionRecord, principalOf, recordIn } from '../session/record.js'
import type { AccountStatus } from '../accounts/account.js'
import { Accounts } from '../accounts/accounts.js'
import { type AuthStore, wrapStoreErrors } from '../accounts/auth-store.js'

/**
 * Updates the principal of a session from the store. Signs the user out when the user, or the link
 * by which they signed in, no longer exists, and when their sessions were ended.
 *
 * @throws AuthError `unavailable`
 */
export async function refreshPrincipal (request: FastifyRequest, store: AuthStore): Promise<Principal | null> {
  for (;;) {
    const record = recordIn(request.session)
    if (record === null) return null
    const principal = await currentPrincipal(store, record.principal, record.generation)
    if (isDeepStrictEqual(principal, record.principal)) return principalOf(request)
    // Read once more when it is written: another request may have written what came later, which
    // this one would undo.
    await (principal === null ? endSession(request) : updatePrincipal(request, principal))
  }
}

/**
 * Returns the principal of a session if the user still exists and their sessions were not ended,
 * else signs the user out. The claims are those of the session.
 *
 * @throws AuthError `unavailable`
 */
export async function presentPrincipal (request: FastifyRequest, store: AuthStore): Promise<Principal | null> {
  return await presentStatus(request, store) === null ? null : principalOf(request)
}

/**
 * Returns what a guard asks about the user of a session, under the same conditions.
 *
 * @throws AuthError `unavailable`
 */
export async function presentStatus (request: FastifyRequest, store: AuthStore): Promise<AccountStatus | null> {
  const record = recordIn(request.session)
  if (record === null) return null
  const status = ReadRecord.fresh(request.session).status ?? await new Accounts(store).status(record.principal.userId)
  if (status?.generation === record.generation) return status
  await endSession(request)
  return presentStatus(request, store)
}

/**
 * Returns the principal of a session with the claims that the store has now.
 *
 * @throws AuthError `unauthenticated` for an anonymous session and for one that a refresh would
 * end, `unavailable`
 */
export async function confirmedPrincipal (request: FastifyRequest, store: AuthStore): Promise<Principal> {
  return (await confirmedRecord(request, store)).principal
}

/**
 * Returns the record of a session with such a principal.
 *
 * @throws AuthError as {@link confirmedPrincipal}
 */
export async function confirmedRecord (request: FastifyRequest, store: AuthStore): Promise<SessionRecord> {
  const record = recordIn(request.session)
  const principal = record === null ? null : await currentPrincipal(store, record.principal, record.generation)
  if (record === null || principal === null) throw new AuthError('unauthenticated')
  return { ...record, principal }
}

/**
 * Returns the record of a session with the principal that was read together with it a moment ago,
 * else as {@link confirmedRecord} does.
 *
 * @throws AuthError as {@link confirmedPrincipal}
 */
export async function presentRecord (request: FastifyRequest, store: AuthStore): Promise<SessionRecord> {
  const record = recordIn(request.session)
  const { status, presentClaims } = ReadRecord.fresh(request.session)
  if (record === null || status === undefined || presentClaims === undefined) return confirmedRecord(request, store)
  const claims = status.generation === record.generation ? presentClaims() : null
  if (claims === null) throw new AuthError('unauthenticated')
  return { ...record, principal: { ...record.principal, claims } }
}

/**
 * Returns a principal with the claims that the store has now; null when the user, or the link by
 * which they signed in, no longer exists.
 *
 * @param generation null also when the user has another one: their sessions were ended
 */
export async function currentPrincipal (
  store: AuthStore,
  { userId, provider }: Principal,
  generation?: number
): Promise<Principal | null> {
  const [user, links] = await wrapStoreErrors(() => Promise.all([store.findUser({ userId }), store.links(userId)]))
  const link = links.find(link => link.provider === provider)
  if (user === null || link === undefined) return null
  if (generation !== undefined && generation !== (user.generation ?? 0)) return null
  return { userId, provider, claims: mergeClaims(link.claims, user.claims) }
}
