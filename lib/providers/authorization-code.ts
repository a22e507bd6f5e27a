import { createHash } from 'node:crypto'
import { once } from 'node:events'
import * as oauth from 'oauth4webapi'
import { type Complete, withoutUndefined } from '../base/values.js'
import { isPlainObject, isText } from '../claims.js'
import { limitedBody } from '../core/fetching.js'
import { AuthError } from '../errors.js'
import { isBare } from '../secrets.js'
import {
  CHECK_CLOCK, CHECK_SECRET, failedAt, isOverload, providerFailure, redacted, unacceptable, unreachable
} from './failures.js'
import { checkedIdentity, parsedJson } from './identity.js'
import type {
  Authentication, AuthorizationRequest, AuthorizationResponse, ClientAuthentication, ProviderOptions, SignInParameters,
  UncheckedIdentity
} from './provider.js'

export interface FlowOptions
  extends Complete<Omit<ProviderOptions, 'clientSecret' | 'label' | 'icon'>>, ClientOptions, BackChannelOptions {
  withoutPkce: boolean
}

/** The steps of the authorization code flow (RFC 6749 section 4.1) with PKCE (RFC 7636). */
export abstract class AuthorizationCodeFlow<Options extends FlowOptions = FlowOptions> {
  protected readonly options: Options
  protected readonly client: oauth.Client
  protected readonly http: BackChannel
  protected readonly credentials: ClientCredentials

  constructor (options: Options) {
    this.options = options
    this.client = { client_id: options.clientId }
    this.http = backChannel(options)
    this.credentials = new ClientCredentials(options)
  }

  /** Returns the metadata: the same object each time, by which oauth4webapi caches the keys. */
  protected abstract server (): Promise<oauth.AuthorizationServer>

  /** Reads the user whom the tokens are about. */
  protected abstract userOf (
    tokens: oauth.TokenEndpointResponse, server: oauth.AuthorizationServer, response: AuthorizationResponse
  ): Promise<{ identity: UncheckedIdentity } & Pick<Authentication, 'signed' | 'atProvider'>>

  /** Builds the authorization request (RFC 6749 section 4.1.1). */
  async authorizationUrl (request: AuthorizationRequest): Promise<URL> {
    const { redirectUri, state, codeVerifier, loginHint, scopes = [] } = request
    const { prompt, maxAge, acrValues } = this.demands(request)
    const { authorization_endpoint: endpoint } = await this.server()
    const url = new URL(String(endpoint))
    const scope = [...new Set([...this.options.scopes, ...scopes])].join(' ')
    const parameters = {
      ...this.options.authorizationParams,
      ...withoutUndefined({
        login_hint: loginHint, prompt, max_age: maxAge?.toString(), acr_values: acrValues?.join(' ')
      }),
      client_id: this.client.client_id,
      redirect_uri: redirectUri,
      response_type: 'code',
      ...(scope !== '' && { scope }),
      state,
      // Sent whatever the metadata say: a server that does not support PKCE ignores it (RFC 7636
      // section 4.2).
      ...(!this.options.withoutPkce && {
        code_challenge: createHash('sha256').update(codeVerifier).digest('base64url'),
        code_challenge_method: 'S256'
      })
    }
    for (const [parameter, value] of Object.entries(parameters)) url.searchParams.set(parameter, value)
    return url
  }

  /** Validates the authorization response, and sends the token request (RFC 6749 section 4.1.3). */
  async authenticate (response: AuthorizationResponse): Promise<Authentication> {
    const { parameters, state, redirectUri, codeVerifier } = response
    const sent = [codeVerifier, ...parameters.getAll('code')]
    try {
      const server = await this.server()
      // oauth4webapi ignores an empty iss when the metadata do not announce one.
      if (parameters.get('iss') === '') throw unacceptable('the authorization response has an empty iss')
      const validated = oauth.validateAuthResponse(server, this.client, parameters, state)
      const verifier = this.options.withoutPkce ? oauth.nopkce : codeVerifier
      const atEndpoint = failedAt(server.token_endpoint)
      const tokenResponse = await this.credentials.authenticate(server, sent, async authentication =>
        oauth.authorizationCodeGrantRequest(
          server, this.client, authentication, validated, redirectUri, verifier, this.http)).catch(atEndpoint)
      const tokens = await this.tokensIn(tokenResponse, server, response).catch(atEndpoint)
      sent.push(tokens.access_token)
      const { identity, ...ofIdToken } = await this.userOf(tokens, server, response)
      const { logoutHint } = identity
      return { identity: checkedIdentity(identity), tokens: providerTokens(tokens), ...ofIdToken, logoutHint }
    } catch (error) {
      throw providerFailure(error, sent)
    }
  }

  /** Validates the token response (RFC 6749 section 5.1). */
  protected async tokensIn (
    tokenResponse: Response,
    server: oauth.AuthorizationServer,
    _response: AuthorizationResponse,
    checks: oauth.ProcessAuthorizationCodeResponseOptions = {}
  ): Promise<oauth.TokenEndpointResponse> {
    return oauth.processAuthorizationCodeResponse(server, this.client, tokenResponse, {
      ...checks,
      // oauth4webapi accepts this type besides Bearer.
      recognizedTokenTypes: {
        dpop: () => { throw unacceptable('the access token is bound to a key (DPoP), which was not requested') }
      }
    })
  }

  /**
   * Returns what a sign-in demands: of `authorizationParams`, which holds for every sign-in, and of
   * this one, the stricter. A link with other parameters must not loosen what the operator demands.
   */
  protected demands (
    { maxAge, acrValues, prompt }: SignInParameters
  ): Pick<SignInParameters, 'maxAge' | 'acrValues' | 'prompt'> {
    const { max_age: age, acr_values: values, prompt: shown } = this.options.authorizationParams
    const always = values?.split(' ')
    const classes = always && acrValues ? acrValues.filter(value => always.includes(value)) : acrValues ?? always
    if (classes?.length === 0) {
      throw unacceptable('acrValues of signInUrl has none of the acr_values in authorizationParams')
    }
    // `none` shows nothing, and cannot stand beside another value (OpenID Connect Core 3.1.2.1).
    const asked = prompt === undefined || prompt === 'none' ? shown ?? prompt : prompt
    const isLoginLost = asksToLogIn(shown) && !asksToLogIn(asked)
    return withoutUndefined({
      maxAge: age === undefined ? maxAge : Math.min(Number(age), maxAge ?? Infinity),
      acrValues: classes,
      prompt: isLoginLost ? `login ${asked}` : asked
    })
  }
}

function providerTokens (response: oauth.TokenEndpointResponse): Authentication['tokens'] {
  return withoutUndefined({
    accessToken: response.access_token,
    refreshToken: response.refresh_token,
    idToken: response.id_token,
    expiresIn: response.expires_in,
    scope: response.scope
  })
}

/** Refusals of a client: Keycloak and others answer a wrong secret or method with the second. */
const REFUSALS_OF_CLIENT: ReadonlySet<unknown> = new Set(['invalid_client', 'unauthorized_client'])

interface ClientOptions {
  clientId: string
  clientSecret?: string | (() => string | Promise<string>)
  /** Returns the key, and the header of what it signs. */
  clientKey?: () => { key: oauth.CryptoKey, header: Record<string, unknown> }
  assertionAudience?: 'issuer' | 'token_endpoint'
  /** The only method to use; default: chosen by the metadata, with a retry. */
  clientAuthentication?: ClientAuthentication | 'private_key_jwt' | undefined
}

/** Words about a time that the provider's clock does not admit in an assertion. */
const OF_CLOCK = /\b(?:exp|nbf|iat|expired|expiration|future|clock|not (?:yet )?(?:active|valid yet))\b/i

/** Authenticates a client by a secret (RFC 6749 section 2.3.1) or a key (RFC 7523 section 2.2). */
export class ClientCredentials {
  readonly #options: ClientOptions
  #preferred: ClientAuthentication = 'client_secret_basic'

  constructor (options: ClientOptions) {
    this.#options = options
  }

  /**
   * Sends a request, and notes its credentials in `sent`. When the method is a guess and the client
   * is refused, tries the other method, and remembers that one if the client is accepted.
   */
  async authenticate (
    server: oauth.AuthorizationServer,
    sent: string[],
    request: (authentication: oauth.ClientAuth) => Promise<Response>
  ): Promise<Response> {
    const [method, other] = this.#methods(server)
    const first = await parsedTokenResponse(await request(this.#with(method, sent)))
    if (!REFUSALS_OF_CLIENT.has(first.body.error)) return first.response
    if (this.#options.clientKey !== undefined) throw unacceptable(redacted(this.#refusalOfKey(first), sent))
    if (other === null) return first.response

    const { response, body } = await parsedTokenResponse(await request(this.#with(other, sent)))
    const hasTokens = response.ok && isText(body.access_token ?? body.request_uri)
    const isUsedUp = body.error === 'invalid_grant'
    // Any other answer does not say that the client was accepted: the secret may be wrong.
    if (hasTokens || isUsedUp) this.#preferred = other
    if (hasTokens || isOverload(response)) return response
    if (isUsedUp) {
      throw unacceptable(`${CHECK_SECRET}; if they are right, set the option clientAuthentication to "${other}": ` +
        `the provider refuses ${method}, and the attempt has used up the code`)
    }
    return clientRefused(`${method}: ${reasonOf(first.body)}; ${other}: ${reasonOf(body)}`).response
  }

  /** Returns the method to use, and the one to retry with: null when the first one is certain. */
  #methods (server: oauth.AuthorizationServer): [string, ClientAuthentication | null] {
    if (this.#options.clientAuthentication !== undefined) return [this.#options.clientAuthentication, null]
    const announced = server.token_endpoint_auth_methods_supported ?? []
    const [basic, post] = [announced.includes('client_secret_basic'), announced.includes('client_secret_post')]
    if (basic !== post) return [basic ? 'client_secret_basic' : 'client_secret_post', null]
    // A provider that supports only public clients reads client_id from the body.
    if (!basic && announced.includes('none')) return ['client_secret_post', null]
    return [this.#preferred, this.#preferred === 'client_secret_basic' ? 'client_secret_post' : 'client_secret_basic']
  }

  #with (method: string, sent: string[]): oauth.ClientAuth {
    const { clientSecret, clientKey, assertionAudience } = this.#options
    return async (server, client, body, headers) => {
      if (clientKey !== undefined) {
        const { key, header } = clientKey()
        const modify: oauth.ModifyAssertionFunction = (assertionHeader, claims) => {
          Object.assign(assertionHeader, header)
          if (assertionAudience === 'token_endpoint') claims.aud = server.token_endpoint
        }
        await oauth.PrivateKeyJwt(key, { [oauth.modifyAssertion]: modify })(server, client, body, headers)
        sent.push(...body.getAll('client_assertion'))
        return
      }
      const secret = typeof clientSecret === 'function' ? await clientSecret() : clientSecret
      if (!isBare(secret)) throw unacceptable('the function clientSecret did not return the secret alone')
      const basic = Buffer.from(`${formEncoded(client.client_id)}:${formEncoded(secret)}`).toString('base64')
      sent.push(secret, basic)
      if (method === 'client_secret_basic') {
        headers.set('authorization', `Basic ${basic}`)
      } else {
        oauth.ClientSecretPost(secret)(server, client, body, headers)
      }
    }
  }

  /** Says why a provider may refuse an assertion, which expires after a minute. */
  #refusalOfKey ({ response: { headers }, body }: TokenResponse): string {
    const skew = Math.round(Math.abs(Date.now() - Date.parse(headers.get('date') ?? '')) / 1000)
    const other = this.#options.assertionAudience === 'issuer' ? 'token_endpoint' : 'issuer'
    const advice = `set assertionAudience to "${other}" (${reasonOf(body)})`
    // Some providers tolerate no more.
    if (skew > 5) return `set the clock of this machine, which differs by ${skew} seconds; else ${advice}`
    if (OF_CLOCK.test(reasonOf(body))) return `${CHECK_CLOCK} (${reasonOf(body)})`
    return /\baud/i.test(reasonOf(body)) ? advice : `register the public key of clientKey; if it is, ${advice}`
  }
}

/**
 * Encodes as RFC 6749 appendix B requires. oauth4webapi also encodes `-`, `.` and `_`, which are
 * common in ids and secrets, and several servers do not decode them.
 */
function formEncoded (text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1)
}

/** A token response as oauth4webapi can read it, and its members. */
interface TokenResponse {
  response: Response
  body: Readonly<Record<string, unknown>>
}

/**
 * Reads a token response. One with an error code is an error response, even with status 200 (RFC
 * 6749 section 5.2 requires 400) and with tokens; a member that is null is absent; status 401
 * without JSON, as of a server in front of the provider, refuses the client.
 */
async function parsedTokenResponse (response: Response): Promise<TokenResponse> {
  const { status, headers } = response
  const text = await response.text()
  const body = parsedJson(text)
  if (isPlainObject(body)) {
    const present = Object.fromEntries(Object.entries(body).filter(([, member]) => member !== null))
    // As Twitch sends it.
    if (Array.isArray(present.scope)) present.scope = present.scope.join(' ')
    const isRefusal = status === 200 && present.error !== undefined && present.error !== ''
    return {
      response: new Response(JSON.stringify(present), { status: isRefusal ? 400 : status, headers }),
      body: present
    }
  }
  const description = `status ${status} without JSON`
  if (status === 401) return clientRefused(description)
  return { response: new Response(text || null, { status, headers }), body: { error_description: description } }
}

/** Makes the error response that refuses a client (RFC 6749 section 5.2). */
function clientRefused (description: string): TokenResponse {
  const body = { error: 'invalid_client', error_description: description }
  return { response: Response.json(body, { status: 401 }), body }
}

/** What a provider said of a client, for the log. */
function reasonOf ({ error, error_description: description }: TokenResponse['body']): string {
  const code = isText(error) && error !== 'invalid_client' ? `${error}: ` : ''
  return `${code}${isText(description) ? description : 'no description'}`
}

function asksToLogIn (prompt: string | undefined): boolean {
  return prompt?.split(' ').includes('login') === true
}

const MAX_RESPONSE_BYTES = 1_048_576

interface BackChannelOptions {
  /** Milliseconds for one request and its response. */
  timeout: number
  fetch: typeof fetch
  /** Permits plain http. */
  allowInsecureRequests: boolean
  /** Rewrites a response that does not conform to the standard. */
  conform?: (response: Response) => Response | Promise<Response>
}

export type BackChannel = ReturnType<typeof backChannel>

type Request = Pick<oauth.CustomFetchOptions<string, unknown>, 'method' | 'headers'> & {
  body?: oauth.ProtectedResourceRequestBody
}

/** Options for oauth4webapi: requests have a timeout and follow no redirect. */
function backChannel ({ timeout, fetch, allowInsecureRequests, conform }: BackChannelOptions) {
  return {
    // GitHub refuses requests without a User-Agent.
    headers: { 'user-agent': 'fastify-svc-auth' },
    [oauth.allowInsecureRequests]: allowInsecureRequests,
    [oauth.customFetch]: async (url: string, { method, headers, body = null }: Request) => {
      const signal = AbortSignal.timeout(timeout)
      // The option `fetch` may be a function that ignores the signal.
      const aborted = once(signal, 'abort').then(() => { throw signal.reason })
      const request = async () => completed(await fetch(url, { method, headers, body, signal, redirect: 'manual' }))
      const response = await Promise.race([request(), aborted]).catch((error: unknown) => {
        throw error instanceof AuthError ? error : unreachable(error)
      })
      return conform === undefined ? response : conform(response)
    }
  }
}

/** Reads the whole body, so that the connection is released even if the response is not used. */
async function completed ({ status, headers, body }: Response): Promise<Response> {
  const content = await limitedBody(body, MAX_RESPONSE_BYTES)
  if (content === null) throw unacceptable(`the response is longer than ${MAX_RESPONSE_BYTES} bytes`)
  const response = new Response(content === '' ? null : content, { status, headers })
  // With a challenge, oauth4webapi would not read the body, which has the error code (RFC 6749
  // section 5.2).
  response.headers.delete('www-authenticate')
  return response
}
