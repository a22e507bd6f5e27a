import type * as oauth from 'oauth4webapi'
import { isPlainObject, isText } from '../claims.js'
import { CHECK_SECRET, isOverload, unacceptable } from './failures.js'
import { parsedJson } from './parsed-json.js'
import type { ClientAuthentication } from './provider.js'

/** Refusals of a client: Keycloak and others answer a wrong secret or method with the second. */
const REFUSALS_OF_CLIENT: ReadonlySet<unknown> = new Set(['invalid_client', 'unauthorized_client'])

export interface ClientOptions {
  clientId: string
  clientSecret: string
  /** The only method to use; default: chosen by the metadata, with a retry. */
  clientAuthentication?: ClientAuthentication | undefined
}

/** Authenticates a client with a secret at the token endpoint (RFC 6749 section 2.3.1). */
export class ClientCredentials {
  readonly #clientSecret: string
  readonly #basic: string
  readonly #fixed: ClientAuthentication | undefined
  #preferred: ClientAuthentication = 'client_secret_basic'

  constructor ({ clientId, clientSecret, clientAuthentication }: ClientOptions) {
    this.#clientSecret = clientSecret
    this.#basic = Buffer.from(`${formEncoded(clientId)}:${formEncoded(clientSecret)}`).toString('base64')
    this.#fixed = clientAuthentication
  }

  /** The secret in the forms in which it is sent. */
  get secrets (): string[] {
    return [this.#clientSecret, this.#basic]
  }

  /**
   * Sends the token request. When the method is a guess and the client is refused, tries the other
   * method, and remembers that one if the client is accepted.
   */
  async authenticate (
    server: oauth.AuthorizationServer, request: (authentication: oauth.ClientAuth) => Promise<Response>
  ): Promise<Response> {
    const [method, other] = this.#methods(server)
    const first = await parsedTokenResponse(await request(this.#with(method)))
    if (other === null || !REFUSALS_OF_CLIENT.has(first.body.error)) return first.response

    const { response, body } = await parsedTokenResponse(await request(this.#with(other)))
    const hasTokens = response.status === 200 && isText(body.access_token)
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
  #methods (server: oauth.AuthorizationServer): [ClientAuthentication, ClientAuthentication | null] {
    if (this.#fixed !== undefined) return [this.#fixed, null]
    const announced = server.token_endpoint_auth_methods_supported ?? []
    const [basic, post] = [announced.includes('client_secret_basic'), announced.includes('client_secret_post')]
    if (basic !== post) return [basic ? 'client_secret_basic' : 'client_secret_post', null]
    // A provider that supports only public clients reads client_id from the body.
    if (!basic && announced.includes('none')) return ['client_secret_post', null]
    return [this.#preferred, this.#preferred === 'client_secret_basic' ? 'client_secret_post' : 'client_secret_basic']
  }

  #with (method: ClientAuthentication): oauth.ClientAuth {
    return (_server, { client_id: clientId }, body, headers) => {
      if (method === 'client_secret_basic') {
        headers.set('authorization', `Basic ${this.#basic}`)
      } else {
        body.set('client_id', clientId)
        body.set('client_secret', this.#clientSecret)
      }
    }
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
