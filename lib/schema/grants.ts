/** The column `content` of `svc_auth_grants`: what a user has allowed a client. */
export interface GrantContent {
  /** How the client calls itself; null for a client without a name. */
  clientName: string | null
  /** The redirect URI of the consent; null for a device. */
  redirectUri: string | null
  /** The URL of the resource that its tokens are for (RFC 8707). */
  resource: string
  /** What the user has allowed. */
  scopes: readonly string[]
  /** How the user had authenticated at the consent: `auth_time` and `amr` of its tokens. */
  auth: {
    /** In milliseconds since the epoch. */
    at: number
    /** RFC 8176. */
    amr: readonly string[]
  }
  /** Those that are good, and some that are not any more. */
  tokens: readonly GrantToken[]
  /** When the user was told that an old token was sent again, in milliseconds since the epoch. */
  toldAt?: number
}

/** A token of a grant. Its secret is not in the table, only a hash. */
export interface GrantToken {
  /** What it is good for. */
  kind: 'access' | 'refresh'
  /** The SHA-256 of the secret, as base64url. */
  hash: string
  /** Times are in milliseconds since the epoch. */
  expiresAt: number
  /** When a refresh token was used first. */
  usedAt?: number
  /** The hash of the refresh token that it succeeds. */
  of?: string
  /** When an access token was issued. */
  issuedAt?: number
  /** The scopes of an access token, where they are not all of the grant. */
  scopes?: readonly string[]
}

/** The column `content` of `svc_auth_clients`: a client that has registered itself (RFC 7591). */
export interface RegisteredClient {
  /** How it calls itself; null for none. */
  name: string | null
  /** Where it may be sent back. */
  redirectUris: readonly string[]
}
