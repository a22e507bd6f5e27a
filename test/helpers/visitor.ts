import { type AdmittedUser, identityOf } from './own-provider.js'

/** A browser that reaches an application over the network, as far as cookies go. */
export class Visitor {
  readonly #origin: string
  #cookie: string

  /** @param cookie the session cookie that the browser has already */
  constructor (origin: string, cookie = '') {
    this.#origin = origin
    this.#cookie = cookie
  }

  /** The session cookie: name and value. */
  get cookie (): string {
    return this.#cookie
  }

  async get (path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.#send(path, { headers })
  }

  async post (path: string, body: unknown): Promise<Answer> {
    return this.#send(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  }

  /** Goes to a provider and returns the path of the callback. */
  async leaveFor (provider: string, person: AdmittedUser): Promise<string> {
    return this.#callbackOf(provider, person, (await this.get(`/auth/${provider}/login`)).location)
  }

  /** Goes to a provider to add an identity to the account, and returns the path of the callback. */
  async leaveToLink (provider: string, person: AdmittedUser): Promise<string> {
    const { body: { url = '' } } = await this.post(`/auth/${provider}/login`, { link: 'true' })
    return this.#callbackOf(provider, person, url)
  }

  #callbackOf (provider: string, person: AdmittedUser, url: string): string {
    const state = new URL(url).searchParams.get('state') ?? ''
    return `/auth/${provider}/callback?${new URLSearchParams({ state, code: JSON.stringify(identityOf(person)) })}`
  }

  async userId (): Promise<string | undefined> {
    return (await this.get('/me')).body.principal?.userId
  }

  async #send (path: string, { headers, ...init }: { method?: string, headers?: Record<string, string>, body?: string }): Promise<Answer> {
    const response = await fetch(new URL(path, this.#origin), {
      ...init,
      redirect: 'manual',
      headers: { accept: 'application/json', cookie: this.#cookie, ...headers }
    })
    for (const cookie of response.headers.getSetCookie()) this.#cookie = cookie.split(';', 1)[0] ?? ''
    const text = await response.text()
    return { status: response.status, location: response.headers.get('location') ?? '', body: text === '' ? {} : JSON.parse(text) }
  }
}

/** What an application answers. */
export interface Answer {
  status: number
  location: string
  body: { code?: string, url?: string, userId?: string, cart?: string | null, principal?: { userId: string } | null }
}
