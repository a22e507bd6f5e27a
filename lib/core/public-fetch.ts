import { Resolver } from 'node:dns/promises'
import type { IncomingMessage } from 'node:http'
import { Agent, request as requestOf } from 'node:https'
import { isIP } from 'node:net'
import { isSecureUrl, limitedBody } from './fetching.js'
import { isPublicAddress } from './public-addresses.js'

const MAX_BYTES = 5 * 1024
/** Of what a provider answers: the keys of a large one take 20 KB. */
const MAX_ANSWER_BYTES = 256 * 1024
const MAX_HEADER_BYTES = 8 * 1024
const MAX_URL_LENGTH = 2048
const TIME_LIMIT_MS = 2500
const TXT_LIMIT_MS = 2000

/** What was fetched: the URL as it was asked for, two headers as they came, and the body. */
export interface FetchedDocument {
  readonly url: string
  readonly type: string
  readonly caching: string
  readonly body: string
}

interface NameResolver {
  resolve4 (hostname: string): Promise<string[]>
  resolve6 (hostname: string): Promise<string[]>
  /** Each record has several texts. */
  resolveTxt (hostname: string): Promise<string[][]>
  cancel (): void
}

/** How the internet is reached; tests have a server of their own in its place. */
export interface Network {
  readonly resolver: () => NameResolver
  readonly isPublic: (address: string) => boolean
  /** Certificates of authorities that are trusted instead of those of Node.js. */
  readonly ca?: string
  /** In milliseconds; default 2.5 seconds, which a busy machine of tests may exceed. */
  readonly timeLimit?: number
}

// Not `lookup` of node:dns, which cannot be cancelled: slow name servers would take up the threads
// that hash passwords. Nor does a public name need /etc/hosts or a search domain.
export const INTERNET: Network = {
  resolver: () => new Resolver({ timeout: 1000, tries: 2 }),
  isPublic: isPublicAddress
}

/** Why nothing was fetched: the host and the rule, never what an address answered. For the log. */
export class UnreachableError extends Error {}

/** The part of the message that a rule makes up. */
class BrokenRule extends Error {}

/** Whether a URL may be fetched by {@link fetchPublic}, as far as the URL tells. */
export function isPublicUrl (url: string): boolean {
  if (url.length > MAX_URL_LENGTH || !isSecureUrl(url, false)) return false
  const { hostname } = new URL(url)
  return isIP(hostname) === 0 && !hostname.startsWith('[')
}

/**
 * Fetches a small document from a URL that others have chosen: by https, from a host of the
 * internet, within 2.5 seconds, with at most 5 KB. It connects to the addresses that were checked,
 * since a name may lead elsewhere a moment later (DNS rebinding), and follows no redirect.
 *
 * @throws UnreachableError for anything but a whole answer with the status 200
 * @see draft-ietf-oauth-client-id-metadata-document section 6.5
 */
export async function fetchPublic (url: string, network = INTERNET): Promise<FetchedDocument> {
  const asked = { method: 'GET', headers: { accept: 'application/json' }, maxBytes: MAX_BYTES }
  return requestPublic(url, asked, network, (response, body) => {
    if (response.statusCode !== 200) throw new BrokenRule('did not answer with the status 200')
    const { 'content-type': type = '', 'cache-control': caching = '' } = response.headers
    return { url, type, caching, body }
  })
}

/**
 * A `fetch` for servers that others have chosen: under the rules of {@link fetchPublic}, with any
 * status, a text or form as the body, and an answer of at most 256 KB.
 *
 * @throws UnreachableError
 */
export const publicFetch: typeof fetch = async (input, { method = 'GET', headers, body, signal } = {}) => {
  const sent = body == null ? undefined : String(body)
  const asked = { method, headers: Object.fromEntries(new Headers(headers)), body: sent, maxBytes: MAX_ANSWER_BYTES }
  return requestPublic(String(input), { ...asked, signal }, INTERNET, ({ statusCode = 500, headers }, text) => {
    const { 'content-type': type, date } = headers
    return new Response(text === '' ? null : text, {
      status: statusCode, headers: { ...(type !== undefined && { 'content-type': type }), ...(date && { date }) }
    })
  })
}

/** A request to a host of the internet. */
interface PublicRequest {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
  readonly signal?: AbortSignal | null | undefined
  readonly maxBytes: number
}

async function requestPublic<T> (
  url: string, { method, headers, body, signal, maxBytes }: PublicRequest, network: Network,
  read: (response: IncomingMessage, body: string) => T
): Promise<T> {
  if (!isPublicUrl(url)) throw new UnreachableError('the URL is not an https: URL with the name of a host')
  const target = new URL(url)
  const late = new AbortController()
  const timer = setTimeout(() => { late.abort() }, network.timeLimit ?? TIME_LIMIT_MS)
  try {
    const addresses = await publicAddresses(target.hostname, network, late.signal)
    const request = requestOf(target, {
      method,
      // Its own: that of the process may lead to a proxy, which would resolve the name again.
      agent: new Agent({ keepAlive: false, maxCachedSessions: 0, autoSelectFamily: true }),
      lookup: (_hostname, _options, done) => { done(null, addresses) },
      headers: { ...headers, 'accept-encoding': 'identity', 'user-agent': 'fastify-svc-auth' },
      maxHeaderSize: MAX_HEADER_BYTES,
      rejectUnauthorized: true,
      signal: signal == null ? late.signal : AbortSignal.any([late.signal, signal]),
      ...(network.ca !== undefined && { ca: network.ca })
    })
    request.end(body)
    try {
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        request.on('response', resolve).on('error', reject).on('close', reject)
      })
      return read(response, await bodyOf(response, maxBytes))
    } finally {
      request.destroy()
    }
  } catch (error) {
    const broken = error instanceof BrokenRule ? error.message : 'could not be reached by https'
    const rule = late.signal.aborted ? `did not answer within ${TIME_LIMIT_MS / 1000} seconds` : broken
    throw new UnreachableError(`${target.host} ${rule}`)
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Returns the texts of the TXT records of a name, within 2 seconds; none for a name without one.
 *
 * @throws UnreachableError when the name servers do not say
 */
export async function publicTexts (hostname: string, network = INTERNET): Promise<string[]> {
  const resolver = network.resolver()
  const timer = setTimeout(() => { resolver.cancel() }, TXT_LIMIT_MS)
  try {
    return (await resolver.resolveTxt(hostname)).map(parts => parts.join(''))
  } catch (error) {
    const { code }: { code?: unknown } = Object(error)
    if (code === 'ENOTFOUND' || code === 'ENODATA') return []
    throw new UnreachableError(`the name servers of ${hostname} did not answer`)
  } finally {
    clearTimeout(timer)
  }
}

/** Returns the addresses of a host, all of which are public. */
async function publicAddresses (
  hostname: string, { resolver: makeResolver, isPublic }: Network, late: AbortSignal
): Promise<Array<{ address: string, family: number }>> {
  const resolver = makeResolver()
  late.addEventListener('abort', () => { resolver.cancel() })
  // A host may have addresses of one family alone.
  const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
  late.throwIfAborted()
  const addresses = answers.flatMap(answer => answer.status === 'fulfilled' ? answer.value : [])
  if (addresses.length === 0) throw new BrokenRule('has no address')
  if (!addresses.every(isPublic)) throw new BrokenRule('has an address that is not public')
  return addresses.map(address => ({ address, family: isIP(address) }))
}

async function bodyOf (response: IncomingMessage, maxBytes: number): Promise<string> {
  const { 'content-encoding': encoding = 'identity' } = response.headers
  if (encoding !== 'identity') throw new BrokenRule('sent an encoding that was not asked for')
  const body = await limitedBody(response, maxBytes)
  if (body === null) throw new BrokenRule(`sent more than ${maxBytes / 1024} KB`)
  return body
}
