import type { IdentityClaims } from '../claims.js'

/** What ties an authorization response to the request that asked for it. New random values for each sign-in. */
export interface AuthorizationRequest {
  /** `{baseUrl}{prefix}/{name}/callback`, as registered with the provider. */
  redirectUri: string
  /** RFC 6749 section 10.12. */
  state: string
  /** OpenID Connect Core 3.1.2.1; of no use to plain OAuth 2.0. */
  nonce: string
  /** RFC 7636 section 4.1. */
  codeVerifier: string
}

export interface AuthorizationResponse extends AuthorizationRequest {
  /** The query of the callback, unparsed: a parameter that comes twice must be seen twice. */
  parameters: URLSearchParams
}

/** Who somebody is, according to a provider. */
export interface Identity {
  /** The provider's own, never reassigned identifier: at most 255 characters. */
  subject: string
  claims: IdentityClaims
  /** Whether the provider vouches for `claims.email`: on that, and on nothing else, accounts are linked. */
  emailVerified: boolean
}

/** An identity as a provider class reads it from the provider's answers: nobody relies on the types of its claims before they are checked. */
export interface UncheckedIdentity {
  /** A text that is not one of 1 to 255 characters ends the sign-in; an identifier that is a number must be made a string. */
  subject: unknown
  /** What is null, empty or of the wrong type is left out; `sub` is the subject unless given. */
  claims: Record<string, unknown>
  /** Whether the provider vouches for `claims.email`. */
  emailVerified: boolean
}

/** What the provider issued, for the application's use at sign-in; never stored. */
export interface ProviderTokens {
  accessToken: string
  refreshToken?: string
  idToken?: string
  /** Seconds. */
  expiresIn?: number
  scope?: string
}

/** An external identity provider. It knows no server and no store. */
export interface ExternalProvider {
  /** The URL segment of its routes: lower-case letters, digits and hyphens. */
  readonly name: string

  /**
   * Where to send the browser.
   *
   * @throws AuthError `provider_unavailable`, `provider_error`
   */
  authorizationUrl (request: AuthorizationRequest): Promise<URL>

  /**
   * Takes the authorization response to an identity.
   *
   * @throws AuthError `access_denied`, `provider_unavailable`, `provider_error`
   */
  authenticate (response: AuthorizationResponse): Promise<{ identity: Identity, tokens: ProviderTokens }>
}

/** What every provider class takes. */
export interface ProviderOptions {
  clientId: string
  clientSecret: string
  /** Replaces the provider's default scopes. */
  scopes?: readonly string[]
  /** Extra static parameters of the authorization request, such as `prompt`. */
  authorizationParams?: Readonly<Record<string, string>>
  /** Milliseconds that one request to the provider may take; default 5000. */
  timeout?: number
  /** Used in place of the global `fetch`, for example to go through a proxy. */
  fetch?: typeof fetch
}
