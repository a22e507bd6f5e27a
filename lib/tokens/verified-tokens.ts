import { hash } from 'node:crypto'
import { BoundedMap } from '../base/bounded-map.js'
import type { TokenClaims } from './token-claims.js'

const MAX_REMEMBERED = 1000

/**
 * Remembers the claims of verified tokens, because machines send the same token again and again.
 * The caller still checks times and use. Each issuer has its own memory, so that no token outlives
 * the secrets that verified it.
 *
 * Keeps hashes instead of tokens, so that a dump of the memory contains no tokens. Forgets the
 * least recently used token first.
 */
export class VerifiedTokens {
  readonly #claimsByHash = new BoundedMap<string>(MAX_REMEMBERED)

  claimsOf (token: string): TokenClaims | undefined {
    const key = keyOf(token)
    const json = this.#claimsByHash.get(key)
    if (json === undefined) return undefined
    this.#claimsByHash.set(key, json)
    // A new object for each call, because the application may change it.
    return JSON.parse(json)
  }

  add (token: string, claims: TokenClaims): void {
    this.#claimsByHash.set(keyOf(token), JSON.stringify(claims))
  }
}

function keyOf (token: string): string {
  return hash('sha256', token, 'base64')
}
