import { Once } from '../../base/concurrency.js'
import { isText } from '../../claims.js'
import { secureUrl } from '../../core/fetching.js'
import { OptionsError } from '../../errors.js'
import {
  type ChecksOf, anything, boolean, checkedOptions, listOf, mustBe, optional, text
} from '../../option-checks.js'
import { type TokenClaims, type TokenUse, assertUsable } from './token-claims.js'
import { type Jwk, KEY_PAIR_ALGORITHMS, verifyingKeysOf } from './token-keys.js'

/** Options of a {@link TokenVerifier}: either `jwksUrl` or `keys` is required. */
export interface TokenVerifierOptions {
  /** The `iss` of the tokens: the option `issuer` of the application that issues them. */
  issuer: string
  /** The URL of the application's `/auth/local/jwks.json`. */
  jwksUrl?: string | undefined
  /** The public keys themselves, for a service that cannot reach the application. */
  keys?: readonly Jwk[] | undefined
  /** The audience that tokens must be issued for; without it, tokens must have no audience. */
  audience?: string | undefined
  /** The algorithms of an authorization server, as `['RS256']`; default ES256 and EdDSA. */
  algorithms?: ReadonlyArray<typeof ALGORITHMS[number]> | undefined
  /** Permits plain http for `jwksUrl`, for development servers on this machine; default false. */
  allowInsecureRequests?: boolean | undefined
}

const ALGORITHMS = ['ES256', 'EdDSA', 'RS256', 'PS256'] as const

const OPTIONS = {
  issuer: mustBe('the issuer of the tokens, a non-empty string', isText),
  jwksUrl: anything,
  keys: optional(verifyingKeysOf, null),
  audience: optional(text),
  algorithms: optional(listOf(`a list of ${ALGORITHMS.join(', ')}`, (name): name is typeof ALGORITHMS[number] =>
    ALGORITHMS.some(known => known === name)), null),
  allowInsecureRequests: optional(boolean, false)
} satisfies ChecksOf<TokenVerifierOptions>

/**
 * Verifies the tokens of a {@link LocalIdentityProvider} that has a `signingKey`, for services that
 * must not issue tokens: needs public keys, fetched with the first token, but no session, store or
 * Fastify. With `algorithms` it verifies the access tokens of an authorization server.
 *
 * @example
 * ```ts
 * const jwksUrl = 'https://app.example/auth/local/jwks.json'
 * const verifier = new TokenVerifier({ issuer: 'https://app.example', jwksUrl, audience: 'reports' })
 * const { sub } = await verifier.verify(token)
 * ```
 */
export class TokenVerifier {
  readonly #use: TokenUse
  readonly #claimsOf: Once<(token: string) => Promise<TokenClaims>>

  /** @throws OptionsError naming the option */
  constructor (options: TokenVerifierOptions) {
    const { issuer, jwksUrl, keys, audience, algorithms: named, allowInsecureRequests } =
      checkedOptions('TokenVerifier', options, OPTIONS, '{ issuer, jwksUrl }')
    if ((jwksUrl === undefined) === (keys === null)) {
      throw new OptionsError(
        'TokenVerifier takes either jwksUrl, such as https://app.example/auth/local/jwks.json, or keys')
    }
    const source = keys ?? secureUrl(allowInsecureRequests)(jwksUrl, 'TokenVerifier: jwksUrl')

    this.#use = audience === undefined ? {} : { audience }
    const algorithms = named ?? KEY_PAIR_ALGORITHMS
    this.#claimsOf = new Once(async () => {
      const { publishedKeys, verifiedClaims } = await import('./jwt.js')
      const verifying = typeof source === 'string' ? [publishedKeys(new URL(source))] : source
      return token => verifiedClaims(token, {
        issuer, algorithms, keys: verifying, takesAccessTokens: named !== null
      })
    })
  }

  /**
   * Verifies a JWT: signature, issuer, times and audience. Refuses a token that was issued for a
   * purpose.
   *
   * @param token in the compact serialization, at most 16384 characters
   * @throws AuthError `invalid_token`; `unavailable` when the keys cannot be fetched
   * @see RFC 7519 section 7.2, RFC 8725 section 3
   */
  async verify (token: string): Promise<TokenClaims> {
    const claimsOf = await this.#claimsOf.done()
    const claims = await claimsOf(token)
    assertUsable(claims, this.#use)
    return claims
  }
}
