import * as oauth from 'oauth4webapi'
import { AuthError } from '../errors.js'
import { limitedBody } from '../http/limited-body.js'
import { unacceptable, unreachable } from './failures.js'

const MAX_RESPONSE_BYTES = 1_048_576

export interface BackChannelOptions {
  /** Milliseconds for one request and its response. */
  timeout: number
  fetch: typeof fetch
  /** Permits plain http. */
  allowInsecureRequests: boolean
  /** Rewrites a response that does not conform to the standard. */
  conform?: (response: Response) => Response | Promise<Response>
}

export type BackChannel = ReturnType<typeof backChannel>

type Request = Pick<oauth.CustomFetchOptions<string, unknown>, 'method' | 'headers'> & {
  body?: oauth.ProtectedResourceRequestBody
}

/**
 * Options for oauth4webapi that give each request a timeout, limit the size of responses and follow
 * no redirect.
 */
export function backChannel ({ timeout, fetch, allowInsecureRequests, conform }: BackChannelOptions) {
  return {
    // GitHub refuses requests without a User-Agent.
    headers: { 'user-agent': 'fastify-svc-auth' },
    [oauth.allowInsecureRequests]: allowInsecureRequests,
    [oauth.customFetch]: async (url: string, { method, headers, body = null }: Request) => {
      const signal = AbortSignal.timeout(timeout)
      const request = async () => completed(await fetch(url, { method, headers, body, signal, redirect: 'manual' }))
      const response = await untilAborted(request(), signal)
      return conform === undefined ? response : conform(response)
    }
  }
}

/** Makes concurrent requests for a URL share one. For documents that are the same for all users. */
export function deduplicated (http: BackChannel): BackChannel {
  const pending = new Map<string, Promise<Response>>()
  return {
    ...http,
    [oauth.customFetch]: async (url, request) => {
      // Kept until the waiting callers have cached the response; otherwise a caller in between
      // would request it again.
      const forget = (): void => { setImmediate(() => { pending.delete(url) }) }
      const response = pending.get(url) ?? http[oauth.customFetch](url, request).finally(forget)
      pending.set(url, response)
      return (await response).clone()
    }
  }
}

/** Waits until the signal aborts: the option `fetch` may be a function that ignores it. */
async function untilAborted (response: Promise<Response>, signal: AbortSignal): Promise<Response> {
  try {
    return await new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => { reject(signal.reason) }, { once: true })
      response.then(resolve, reject)
    })
  } catch (error) {
    throw error instanceof AuthError ? error : unreachable(error)
  }
}

/** Reads the whole body, so that the connection is released even if the response is not used. */
async function completed ({ status, headers, body }: Response): Promise<Response> {
  const content = await limitedBody(body, MAX_RESPONSE_BYTES)
  if (content === null) throw unacceptable(`the response is longer than ${MAX_RESPONSE_BYTES} bytes`)
  const response = new Response(content === '' ? null : content, { status, headers })
  // With a challenge, oauth4webapi would not read the body, which has the error code (RFC 6749
  // section 5.2).
  response.headers.delete('www-authenticate')
  return response
}
