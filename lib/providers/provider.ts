import type { IdentityClaims } from '../claims.js'

/** What one sign-in asks of its provider, by `app.auth.signInUrl`. */
export interface SignInParameters {
  /** The user whom the application expects (`login_hint`, OpenID Connect Core 3.1.2.1). */
  loginHint?: string
  /** What the provider must or must not ask the user (`prompt`), such as `select_account`. */
  prompt?: string
  /** Seconds since the user proved to the provider who they are, at most (`max_age`). The provider class has to check it. */
  maxAge?: number
  /** Scopes besides those of the provider class. */
  scopes?: readonly string[]
}

/** What ties an authorization response to the request that asked for it. New random values for each sign-in. */
export interface AuthorizationRequest extends SignInParameters {
  /** `{baseUrl}{prefix}/{name}/callback`, as registered with the provider. */
  redirectUri: string
  /** RFC 6749 section 10.12. */
  state: string
  /** OpenID Connect Core 3.1.2.1; of no use to plain OAuth 2.0. */
  nonce: string
  /** RFC 7636 section 4.1. */
  codeVerifier: string
}

/** What the browser brings back from the provider (RFC 6749 section 4.1.2), beside the request that it answers. */
export interface AuthorizationResponse extends AuthorizationRequest {
  /** The query of the callback, unparsed: a parameter that comes twice must be seen twice. */
  parameters: URLSearchParams
}

/** Who somebody is, according to a provider. */
export interface Identity {
  /** The provider's own, never reassigned identifier: at most 255 characters. */
  subject: string
  /** Plain JSON data, at most 16384 characters of it. */
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
  /** For the provider's API (RFC 6749 section 1.4). */
  accessToken: string
  /** For new access tokens (RFC 6749 section 1.5), if the scopes ask for one. */
  refreshToken?: string
  /** A JWT whose signature and claims are verified; absent with plain OAuth 2.0. */
  idToken?: string
  /** Seconds that the access token is good for. */
  expiresIn?: number
  /** What was granted, separated by blanks, where it is not what was asked for (RFC 6749 section 3.3). */
  scope?: string
}

/** What came of an authorization response. */
export interface Authentication {
  /** Who the person is. */
  identity: Identity
  /** What the provider issued. */
  tokens: ProviderTokens
}

/** An external identity provider. It knows no server and no store. */
export interface ExternalProvider {
  /** The URL segment of its routes: lower-case letters, digits and hyphens. */
  readonly name: string

  /**
   * Where to send the browser (RFC 6749 section 4.1.1, OpenID Connect Core 3.1.2.1).
   *
   * @throws AuthError `provider_unavailable`, `provider_error`
   */
  authorizationUrl (request: AuthorizationRequest): Promise<URL>

  /**
   * Takes the authorization response to an identity: the answer is checked, the code exchanged, and what the provider says of the person read.
   *
   * @throws AuthError `access_denied`, `provider_unavailable`, `provider_error`
   */
  authenticate (response: AuthorizationResponse): Promise<Authentication>
}

/**
 * How the client authenticates at the token endpoint (RFC 6749 section 2.3.1): with its secret in the
 * Authorization header, or in the body.
 */
export type ClientAuthentication = 'client_secret_basic' | 'client_secret_post'

/** What every provider class takes. */
export interface ProviderOptions {
  /** As the provider gave it to the application. */
  clientId: string
  /** As the provider gave it to the application; never printed. */
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
