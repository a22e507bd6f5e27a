import { inspect } from 'node:util'
import { brand } from '../../base/values.js'
import { isText } from '../../claims.js'
import { OptionsError } from '../../errors.js'
import {
  type Checked, type ChecksOf, anything, boolean, callable, checkedMembers, checkedOptions, listOf, mustBe, oneOf,
  optional, table, tableOrBoolean, text, wholeNumber
} from '../../option-checks.js'
import { type Secrets, requiredDataSecrets, secretsOf } from '../../secrets.js'
import { type Argon2Options, PasswordHasher, type PasswordVerdict, argon2Cost } from '../password/hashing.js'
import type { Caller } from '../../core/fair-queue.js'
import type { MailChoices, MailOptions, MailPages, SendMail } from '../../core/mail.js'
import { MailTokens } from '../../core/mail-links.js'
import { PASSWORD_RULES, type PasswordRules, passwordRules } from '../password/rules.js'
import { type ExtraClaims, TokenIssuer } from '../tokens/token-issuer.js'
import type { TokenClaims, TokenUse } from '../tokens/token-claims.js'
import { type Jwk, type PublicJwk, type TokenKeys, keysOfSecrets, keysOfSigningKey } from '../tokens/token-keys.js'

/** The claims that the registration form may set: by default none, as every visitor can post it. */
export interface RegistrationPolicy {
  /** Accepted values of the form field `role`; default none. */
  roles?: readonly string[] | undefined
  /** Whether the form may set `email_verified`, on which linking never relies; default false. */
  emailVerified?: boolean | undefined
  /**
   * When a link sent to the address of a new account confirms it. `later` (default): the user is
   * signed in at once. `required`: they sign in once it is confirmed. `first`: the form takes the
   * address alone, and the link leads to the form for name and password, so that no account has an
   * unconfirmed address. All but `later` need `sendMail`. With `passkey`, it is `first`.
   */
  verify?: 'later' | 'required' | 'first' | undefined
  /**
   * Whether users register with a passkey in place of a password, behind the link; default false.
   * It needs `passkeys` of the plugin and, with `password: false`, `signInByMail`.
   */
  passkey?: boolean | undefined
}

/** Options of a {@link LocalIdentityProvider}. */
export interface LocalIdentityProviderOptions {
  /**
   * 32 characters or more; default LOCAL_IDP_SECRET, several separated by blanks. Of several, the
   * first signs, all verify.
   */
  secret?: string | readonly string[] | undefined
  /**
   * Private JWKs (ES256 or EdDSA) in place of `secret`; the first whose `notBefore` is past signs,
   * all verify. The public keys are at `GET /auth/local/jwks.json`, for the {@link TokenVerifier}
   * of other services.
   */
  signingKey?: Jwk | readonly Jwk[] | undefined
  /** The `iss` of tokens; default `svc-auth-local`. */
  issuer?: string | undefined
  /** Default lifetime of a token in seconds; default 900. */
  ttl?: number | undefined
  /** Cost of password hashes; default m = 19456 KiB, t = 2, p = 1. */
  argon2?: Argon2Options | undefined
  /** Rules for new passwords of 8 to 1024 bytes; `false`: no routes and no fields for passwords. */
  password?: boolean | PasswordRules | undefined
  /**
   * Whether users sign in by a link or a code in a mail; default false. It needs `sendMail`. With
   * `registration`, an address without an account gets one. `anyBrowser`: the link also signs in
   * browsers other than the one that asked for it, which is less safe: who has the mail then
   * receives a session.
   */
  signInByMail?: boolean | { anyBrowser?: boolean | undefined } | undefined
  /** The claims that the registration form may set; `false` mounts no register route. */
  registration?: boolean | RegistrationPolicy | undefined
  /**
   * Sends the mails of the plugin: links, codes and notices. The plugin then needs `baseUrl`.
   * Without it, the routes that need mails are not mounted.
   */
  sendMail?: SendMail | undefined
  /** Which mails are sent besides those with a link. */
  mails?: MailChoices | undefined
  /** Pages of the application in place of the plugin's. */
  pages?: MailPages | undefined
  /** Routes by which users change their account; false: not mounted, default all. */
  accountRoutes?: AccountRoutes | undefined
}

const page = optional(mustBe('a path of this application, such as /new-password', isText))
const mounted = optional(boolean, true)

const ACCOUNT_ROUTES = {
  changePassword: mounted,
  setPassword: mounted,
  changeEmail: mounted,
  deleteAccount: mounted,
  forgotPassword: mounted,
  sessionsEnd: mounted
}

/**
 * Routes below `/auth/local` by their path in camelCase. `changeEmail` includes
 * `change-email/confirm`, and `forgotPassword` includes `reset-password`, with their pages. All but
 * `sessionsEnd` need `sendMail`.
 */
export type AccountRoutes = { [Route in keyof typeof ACCOUNT_ROUTES]?: boolean | undefined }

const OPTIONS = {
  secret: anything,
  signingKey: optional(keysOfSigningKey, null),
  issuer: optional(text, 'svc-auth-local'),
  ttl: optional(wholeNumber(1, 2_592_000, 'seconds'), 900),
  argon2: argon2Cost,
  password: tableOrBoolean(PASSWORD_RULES),
  signInByMail: optional(tableOrBoolean({ anyBrowser: optional(boolean, false) }), null),
  registration: tableOrBoolean({
    roles: optional(listOf("a list of roles, such as ['member']", isText), []),
    emailVerified: optional(boolean, false),
    verify: optional(oneOf('later', 'required', 'first')),
    passkey: optional(boolean, false)
  } satisfies ChecksOf<RegistrationPolicy>),
  sendMail: optional(callable<SendMail>(
    '({ kind, to, userId, name, url, token, code, expiresIn, about }) => Promise<void>'), null),
  mails: table({
    unknownAddress: optional(boolean, false),
    notices: optional(boolean, true),
    limits: optional(boolean, true)
  } satisfies ChecksOf<MailChoices>),
  pages: table({
    register: page,
    resetPassword: page,
    verifyEmail: page,
    changeEmail: page,
    mailLogin: page
  } satisfies ChecksOf<MailPages>),
  accountRoutes: table(ACCOUNT_ROUTES)
} satisfies ChecksOf<LocalIdentityProviderOptions>

/**
 * The built-in identity provider for passwords and tokens. Needs no server, so command line tools
 * and workers can use it too.
 *
 * @example
 * ```ts
 * const local = new LocalIdentityProvider() // secret: LOCAL_IDP_SECRET
 * const token = await local.issueIdToken(user.userId, { scope: 'reports' }, 60)
 * const claims = await local.verifyIdToken(token)
 * ```
 */
export class LocalIdentityProvider {
  static { brand(this, 'LocalIdentityProvider') }
  /** The `iss` of tokens. */
  readonly issuer: string
  /** Default lifetime of a token in seconds. */
  readonly ttl: number
  /** The claims that the registration form may set; null with `registration: false`. */
  readonly registration: { [Name in keyof RegistrationPolicy]-?: NonNullable<RegistrationPolicy[Name]> } | null
  /** Whether users sign in by a password. */
  readonly hasPasswords: boolean
  /** How users sign in by mail; null where they do not. */
  readonly signInByMail: { readonly anyBrowser: boolean } | null
  /** Which routes that change an account the options allow. */
  readonly accountRoutes: Readonly<Record<keyof AccountRoutes, boolean>>
  /** The least number of characters of a new password. */
  readonly minPasswordLength: number
  /** The published JWK Set of `signingKey` (RFC 7517 section 5); null with a secret. */
  readonly jwks: { readonly keys: readonly PublicJwk[] } | null
  /** @hidden for the plugin */
  readonly mail: MailOptions | null
  /** The secrets of tokens; null with a signing key. */
  readonly #secrets: Secrets | null
  readonly #passwords: PasswordHasher
  readonly #tokens: TokenIssuer
  readonly #accepted: ReturnType<typeof passwordRules>

  /** @throws OptionsError naming the option */
  constructor (options: LocalIdentityProviderOptions = {}) {
    const checked = checkedOptions('LocalIdentityProvider', options, OPTIONS, '{ secret }')
    const { sendMail, mails, pages } = checked
    if (sendMail === null) assertNoMails(options)
    const { secrets, keys } = tokenKeys(checked)
    this.issuer = checked.issuer
    this.ttl = checked.ttl
    this.registration = registrationPolicy(checked)
    this.hasPasswords = checked.password !== null
    this.signInByMail = checked.signInByMail
    const withoutPasswords = { changePassword: false, setPassword: false, forgotPassword: false }
    this.accountRoutes = { ...checked.accountRoutes, ...(!this.hasPasswords && withoutPasswords) }
    const rules = checked.password ?? checkedMembers({}, PASSWORD_RULES)
    this.#accepted = passwordRules(rules)
    this.minPasswordLength = rules.minLength
    this.#passwords = new PasswordHasher(checked.argon2)
    this.#secrets = secrets
    this.jwks = keys.published === null ? null : Object.freeze({ keys: keys.published })
    this.#tokens = new TokenIssuer(this.issuer, keys)
    this.mail = sendMail === null ? null : Object.freeze({ sendMail, choices: mails, pages })
  }

  /**
   * Issues a JWT for a user, signed with HS256 by a secret, with ES256 or EdDSA by a signing key.
   *
   * @param userId the `sub`: a user id, or another non-empty string such as the name of a program
   * @param claims plain JSON data without `iss`, `iat`, `exp`, `jti`, `nbf`, `aud`, `purpose`, and
   *   without a `sub` that differs from `userId`
   * @param ttl seconds, 1 to 2592000 (30 days)
   * @param use what {@link verifyIdToken} must be called with, too
   * @returns the JWT in the compact serialization, at most 16384 characters
   * @throws AuthError `invalid_claims`, `invalid_ttl`; OptionsError for an invalid `use`
   * @see RFC 7519 section 7.1
   */
  async issueIdToken (
    userId: string, claims: ExtraClaims = {}, ttl: number = this.ttl, use: TokenUse = {}
  ): Promise<string> {
    return this.#tokens.issue(userId, claims, ttl, use)
  }

  /**
   * Verifies a JWT: signature, issuer, times and use. Accepts a token of another library with the
   * same key and issuer, if it has `sub`, `iat` and `exp`. `iat` and `nbf` may be five seconds
   * ahead of the clock; `exp` has no leeway.
   *
   * @param use exactly as the token was issued; without it, a token with a use is refused
   * @throws AuthError `invalid_token` for every invalid token; OptionsError for an invalid `use`
   * @see RFC 7519 section 7.2, RFC 8725 section 3
   */
  async verifyIdToken (token: string, use: TokenUse = {}): Promise<TokenClaims> {
    return this.#tokens.verify(token, use)
  }

  /**
   * Hashes a new password that the option `password` accepts, to an Argon2id PHC string.
   *
   * @param password 8 to 1024 bytes in NFKC
   * @param context for `password.check`: the e-mail in its canonical form, the language if not `en`
   * @param caller the client behind the call: addresses take turns, and a password whose `signal`
   *   aborts leaves the queue
   * @throws AuthError `weak_password`, what `password.check` throws, such as `breached_password`,
   *   `busy` when too many passwords wait; the reason of `signal`
   * @see RFC 9106, RFC 8265 section 4
   */
  async hashPassword (
    password: string, { email, language = 'en' }: { email: string, language?: string }, caller?: Caller
  ): Promise<string> {
    const accepted = await this.#accepted(password, { email, issuer: this.issuer, language })
    return this.#passwords.hash(accepted, caller)
  }

  /**
   * Hashes an existing password with the current cost: as {@link hashPassword}, but without the
   * option `password`.
   *
   * @throws AuthError `weak_password` when it is not 8 to 1024 bytes long, `busy`; the reason of
   *   `signal`
   */
  async rehashPassword (password: string, caller?: Caller): Promise<string> {
    return this.#passwords.hash(password, caller)
  }

  /**
   * Compares a password with a stored hash. Takes the same time when there is no hash.
   *
   * @param passwordHash an Argon2id PHC string, or null
   * @throws AuthError `busy`; the reason of `signal`
   */
  async verifyPassword (passwordHash: string | null, password: string, caller?: Caller): Promise<PasswordVerdict> {
    return this.#passwords.verify(passwordHash, password, caller)
  }

  /** @hidden for the plugin */
  mailTokens (dataSecrets: Secrets | null): MailTokens {
    // Not signed by a signing key: other services verify what it signs.
    const need = 'with sendMail and signingKey of the LocalIdentityProvider, because it signs the links in mails'
    return new MailTokens(this.issuer, this.#secrets ?? requiredDataSecrets(dataSecrets, need))
  }

  /** The form for logs, without the secret. */
  toJSON (): { issuer: string, ttl: number } {
    return { issuer: this.issuer, ttl: this.ttl }
  }

  /** The form for `console.log`, without the secret. */
  [inspect.custom] (): string {
    return `LocalIdentityProvider ${inspect(this.toJSON())}`
  }
}

/** Refuses passkeys for addresses that nobody has confirmed, and for users who cannot recover. */
function registrationPolicy (
  { registration, password, signInByMail }: Pick<Checked<typeof OPTIONS>, 'registration' | 'password' | 'signInByMail'>
): LocalIdentityProvider['registration'] {
  if (registration === null) return null
  const { passkey, verify = passkey ? 'first' : 'later' } = registration
  if (passkey && verify !== 'first') {
    throw new OptionsError("LocalIdentityProvider: registration.verify must be 'first' with registration.passkey: " +
      'the address is confirmed before the passkey is made')
  }
  if (passkey && password === null && signInByMail === null) {
    throw new OptionsError('LocalIdentityProvider: registration.passkey with password: false needs signInByMail, ' +
      'by which users sign in who have lost their passkeys')
  }
  return Object.freeze({ ...registration, verify })
}

/** Returns the keys of tokens, and the secrets that they are made of; null with a signing key. */
function tokenKeys (
  { secret, signingKey }: { secret?: unknown, signingKey: TokenKeys | null }
): { secrets: Secrets | null, keys: TokenKeys } {
  if (signingKey === null) {
    const secrets = secretsOf(secret, 'LocalIdentityProvider: secret', 'LOCAL_IDP_SECRET')
    return { secrets, keys: keysOfSecrets(secrets) }
  }
  if (secret === undefined) return { secrets: null, keys: signingKey }
  throw new OptionsError('LocalIdentityProvider: signingKey replaces secret: set only one of them')
}

/** Refuses options that ask for mails where nothing sends them. */
function assertNoMails ({ mails, pages, registration, signInByMail = false }: LocalIdentityProviderOptions): void {
  const { verify = 'later', passkey = false } = Object(registration)
  const refuse = (option: string): never => {
    throw new OptionsError(`LocalIdentityProvider: ${option} needs sendMail, which sends the mails`)
  }
  if (mails !== undefined) refuse('mails')
  if (pages !== undefined) refuse('pages')
  if (signInByMail !== false) refuse('signInByMail')
  if (verify !== 'later') refuse(`registration.verify: '${verify}'`)
  if (passkey !== false) refuse('registration.passkey')
}
