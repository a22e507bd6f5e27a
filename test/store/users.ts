import { randomUUID } from 'node:crypto'
import type { Factor } from '../../lib/accounts/account.js'
import type { FactorChange } from '../../lib/accounts/factors.js'
import type { LinkedIdentity, NewUser } from '../../lib/accounts/identities.js'

export const HASH = '$argon2id$ and so on'

/** A user without an e-mail who signs in at the provider `dev`. */
export function newUser (user: Partial<NewUser> = {}): NewUser {
  const userId = randomUUID()
  return {
    userId,
    email: null,
    emailVerified: false,
    name: 'Somebody',
    claims: {},
    link: { provider: 'dev', subject: userId, claims: { sub: userId } },
    ...user
  }
}

/** A user who signs in with a password. */
export function localUser (email: string): NewUser {
  return newUser({ email, link: { provider: 'local', subject: email, claims: { sub: email } }, passwordHash: HASH })
}

/** What a provider says at a sign-in. */
export function identity (provider: string, subject: string, verifiedEmail: string | null = null): LinkedIdentity {
  return { provider, subject, claims: { sub: subject, ...(verifiedEmail !== null && { email: verifiedEmail }) }, verifiedEmail }
}

/** A factor that was never used. */
export function newFactor (factor: Partial<Factor> = {}): Factor {
  return {
    id: randomUUID(), kind: 'totp', name: null, secret: 'a sealed secret', data: {}, counter: 0, createdAt: Date.now(), usedAt: null, ...factor
  }
}

/** A change that gives a user these factors. */
export function toFactors (...factors: Factor[]): FactorChange {
  return { change: () => factors, endsSessions: false }
}
