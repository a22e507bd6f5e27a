/** What a server answered. */
export interface Answer {
  status: number
  location: string | null
  text: string
  /** The body, where it is JSON. */
  body: Record<string, any>
}

/** A client over the network that keeps its cookies. */
export class Client {
  readonly #origin: string
  readonly #cookies = new Map<string, string>()

  constructor (origin: string) {
    this.#origin = origin
  }

  /** Another client of the same server, without cookies. */
  another (): Client {
    return new Client(this.#origin)
  }

  async get (path: string, accept = 'application/json'): Promise<Answer> {
    return this.#send(path, { headers: { accept } })
  }

  async post (path: string, body: object): Promise<Answer> {
    const headers = { accept: 'application/json', 'content-type': 'application/json' }
    return this.#send(path, { method: 'POST', headers, body: JSON.stringify(body) })
  }

  /** Sends a form, as a page in a browser does. */
  async submit (path: string, fields: Record<string, string>): Promise<Answer> {
    return this.#send(path, { method: 'POST', headers: { accept: 'text/html' }, body: new URLSearchParams(fields) })
  }

  async #send (path: string, { headers, ...init }: { method?: string, headers: Record<string, string>, body?: string | URLSearchParams }): Promise<Answer> {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(new URL(path, this.#origin), { ...init, redirect: 'manual', headers: { ...headers, ...(cookie !== '' && { cookie }) } })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      this.#cookies.set(name, value)
    }
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.includes('json') === true
    return { status: response.status, location: response.headers.get('location'), text, body: isJson ? JSON.parse(text) : {} }
  }
}
