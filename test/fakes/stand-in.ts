import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingHttpHeaders, type IncomingMessage, createServer } from 'node:http'
import { type AddressInfo } from 'node:net'
import type { Test } from 'tap'
import type { Answer, Lie } from './lies.js'

/** A request as it came in, with the host that it was meant for. */
export interface ReceivedRequest {
  method: string
  host: string
  path: string
  query: URLSearchParams
  headers: IncomingHttpHeaders
  /** The body, if it was a form. */
  form: URLSearchParams
}

/** What a person agreed to. */
export interface Authorization {
  redirectUri: string
  /** Of PKCE, with S256; absent when the client sent none. */
  challenge: string | null
  nonce: string | null
  scope: string
}

/** Why a code is not taken, in the order in which providers look. */
export type Refusal = 'no form' | 'no secret' | 'unknown client' | 'wrong secret' | 'unknown code' | 'used code' | 'expired code' | 'other redirect URI' | 'no verifier' | 'wrong verifier'

/**
 * A provider as its clients and people's browsers meet it: one HTTP server on this machine that answers for the provider's real hosts,
 * checks its client strictly, and can be told to lie. What it says is what the provider's documentation and real answers say.
 */
export abstract class StandIn {
  abstract readonly clientId: string
  abstract readonly clientSecret: string
  /** Hosts of the provider that this server answers for; nobody else may be asked. */
  abstract readonly hosts: readonly string[]
  /** As registered in the provider's console. */
  readonly redirectUris: string[]
  /** Whether the person says yes. */
  consents = true
  /** Whether codes are too old by the time they arrive. */
  codesExpire = false
  readonly requests: ReceivedRequest[] = []
  /** By method, host and path, such as `POST oauth2.googleapis.com/token`. */
  readonly lies = new Map<string, Lie>()
  readonly #codes = new Map<string, { authorization: Authorization, isUsed: boolean }>()
  #origin = ''

  constructor (redirectUri: string) {
    this.redirectUris = [redirectUri]
  }

  /** What the real service would say. */
  protected abstract answer (request: ReceivedRequest): Answer | Promise<Answer>

  /** Takes requests for the provider's hosts here: for the option `fetch`. */
  readonly fetch: typeof fetch = async (input, init = {}) => {
    const url = new URL(input instanceof Request ? input.url : input)
    if (url.protocol !== 'https:' || !this.hosts.includes(url.host)) throw new Error(`the provider has nothing at ${url.origin}`)
    const headers = new Headers(init.headers)
    headers.set('x-meant-for', url.host)
    return fetch(this.#origin + url.pathname + url.search, { ...init, headers })
  }

  /**
   * Opens an authorization request in the person's browser.
   *
   * @returns path and query of the redirect back to the application, without the fragment, which browsers keep to themselves
   * @throws Error with the page that the provider shows in place of a redirect
   */
  async authorize (authorizationUrl: string): Promise<string> {
    const response = await this.fetch(authorizationUrl, { redirect: 'manual', headers: { accept: 'text/html' } })
    const location = response.headers.get('location')
    if (location === null) throw new Error(`${response.status}: ${await response.text()}`)
    const { pathname, search } = new URL(location)
    return pathname + search
  }

  /** The requests of the application's own, without those of browsers. */
  backChannelRequests (): string[] {
    return this.requests.filter(({ headers }) => headers.accept !== 'text/html').map(({ method, host, path }) => `${method} ${host}${path}`)
  }

  async start (t: Test): Promise<this> {
    const server = createServer(async (request, response) => {
      const received = await receive(request)
      this.requests.push(received)
      const honest = await this.answer(received)
      const answer = await this.lies.get(`${received.method} ${received.host}${received.path}`)?.(honest, response) ?? honest
      if (answer !== 'handled') response.writeHead(answer.status, answer.headers).end(answer.body)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(async () => { server.close(); server.closeAllConnections(); await once(server, 'close') })
    this.#origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    return this
  }

  /** A code for what the authorization request asks for. */
  protected issueCode (query: URLSearchParams, { prefix = '', bytes = 16 } = {}): string {
    const code = prefix + randomBytes(bytes).toString('base64url')
    const isHashed = query.get('code_challenge_method') === 'S256'
    this.#codes.set(code, {
      isUsed: false,
      authorization: {
        redirectUri: query.get('redirect_uri') ?? '',
        challenge: isHashed ? query.get('code_challenge') : null,
        nonce: query.get('nonce'),
        scope: query.get('scope') ?? ''
      }
    })
    return code
  }

  /** Takes a token request (RFC 6749 section 4.1.3, RFC 7636 section 4.6): client in the body or in the Authorization header. */
  protected redeem ({ method, headers, form }: ReceivedRequest): Authorization | Refusal {
    const contentType = headers['content-type']?.split(';', 1)[0]
    if (method !== 'POST' || contentType !== 'application/x-www-form-urlencoded' || form.get('grant_type') !== 'authorization_code') return 'no form'
    const [id, secret] = credentialsOf(headers, form)
    if (id !== this.clientId) return 'unknown client'
    if (secret === null) return 'no secret'
    if (secret !== this.clientSecret) return 'wrong secret'

    const code = this.#codes.get(form.get('code') ?? '')
    if (code === undefined) return 'unknown code'
    if (code.isUsed) return 'used code'
    if (this.codesExpire) return 'expired code'
    const { authorization } = code
    if (form.get('redirect_uri') !== authorization.redirectUri) return 'other redirect URI'
    if (authorization.challenge !== null) {
      const verifier = form.get('code_verifier')
      if (verifier === null) return 'no verifier'
      if (createHash('sha256').update(verifier).digest('base64url') !== authorization.challenge) return 'wrong verifier'
    }
    code.isUsed = true
    return authorization
  }
}

/** The redirect that answers an authorization request; a parameter that is undefined is left out. */
export function redirectTo (redirectUri: string, parameters: Record<string, string | null | undefined>, fragment = ''): Answer {
  const url = new URL(redirectUri)
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined) url.searchParams.set(name, value)
  }
  url.hash = fragment
  return { status: 302, headers: { location: url.href }, body: '' }
}

async function receive (request: IncomingMessage): Promise<ReceivedRequest> {
  let body = ''
  for await (const chunk of request) body += String(chunk)
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://stand-in.invalid')
  const isForm = request.headers['content-type']?.startsWith('application/x-www-form-urlencoded')
  return {
    method: request.method ?? '',
    host: String(request.headers['x-meant-for']),
    path: pathname,
    query: searchParams,
    headers: request.headers,
    form: new URLSearchParams(isForm === true ? body : '')
  }
}

/** Both ways of RFC 6749 section 2.3.1. */
export function credentialsOf (headers: IncomingHttpHeaders, form: URLSearchParams): [id: string | null, secret: string | null] {
  const [, basic] = /^Basic (.+)$/.exec(headers.authorization ?? '') ?? []
  if (basic === undefined) return [form.get('client_id'), form.get('client_secret')]
  const [id = null, secret = null] = Buffer.from(basic, 'base64').toString().split(':').map(part => decodeURIComponent(part.replaceAll('+', ' ')))
  return [id, secret]
}
