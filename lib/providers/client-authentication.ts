import * as oauth from 'oauth4webapi'
import { isPlainObject, isText } from '../claims.js'
import { isBare } from '../settings.js'
import type { ClientKey } from './client-key.js'
import { CHECK_CLOCK, CHECK_SECRET, isOverload, redacted, unacceptable } from './failures.js'
import { parsedJson } from './parsed-json.js'
import type { ClientAuthentication } from './provider.js'

/** Refusals of a client: Keycloak and others answer a wrong secret or method with the second. */
const REFUSALS_OF_CLIENT: ReadonlySet<unknown> = new Set(['invalid_client', 'unauthorized_client'])

export interface ClientOptions {
  clientId: string
  clientSecret?: string | (() => string | Promise<string>)
  clientKey?: () => ClientKey
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
