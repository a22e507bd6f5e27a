import type { FastifyRequest } from 'fastify'
import { audit } from '../audit.js'
import type { AuthenticationMethod } from '../authentication.js'
import { AuthError } from '../errors.js'
import { renewSession } from '../session/lifecycle.js'
import { type SessionRecord, withProof } from '../session/record.js'
import type { AuthStore } from '../accounts/auth-store.js'
import { type Method, credentialOf } from './methods.js'
import { confirmedRecord } from '../current-user/refresh.js'
import type { ProviderIdentity } from './sign-in-rules.js'

/**
 * Authenticates the signed-in user again. The session gets a new id and counts as authenticated
 * now.
 *
 * @throws AuthError `unauthenticated`; what the method throws, such as `invalid`; `invalid_state`
 * when the user signed out meanwhile, `unavailable`
 * @see OWASP ASVS 7.5.3
 */
export async function reauthenticate (request: FastifyRequest, store: AuthStore, method: Method): Promise<void> {
  const record = await confirmedRecord(request, store)
  await method.verify(await credentialOf(store, record.principal.userId))
  await prove(request, record, method.name)
}

/**
 * Refuses to finish a further sign-in of the signed-in user at a provider unless the identity is
 * theirs; then the session gets a new id and counts as authenticated now.
 *
 * @throws AuthError `invalid_state` when the identity is another one or the user signed out
 * meanwhile, `unauthenticated`, `unavailable`
 */
export async function reauthenticateAs (
  request: FastifyRequest, store: AuthStore, { provider, subject }: ProviderIdentity
): Promise<void> {
  const record = await confirmedRecord(request, store)
  const owner = await store.findUser({ provider, subject })
  if (owner?.userId !== record.principal.userId) throw new AuthError('invalid_state')
  await prove(request, record, 'provider')
}

/**
 * Adds a proof to a session. The generation stays the one that was read before the proof: if the
 * user's sessions were ended meanwhile, this one has ended too.
 */
export async function prove (
  request: FastifyRequest, record: SessionRecord, method: AuthenticationMethod
): Promise<void> {
  const at = Date.now()
  await renewSession(request, { ...record, at, methods: withProof(record.methods, { method, at }) })
  audit('reauthentication', { userId: record.principal.userId, method }, request)
}
