import * as oauth from 'oauth4webapi'
import { AuthError } from '../errors.js'
import { unacceptable, unreachable } from './failures.js'

const MAX_ANSWER_BYTES = 1_048_576

/** As `fetch` decodes: a byte order mark is no part of the text. */
const UTF_8 = new TextDecoder()

export interface BackChannelOptions {
  /** Milliseconds for one request, its answer included. */
  timeout: number
  fetch: typeof fetch
  /** Permits plain http. */
  allowInsecureRequests: boolean
  /** Makes an answer that is not as the standard says into one that is. */
  conform?: (answer: Response) => Response | Promise<Response>
}

export type BackChannel = ReturnType<typeof backChannel>

type Request = Pick<oauth.CustomFetchOptions<string, unknown>, 'method' | 'headers'> & { body?: oauth.ProtectedResourceRequestBody }

/** How requests to a provider are made: each with a clock of its own, an answer that is read up to a limit, and no redirect followed. */
export function backChannel ({ timeout, fetch, allowInsecureRequests, conform }: BackChannelOptions) {
  return {
    // GitHub answers no request without a User-Agent.
    headers: { 'user-agent': 'fastify-svc-auth' },
    [oauth.allowInsecureRequests]: allowInsecureRequests,
    [oauth.customFetch]: async (url: string, { method, headers, body = null }: Request) => {
      const clock = AbortSignal.timeout(timeout)
      const answer = async () => wholeAnswer(await fetch(url, { method, headers, body, signal: clock, redirect: 'manual' }))
      const whole = await inTime(answer(), clock)
      return conform === undefined ? whole : conform(whole)
    }
  }
}

/** The same back channel for documents that are the same for everyone: who asks for one that is on its way gets that one. */
export function deduplicated (http: BackChannel): BackChannel {
  const underWay = new Map<string, Promise<Response>>()
  return {
    ...http,
    [oauth.customFetch]: async (url, request) => {
      // Kept until those who wait have read it and put it into their cache, or one who comes just then would load it again.
      const loading = underWay.get(url) ?? http[oauth.customFetch](url, request).finally(() => { setImmediate(() => { underWay.delete(url) }) })
      underWay.set(url, loading)
      return (await loading).clone()
    }
  }
}

/**
 * Waits for an answer, but no longer than the clock of its request: a `fetch` of the application's own may not look at it.
 *
 * @throws AuthError `provider_unavailable`; `provider_error` for an answer that is too long
 */
async function inTime (answer: Promise<Response>, clock: AbortSignal): Promise<Response> {
  try {
    return await new Promise((resolve, reject) => {
      clock.addEventListener('abort', () => { reject(clock.reason) }, { once: true })
      answer.then(resolve, reject)
    })
  } catch (error) {
    throw error instanceof AuthError ? error : unreachable(error)
  }
}

/** The answer with its body read, so that its connection is free again whatever becomes of it. */
async function wholeAnswer ({ status, headers, body }: Response): Promise<Response> {
  const content = await contentOf(body)
  const answer = new Response(content === '' ? null : content, { status, headers })
  // Of a challenge oauth4webapi would read nothing else, but the error code is in the body (RFC 6749 section 5.2).
  answer.headers.delete('www-authenticate')
  return answer
}

/** By iteration, which bodies of other implementations of fetch know too. */
async function contentOf (body: AsyncIterable<Uint8Array> | null): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body ?? []) {
    length += chunk.byteLength
    if (length > MAX_ANSWER_BYTES) throw unacceptable(`the answer is longer than ${MAX_ANSWER_BYTES} bytes`)
    chunks.push(chunk)
  }
  return UTF_8.decode(Buffer.concat(chunks))
}
