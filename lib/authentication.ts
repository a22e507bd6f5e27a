import type { Claims } from './claims.js'

/**
 * How a user authenticates. `mail`: by a link or a code in a mail; `application`: the application
 * vouched for them; `totp`: a code of an authenticator app; `recovery`: a recovery code.
 */
export type AuthenticationMethod = 'password' | 'provider' | 'mail' | 'application' | 'passkey' | 'totp' | 'recovery'

/** What a signed ID token says about how the user authenticated (OpenID Connect Core 2). */
export interface AuthenticationContext {
  /** The methods (`amr`, RFC 8176); empty where the token names none. */
  amr: readonly string[]
  /** The authentication context class (`acr`); null where the token names none. */
  acr: string | null
}

/** A proof of a user's identity. */
export interface Proof {
  /** How the user authenticated. */
  readonly method: AuthenticationMethod
  /** Milliseconds since the epoch. */
  readonly at: number
  /** Set for a sign-in at a provider whose own second factor counts: see `SecondFactor`. */
  readonly multiFactor?: true
}

/** What each method is, whatever the options: a session may have the proof of another process. */
const METHODS: Readonly<Record<string, MethodTraits | undefined>> = {
  password: { amr: 'pwd' },
  provider: {},
  mail: {},
  application: {},
  totp: { amr: 'otp', isFactor: true },
  recovery: { amr: 'otp', isFactor: true },
  passkey: { amr: 'pop', isFactor: true }
} satisfies Record<AuthenticationMethod, MethodTraits>

interface MethodTraits {
  /** The value of `amr` in tokens (RFC 8176). */
  readonly amr?: string
  /** Whether it is a factor of the account. A passkey verifies the user on their device. */
  readonly isFactor?: true
}

/** When the user last authenticated by a second factor, in milliseconds; null for never. */
export function secondFactorAt (methods: readonly Proof[]): number | null {
  return lastOf(methods, ({ method, multiFactor }) => multiFactor === true || METHODS[method]?.isFactor === true)
}

/** When they last authenticated by a factor of their account: a provider's factor is not one. */
export function ownFactorAt (methods: readonly Proof[]): number | null {
  return lastOf(methods, ({ method }) => METHODS[method]?.isFactor === true)
}

function lastOf (methods: readonly Proof[], counts: (proof: Proof) => boolean): number | null {
  const proofs = methods.filter(counts)
  return proofs.length === 0 ? null : Math.max(...proofs.map(({ at }) => at))
}

/** The claim `amr` of a token (RFC 8176); empty where it would say nothing. */
export function amrOf (methods: readonly Proof[]): string[] {
  const values = methods.flatMap(({ method }) => METHODS[method]?.amr ?? [])
  return [...new Set(values), ...secondFactorAt(methods) === null ? [] : ['mfa']]
}

/** A session that was replaced by a sign-in. */
export interface ReplacedSession {
  /** A digest of its id. */
  readonly digest: string
  /** Milliseconds since the epoch. */
  readonly endedAt: number
}

/** The signed-in user, as of the session. */
export interface Principal {
  /** The UUID of the user in the store. */
  userId: string
  /** The provider of the sign-in: `local`, `application`, `guest` or the name of another. */
  provider: string
  /** Identity claims, and the authorization claims over them, as of sign-in or last refresh. */
  claims: Claims
  /** Present for a guest, who has signed in by nothing yet. */
  guest?: true
  /** The id of the user who sees the application as this one, by `impersonate`; else absent. */
  impersonator?: string
}
