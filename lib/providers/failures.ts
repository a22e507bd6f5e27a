import * as oauth from 'oauth4webapi'
import { isPlainObject } from '../claims.js'
import { AuthError } from '../errors.js'

/** What went wrong with a provider, in its words, as one line for the log: never a code, a token or a secret. */
export class ProviderFailure extends Error {
  override readonly name = 'ProviderFailure'
  /** Everyday, and over with the next sign-in; anything else wants the operator's eyes. */
  readonly isEveryday: boolean

  constructor (message: string, { isEveryday = false } = {}) {
    super(oneLine(message))
    this.isEveryday = isEveryday
  }
}

const CHECK_CLIENT = 'check clientId and clientSecret; of the secret it is the value that counts, and it may have expired'

/** What the operator can mend, by error code. */
const ADVICE: ReadonlyMap<string, string> = new Map([
  ['invalid_client', CHECK_CLIENT],
  ['unauthorized_client', CHECK_CLIENT],
  ['incorrect_client_credentials', CHECK_CLIENT],
  // To a token request Auth0 says so of a wrong secret; people are asked, and say no, elsewhere.
  ['access_denied', CHECK_CLIENT],
  ['redirect_uri_mismatch', 'register the callback URL {baseUrl}/auth/{name}/callback with the provider, to the letter']
])

/** A code that was used or is too old, as after the browser's back button; an address that the person has yet to confirm. */
const EVERYDAY: ReadonlySet<string> = new Set(['invalid_grant', 'bad_verification_code', 'unverified_user_email'])

/** What goes wrong with a provider, as one of our codes. */
export function providerFailure (error: unknown): AuthError {
  if (error instanceof AuthError) return error
  if (error instanceof oauth.AuthorizationResponseError) return authorizationFailure(error)
  if (isUnavailability(error)) return new AuthError('provider_unavailable', { cause: new ProviderFailure(described(error)) })
  const code = error instanceof oauth.ResponseBodyError ? error.error : ''
  return new AuthError('provider_error', { cause: new ProviderFailure(advised(code, described(error)), { isEveryday: EVERYDAY.has(code) }) })
}

/** What the provider says is well-formed, and cannot be accepted all the same. */
export function unacceptable (reason: string): AuthError {
  return new AuthError('provider_error', { cause: new ProviderFailure(reason) })
}

/** Too many requests, or a failing server. */
export function isOverloaded ({ status }: Response): boolean {
  return status >= 500 || status === 429
}

/** The error response of RFC 6749 section 4.1.2.1; `unauthorized` is how Auth0 says that a rule denied the sign-in. */
function authorizationFailure (error: oauth.AuthorizationResponseError): AuthError {
  const isDenial = error.error === 'access_denied' || error.error === 'unauthorized'
  const isTransient = error.error === 'temporarily_unavailable' || error.error === 'server_error'
  const code = isDenial ? 'access_denied' : isTransient ? 'provider_unavailable' : 'provider_error'
  const message = isDenial ? described(error) : advised(error.error, described(error))
  return new AuthError(code, { cause: new ProviderFailure(message, { isEveryday: isDenial }) })
}

/** A network failure, a timeout (also one that cut the body short), or an overloaded server. */
function isUnavailability (error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error.name === 'TimeoutError' || error.name === 'AbortError') return true
  const response = error.cause instanceof Response ? error.cause : 'response' in error ? error.response : null
  if (response instanceof Response) return isOverloaded(response)
  if (error instanceof oauth.OperationProcessingError) return isUnavailability(error.cause)
  // fetch reports any network failure as TypeError; misuse of oauth4webapi is a TypeError with a code.
  return error instanceof TypeError && !('code' in error)
}

function advised (code: string, description: string): string {
  const advice = ADVICE.get(code)
  return advice === undefined ? description : `${advice} (${description})`
}

function described (error: unknown): string {
  if (error instanceof oauth.ResponseBodyError || error instanceof oauth.AuthorizationResponseError) {
    return `${error.error}: ${error.error_description ?? 'no description'}`
  }
  if (!(error instanceof Error)) return 'unknown failure'
  return `${error.message}${detail(error.cause)}`
}

function detail (cause: unknown): string {
  if (cause instanceof Response) return ` (status ${cause.status})`
  if (isHeaderCause(cause)) return ` (${cause.header.alg}: set the signature algorithm of this application at the provider to RS256)`
  // A parser quotes what it could not read, and that may be a token.
  return cause instanceof Error && !(cause instanceof SyntaxError) ? ` (${cause.message})` : ''
}

/** How oauth4webapi reports the header of an ID token whose algorithm is not one of those to expect. */
function isHeaderCause (cause: unknown): cause is { header: { alg: unknown }, expected: unknown } {
  return isPlainObject(cause) && isPlainObject(cause.header) && 'alg' in cause.header && 'expected' in cause
}

/** Providers and their users write these texts: no line breaks or controls, and not too much of it. */
function oneLine (text: string): string {
  return text.replace(/[\p{C}\p{Z}]+/gu, ' ').slice(0, 300)
}
