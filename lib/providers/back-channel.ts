import * as oauth from 'oauth4webapi'
import { AuthError } from '../errors.js'

const MAX_RESPONSE_BYTES = 1_048_576

export type BackChannel = ReturnType<typeof backChannel>

/** How requests to a provider are made: each with a clock of its own, a bounded answer and no redirect followed. */
export function backChannel ({ timeout, fetch, allowInsecureRequests }: { timeout: number, fetch: typeof globalThis.fetch, allowInsecureRequests: boolean }) {
  return {
    signal: () => AbortSignal.timeout(timeout),
    [oauth.allowInsecureRequests]: allowInsecureRequests,
    [oauth.customFetch]: async (url: string, { body = null, ...init }: oauth.CustomFetchOptions<string, oauth.ProtectedResourceRequestBody>) => {
      return bounded(await fetch(url, { ...init, body, redirect: 'manual' }))
    }
  }
}

/** What goes wrong with a provider, as one of our codes. The provider's words go into `cause`, shortened, for the log. */
export function providerFailure (error: unknown): AuthError {
  if (error instanceof AuthError) return error
  if (error instanceof oauth.AuthorizationResponseError) return authorizationFailure(error)
  const cause = new Error(described(error))
  return new AuthError(isUnavailability(error) ? 'provider_unavailable' : 'provider_error', { cause })
}

/** The error response of RFC 6749 section 4.1.2.1; `unauthorized` is how Auth0 says that a rule denied the sign-in. */
function authorizationFailure (error: oauth.AuthorizationResponseError): AuthError {
  const cause = new Error(described(error))
  if (error.error === 'access_denied' || error.error === 'unauthorized') return new AuthError('access_denied', { cause })
  const isTransient = error.error === 'temporarily_unavailable' || error.error === 'server_error'
  return new AuthError(isTransient ? 'provider_unavailable' : 'provider_error', { cause })
}

/** A network failure, a timeout (also one that cut the body short), too many requests, or a failing server. */
function isUnavailability (error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error.name === 'TimeoutError' || error.name === 'AbortError') return true
  const response = error.cause instanceof Response ? error.cause : 'response' in error ? error.response : null
  if (response instanceof Response) return response.status >= 500 || response.status === 429
  if (error instanceof oauth.OperationProcessingError) return isUnavailability(error.cause)
  // fetch reports any network failure as TypeError; misuse of oauth4webapi is a TypeError with a code.
  return error instanceof TypeError && !('code' in error)
}

function described (error: unknown): string {
  if (error instanceof oauth.ResponseBodyError || error instanceof oauth.AuthorizationResponseError) {
    return oneLine(`${error.error}: ${error.error_description ?? 'no description'}`)
  }
  if (!(error instanceof Error)) return 'unknown failure'
  const reason = error.cause instanceof Error ? ` (${error.cause.message})` : ''
  return oneLine(`${error.message}${reason}`)
}

/** Providers and their users write these texts: no line breaks or controls, and not too much of it. */
function oneLine (text: string): string {
  return text.replace(/[\p{C}\p{Z}]+/gu, ' ').slice(0, 300)
}

/** The same response with a body that fails once it is longer than 1 MiB. */
function bounded (response: Response): Response {
  if (response.body === null) return response
  let received = 0
  const limit = new TransformStream<Uint8Array, Uint8Array>({
    transform (chunk, controller) {
      received += chunk.byteLength
      if (received > MAX_RESPONSE_BYTES) throw new RangeError(`the answer is longer than ${MAX_RESPONSE_BYTES} bytes`)
      controller.enqueue(chunk)
    }
  })
  return new Response(response.body.pipeThrough(limit), response)
}
