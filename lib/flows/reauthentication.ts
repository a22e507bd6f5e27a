import type { FastifyRequest } from 'fastify'
import { audit } from '../audit.js'
import type { AuthenticationMethod } from '../authentication.js'
import { AuthError } from '../errors.js'
import type { Caller } from '../local/fair-queue.js'
import type { LocalIdentityProvider } from '../local/identity-provider.js'
import type { ExternalProvider } from '../providers/provider.js'
import { renewSession } from '../session/principal.js'
import { type SessionRecord, withProof } from '../session/record.js'
import { type AuthStore, answerOfStore } from '../accounts/auth-store.js'
import { verifyPasswordOf } from './local.js'
import { confirmedRecord } from './refresh.js'
import type { ProviderIdentity } from './sign-in-rules.js'

/**
 * Verifies the password of the signed-in user again. The session gets a new id and counts as
 * authenticated now.
 *
 * @throws AuthError `unauthenticated`, `invalid` for a wrong password and for a user without one,
 * `invalid_state` when the user signed out meanwhile, `busy`, `unavailable`
 * @see OWASP ASVS 7.5.3
 */
export async function reauthenticate (
  request: FastifyRequest,
  local: LocalIdentityProvider,
  store: AuthStore,
  { password, caller }: { password: string, caller: Caller }
): Promise<void> {
  const record = await confirmedRecord(request, store)
  const matches = await verifyPasswordOf(record.principal.userId, { local, store, password, caller })
  if (!matches) throw new AuthError('invalid')
  await prove(request, record, 'password')
}

/**
 * Refuses to finish a further sign-in of the signed-in user at a provider unless the identity is
 * theirs; then the session gets a new id and counts as authenticated now.
 *
 * @throws AuthError `invalid_state` when the identity is another one or the user signed out
 * meanwhile, `unauthenticated`, `unavailable`
 */
export async function reauthenticateAs (
  request: FastifyRequest,
  store: AuthStore,
  { provider, subject }: ProviderIdentity
): Promise<void> {
  const record = await confirmedRecord(request, store)
  const owner = await store.findUser({ provider, subject })
  if (owner?.userId !== record.principal.userId) throw new AuthError('invalid_state')
  await prove(request, record, 'provider')
}

/** The longest time since the last proof of a user who gives no password, in seconds. */
export const RECENT_SECONDS = 600

/** The clocks of several machines differ by no more than this. */
const CLOCK_TOLERANCE_MS = 5000

/**
 * Whether a proof is recent. One from the future is not: the clock was set back.
 *
 * @param at milliseconds since the epoch
 * @param within seconds
 */
export function isRecent (at: number, within: number): boolean {
  const age = Date.now() - at
  return age >= -CLOCK_TOLERANCE_MS && age <= within * 1000
}

/**
 * Returns the record of the session, as {@link confirmedRecord}, if the user proved recently who
 * they are: for what an open session alone must not change.
 *
 * @throws AuthError `unauthenticated`, `reauthenticate`, `unavailable`
 */
export async function recentRecord (request: FastifyRequest, store: AuthStore): Promise<SessionRecord> {
  const record = await confirmedRecord(request, store)
  if (!isRecent(record.at, RECENT_SECONDS)) throw new AuthError('reauthenticate')
  return record
}

/** The methods by which a user can prove who they are: `password`, and the names of providers. */
export async function methodsOf (
  store: AuthStore,
  userId: string,
  providers: readonly ExternalProvider[]
): Promise<string[]> {
  const links = await answerOfStore(() => store.links(userId))
  const proving = new Set(providers.filter(provider => provider.provesAuthTime === true).map(({ name }) => name))
  const names = links.map(({ provider }) => provider)
  return [...names.includes('local') ? ['password'] : [], ...names.filter(name => proving.has(name))]
}

/**
 * Adds a proof to a session. The generation stays the one that was read before the proof: if the
 * user's sessions were ended meanwhile, this one has ended too.
 */
async function prove (request: FastifyRequest, record: SessionRecord, method: AuthenticationMethod): Promise<void> {
  const at = Date.now()
  await renewSession(request, { ...record, at, methods: withProof(record.methods, { method, at }) })
  audit('reauthentication', { userId: record.principal.userId, method }, request)
}
