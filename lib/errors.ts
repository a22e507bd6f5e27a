import { brand } from './base/values.js'

/**
 * Every error code of the library with its HTTP status and its sentence for the user. The text of a
 * provider or a database never becomes a message; it stays in `cause`, for the log.
 */
export const ERRORS = {
  invalid: [401, 'The e-mail or the password is wrong.'],
  unknown_passkey: [401, 'This passkey does not belong to an account any more; sign in another way.'],
  exists: [409, 'An account with this e-mail already exists; sign in instead.'],
  invalid_email: [400, 'This is not a valid e-mail address.'],
  weak_password: [400, 'The password must be 8 to 1024 bytes long; choose another one.'],
  breached_password: [400, 'This password is known from a data breach; choose another one.'],
  claim_not_allowed: [403, 'The registration form asks for a claim that this application does not grant.'],
  invalid_request: [400, 'The request does not have the expected form.'],
  cross_origin: [403, 'The request came from another origin; send it from a page of this application.'],
  rate_limited: [429, 'Too many attempts; wait a moment and try again.'],
  busy: [503, 'The server is busy; try again in a moment.'],
  unavailable: [503, 'Accounts cannot be reached at the moment; try again later.'],
  internal_error: [500, 'The request could not be completed; try again later.'],
  invalid_state: [400, 'This sign-in has expired or was already used; start it again.'],
  access_denied: [403, 'The sign-in was declined at the provider.'],
  not_allowed: [403, 'This sign-in is not allowed here; use another account, or ask the operator of this application.'],
  provider_error: [502, 'The provider returned an invalid response; start the sign-in again.'],
  provider_unavailable: [503, 'The provider cannot be reached at the moment; try again later.'],
  account_exists: [409, 'An account with this e-mail already exists; sign in to it the way you did before.'],
  already_linked: [409, 'This identity belongs to another account.'],
  invalid_token: [401, 'The token is missing, expired or not valid.'],
  insufficient_scope: [403, 'The token lacks a scope that this needs; get a token with it.'],
  unauthenticated: [401, 'Sign in first.'],
  forbidden: [403, 'The signed-in user may not do this.'],
  impersonating: [403, 'This is not possible while you are signed in as another user; end that first.'],
  reauthenticate: [403, 'Sign in again to continue.'],
  second_factor_required: [401, 'This sign-in needs a second step; send a code, or use a passkey.'],
  second_factor_missing: [403, 'This needs a second factor, which the account does not have; set one up first.'],
  invalid_code: [401, 'The code is wrong, has expired or was already used; enter a new one.'],
  too_many: [409, 'The account cannot have more of these; remove one first.'],
  choice_required: [409, 'The account has sign-in methods from before its address was proven; say whether to keep ' +
    'or to remove them.'],
  last_link: [409, 'This is the only sign-in method of the account; add another one first.'],
  user_in_use: [409, 'Data of this application still refers to the user; delete that data first.'],
  not_found: [404, 'Nothing was found at this path or with this id; check its spelling and the method of the request.'],
  sso_required: [403, 'Users of this domain sign in by the provider of their organization.'],
  blocked: [403, 'This account is blocked; ask the operator of this application.'],
  unverified: [403, 'The e-mail address of this account is not confirmed yet; follow the link that was sent to it.'],
  email_missing: [403, 'This needs a confirmed e-mail address, and the account has none; add one first.'],
  unsupported: [501, 'The store of this application cannot do this.'],
  unknown_user: [404, 'No user has this id.'],
  invalid_claims: [400, 'The claims must be a plain JSON object without reserved names.'],
  invalid_ttl: [400, 'ttl must be a number of seconds from 1 to 2592000 (30 days).']
} as const satisfies Record<string, readonly [number, string]>

/** Sentences that replace that of the code. */
export const PASSKEY_REFUSED = 'This passkey was not accepted; if it was removed from the account, sign in another way.'
export const COMMON_PASSWORD = 'This password is one of the most used, or made of a common word, your e-mail address ' +
  'or the name of this application; choose another one.'
/** `invalid` where only a password is asked. */
export const WRONG_PASSWORD = 'The password is wrong.'
/** `invalid_state` of a form that acts for another user than the one who sees its page. */
export const SENT_TWICE = 'This was sent twice: the first one was answered, and has ended your session; sign in again.'
export const SHOWN_TO_ANOTHER = 'This form was shown to another user; nothing was changed.'
/** `invalid_code` where an authenticator app is set up. */
export const WRONG_SET_UP_CODE =
  'This code is wrong. Check the clock of the phone, and that the app has the key of the latest set-up.'
export const PASSKEY_EXISTS = 'This passkey belongs to an account already.'

/** The sentence of `weak_password` where `password.minLength` is set. */
export function wrongLength (minLength: number): string {
  return `The password must have ${minLength} characters or more, and at most 1024 bytes; choose another one.`
}

/**
 * The stable code of an {@link AuthError}, which pages and tests compare and `?error=` carries.
 *
 * @useDeclaredType
 */
export type AuthErrorCode = keyof typeof ERRORS

/** Values that replace the code's own. */
export interface AuthErrorOptions {
  /** A sentence in place of the code's own, without secrets and text of a provider: it is sent. */
  message?: string
  /** The HTTP status in place of the code's own. */
  statusCode?: number
  /** The error that caused this one; for the log only. */
  cause?: unknown
  /** Seconds after which the client may try again; sent as `Retry-After`. */
  retryAfter?: number
  /** As {@link AuthError.details}. */
  details?: Readonly<Record<string, unknown>>
}

/** The error with which a flow, a guard or `app.auth` refuses. */
export class AuthError extends Error {
  static { brand(this, 'AuthError') }
  override readonly name: string = 'AuthError'
  /** Unlike the message, stable over versions; for {@link SignInRefused}, the application's own. */
  readonly code: AuthErrorCode | (string & {})
  /** The HTTP status of the answer. */
  readonly statusCode: number
  /** Seconds after which the client may try again; undefined where that is not known. */
  readonly retryAfter: number | undefined
  /**
   * Further members of the JSON body of four codes: `reauthenticate` has the user's `methods`;
   * `second_factor_required` has them too, and the seconds until the sign-in expires, `expiresIn`;
   * `choice_required` has the `methods` of the account, and the value that keeps them, `keep`;
   * `sso_required` has the `provider` to sign in by, its `label`, and the path of its login, `url`.
   */
  readonly details: Readonly<Record<string, unknown>>

  /** Takes the status and the sentence from the code, unless the options have others. */
  constructor (code: AuthErrorCode, options: AuthErrorOptions = {}) {
    const [statusCode, sentence] = ERRORS[code]
    super(options.message ?? sentence, 'cause' in options ? { cause: options.cause } : undefined)
    this.code = code
    this.statusCode = options.statusCode ?? statusCode
    this.retryAfter = options.retryAfter
    this.details = options.details ?? {}
  }
}

/** @param message what is wrong with the request or the call */
export function invalidRequest (message: string): AuthError {
  return new AuthError('invalid_request', { message })
}

/**
 * Refuses with a code of the application; thrown by the hooks `onSignIn`, `onLink` and `onDelete`.
 * A browser is redirected to the page it came from, else the login page, with `error=<code>`.
 *
 * @example
 * ```ts
 * throw new SignInRefused('not_invited')
 * ```
 */
export class SignInRefused extends AuthError {
  override readonly name: string = 'SignInRefused'
  /** The code of the application. */
  override readonly code: string

  /**
   * Refuses with a code.
   *
   * @param code lower-case letters, digits and `_`, at most 50; otherwise throws an OptionsError
   * @param message a sentence for the user, for JSON clients and the plugin's forms
   */
  constructor (code: string, message = 'This application refused the sign-in.') {
    // It becomes part of URLs and pages.
    if (typeof code !== 'string' || !/^[a-z0-9_]{1,50}$/.test(code)) {
      throw new OptionsError('the code of a SignInRefused must be 1 to 50 lower-case letters, digits and "_", ' +
        'such as not_invited')
    }
    super('forbidden', { message })
    this.code = code
  }
}

/** A mistake of the programmer: an option that is missing, unknown or of the wrong form. */
export class OptionsError extends TypeError {
  static { brand(this, 'OptionsError') }
  override readonly name: string = 'OptionsError'
  /** The same for each; the message names the option. */
  readonly code = 'invalid_options'
}

// Here, because what an older Node.js lacks is used by modules that load this one.
if (!('groupBy' in Object)) throw new OptionsError(`Node.js 22.12 or later is needed; this is ${process.version}`)
