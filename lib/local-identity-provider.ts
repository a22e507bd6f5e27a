import { inspect } from 'node:util'
import type { Complete } from './base/defaults.js'
import { isText } from './claims.js'
import { OptionsError } from './errors.js'
import {
  type ChecksOf, anything, boolean, checkedMembers, checkedOptions, listOf, oneOf, optional, table, tableOrFalse, text,
  wholeNumber
} from './option-checks.js'
import { type Secrets, requiredDataSecrets, secretsOf } from './secrets.js'
import { type Argon2Options, argon2Cost } from './passwords/argon2-cost.js'
import type { Caller } from './passwords/fair-queue.js'
import { MAIL_OPTIONS, type MailChoices, type MailOptions, type MailPages, type SendMail } from './mails/mail.js'
import { MailTokens } from './mails/mail-tokens.js'
import { PasswordHasher, type PasswordVerdict } from './passwords/hashing.js'
import { PASSWORD_RULES, type PasswordRules, passwordRules } from './passwords/password-rules.js'
import { type ExtraClaims, TokenIssuer } from './tokens/token-issuer.js'
import type { TokenClaims, TokenUse } from './tokens/token-claims.js'
import { type Jwk, type PublicJwk, type TokenKeys, keysOfSecrets, keysOfSigningKey } from './tokens/token-keys.js'

/**
 * The claims that the registration form may set. Every visitor can post that form, so the default
 * is none.
 */
export interface RegistrationPolicy {
  /** Accepted values of the form field `role`; default none. */
  roles?: readonly string[] | undefined
  /**
   * Whether the form may set the claim `email_verified`; default false. Linking never relies on it.
   */
  emailVerified?: boolean | undefined
  /**
   * When the address of a new account is confirmed, by a link sent to it; all but `later` need
   * `sendMail`. `later` (default): the user is signed in at once. `required`: they sign in once the
   * address is confirmed. `first`: the form takes the address alone, and the link in the mail leads
   * to the form for name and password, so that no account exists whose address is not confirmed.
   */
  verify?: 'later' | 'required' | 'first' | undefined
}

/** Options of a {@link LocalIdentityProvider}. */
export interface LocalIdentityProviderOptions {
  /**
   * A secret of at least 32 characters; default the environment variable LOCAL_IDP_SECRET. In an
   * array, the first one signs and all verify.
   */
  secret?: string | readonly string[] | undefined
  /**
   * A private JWK (ES256 or EdDSA) in place of `secret`. In an array, the first one signs and all
   * verify. The public keys are published at `GET /auth/local/jwks.json`, so that services can
   * verify tokens with a {@link TokenVerifier} without being able to issue them.
   */
  signingKey?: Jwk | readonly Jwk[] | undefined
  /** The `iss` of tokens; default `svc-auth-local`. */
  issuer?: string | undefined
  /** Default lifetime of a token in seconds; default 900. */
  ttl?: number | undefined
  /** Cost of password hashes; default m = 19456 KiB, t = 2, p = 1. */
  argon2?: Argon2Options | undefined
  /**
   * Rules for new passwords, in addition to a length of 8 to 1024 bytes; `false` mounts no route
   * for passwords, and no page has a field for one.
   */
  password?: false | PasswordRules | undefined
  /**
   * Whether users sign in by a link or a code in a mail; default false. It needs `sendMail`. With
   * `registration`, an address without an account gets one. `anyBrowser`: the link also signs in
   * browsers other than the one that asked for it, which is less safe: programs that open the links
   * in mails then receive a session.
   */
  signInByMail?: boolean | { anyBrowser?: boolean | undefined } | undefined
  /** The claims that the registration form may set; `false` mounts no register route. */
  registration?: false | RegistrationPolicy | undefined
  /**
   * Sends the mails of the plugin: links that confirm an address or choose a new password, codes,
   * and notices. Without it, the routes that need mails are not mounted. The plugin then needs
   * `baseUrl`.
   */
  sendMail?: SendMail | undefined
  /** Which mails are sent besides those with a link. */
  mails?: MailChoices | undefined
  /** Pages of the application in place of the plugin's. */
  pages?: MailPages | undefined
  /** Switches off routes by which users change their account; by default all are mounted. */
  accountRoutes?: AccountRoutes | undefined
}

/** Routes by which users change their account, by their path in camelCase; false: not mounted. */
export interface AccountRoutes {
  /** `POST /auth/local/change-password`. */
  changePassword?: boolean | undefined
  /** `POST /auth/local/set-password`. */
  setPassword?: boolean | undefined
  /** `POST /auth/local/change-email`, and `change-email/confirm` with its page. */
  changeEmail?: boolean | undefined
  /** `POST /auth/local/delete-account`. */
  deleteAccount?: boolean | undefined
  /** `POST /auth/local/forgot-password`, and `reset-password` with its page. */
  forgotPassword?: boolean | undefined
  /** `POST /auth/local/sessions/end`. */
  sessionsEnd?: boolean | undefined
}

const mounted = optional(boolean, true)

const signInByMail = table({ anyBrowser: optional(boolean, false) }, 'true, false or { anyBrowser: true }')

const OPTIONS = {
  secret: anything,
  signingKey: optional(keysOfSigningKey, null),
  issuer: optional(text, 'svc-auth-local'),
  ttl: optional(wholeNumber(1, 2_592_000, 'seconds'), 900),
  argon2: argon2Cost,
  password: tableOrFalse(PASSWORD_RULES),
  signInByMail: (value: unknown, option: string) =>
    value === undefined || value === false ? null : signInByMail(value === true ? {} : value, option),
  registration: tableOrFalse({
    roles: optional(listOf("a list of roles, such as ['member']", isText), []),
    emailVerified: optional(boolean, false),
    verify: optional(oneOf('later', 'required', 'first'), 'later')
  } satisfies ChecksOf<RegistrationPolicy>),
  ...MAIL_OPTIONS,
  accountRoutes: table({
    changePassword: mounted,
    setPassword: mounted,
    changeEmail: mounted,
    deleteAccount: mounted,
    forgotPassword: mounted,
    sessionsEnd: mounted
  } satisfies ChecksOf<AccountRoutes>)
} satisfies ChecksOf<LocalIdentityProviderOptions>

/** What {@link LocalIdentityProvider} does with passwords, for one caller. */
export interface Passwords {
  hashPassword: (password: string, context: { email: string }) => Promise<string>
  rehashPassword: (password: string) => Promise<string>
  verifyPassword: (passwordHash: string | null, password: string) => Promise<PasswordVerdict>
}

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
  /** The `iss` of tokens. */
  readonly issuer: string
  /** Default lifetime of a token in seconds. */
  readonly ttl: number
  /** The claims that the registration form may set; null without a register route. */
  readonly registration: Complete<RegistrationPolicy> | null
  /** Whether users sign in by a password. */
  readonly hasPasswords: boolean
  /** How users sign in by mail; null where they do not. */
  readonly signInByMail: { readonly anyBrowser: boolean } | null
  /** The routes by which users change their account. */
  readonly accountRoutes: Readonly<Record<keyof AccountRoutes, boolean>>
  /** The least number of characters of a new password. */
  readonly minPasswordLength: number
  /** The published JWK Set of `signingKey` (RFC 7517 section 5); null with a secret. */
  readonly jwks: { readonly keys: readonly PublicJwk[] } | null
  /**
   * How mails are sent; null without `sendMail`. For the plugin.
   *
   * @hidden
   */
  readonly mail: MailOptions | null
  /** The secrets of tokens; null with a signing key. */
  readonly #secrets: Secrets | null
  readonly #passwords: PasswordHasher
  readonly #tokens: TokenIssuer
  readonly #accepted: ReturnType<typeof passwordRules>

  /**
   * Checks the options. Without `secret` and `signingKey`, reads the environment variable
   * LOCAL_IDP_SECRET.
   *
   * @throws OptionsError naming the option
   */
  constructor (options: LocalIdentityProviderOptions = {}) {
    const checked = checkedOptions('LocalIdentityProvider', options, OPTIONS, '{ secret }')
    const { sendMail, mails, pages } = checked
    if (sendMail === null) assertNoMails(options)
    const { secrets, keys } = tokenKeys(checked)
    this.issuer = checked.issuer
    this.ttl = checked.ttl
    this.registration = checked.registration
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
   * Issues a signed JWT for a user. Signs with HS256 when the provider has a secret, and with ES256
   * or EdDSA when it has a signing key.
   *
   * @param userId the `sub` of the token: a user id, or another non-empty string such as the name
   *   of a program
   * @param claims extra claims: a plain JSON object without `iss`, `iat`, `exp`, `jti`, `nbf`,
   *   `aud`, `purpose`, and without a `sub` that differs from `userId`
   * @param ttl seconds, 1 to 2592000 (30 days)
   * @param use restricts the token to one use; {@link verifyIdToken} must be called with the same
   *   use
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
   * @param token in the compact serialization, at most 16384 characters
   * @param use the exact use that the token must be issued for; without it, a token with a use is
   *   refused
   * @returns the decoded claims
   * @throws AuthError `invalid_token` for every invalid token; OptionsError for an invalid `use`
   * @see RFC 7519 section 7.2, RFC 8725 section 3
   */
  async verifyIdToken (token: string, use: TokenUse = {}): Promise<TokenClaims> {
    return this.#tokens.verify(token, use)
  }

  /**
   * Hashes a new password, after the rules for new passwords (option `password`) have accepted it.
   *
   * @param password 8 to 1024 bytes in NFKC
   * @param context passed to `password.check`: the e-mail in its canonical form
   * @param caller the client behind the call: passwords of different addresses take turns, and a
   *   password whose `signal` aborts leaves the queue
   * @returns an Argon2id PHC string
   * @throws AuthError `weak_password`, what `password.check` throws, such as `breached_password`,
   *   `busy` when too many passwords wait; the reason of `signal`
   * @see RFC 9106, RFC 8265 section 4
   */
  async hashPassword (password: string, context: { email: string }, caller?: Caller): Promise<string> {
    const accepted = await this.#accepted(password, { email: context.email, issuer: this.issuer })
    return this.#passwords.hash(accepted, caller)
  }

  /**
   * Hashes an existing password with the current cost. The application's rule for new passwords
   * does not apply.
   *
   * @param caller as for {@link hashPassword}
   * @returns an Argon2id PHC string
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
   * @param caller as for {@link hashPassword}
   * @throws AuthError `busy`; the reason of `signal`
   */
  async verifyPassword (passwordHash: string | null, password: string, caller?: Caller): Promise<PasswordVerdict> {
    return this.#passwords.verify(passwordHash, password, caller)
  }

  /**
   * Returns the operations on passwords for one caller. For the plugin.
   *
   * @hidden
   */
  passwordsFor (caller: Caller): Passwords {
    return {
      hashPassword: (password, context) => this.hashPassword(password, context, caller),
      rehashPassword: password => this.rehashPassword(password, caller),
      // With `password: false`, a password of before signs in nowhere.
      verifyPassword: (passwordHash, password) =>
        this.verifyPassword(this.hasPasswords ? passwordHash : null, password, caller)
    }
  }

  /**
   * Returns what issues and verifies the tokens in the links of mails. For the plugin.
   *
   * @param dataSecrets sign them in place of a signing key, whose public half other services have
   * @throws OptionsError when they are missing
   * @hidden
   */
  mailTokens (dataSecrets: Secrets | null): MailTokens {
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
  const { verify = 'later' } = Object(registration)
  const refuse = (option: string): never => {
    throw new OptionsError(`LocalIdentityProvider: ${option} needs sendMail, which sends the mails`)
  }
  if (mails !== undefined) refuse('mails')
  if (pages !== undefined) refuse('pages')
  if (signInByMail !== false) refuse('signInByMail')
  if (verify !== 'later') refuse(`registration.verify: '${verify}'`)
}
