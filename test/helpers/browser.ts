import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify'

/** A browser as far as cookies go: keeps them between injected requests. */
export class Browser {
  readonly app: FastifyInstance
  readonly cookies: Map<string, string>

  /** @param cookies what it has already, such as those of another browser, copied or stolen */
  constructor (app: FastifyInstance, cookies: ReadonlyMap<string, string> = new Map()) {
    this.app = app
    this.cookies = new Map(cookies)
  }

  async get (url: string, headers: Record<string, string> = {}): Promise<LightMyRequestResponse> {
    return this.send({ method: 'GET', url, headers })
  }

  /** Submits a form, as a page of the application does. */
  async submit (url: string, fields: Record<string, string>, headers: Record<string, string> = {}): Promise<LightMyRequestResponse> {
    return this.send({
      method: 'POST',
      url,
      headers: { accept: 'text/html', 'content-type': 'application/x-www-form-urlencoded', ...headers },
      payload: new URLSearchParams(fields).toString()
    })
  }

  /** Sends JSON, as a script of the application does. */
  async post (url: string, body?: unknown, headers: Record<string, string> = {}): Promise<LightMyRequestResponse> {
    return this.send({
      method: 'POST',
      url,
      headers: { accept: 'application/json', ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { payload: JSON.stringify(body) })
    })
  }

  async send (options: InjectOptions): Promise<LightMyRequestResponse> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await this.app.inject({ ...options, headers: { ...(cookie !== '' && { cookie }), ...options.headers } })
    for (const { name, value, maxAge } of response.cookies) {
      if (value === '' || maxAge === 0) this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    // Behind a callback a URL ends with it, which lib/features/identities/external.test.ts shows.
    const { location } = response.headers
    if (typeof location === 'string') response.headers.location = location.replace(/#$/, '')
    return response
  }
}
