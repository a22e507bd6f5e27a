import type * as oauth from 'oauth4webapi'
import { isPlainObject, isText } from '../claims.js'
import { unacceptable } from './failures.js'
import { parsedJson } from './parsed-json.js'
import type { ClientAuthentication } from './provider.js'

/** Sends the token request with a client authentication. */
type TokenRequest = (authentication: oauth.ClientAuth) => Promise<Response>

/** How a client with a secret authenticates at the token endpoint (RFC 6749 section 2.3.1). */
export class ClientCredentials {
  readonly #clientSecret: string
  /** The value of the Authorization header, without its scheme. */
  readonly #basic: string
  readonly #fixed: ClientAuthentication | undefined
  #preferred: ClientAuthentication = 'client_secret_basic'

  /** @param fixed the only method to use; undefined leaves the choice to the metadata and to what works */
  constructor (clientId: string, clientSecret: string, fixed: ClientAuthentication | undefined) {
    this.#clientSecret = clientSecret
    this.#basic = Buffer.from(`${formEncoded(clientId)}:${formEncoded(clientSecret)}`).toString('base64')
    this.#fixed = fixed
  }

  /** The forms of the secret that are sent, and must not come back into the log. */
  get secrets (): string[] {
    return [this.#clientSecret, this.#basic]
  }

  /**
   * Sends the token request. Where the method is a guess, sends it once more with the other method
   * after `invalid_client`, and remembers a method that the provider did not refuse.
   *
   * @throws AuthError `provider_error` when the refused request has used up the authorization code
   */
  async authenticate (server: oauth.AuthorizationServer, request: TokenRequest): Promise<Response> {
    const [method, other] = this.#methods(server)
    const first = await tokenAnswer(await request(this.#with(method)))
    if (other === null || first.error !== 'invalid_client') return first.answer

    const second = await tokenAnswer(await request(this.#with(other)))
    if (second.error === 'invalid_client') {
      const description = `${method}: ${first.description}; ${other}: ${second.description}`
      return Response.json({ error: 'invalid_client', error_description: description }, { status: 401 })
    }
    this.#preferred = other
    if (second.error === 'invalid_grant') {
      throw unacceptable(`the provider refuses ${method}, and the code was used up by the attempt: ` +
        `the next sign-in begins with ${other}; set the option clientAuthentication to "${other}"`)
    }
    return second.answer
  }

  /** The method to use, and the one to try after it unless the choice is certain. */
  #methods (server: oauth.AuthorizationServer): [ClientAuthentication, ClientAuthentication | null] {
    if (this.#fixed !== undefined) return [this.#fixed, null]
    const announced = server.token_endpoint_auth_methods_supported ?? []
    const [basic, post] = [announced.includes('client_secret_basic'), announced.includes('client_secret_post')]
    if (basic !== post) return [basic ? 'client_secret_basic' : 'client_secret_post', null]
    // A provider that knows public clients alone reads client_id from the body.
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
 * Encodes as RFC 6749 appendix B says, and no more than that: several servers do not decode, and
 * only the characters that oauth4webapi encodes besides (`-`, `.`, `_`) are common in ids and secrets.
 */
function formEncoded (text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1)
}

/**
 * The answer to a token request and its error code. An answer that names an error is one, also with
 * status 200 (RFC 6749 section 5.2 says 400) and beside tokens.
 */
async function tokenAnswer (answer: Response): Promise<{ answer: Response, error: unknown, description: string }> {
  const body = parsedJson(await answer.clone().text())
  const { error, error_description: description } = isPlainObject(body) ? body : {}
  const isRefusal = answer.status === 200 && error !== undefined && error !== null && error !== ''
  return {
    answer: isRefusal ? Response.json(body, { status: 400 }) : answer,
    error,
    description: isText(description) ? description : 'no description'
  }
}
