import type { FastifyRequest } from 'fastify'
import { audit } from '../audit.js'
import type { AuthenticationMethod } from '../authentication.js'
import type { AuthContext } from '../context.js'
import { current } from '../current-user/current.js'
import { type PasswordForm, verifyPassword } from '../current-user/recent.js'
import { AuthError } from '../errors.js'
import type { ProviderIdentity } from '../hooks.js'
import { renewSession } from '../session/lifecycle.js'
import { type SessionRecord, withProof } from '../session/record.js'

export async function reauthenticateByPassword (
  auth: AuthContext, form: PasswordForm, password: string
): Promise<void> {
  const { user: { userId }, links, record } = await current(auth, form.request)
  await verifyPassword(form, password, await auth.accounts.credentialOf(userId, links))
  await prove(form.request, record, 'password')
}

/** Authenticates the signed-in user again, by an identity that must be theirs: `invalid_state`. */
export async function reauthenticateAs (
  auth: AuthContext, request: FastifyRequest, { provider, subject }: ProviderIdentity
): Promise<void> {
  const { record } = await current(auth, request)
  const owner = await auth.accounts.findUser({ provider, subject })
  if (owner?.userId !== record.principal.userId) throw new AuthError('invalid_state')
  await prove(request, record, 'provider')
}

/**
 * Adds a proof to a session, which gets a new id and counts as authenticated now. The generation
 * stays the one that was read before the proof: if the user's sessions were ended meanwhile, this
 * one has ended too.
 *
 * @see OWASP ASVS 7.5.3
 */
export async function prove (
  request: FastifyRequest, record: SessionRecord, method: AuthenticationMethod
): Promise<void> {
  const at = Date.now()
  await renewSession(request, { ...record, at, methods: withProof(record.methods, { method, at }) })
  audit('reauthentication', { userId: record.principal.userId, method }, request)
}
