import * as oauth from 'oauth4webapi'
import { isPlainObject, isText } from '../claims.js'
import type { BackChannel } from './back-channel.js'
import { ApiError, failedAt, unacceptable } from './failures.js'
import { parsedJson } from './parsed-json.js'

const MINUTE_MS = 60_000

/** The public keys of a provider, fetched anew after five minutes. */
export class ProviderKeys {
  #known: { jwks: oauth.JWKS, at: number } = { jwks: { keys: [] }, at: 0 }
  #request: Promise<void> | undefined
  #repeatedAt = 0

  /**
   * Verifies the signature of a processed response. An unknown key, as after a rotation, has the
   * keys fetched again at once, but once a minute at most.
   *
   * @returns the keys, of which one has signed
   */
  async verify (server: oauth.AuthorizationServer, response: Response, http: BackChannel): Promise<oauth.JWKS> {
    if (Date.now() - this.#known.at >= 5 * MINUTE_MS) await this.#fetch(server, http)
    // Keys so old, and of a copy of the metadata, oauth4webapi fetches again if it needs another.
    const cache = { jwks: this.#known.jwks, uat: Math.floor((Date.now() - MINUTE_MS) / 1000) }
    const again = async (): Promise<Response> => {
      const isDue = Date.now() - this.#repeatedAt >= MINUTE_MS
      if (isDue) this.#repeatedAt = Date.now()
      await (isDue ? this.#fetch(server, http) : this.#request)
      return Response.json(this.#known.jwks)
    }
    const options = { ...http, [oauth.jwksCache]: cache, [oauth.customFetch]: again }
    await oauth.validateApplicationLevelSignature({ ...server }, response, options).catch(failedAt(server.jwks_uri))
    return cache.jwks
  }

  /** Fetches the keys, once for all who wait. */
  async #fetch ({ jwks_uri: url }: oauth.AuthorizationServer, http: BackChannel): Promise<void> {
    this.#request ??= keysAt(String(url), http).then(jwks => { this.#known = { jwks, at: Date.now() } })
      .catch(failedAt(url)).finally(() => { this.#request = undefined })
    return this.#request
  }
}

async function keysAt (url: string, { headers, [oauth.customFetch]: fetch }: BackChannel): Promise<oauth.JWKS> {
  const response = await fetch(url, { method: 'GET', headers: { ...headers, accept: 'application/json' } })
  if (response.status !== 200) throw new ApiError(response, [])
  // A member that is null says what an absent one says.
  const body = parsedJson(await response.text(), (_name, value) => value ?? undefined)
  const { keys }: { keys?: unknown } = Object(body)
  if (!Array.isArray(keys)) throw unacceptable('the answer has no list of keys')
  return { keys: keys.filter(isPlainObject).filter(isUsable) }
}

const MEMBERS = new Map([['RSA', ['n', 'e']], ['EC', ['x', 'y']], ['OKP', ['x']], ['AKP', ['pub']]])

/** Whether a key has what its type requires: others are ignored (RFC 7517 section 5). */
function isUsable (key: Record<string, unknown>): key is oauth.JWK {
  const hasMembers = MEMBERS.get(String(key.kty))?.every(member => isText(key[member]))
  return hasMembers === true && Array.isArray(key.key_ops ?? [])
}
