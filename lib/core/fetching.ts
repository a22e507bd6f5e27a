import { type Check, mustBe } from '../option-checks.js'

/** The check of an option to which requests are sent. */
export function secureUrl (allowInsecureRequests: boolean): Check<string> {
  return mustBe('an https: URL without user info and hash; ' +
    'for a development server on this machine set allowInsecureRequests',
  (value): value is string => isSecureUrl(value, allowInsecureRequests))
}

/** Whether a value is an https: URL, or an http: URL of this machine. */
export function isSecureOrLocal (value: unknown): value is string {
  return isSecureUrl(value, true) && (value.startsWith('https:') || isLoopback(new URL(value).hostname))
}

/** Whether a host is this machine, as browsers know it without asking (RFC 6761 section 6.3). */
export function isLoopback (hostname: string): boolean {
  return /^(?:(?:.+\.)?localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname)
}

/** Whether requests and browsers may be sent to a URL: http: only where that is allowed. */
export function isSecureUrl (value: unknown, allowInsecureRequests: boolean): value is string {
  if (typeof value !== 'string' || !URL.canParse(value)) return false
  const { protocol, username, password, hash } = new URL(value)
  const isSecure = protocol === 'https:' || (allowInsecureRequests && protocol === 'http:')
  return isSecure && `${username}${password}${hash}` === ''
}

/** Removes a byte order mark, as `fetch` does. */
const UTF_8 = new TextDecoder()

/** Reads a body by iteration, as any `fetch` supports it; null once it is longer than the limit. */
export async function limitedBody (body: AsyncIterable<Uint8Array> | null, maxBytes: number): Promise<string | null> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body ?? []) {
    length += chunk.byteLength
    if (length > maxBytes) return null
    chunks.push(chunk)
  }
  return UTF_8.decode(Buffer.concat(chunks))
}
