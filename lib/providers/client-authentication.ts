import type * as oauth from 'oauth4webapi'
import { isPlainObject, isText } from '../claims.js'
import { unacceptable } from './failures.js'
import { parsedJson } from './parsed-json.js'
import type { ClientAuthentication } from './provider.js'

/** Sends the token request with the given client authentication. */
type TokenRequest = (authentication: oauth.ClientAuth) => Promise<Response>

/** Authenticates a client with a secret at the token endpoint (RFC 6749 section 2.3.1). */
export class ClientCredentials {
  readonly #clientSecret: string
  /** The value of the Authorization header, without its scheme. */
  readonly #basic: string
  readonly #fixed: ClientAuthentication | undefined
  #preferred: ClientAuthentication = 'client_secret_basic'

  /** @param fixed the only method to use; undefined to choose by the metadata, with a retry */
  constructor (clientId: string, clientSecret: string, fixed: ClientAuthentication | undefined) {
    this.#clientSecret = clientSecret
    this.#basic = Buffer.from(`${formEncoded(clientId)}:${formEncoded(clientSecret)}`).toString('base64')
    this.#fixed = fixed
  }

  /**
   * The secret as it is sent. A provider may quote it in an error, and the log must not show it.
   */
  get secrets (): string[] {
    return [this.#clientSecret, this.#basic]
  }

  /**
   * Sends the token request. When the method is a guess, retries once with the other method after
   * `invalid_client`, and remembers the method that the provider accepted.
   *
   * @throws AuthError `provider_error` when the refused request has used up the authorization code
   */
  async authenticate (server: oauth.AuthorizationServer, request: TokenRequest): Promise<Response> {
    const [method, other] = this.#methods(server)
    const first = await parsedTokenResponse(await request(this.#with(method)))
    if (other === null || first.error !== 'invalid_client') return first.response

    const second = await parsedTokenResponse(await request(this.#with(other)))
    if (second.error === 'invalid_client') {
      const description = `${method}: ${first.description}; ${other}: ${second.description}`
      return Response.json({ error: 'invalid_client', error_description: description }, { status: 401 })
    }
    this.#preferred = other
    if (second.error === 'invalid_grant') {
      throw unacceptable(`the provider refuses ${method}, and the attempt has used up the code; ` +
        `set the option clientAuthentication to "${other}", with which the next sign-in begins`)
    }
    return second.response
  }

  /** @returns the method to use, and the one to retry with; null when the first one is certain */
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

/**
 * Reads the error of a token response. A response with an error code is an error response, even
 * with status 200 (RFC 6749 section 5.2 requires 400) and with tokens.
 */
async function parsedTokenResponse (
  response: Response
): Promise<{ response: Response, error: unknown, description: string }> {
  const body = parsedJson(await response.clone().text())
  const { error, error_description: description } = isPlainObject(body) ? body : {}
  const isRefusal = response.status === 200 && error !== undefined && error !== null && error !== ''
  return {
    response: isRefusal ? Response.json(body, { status: 400 }) : response,
    error,
    description: isText(description) ? description : 'no description'
  }
}
