import { Resolver } from 'node:dns/promises'
import type { IncomingMessage } from 'node:http'
import { Agent, get } from 'node:https'
import { isIP } from 'node:net'
import { isSecureUrl, limitedBody } from './fetching.js'
import { isPublicAddress } from './public-addresses.js'

const MAX_BYTES = 5 * 1024
const MAX_HEADER_BYTES = 8 * 1024
const MAX_URL_LENGTH = 2048
const TIME_LIMIT_MS = 2500

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
  if (!isPublicUrl(url)) throw new UnreachableError('the URL is not an https: URL with the name of a host')
  const target = new URL(url)
  const late = new AbortController()
  const timer = setTimeout(() => { late.abort() }, network.timeLimit ?? TIME_LIMIT_MS)
  try {
    const addresses = await publicAddresses(target.hostname, network, late.signal)
    const request = get(target, {
      // Its own: that of the process may lead to a proxy, which would resolve the name again.
      agent: new Agent({ keepAlive: false, maxCachedSessions: 0, autoSelectFamily: true }),
      lookup: (_hostname, _options, done) => { done(null, addresses) },
      headers: { accept: 'application/json', 'accept-encoding': 'identity', 'user-agent': 'fastify-svc-auth' },
      maxHeaderSize: MAX_HEADER_BYTES,
      rejectUnauthorized: true,
      signal: late.signal,
      ...(network.ca !== undefined && { ca: network.ca })
    })
    try {
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        request.on('response', resolve).on('error', reject).on('close', reject)
      })
      const { 'content-type': type = '', 'cache-control': caching = '' } = response.headers
      return { url, type, caching, body: await bodyOf(response) }
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

async function bodyOf (response: IncomingMessage): Promise<string> {
  const { 'content-encoding': encoding = 'identity' } = response.headers
  if (response.statusCode !== 200) throw new BrokenRule('did not answer with the status 200')
  if (encoding !== 'identity') throw new BrokenRule('sent an encoding that was not asked for')
  const body = await limitedBody(response, MAX_BYTES)
  if (body === null) throw new BrokenRule(`sent more than ${MAX_BYTES / 1024} KB`)
  return body
}
