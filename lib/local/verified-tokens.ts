import { hash } from 'node:crypto'
import { BoundedMap } from '../base/bounded-map.js'
import type { TokenClaims } from './token-claims.js'

const MAX_REMEMBERED = 1000

/**
 * Tokens that were verified, with what they say: machines send theirs again and again. Whether a token is current, and good for a use, is
 * for whoever asks; what is remembered here is forgotten with the secrets that it was verified with, for each issuer has a memory of its own.
 *
 * Nobody finds tokens here: the keys are their hashes. Those that were used longest ago go first.
 */
export class VerifiedTokens {
  readonly #claimsByHash = new BoundedMap<string>(MAX_REMEMBERED)

  /** @returns undefined for a token that is not remembered */
  claimsOf (token: string): TokenClaims | undefined {
    const key = keyOf(token)
    const json = this.#claimsByHash.get(key)
    if (json === undefined) return undefined
    this.#claimsByHash.set(key, json)
    // Each time anew, for the claims are the application's to change.
    return JSON.parse(json)
  }

  add (token: string, claims: TokenClaims): void {
    this.#claimsByHash.set(keyOf(token), JSON.stringify(claims))
  }
}

function keyOf (token: string): string {
  return hash('sha256', token, 'base64')
}
