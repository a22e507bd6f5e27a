import { BoundedMap, DAY_MS } from '../base/values.js'
import { AuthError } from '../errors.js'
import { FairQueue } from './fair-queue.js'
import { INTERNET, type FetchedDocument, UnreachableError, fetchPublic } from './public-fetch.js'

const MAX_DOCUMENTS = 500
const DEFAULT_LIFETIME_MS = 5 * 60_000
const FAILURE_MS = 30_000

/** The fetches that one address may cause within a minute, and the addresses that are counted. */
const BUDGET = { fetches: 30, milliseconds: 60_000, addresses: 10_000 }

interface Entry<T> {
  readonly document: Promise<T>
  /** When it expires; Infinity while it is fetched. */
  until: number
}

/**
 * What is made of documents at URLs that others choose. It fetches a few at a time, each URL once
 * at a time, and each client's share within a minute. Documents are cached as their headers say,
 * for a day at most. A failure holds for thirty seconds, so that nobody is asked again and again.
 */
export class PublicDocuments<T> {
  readonly #message: string
  readonly #read: (document: FetchedDocument) => T
  readonly #network: typeof INTERNET
  readonly #queue = new FairQueue({ running: 8, waiting: 16, retryAfter: 2 })
  readonly #entries = new BoundedMap<Entry<T>>(MAX_DOCUMENTS)
  readonly #budgets = new BoundedMap<{ readonly left: number, readonly until: number }>(BUDGET.addresses)

  /**
   * @param message the sentence for the user when a document cannot be fetched
   * @param read makes of a document what is cached, or refuses it with an AuthError
   */
  constructor (message: string, read: (document: FetchedDocument) => T, network = INTERNET) {
    this.#message = message
    this.#read = read
    this.#network = network
  }

  /**
   * Returns what was made of the document at a URL, which is fetched unless it is cached.
   *
   * @param address of the client on whose behalf it is fetched
   * @throws AuthError `unavailable`, whose cause names the host and the rule; what `read` throws;
   *   `rate_limited` beyond the client's share, `busy` without a turn
   */
  async get (url: string, address: string): Promise<T> {
    const known = this.#entries.get(url)
    if (known !== undefined && Date.now() < known.until) return await known.document
    this.#spend(address)
    const document: Promise<T> = this.#queue.run(async () => this.#fetch(url, entry), { address })
    const entry: Entry<T> = { document, until: Infinity }
    this.#entries.set(url, entry)
    try {
      return await document
    } finally {
      // Without a turn it was not asked for.
      if (entry.until === Infinity && this.#entries.get(url) === entry) this.#entries.delete(url)
    }
  }

  async #fetch (url: string, entry: Entry<T>): Promise<T> {
    let lifetime = FAILURE_MS
    try {
      const document = await fetchPublic(url, this.#network)
      const value = this.#read(document)
      lifetime = lifetimeOf(document)
      return value
    } catch (cause) {
      if (!(cause instanceof UnreachableError)) throw cause
      throw new AuthError('unavailable', { message: this.#message, retryAfter: FAILURE_MS / 1000, cause })
    } finally {
      entry.until = Date.now() + lifetime
    }
  }

  /** Counts a fetch, whatever the limits of the application: this protects other hosts. */
  #spend (address: string): void {
    const now = Date.now()
    const known = this.#budgets.get(address)
    const { left, until } = known !== undefined && now < known.until
      ? known
      : { left: BUDGET.fetches, until: now + BUDGET.milliseconds }
    if (left === 0) throw new AuthError('rate_limited', { retryAfter: Math.ceil((until - now) / 1000) })
    this.#budgets.set(address, { left: left - 1, until })
  }
}

/** For how many milliseconds a document may be cached (RFC 9111 section 5.2.2). */
function lifetimeOf ({ caching }: FetchedDocument): number {
  if (/(?:^|[\s,])no-(?:store|cache)\b/i.test(caching)) return 0
  const [, seconds] = /(?:^|[\s,])max-age="?(\d+)/i.exec(caching) ?? []
  return seconds === undefined ? DEFAULT_LIFETIME_MS : Math.min(Number(seconds) * 1000, DAY_MS)
}
