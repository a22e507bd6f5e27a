import { inspect } from 'node:util'
import { isPlainObject } from '../claims.js'
import { AuthError, OptionsError, assertKnownOptions } from '../errors.js'
import { secretsOf } from '../secrets.js'
import type { Caller } from './fair-queue.js'
import { type Argon2Cost, type Argon2Options, DEFAULT_ARGON2_COST, HIGHEST_ARGON2_COST, PasswordHasher, type PasswordVerdict } from './password.js'
import { type ExtraClaims, TokenIssuer } from './token.js'
import type { TokenClaims, TokenUse } from './token-claims.js'
import { type Jwk, type PublicJwk, type TokenKeys, keysOfSecrets, keysOfSigningKey } from './token-keys.js'

/** What visitors may claim for themselves at registration: anyone can post that form. */
export interface RegistrationPolicy {
  /** Values of the form field `role` that are granted; default none. */
  roles?: readonly string[]
  /** Whether the form may set the claim `email_verified`; default false. It never counts as proof when identities are linked. */
  emailVerified?: boolean
}

/** An application's own rule for passwords: false, or a sentence that says why, refuses with `weak_password`. */
export type PasswordCheck = (password: string, context: { email: string }) => boolean | string | Promise<boolean | string>

/** What {@link LocalIdentityProvider} takes. */
export interface LocalIdentityProviderOptions {
  /** At least 32 characters; default the setting LOCAL_IDP_SECRET. Of an array the first signs and all verify. */
  secret?: string | readonly string[] | undefined
  /**
   * In place of `secret`: a private JWK (ES256 or EdDSA) or several, of which the first signs and all
   * verify. The public keys are published at `GET /auth/local/jwks.json`, so that services can verify
   * tokens with a {@link TokenVerifier} and make none.
   */
  signingKey?: Jwk | readonly Jwk[] | undefined
  /** The `iss` of tokens; default `svc-auth-local`. */
  issuer?: string | undefined
  /** Seconds a token lives unless said otherwise; default 900. */
  ttl?: number | undefined
  /** Cost of password hashes; default m = 19456 KiB, t = 2, p = 1. */
  argon2?: Argon2Options | undefined
  /** What new passwords have to be, besides 8 to 1024 bytes long. */
  password?: {
    /** Asked at registration; default none. */
    check?: PasswordCheck
  } | undefined
  /** `false` mounts no register route. */
  registration?: false | RegistrationPolicy | undefined
}

const KNOWN_OPTIONS = ['secret', 'signingKey', 'issuer', 'ttl', 'argon2', 'password', 'registration']

/**
 * The built-in identity provider: passwords and tokens. It needs no server, so command line tools and workers use it too.
 *
 * @example
 * ```ts
 * const local = new LocalIdentityProvider() // secret: LOCAL_IDP_SECRET
 * const token = await local.issueIdToken(user.userId, { scope: 'reports' }, 60)
 * const claims = await local.verifyIdToken(token)
 * ```
 */
export class LocalIdentityProvider {
  /** The `iss` of tokens. */
  readonly issuer: string
  /** Seconds a token lives unless said otherwise. */
  readonly ttl: number
  /** What the registration form may ask for, or null when there is none. */
  readonly registration: Required<RegistrationPolicy> | null
  /** The public keys of `signingKey`, as they are published (RFC 7517 section 5); null with a secret. */
  readonly jwks: { readonly keys: readonly PublicJwk[] } | null
  readonly #passwords: PasswordHasher
  readonly #tokens: TokenIssuer
  readonly #check: PasswordCheck

  /**
   * Reads the secret from the setting LOCAL_IDP_SECRET unless it or a signing key is given.
   *
   * @throws OptionsError naming the option
   */
  constructor (options: LocalIdentityProviderOptions = {}) {
    assertObject(options)
    assertKnownOptions('LocalIdentityProvider', options, KNOWN_OPTIONS)
    const { issuer = 'svc-auth-local', ttl = 900, registration = {}, password = {}, argon2 = {} } = options
    if (typeof issuer !== 'string' || issuer === '') throw new OptionsError('issuer must be a non-empty string')
    if (!Number.isInteger(ttl) || ttl < 1 || ttl > 2_592_000) throw new OptionsError('ttl must be a whole number of seconds from 1 to 2592000 (30 days)')

    this.issuer = issuer
    this.ttl = ttl
    this.registration = registrationPolicy(registration)
    this.#check = passwordCheck(password)
    this.#passwords = new PasswordHasher(argon2Cost(argon2))
    const keys = tokenKeys(options)
    this.jwks = keys.published === null ? null : Object.freeze({ keys: keys.published })
    this.#tokens = new TokenIssuer(issuer, keys)
  }

  /**
   * Issues a signed JWT for a user: HS256 with a secret, ES256 or EdDSA with a signing key.
   *
   * @param userId the `sub` of the token: the id of a user, or another non-empty string, such as the name of a program
   * @param claims extra claims: a plain JSON object without `iss`, `iat`, `exp`, `jti`, `nbf`, `aud`,
   *   `purpose`, and without a `sub` that differs from `userId`
   * @param ttl seconds, 1 to 2592000 (30 days)
   * @param use makes a token for one use only, which {@link verifyIdToken} accepts only when it is told the same
   * @returns the JWT in the compact serialization, at most 16384 characters
   * @throws AuthError `invalid_claims`, `invalid_ttl`; OptionsError for a use that is not one
   * @see RFC 7519 section 7.1
   */
  async issueIdToken (userId: string, claims: ExtraClaims = {}, ttl: number = this.ttl, use: TokenUse = {}): Promise<string> {
    return this.#tokens.issue(userId, claims, ttl, use)
  }

  /**
   * Verifies a JWT: signature, issuer, times and use. A token of another library with the same key and
   * issuer is good too, if it has `sub`, `iat` and `exp`. `iat` and `nbf` may be five seconds ahead of the
   * clock, `exp` has no leeway.
   *
   * @param token in the compact serialization, at most 16384 characters
   * @param use what the token must have been issued for, to the letter; without one, a token for one use is refused
   * @returns the decoded claims
   * @throws AuthError `invalid_token`, whatever is wrong with the token; OptionsError for a use that is not one
   * @see RFC 7519 section 7.2, RFC 8725 section 3
   */
  async verifyIdToken (token: string, use: TokenUse = {}): Promise<TokenClaims> {
    return this.#tokens.verify(token, use)
  }

  /**
   * Hashes a password that a user chose, if the application's own rule has nothing against it.
   *
   * @param password 8 to 1024 bytes in NFKC
   * @param context what the rule is told besides: the e-mail in its canonical form
   * @param caller for whom: with an `address` requests of other addresses keep their turn, and when `signal`
   * aborts, the password no longer waits for its turn
   * @returns an Argon2id PHC string
   * @throws AuthError `weak_password`, `busy` when too many passwords wait; the reason of `signal`
   * @see RFC 9106, RFC 8265 section 4
   */
  async hashPassword (password: string, context: { email: string }, caller?: Caller): Promise<string> {
    const verdict = await this.#check(password, context)
    if (verdict !== true) throw new AuthError('weak_password', typeof verdict === 'string' ? { message: verdict } : {})
    return this.#passwords.hash(password, caller)
  }

  /**
   * Hashes a password that is in use already, with today's cost; the application's rule for new passwords is not asked.
   *
   * @param caller as of {@link hashPassword}
   * @returns an Argon2id PHC string
   * @throws AuthError `weak_password` when it is not 8 to 1024 bytes long, `busy`; the reason of `signal`
   */
  async rehashPassword (password: string, caller?: Caller): Promise<string> {
    return this.#passwords.hash(password, caller)
  }

  /**
   * Compares a password with a stored hash; takes the same time when there is none.
   *
   * @param passwordHash an Argon2id PHC string, or null
   * @param caller as of {@link hashPassword}
   * @throws AuthError `busy`; the reason of `signal`
   */
  async verifyPassword (passwordHash: string | null, password: string, caller?: Caller): Promise<PasswordVerdict> {
    return this.#passwords.verify(passwordHash, password, caller)
  }

  /** What logs print of it: never the secret. */
  toJSON (): { issuer: string, ttl: number } {
    return { issuer: this.issuer, ttl: this.ttl }
  }

  /** What `console.log` prints of it: never the secret. */
  [inspect.custom] (): string {
    return `LocalIdentityProvider ${inspect(this.toJSON())}`
  }
}

function tokenKeys ({ secret, signingKey }: LocalIdentityProviderOptions): TokenKeys {
  if (signingKey === undefined) return keysOfSecrets(secretsOf(secret, 'secret', 'LOCAL_IDP_SECRET'))
  if (secret !== undefined) throw new OptionsError('signingKey stands in place of secret: give one of them')
  return keysOfSigningKey(signingKey)
}

function registrationPolicy (registration: unknown): Required<RegistrationPolicy> | null {
  if (registration === false) return null
  const { roles = [], emailVerified = false, ...unknown } = isPlainObject(registration) ? registration : { unknown: registration }
  if (Object.keys(unknown).length > 0 || typeof emailVerified !== 'boolean' || !isStringList(roles)) {
    throw new OptionsError('registration must be false or { roles: string[], emailVerified: boolean }')
  }
  return { roles: [...roles], emailVerified }
}

function assertObject (options: unknown): void {
  if (!isPlainObject(options)) throw new OptionsError('LocalIdentityProvider takes an object of options, such as { secret }')
}

function passwordCheck (password: unknown): PasswordCheck {
  const { check = () => true, ...unknown } = isPlainObject(password) ? password : { unknown: password }
  if (!isPasswordCheck(check) || Object.keys(unknown).length > 0) throw new OptionsError('password must be { check: (password, { email }) => boolean or a sentence }')
  return check
}

function isPasswordCheck (check: unknown): check is PasswordCheck {
  return typeof check === 'function'
}

function argon2Cost (options: Argon2Options): Argon2Cost {
  const cost = { ...DEFAULT_ARGON2_COST, ...options }
  const { memoryCost, timeCost, parallelism, ...unknown } = cost
  const valid = isPlainObject(options) && Object.keys(unknown).length === 0 && [memoryCost, timeCost, parallelism].every(Number.isInteger) &&
    parallelism >= 1 && parallelism <= HIGHEST_ARGON2_COST.parallelism &&
    timeCost >= 1 && timeCost <= HIGHEST_ARGON2_COST.timeCost &&
    memoryCost >= 8 * parallelism && memoryCost <= HIGHEST_ARGON2_COST.memoryCost
  if (!valid) {
    const { memoryCost: m, timeCost: t, parallelism: p } = HIGHEST_ARGON2_COST
    throw new OptionsError(`argon2 must be { memoryCost: KiB from 8 to ${m}, timeCost: 1 to ${t}, parallelism: 1 to ${p} }`)
  }
  return cost
}

function isStringList (value: unknown): value is string[] {
  return Array.isArray(value) && value.every(item => typeof item === 'string' && item !== '')
}
