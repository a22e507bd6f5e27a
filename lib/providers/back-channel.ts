import * as oauth from 'oauth4webapi'

const MAX_RESPONSE_BYTES = 1_048_576

export interface BackChannelOptions {
  /** Milliseconds for one request, its answer included. */
  timeout: number
  fetch: typeof fetch
  /** Permits plain http. */
  allowInsecureRequests: boolean
  /** Makes an answer that is not as the standard says into one that is. */
  conformed?: (response: Response) => Response | Promise<Response>
}

export type BackChannel = ReturnType<typeof backChannel>

type Request = oauth.CustomFetchOptions<string, oauth.ProtectedResourceRequestBody>

/** How requests to a provider are made: each with a clock of its own, a bounded answer and no redirect followed. */
export function backChannel ({ timeout, fetch, allowInsecureRequests, conformed = response => response }: BackChannelOptions) {
  return {
    // GitHub answers no request without a User-Agent.
    headers: { 'user-agent': 'fastify-svc-auth' },
    signal: () => AbortSignal.timeout(timeout),
    [oauth.allowInsecureRequests]: allowInsecureRequests,
    [oauth.customFetch]: async (url: string, { body = null, ...request }: Request) => {
      return conformed(bounded(await fetch(url, { ...request, body, redirect: 'manual' })))
    }
  }
}

/** The same back channel for documents that are the same for everyone: who asks for one that is on its way gets that one. */
export function shared (http: BackChannel): BackChannel {
  const underWay = new Map<string, Promise<[body: string, response: Response]>>()

  async function load (url: string, request: Request): Promise<[body: string, response: Response]> {
    try {
      const response = await http[oauth.customFetch](url, request)
      return [await response.text(), response]
    } finally {
      underWay.delete(url)
    }
  }

  return {
    ...http,
    [oauth.customFetch]: async (url, request) => {
      const loading = underWay.get(url) ?? load(url, request)
      underWay.set(url, loading)
      const [body, { status, headers }] = await loading
      return new Response(status === 204 ? null : body, { status, headers })
    }
  }
}

/** @returns undefined for what is no JSON */
export function parsedJson (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * The same response with a body that fails once it is longer than 1 MiB, and without a challenge: oauth4webapi would read that and no more,
 * but the error code is in the body (RFC 6749 section 5.2).
 */
function bounded ({ body, status, headers: received }: Response): Response {
  const headers = new Headers(received)
  headers.delete('www-authenticate')
  return new Response(body?.pipeThrough(byteLimit()) ?? null, { status, headers })
}

function byteLimit (): TransformStream<Uint8Array, Uint8Array> {
  let received = 0
  return new TransformStream({
    transform (chunk, controller) {
      received += chunk.byteLength
      if (received > MAX_RESPONSE_BYTES) throw new RangeError(`the answer is longer than ${MAX_RESPONSE_BYTES} bytes`)
      controller.enqueue(chunk)
    }
  })
}
