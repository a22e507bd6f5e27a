import { createHash, randomBytes } from 'node:crypto'
import type { JWK, JWTPayload } from 'jose'
import { signed, signingKey } from './signing-keys.js'
import { type ReceivedRequest, StandIn } from './stand-in.js'

/** What no cache may keep (RFC 6749 section 5.1). */
export const NO_STORE = { 'cache-control': 'no-store', pragma: 'no-cache' }

/** What a scope discloses (OpenID Connect Core 5.4, and Entra's `oid`); whatever is not listed comes with `openid`. */
const CLAIMS_OF_SCOPE: Readonly<Record<string, readonly string[]>> = {
  email: ['email', 'email_verified'],
  profile: ['name', 'given_name', 'family_name', 'nickname', 'preferred_username', 'picture', 'updated_at', 'oid']
}

/** What the stand-ins of OpenID Connect providers share: the check of the authorization request, ID tokens, keys, access tokens. */
export abstract class OpenIdStandIn extends StandIn {
  /** The person who signs in, in the words of the provider. */
  abstract profile: Record<string, unknown>
  /** Ids of the keys that are published. */
  abstract keys: string[]
  /** Id of the key that signs. */
  abstract signWith: string
  /** Claims of ID tokens, in place of the honest ones; `undefined` leaves one out. */
  idTokenClaims: Record<string, unknown> = {}
  protected abstract readonly scopes: readonly string[]
  readonly #scopeOfToken = new Map<string, string>()

  /** What is wrong with an authorization request, if anything. A provider shows a page of its own then, and redirects nobody. */
  protected problemOf (query: URLSearchParams): string | null {
    if (query.get('client_id') !== this.clientId) return 'unknown client'
    if (!this.redirectUris.includes(query.get('redirect_uri') ?? '')) return 'unknown redirect URI'
    if (new Set(query.keys()).size !== query.size) return 'a parameter comes twice'
    if (query.get('response_type') !== 'code') return 'response_type is not code'
    const scopes = query.get('scope')?.split(' ') ?? []
    if (!scopes.includes('openid') || !scopes.every(scope => this.scopes.includes(scope))) return 'unknown scope'
    if (query.get('code_challenge_method') !== 'S256' || !/^[\w-]{43}$/.test(query.get('code_challenge') ?? '')) return 'no challenge with S256'
    const missing = ['state', 'nonce'].find(parameter => (query.get(parameter) ?? '') === '')
    return missing === undefined ? null : `${missing} is missing`
  }

  /** The part of the profile that the scope discloses. */
  protected disclosed (scope: string): Record<string, unknown> {
    const granted = scope.split(' ')
    const hidden = Object.entries(CLAIMS_OF_SCOPE).flatMap(([name, claims]) => granted.includes(name) ? [] : claims)
    return Object.fromEntries(Object.entries(this.profile).filter(([name]) => !hidden.includes(name)))
  }

  protected async idToken (claims: JWTPayload, kid = this.signWith): Promise<string> {
    return signed({ ...claims, ...this.idTokenClaims }, await signingKey(kid), { typ: 'JWT' })
  }

  protected async publishedKeys (): Promise<JWK[]> {
    return Promise.all(this.keys.map(async kid => ({ ...(await signingKey(kid)).jwk, alg: 'RS256' })))
  }

  protected issueAccessToken (scope: string, prefix = ''): string {
    const token = prefix + randomBytes(24).toString('base64url')
    this.#scopeOfToken.set(token, scope)
    return token
  }

  /** The scope of the access token that a request carries in its header, or null without one of ours. */
  protected scopeOf ({ headers }: ReceivedRequest): string | null {
    const [, token = ''] = /^Bearer (.+)$/.exec(headers.authorization ?? '') ?? []
    return this.#scopeOfToken.get(token) ?? null
  }
}

/** OpenID Connect Core 3.1.3.6. */
export function hashOf (token: string): string {
  return createHash('sha256').update(token).digest().subarray(0, 16).toString('base64url')
}

/** Seconds. */
export function now (): number {
  return Math.floor(Date.now() / 1000)
}
