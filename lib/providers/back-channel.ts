import { once } from 'node:events'
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

/** Options for oauth4webapi: requests have a timeout and follow no redirect. */
export function backChannel ({ timeout, fetch, allowInsecureRequests, conform }: BackChannelOptions) {
  return {
    // GitHub refuses requests without a User-Agent.
    headers: { 'user-agent': 'fastify-svc-auth' },
    [oauth.allowInsecureRequests]: allowInsecureRequests,
    [oauth.customFetch]: async (url: string, { method, headers, body = null }: Request) => {
      const signal = AbortSignal.timeout(timeout)
      // The option `fetch` may be a function that ignores the signal.
      const aborted = once(signal, 'abort').then(() => { throw signal.reason })
      const request = async () => completed(await fetch(url, { method, headers, body, signal, redirect: 'manual' }))
      const response = await Promise.race([request(), aborted]).catch((error: unknown) => {
        throw error instanceof AuthError ? error : unreachable(error)
      })
      return conform === undefined ? response : conform(response)
    }
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
