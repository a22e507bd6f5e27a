import type { FastifyRequest } from 'fastify'
import type { User } from '../accounts/account.js'
import type { Accounts, OnCreate } from '../accounts/accounts.js'
import type { FactorChange } from '../accounts/factors.js'
import type { LinkedIdentity, NotedSignIn } from '../accounts/identities.js'
import { audit, sourceOf } from '../audit.js'
import type { IdentityClaims } from '../claims.js'
import { isAddedProvider } from './act.js'
import type { AuthContext } from './context.js'
import { canonicalEmail } from '../email.js'
import { AuthError } from '../errors.js'
import { type ProviderIdentity, creating } from '../hooks.js'
import type { Outbox } from './mail-links.js'
import type { Findings } from './findings.js'

type Held = Pick<Findings, 'user' | 'identity' | 'held' | 'method' | 'newUser' | 'outbox'>

/**
 * Writes what a first factor has found, and the factor that the sign-in sets up, now that no
 * further one is due.
 *
 * @throws AuthError `invalid_state` when what was found has changed; then nothing was written
 */
export async function writeHeld (
  auth: AuthContext, request: FastifyRequest, findings: Held, factors?: FactorChange
): Promise<User> {
  const { user, identity, held, method } = findings
  if (held === null && factors === undefined) return user
  const how = { method, request, promoted: true, ...(method === 'provider' && { identity }) } as const
  const onCreate = held === 'promotes' ? creating(auth, how) : undefined
  const written = await writeSignIn(auth.accounts, findings, { factors, onCreate })
  if (written === null) throw new AuthError('invalid_state')
  if (held === 'link') auditJoin(request, user, identity)
  return written
}

/** The actor is the user of the account, also where another user is signed in until then. */
export function auditJoin (request: FastifyRequest, { userId }: User, { provider }: ProviderIdentity): void {
  audit('link', { userId, provider, by: 'email' }, sourceOf(request, userId))
}

export async function writeSignIn (
  accounts: Accounts,
  { user, identity, held, newUser, outbox }: Omit<Held, 'method'>,
  { factors, onCreate }: { factors?: FactorChange | undefined, onCreate?: OnCreate | undefined } = {}
): Promise<User | null> {
  const noted = await accounts.signIn(user, { identity: linkOf(identity), held, newUser, factors }, { onCreate })
  if (noted === null) return null
  if (held === 'link') outbox?.notice('identity-linked', user)
  tellOwner(noted, outbox)
  return noted.user
}

/** Tells the owner of an address that a provider has moved the account from it, or disputes it. */
export function tellOwner ({ movedFrom, disputedFor }: Omit<NotedSignIn, 'user'>, outbox: Outbox | null): void {
  if (movedFrom !== null) outbox?.notice('email-changed', movedFrom)
  // The mailbox may be another person's.
  if (disputedFor !== null) outbox?.notice('email-disputed', { ...disputedFor, name: null })
}

export function linkOf ({ provider, subject, claims, emailVerified }: ProviderIdentity): LinkedIdentity {
  const verifiedEmail = emailVerified ? emailOf(claims) : null
  return { provider, subject, claims, verifiedEmail, ...(isAddedProvider(provider) && { connectionAt: Date.now() }) }
}

export function emailOf ({ email }: IdentityClaims): string | null {
  return email === undefined ? null : canonicalEmail(email)
}
