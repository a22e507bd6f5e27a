import type * as oauth from 'oauth4webapi'
import { isPlainObject, isText } from '../claims.js'
import { AuthError } from '../errors.js'

/** What went wrong with a provider, in its words, as one line for the log. */
export class ProviderFailure extends Error {
  override readonly name = 'ProviderFailure'
  /** Everyday, and over with the next sign-in; anything else wants the operator's eyes. */
  readonly isEveryday: boolean

  constructor (message: string, { isEveryday = false, ...options }: { isEveryday?: boolean, cause?: unknown } = {}) {
    super(oneLine(message), options)
    this.isEveryday = isEveryday
  }
}

/** An answer of a provider's API that is no success. */
export class ApiError extends Error {
  readonly response: Response

  constructor (response: Response, reasons: readonly string[]) {
    super([`the API of the provider answered with status ${response.status}`, ...reasons].join(': '))
    this.response = response
  }
}

const CHECK_SECRET = 'check clientId and clientSecret (the value, not its id; it may have expired)'
const CHECK_CLIENT = `${CHECK_SECRET}, and clientAuthentication, the method that the client is registered with`

/** What the operator can do, by error code. */
const ADVICE: ReadonlyMap<string, string> = new Map([
  ['invalid_client', CHECK_CLIENT],
  ['unauthorized_client', CHECK_SECRET],
  ['incorrect_client_credentials', CHECK_SECRET],
  // Auth0 says so of a wrong secret in answer to a token request; users are asked, and say no, elsewhere.
  ['access_denied', CHECK_CLIENT],
  ['redirect_uri_mismatch', 'register the callback URL {baseUrl}/auth/{name}/callback with the provider, to the letter']
])

/**
 * The user's no, or the provider's on their behalf: RFC 6749 section 4.1.2.1, OpenID Connect Core
 * 3.1.2.6, and `unauthorized`, by which Auth0 says that a rule denied the sign-in.
 */
const DENIALS: ReadonlySet<string> = new Set([
  'access_denied', 'consent_required', 'login_required', 'interaction_required', 'account_selection_required', 'unauthorized'
])

/** A code that was used or is too old, as after the browser's back button; an address that the user has yet to confirm. */
const EVERYDAY: ReadonlySet<string> = new Set(['invalid_grant', 'bad_verification_code', 'unverified_user_email'])

/**
 * What goes wrong with a provider, as one of our codes.
 *
 * @param sent secrets that the provider knows: some quote what they got, and the log must not
 */
export function providerFailure (error: unknown, sent: readonly string[] = []): AuthError {
  if (error instanceof AuthError) return error
  if (isAuthorizationResponseError(error)) return authorizationFailure(error, sent)
  const isKnown = error instanceof ApiError || isProtocolError(error)
  // What nobody foresaw is a mistake in a provider class: its stack says where.
  if (!isKnown) return new AuthError('provider_error', { cause: new ProviderFailure(descriptionOf(error), { cause: error }) })

  const code = isResponseBodyError(error) ? error.error : ''
  const cause = new ProviderFailure(redacted(advised(code, descriptionOf(error)), sent), { isEveryday: EVERYDAY.has(code) })
  return new AuthError(isFromOverload(error) ? 'provider_unavailable' : 'provider_error', { cause })
}

/** What the provider says is well-formed, and cannot be accepted all the same. */
export function unacceptable (reason: string): AuthError {
  return new AuthError('provider_error', { cause: new ProviderFailure(reason) })
}

/** The same failure, with the URL that was requested in front of its message. */
export function failureAt (url: URL, error: unknown): AuthError {
  const { code, cause } = providerFailure(error)
  const { message }: { message?: string } = Object(cause)
  return new AuthError(code === 'provider_unavailable' ? 'provider_unavailable' : 'provider_error', {
    cause: new ProviderFailure(`${url.href}: ${message}`)
  })
}

/** The request did not arrive, or the answer did not come in time. */
export function unreachable (error: unknown): AuthError {
  return new AuthError('provider_unavailable', { cause: new ProviderFailure(descriptionOf(error)) })
}

/** Errors of oauth4webapi are known by their codes: for their classes it would have to be loaded, and that is done with the first sign-in. */
function codeOf (error: unknown): string {
  return error instanceof Error && 'code' in error && isText(error.code) ? error.code : ''
}

/** One of them has no code: that of a signed answer without announced algorithms. */
function isProtocolError (error: unknown): boolean {
  return codeOf(error).startsWith('OAUTH_') || (error instanceof Error && error.name === 'OperationProcessingError')
}

function isResponseBodyError (error: unknown): error is oauth.ResponseBodyError {
  return codeOf(error) === ('OAUTH_RESPONSE_BODY_ERROR' satisfies typeof oauth.RESPONSE_BODY_ERROR)
}

function isAuthorizationResponseError (error: unknown): error is oauth.AuthorizationResponseError {
  return codeOf(error) === ('OAUTH_AUTHORIZATION_RESPONSE_ERROR' satisfies typeof oauth.AUTHORIZATION_RESPONSE_ERROR)
}

/** The error response of RFC 6749 section 4.1.2.1. */
function authorizationFailure (error: oauth.AuthorizationResponseError, sent: readonly string[]): AuthError {
  const isDenial = DENIALS.has(error.error)
  const isTransient = error.error === 'temporarily_unavailable' || error.error === 'server_error'
  const code = isDenial ? 'access_denied' : isTransient ? 'provider_unavailable' : 'provider_error'
  const message = isDenial ? descriptionOf(error) : advised(error.error, descriptionOf(error))
  return new AuthError(code, { cause: new ProviderFailure(redacted(message, sent), { isEveryday: isDenial }) })
}

/** Too many requests, or a failing server. */
function isFromOverload (error: unknown): boolean {
  const { cause, response = cause }: { cause?: unknown, response?: unknown } = Object(error)
  return response instanceof Response && (response.status >= 500 || response.status === 429)
}

function advised (code: string, description: string): string {
  const advice = ADVICE.get(code)
  return advice === undefined ? description : `${advice} (${description})`
}

function descriptionOf (error: unknown): string {
  if (isResponseBodyError(error) || isAuthorizationResponseError(error)) {
    return `${error.error}: ${error.error_description ?? 'no description'}`
  }
  return error instanceof Error ? `${error.message}${detailOf(error.cause)}` : 'unknown failure'
}

/** What oauth4webapi, or fetch, has in the cause of an error: never whole, for it holds codes, tokens and claims. */
function detailOf (cause: unknown): string {
  if (cause instanceof Response) return ` (status ${cause.status})`
  // A parser quotes what it could not read, and that may be a token.
  if (cause instanceof Error) return cause instanceof SyntaxError ? '' : ` (${cause.message})`
  if (!isPlainObject(cause)) return ''
  const { header, attribute, expected, body } = cause
  if (isPlainObject(header) && 'alg' in header && expected !== undefined) return ` (${header.alg}: set the signature algorithm of this application at the provider to RS256)`
  if (attribute === 'issuer' && isPlainObject(body)) return ` (the issuer is "${body.issuer}", expected "${expected}"; if that is right, set the option issuer to it)`
  return ''
}

/** Too short a secret would turn up everywhere. */
function redacted (text: string, secrets: readonly string[]): string {
  return secrets.filter(secret => secret.length >= 8).reduce((text, secret) => text.replaceAll(secret, '[redacted]'), text)
}

/** Providers and their users write these texts: no line breaks or controls, and not too much of it. */
function oneLine (text: string): string {
  return text.replace(/[\p{C}\p{Z}]+/gu, ' ').slice(0, 300)
}
