import type { AuthenticationContext } from '../authentication.js'
import type { IdentityClaims } from '../claims.js'

/** Parameters of an authorization request (OpenID Connect Core 3.1.2.1), for `signInUrl`. */
export interface SignInParameters {
  /** The e-mail or name that the provider fills in; left out if empty or over 1000 characters. */
  loginHint?: string
  /** What the provider must show, such as `select_account`, `consent`, `login` or `none`. */
  prompt?: string
  /** Seconds since the user authenticated at the provider at most, which the class must check. */
  maxAge?: number
  /** Scopes in addition to the option `scopes` of the provider. */
  scopes?: readonly string[]
  /** Authentication context classes, of which the class must find one in the signed `acr`. */
  acrValues?: readonly string[]
}

/** An authorization request. `state`, `nonce` and `codeVerifier` are new and random each time. */
export interface AuthorizationRequest extends SignInParameters {
  /** `{baseUrl}{prefix}/{name}/callback`, as registered with the provider. */
  redirectUri: string
  /** Binds the response to the browser (RFC 6749 section 10.12). */
  state: string
  /** Binds the ID token to the request; unused with plain OAuth 2.0. */
  nonce: string
  /** The code verifier of PKCE (RFC 7636 section 4.1). */
  codeVerifier: string
}

/** An authorization response (RFC 6749 section 4.1.2) together with its request. */
export interface AuthorizationResponse extends AuthorizationRequest {
  /** The query of the callback, with duplicate parameters, so that they can be refused. */
  parameters: URLSearchParams
}

/** The identity of a user at a provider. */
export interface Identity {
  /** The identifier of the user at the provider, which is never reassigned: 1 to 255 characters. */
  subject: string
  /** Plain JSON data of at most 16384 characters. */
  claims: IdentityClaims
  /** Whether the provider has verified `claims.email`. The default `linking` requires it. */
  emailVerified: boolean
}

/** An identity as a provider class reads it from responses, before its types are checked. */
export interface UncheckedIdentity {
  /** A string of 1 to 255 characters, or the sign-in ends: convert a number to a string. */
  subject: unknown
  /** What is null, empty or of the wrong type is removed; `sub` defaults to the subject. */
  claims: Record<string, unknown>
  /** Whether the provider has verified `claims.email`. */
  emailVerified: boolean
  /** As in {@link Authentication}. */
  logoutHint?: unknown
}

/**
 * The tokens that the provider issued, for use at sign-in. They are not stored, except encrypted:
 * while a sign-in waits for a second factor, and the ID token for `signOut`.
 */
export interface ProviderTokens {
  /** The access token for the provider's API (RFC 6749 section 1.4). */
  accessToken: string
  /** The refresh token (RFC 6749 section 1.5), if the scopes request one. */
  refreshToken?: string
  /** The verified ID token, a JWT; absent with plain OAuth 2.0. */
  idToken?: string
  /** Lifetime of the access token in seconds. */
  expiresIn?: number
  /** The granted scopes, separated by spaces, if they differ from the requested ones. */
  scope?: string
}

/** The result of an authorization response. */
export interface Authentication {
  /** The user at the provider. */
  identity: Identity
  /** The tokens that the provider issued. */
  tokens: ProviderTokens
  /** From a verified ID token alone: it may stand for a second factor. Absent without one. */
  signed?: AuthenticationContext
  /** What the provider knows the user by at a sign-out there: up to 512 characters, if any. */
  logoutHint?: unknown
  /** Whether it signs in only a user who has this identity already; default false. */
  isLinkedOnly?: boolean
  /**
   * What its logout tokens name: the session (`sid`), and the user (`sub`; default the subject). Of
   * the session a hash is kept, and nothing else.
   */
  atProvider?: {
    /** The session there. */
    sid?: unknown
    /** The user there. */
    sub: string
  }
}

/** The claims of a verified logout token (OpenID Connect Back-Channel Logout 1.0 section 2.4). */
export interface LogoutToken {
  /** Unlike that of each other token of the provider. */
  jti: string
  /** The session that ended; one of the two is there. */
  sid?: string
  /** The user: all of their sessions ended, unless `sid` names one. */
  sub?: string
}

/** A sign-out at the provider (OpenID Connect RP-Initiated Logout 1.0 section 2). */
export interface EndSessionRequest {
  /** `{baseUrl}{prefix}/{name}/signed-out`, as registered with the provider. */
  redirectUri: string
  /** What the provider adds to `redirectUri`. */
  state: string
  /** The ID token of the sign-in, which may have expired; absent with over 4096 characters. */
  idToken?: string
  /** As in {@link Authentication}, else the e-mail where the ID token is too long. */
  logoutHint?: string
}

/** An external identity provider, which needs no server and no store. */
export interface ExternalProvider {
  /** The URL segment of the provider's routes: lower-case letters, digits and hyphens. */
  readonly name: string

  /**
   * Whether {@link authenticate} proves when the user last authenticated: with `maxAge` it refuses
   * an identity whose `auth_time` is absent or older. Default false.
   */
  readonly provesAuthTime?: boolean

  /** How users call the provider, on pages; default after the name. */
  readonly label?: string | undefined

  /** The path of a picture beside the label, of this application. */
  readonly icon?: string | undefined

  /** Whether users can sign out at the provider too, by {@link endSessionUrl}. Default false. */
  readonly signOut?: boolean

  /**
   * Whether the provider tells, by a logout token, that a session there has ended: see
   * {@link verifyLogoutToken}. Default false.
   */
  readonly backChannelLogout?: boolean

  /** `form_post`: browsers post the response; its fields, and `user`, are the parameters then. */
  readonly responseMode?: 'form_post' | undefined

  /**
   * Returns the authorization request, which the browser is redirected to (RFC 6749 section 4.1.1).
   *
   * @throws AuthError `provider_unavailable`, `provider_error`
   */
  authorizationUrl (request: AuthorizationRequest): Promise<URL>

  /**
   * Validates the authorization response, exchanges its code for tokens, and reads the identity of
   * the user.
   *
   * @throws AuthError `access_denied` (by the user), `not_allowed` (by a rule), or as above
   */
  authenticate (response: AuthorizationResponse): Promise<Authentication>

  /** Returns where the browser signs out at the provider; null if there is no such endpoint. */
  endSessionUrl? (request: EndSessionRequest): Promise<URL | null>

  /**
   * Verifies a logout token (OpenID Connect Back-Channel Logout 1.0 section 2.6). Whether it was
   * used before is up to the caller.
   *
   * @throws AuthError `invalid_token`, or as above when it cannot be verified now
   */
  verifyLogoutToken? (token: string): Promise<LogoutToken>
}

/** The client secret in the Authorization header, or in the body (RFC 6749 section 2.3.1). */
export type ClientAuthentication = 'client_secret_basic' | 'client_secret_post'

/** Options of every provider class. */
export interface ProviderOptions {
  /** The id that the provider issued to the application. */
  clientId: string
  /** The secret that the provider issued to the application; never logged. */
  clientSecret: string
  /** How users call the provider, on the plugin's pages; default after its name. */
  label?: string | undefined
  /** The path of a picture beside the label, of this application, such as `/google.svg`. */
  icon?: string | undefined
  /** Replaces the provider's default scopes. */
  scopes?: readonly string[] | undefined
  /** Extra static parameters of the authorization request, such as `prompt`. */
  authorizationParams?: Readonly<Record<string, string>> | undefined
  /** Timeout of one request to the provider in milliseconds; default 5000. */
  timeout?: number | undefined
  /** Replaces the global `fetch`, for example to use a proxy. */
  fetch?: typeof fetch | undefined
}
