import { createPrivateKey } from 'node:crypto'
import type { JWK } from 'jose'
import { isVerified } from '../claims.js'
import { OptionsError } from '../errors.js'
import { Once } from '../base/concurrency.js'
import { secureUrl } from '../core/fetching.js'
import { type Check, boolean, callable, oneOf, optional } from '../option-checks.js'
import { checkedProviderOptions, issued } from './provider-options.js'
import type { OidcFlow, OidcProfile } from './oidc-flow.js'
import type {
  Authentication, AuthorizationRequest, AuthorizationResponse, ClientAuthentication, EndSessionRequest,
  ExternalProvider, LogoutToken, ProviderOptions, UncheckedIdentity
} from './provider.js'

export type { OidcProfile } from './oidc-flow.js'

/** What a client authenticates with: a secret, or a key whose public part the provider has. */
export type ClientCredential = {
  /** The secret that the provider issued, or a function that returns the present one. */
  clientSecret: string | (() => string | Promise<string>)
  clientKey?: undefined
} | {
  clientSecret?: undefined
  /** A private JWK with its `alg`, several of which the first signs, or a function for them. */
  clientKey: JWK | readonly JWK[] | (() => JWK | readonly JWK[])
}

/** Options of an {@link OidcProvider}. */
export type OidcProviderOptions = Omit<ProviderOptions, 'clientSecret'> & ClientCredential & {
  /** The URL segment of the provider's routes. */
  name: string
  /** The URL of `/.well-known/openid-configuration`; requested exactly as given, with its query. */
  discoveryUrl: string
  /**
   * The issuer that the document must name; default the part of `discoveryUrl` before
   * `/.well-known/`, with or without a trailing slash. `{tenantid}` stands for the `tid` of each ID
   * token, as in the documents of Microsoft Entra for many tenants.
   */
  issuer?: string | undefined
  /**
   * The client authentication method at the token endpoint, as registered with the provider.
   * Default: the only method that the metadata allow, else `client_secret_basic` with one retry by
   * `client_secret_post` after `invalid_client`, `unauthorized_client` or a 401 without JSON; the
   * method that worked is remembered.
   */
  clientAuthentication?: ClientAuthentication | 'private_key_jwt' | undefined
  /** Whom the assertions that `clientKey` signs name as audience; default the issuer. */
  assertionAudience?: 'issuer' | 'token_endpoint' | undefined
  /** `form_post`: browsers post the response to the callback; default they are redirected to it. */
  responseMode?: 'form_post' | undefined
  /** Whether requests are pushed (RFC 9126) even where the metadata do not require it of all. */
  pushedAuthorizationRequests?: boolean | undefined
  /** Whether userinfo is asked for claims of the scopes that the ID token lacks; default true. */
  userinfo?: boolean | undefined
  /** Whether users can sign out at the provider too; needs a `dataSecret`; default false. */
  signOut?: boolean | undefined
  /**
   * Whether the provider may end sessions here, by logout tokens (OpenID Connect Back-Channel
   * Logout 1.0); default false.
   */
  backChannelLogout?: boolean | undefined
  /** Whether logout tokens need no `typ` and no `exp`, as of older providers; default false. */
  acceptUntypedLogoutTokens?: boolean | undefined
  /**
   * Leaves PKCE out, for a provider that refuses a `code_verifier`; default false. A stolen code is
   * then not bound to the browser that asked for it, except by the `nonce` of an ID token.
   */
  withoutPkce?: boolean | undefined
  /** Permits plain http to any host: for development servers on this machine; default false. */
  allowInsecureRequests?: boolean | undefined
}

/**
 * Signs users in with any provider that publishes a discovery document (OpenID Connect Discovery
 * 1.0), which the first sign-in fetches. Uses the code flow with PKCE, state and nonce.
 *
 * @example
 * ```ts
 * const discoveryUrl = 'https://id.example/realms/main/.well-known/openid-configuration'
 * new OidcProvider({ name: 'keycloak', discoveryUrl, clientId, clientSecret })
 * ```
 */
export class OidcProvider implements ExternalProvider {
  readonly name: string
  /** True for OpenID providers in general; classes of providers that ignore `max_age` say false. */
  readonly provesAuthTime: boolean = true
  readonly label: string | undefined
  readonly icon: string | undefined
  readonly signOut: boolean
  readonly backChannelLogout: boolean
  readonly responseMode: 'form_post' | undefined
  readonly #flow: Once<OidcFlow>

  /** @throws OptionsError naming the option */
  constructor (options: OidcProviderOptions) {
    const hasKey = options.clientKey !== undefined || options.clientAuthentication === 'private_key_jwt'
    const httpsUrl = secureUrl(options.allowInsecureRequests === true)
    const { discoveryUrl, issuer, ...checked } = checkedProviderOptions(options, ['openid', 'email', 'profile'], {
      allowInsecureRequests: optional(boolean, false),
      discoveryUrl: httpsUrl,
      issuer: optional(httpsUrl),
      clientSecret: hasKey ? optional(secretOption) : secretOption,
      clientKey: hasKey ? clientKeyOption : optional(clientKeyOption),
      clientAuthentication: optional(oneOf('client_secret_basic', 'client_secret_post', 'private_key_jwt')),
      assertionAudience: optional(oneOf('issuer', 'token_endpoint'), 'issuer'),
      responseMode: optional(oneOf('form_post')),
      withoutPkce: optional(boolean, false),
      userinfo: optional(boolean, true),
      pushedAuthorizationRequests: optional(boolean, false),
      signOut: optional(boolean, false),
      backChannelLogout: optional(boolean, false),
      acceptUntypedLogoutTokens: optional(boolean, false)
    })
    const { name, scopes, backChannelLogout, authorizationParams: { max_age: maxAge } } = checked
    if (!scopes.includes('openid')) throw new OptionsError(`${name}: scopes must contain "openid"`)
    if (maxAge !== undefined && !/^\d{1,10}$/.test(maxAge)) {
      throw new OptionsError(
        `${name}: max_age in authorizationParams must be a whole number of seconds, such as "3600"`)
    }
    const url = new URL(discoveryUrl)
    if (!WELL_KNOWN.test(url.pathname)) {
      throw new OptionsError(`${name}: discoveryUrl must end in /.well-known/openid-configuration`)
    }
    if (checked.acceptUntypedLogoutTokens && !backChannelLogout) {
      throw new OptionsError(`${name}: acceptUntypedLogoutTokens needs backChannelLogout: true`)
    }
    if (backChannelLogout && issuer?.includes('{') === true) {
      throw new OptionsError(`${name}: backChannelLogout needs the issuer of one tenant, without {tenantid}`)
    }
    const issuers = issuer === undefined ? issuersOf(url) : [new URL(issuer)] as const

    this.name = name
    this.label = checked.label
    this.icon = checked.icon
    this.signOut = checked.signOut
    this.backChannelLogout = backChannelLogout
    this.responseMode = checked.responseMode
    // oauth4webapi is loaded with the first sign-in, to keep the start of the application fast.
    this.#flow = new Once(async () => {
      const { OidcFlow } = await import('./oidc-flow.js')
      return new OidcFlow({ ...checked, url, issuers, identityOf: (...claims) => this.identityOf(...claims) })
    })
  }

  async authorizationUrl (request: AuthorizationRequest): Promise<URL> {
    return (await this.#flow.done()).authorizationUrl(request)
  }

  async authenticate (response: AuthorizationResponse): Promise<Authentication> {
    return (await this.#flow.done()).authenticate(response)
  }

  /** Override it for a provider with other parameters. */
  async endSessionUrl (request: EndSessionRequest): Promise<URL | null> {
    return (await this.#flow.done()).endSessionUrl(request)
  }

  /** Override it for a provider with other logout tokens. */
  async verifyLogoutToken (token: string): Promise<LogoutToken> {
    return (await this.#flow.done()).verifyLogoutToken(token)
  }

  /**
   * Makes an identity from the claims. Override it for a provider with other claims.
   *
   * @param profile the claims of the verified ID token and of userinfo
   * @param _idToken the claims of the verified ID token alone, for claims that must be signed
   * @throws AuthError to refuse the user: `not_allowed`, or `provider_error`
   */
  protected identityOf (profile: OidcProfile, _idToken: OidcProfile): UncheckedIdentity {
    const { sub, email, email_verified: emailVerified, name, picture } = profile
    const claims = { email, email_verified: emailVerified, name, picture }
    return { subject: sub, claims, emailVerified: isVerified(emailVerified) }
  }
}

const WELL_KNOWN = /\/\.well-known\/openid-configuration\/?$/

/**
 * The issuers that fit a discovery URL: the part before the well-known path (OpenID Connect
 * Discovery 1.0 section 4), without and with a trailing slash, which section 4.1 removes.
 */
function issuersOf (url: URL): [URL, URL] {
  const path = url.pathname.replace(WELL_KNOWN, '').replace(/\/$/, '')
  const at = (pathname: string): URL => Object.assign(new URL(url), { pathname, search: '' })
  return [at(path), at(`${path}/`)]
}

/** The client secret, or a function that returns it. */
const secretOption: Check<string | (() => string | Promise<string>)> = (value, option) =>
  typeof value === 'function' ? callable<() => string>()(value, option) : issued('client secret')(value, option)

/** Algorithms as Web Crypto names them (RFC 7518 section 3.1, RFC 8037). */
const ALGORITHMS = {
  ES256: { name: 'ECDSA', namedCurve: 'P-256' },
  EdDSA: { name: 'Ed25519' },
  PS256: { name: 'RSA-PSS', hash: 'SHA-256' },
  RS256: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
}

/** A private JWK, several of which the first signs, or a function that is called each time. */
const clientKeyOption: Check<() => ReturnType<typeof imported>> = (value, option) => {
  const present = () => imported(valueOf(value), option)
  present()
  return present
}

/** Returns the value of an option, or what its function returns now. */
export function valueOf (option: unknown): unknown {
  return typeof option === 'function' ? option() : option
}

/** Imports a private key. The error does not say what is wrong: that could reveal a part of it. */
export function signingKey (key: Parameters<typeof createPrivateKey>[0], alg: string, must: string) {
  try {
    return createPrivateKey(key).toCryptoKey(Reflect.get(ALGORITHMS, alg), false, ['sign'])
  } catch {
    throw new OptionsError(must)
  }
}

function imported (jwks: unknown, option: string) {
  const { alg, kid, x5t, 'x5t#S256': x5tS256, ...key } = Object([jwks].flat()[0])
  const must = `${option} must be a private JWK whose alg is one of ${Object.keys(ALGORITHMS).join(', ')}, or several`
  const header = { alg, typ: 'JWT', kid, x5t, 'x5t#S256': x5tS256 }
  return { key: signingKey({ key, format: 'jwk' }, alg, must), header }
}
