import { type IncomingHttpHeaders, type IncomingMessage, createServer } from 'node:http'
import type { Test } from 'tap'
import { listen } from '../helpers/loopback.js'
import { type Authorization, AuthorizationCodes, type Refusal, formOf } from './authorization-codes.js'
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
  readonly #codes = new AuthorizationCodes()
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
    this.#origin = `http://127.0.0.1:${await listen(t, server)}`
    return this
  }

  /** A code for what the authorization request asks for. */
  protected issueCode (query: URLSearchParams, form: { prefix?: string, bytes?: number } = {}): string {
    return this.#codes.issue(query, form)
  }

  /** What the person agreed to, for a token request that is right in every way. */
  protected redeem (request: ReceivedRequest): Authorization | Refusal {
    return this.#codes.redeem(request, this)
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
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://stand-in.invalid')
  return {
    method: request.method ?? '',
    host: String(request.headers['x-meant-for']),
    path: pathname,
    query: searchParams,
    headers: request.headers,
    form: await formOf(request)
  }
}
