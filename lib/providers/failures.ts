import type * as oauth from 'oauth4webapi'
import { brand } from '../base/values.js'
import { isPlainObject, isText } from '../claims.js'
import { AuthError, type AuthErrorCode } from '../errors.js'

/** The cause of an {@link AuthError} about a provider: one line for the log. */
export class ProviderFailure extends Error {
  static { brand(this, 'ProviderFailure') }
  override readonly name = 'ProviderFailure'
  /** Whether the next sign-in can succeed; the operator must look at any other failure. */
  readonly isEveryday: boolean
  /** The URL that was asked. */
  readonly endpoint: string | undefined

  constructor (message: string, { isEveryday = false, endpoint, ...options }: Partial<ProviderFailure> = {}) {
    // Providers and users write these texts.
    super(message.replace(/[\p{C}\p{Z}]+/gu, ' ').slice(0, 300), options)
    this.isEveryday = isEveryday
    this.endpoint = endpoint
  }
}

/** A response of a provider's API with a status other than 200. */
export class ApiError extends Error {
  readonly response: Response

  constructor (response: Response, reasons: readonly string[]) {
    super([`the API of the provider answered with status ${response.status}`, ...reasons].join(': '))
    this.response = response
  }
}

/** What an operator checks first when the provider refuses the client. */
export const CHECK_SECRET = 'check clientId and clientSecret (the value, not its id; it may have expired)'
export const CHECK_CLOCK = 'check the clock of this machine'
const CHECK_CLIENT = `${CHECK_SECRET}, and clientAuthentication, the method that the client is registered with`

const ADVICE: ReadonlyMap<string, string> = new Map([
  ['invalid_client', CHECK_CLIENT],
  ['unauthorized_client', CHECK_SECRET],
  ['incorrect_client_credentials', CHECK_SECRET],
  ['bad_client_secret', CHECK_SECRET],
  // Auth0 answers a token request with a wrong secret this way.
  ['access_denied', CHECK_CLIENT],
  ['client_id', 'set clientAuthentication to "client_secret_post" if the provider reads client_id from the body'],
  ['redirect_uri_mismatch', 'register the callback URL {baseUrl}/auth/{name}/callback with the provider, to the letter']
])

/**
 * Error codes with which the user, or the provider, refuses the sign-in: RFC 6749 section 4.1.2.1,
 * OpenID Connect Core 3.1.2.6, `unauthorized` of a rule of Auth0, those of Apple and LinkedIn.
 */
const DENIALS: ReadonlySet<string> = new Set([
  'access_denied', 'consent_required', 'login_required', 'interaction_required', 'account_selection_required',
  'unauthorized', 'user_cancelled_login', 'user_cancelled_authorize'
])

/**
 * What tells a rule of the provider from the user's own no, which have one code: of a rule of
 * Auth0, of Okta, of Entra (the user is not assigned to the application, conditional access).
 */
const RULE = /^unauthorized: |\bis not assigned to\b|\bAADSTS(?:50105|530\d\d)\b/

const TRANSIENT: ReadonlySet<string> = new Set(['temporarily_unavailable', 'server_error'])

/** Of a used or expired code, as after the browser's back button, and of an unconfirmed address. */
const EVERYDAY: ReadonlySet<string> = new Set([
  'invalid_grant', 'bad_verification_code', 'invalid_code', 'code_already_used', 'unverified_user_email'
])

/**
 * Converts an error of a request to a provider, or of its authorization response.
 *
 * @param sent secrets that were sent: some providers quote them in errors, which the log shows
 */
export function providerFailure (error: unknown, sent: readonly string[] = []): AuthError {
  if (error instanceof AuthError) return error
  const description = descriptionOf(error)
  if (!(error instanceof ApiError || isProtocolError(error))) {
    // A mistake in a provider class: the log shows its stack.
    return failure('provider_error', description, { cause: error })
  }

  const code = isErrorResponse(error) ? error.error : ''
  const isOfUser = codeOf(error) === AUTHORIZATION_ERROR
  const isDenial = isOfUser && DENIALS.has(code)
  const isTransient = isOfUser ? TRANSIENT.has(code) : isFromOverload(error)
  const lacksId = code === 'invalid_request' && !isOfUser && description.includes('client_id')
  const advice = isDenial ? undefined : ADVICE.get(lacksId ? 'client_id' : code)
  const message = advice === undefined ? description : `${advice} (${description})`
  const denial = RULE.test(description) ? 'not_allowed' : 'access_denied'
  const { endpoint }: { endpoint?: string } = Object(error)
  return failure(
    isDenial ? denial : isTransient ? 'provider_unavailable' : 'provider_error',
    redacted(message, sent),
    { isEveryday: isDenial || (!isOfUser && EVERYDAY.has(code)), endpoint }
  )
}

/** Makes the error whose cause is a {@link ProviderFailure}. */
export function failure (code: AuthErrorCode, ...cause: ConstructorParameters<typeof ProviderFailure>): AuthError {
  return new AuthError(code, { cause: new ProviderFailure(...cause) })
}

/** Makes the error for a response that is well-formed but must not be accepted. */
export function unacceptable (reason: string): AuthError {
  return failure('provider_error', reason)
}

/** Makes the error for a request that failed or had no response in time. */
export function unreachable (error: unknown): AuthError {
  return failure('provider_unavailable', descriptionOf(error))
}

/** Notes in an error, for the log, which endpoint was asked: the first that is noted stays. */
export function failedAt (endpoint: string | undefined): (error: unknown) => never {
  return error => {
    Object(error instanceof AuthError ? error.cause : error).endpoint ??= endpoint
    throw error
  }
}

/** Errors of oauth4webapi are known by code: their classes would load the package too early. */
function codeOf (error: unknown): string {
  return error instanceof Error && 'code' in error && isText(error.code) ? error.code : ''
}

/** The error about a signed response without announced algorithms has no code. */
function isProtocolError (error: unknown): boolean {
  return codeOf(error).startsWith('OAUTH_') || (error instanceof Error && error.name === 'OperationProcessingError')
}

const AUTHORIZATION_ERROR = 'OAUTH_AUTHORIZATION_RESPONSE_ERROR' satisfies typeof oauth.AUTHORIZATION_RESPONSE_ERROR
const BODY_ERROR = 'OAUTH_RESPONSE_BODY_ERROR' satisfies typeof oauth.RESPONSE_BODY_ERROR

/** Whether an error is the error response of an endpoint (RFC 6749 sections 4.1.2.1 and 5.2). */
function isErrorResponse (error: unknown): error is oauth.AuthorizationResponseError | oauth.ResponseBodyError {
  return [AUTHORIZATION_ERROR, BODY_ERROR].includes(codeOf(error))
}

function isFromOverload (error: unknown): boolean {
  const { cause, response = cause }: { cause?: unknown, response?: unknown } = Object(error)
  return response instanceof Response && isOverload(response)
}

/** Whether the status is one of an overloaded or failing server. */
export function isOverload ({ status }: Response): boolean {
  return status >= 500 || status === 429
}

function descriptionOf (error: unknown): string {
  if (isErrorResponse(error)) return `${error.error}: ${error.error_description ?? 'no description'}`
  return error instanceof Error ? `${error.message}${detailOf(error.cause)}` : 'unknown failure'
}

/** Describes the cause of an error of oauth4webapi or fetch, without codes, tokens and claims. */
function detailOf (cause: unknown): string {
  if (cause instanceof Response) return ` (status ${cause.status})`
  // The message of a SyntaxError quotes the text, which may be a token.
  if (cause instanceof Error) return cause instanceof SyntaxError ? '' : ` (${cause.message})`
  if (!isPlainObject(cause)) return ''
  const { header, attribute, expected, body, claim } = cause
  if (claim === 'exp' || claim === 'nbf') return ` (${CHECK_CLOCK})`
  if (isPlainObject(header) && 'alg' in header && expected !== undefined) {
    return ` (${header.alg}: set the signature algorithm of this application at the provider to RS256)`
  }
  if (attribute === 'issuer' && isPlainObject(body)) {
    return ` (the issuer is "${body.issuer}", expected "${expected}"; if that is right, set the option issuer to it)`
  }
  return ''
}

/** Leaves secrets of less than eight characters, which would match parts of ordinary words. */
export function redacted (text: string, secrets: readonly string[]): string {
  const long = secrets.filter(secret => secret.length >= 8)
  return long.reduce((text, secret) => text.replaceAll(secret, '[redacted]'), text)
}
