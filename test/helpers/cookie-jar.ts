import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify'
import { Browser } from './browser.js'

/** A cookie as a browser keeps it. */
interface Kept {
  name: string
  value: string
  domain: string
  isHostOnly: boolean
  path: string
  isPartitioned: boolean
}

/**
 * A browser that keeps cookies by name, domain and path, as RFC 6265 section 5 says: it may send
 * several of one name, those of longer paths first, then the older ones.
 */
export class JarBrowser extends Browser {
  /** The host of the application as this browser sees it. */
  readonly host: string
  kept: Kept[] = []

  constructor (app: FastifyInstance, host = 'app.example') {
    super(app)
    this.host = host
  }

  override async send (options: InjectOptions): Promise<LightMyRequestResponse> {
    const { pathname } = new URL(String(options.url), `http://${this.host}`)
    const cookie = this.sentTo(pathname).map(({ name, value }) => `${name}=${value}`).join('; ')
    const headers = { host: this.host, ...(cookie !== '' && { cookie }), ...options.headers }
    const response = await this.app.inject({ ...options, headers })
    for (const text of [response.headers['set-cookie'] ?? []].flat()) this.set(text)
    return response
  }

  /** The values of a cookie that a request to a path carries. */
  valuesOf (name: string, path = '/'): string[] {
    return this.sentTo(path).filter(cookie => cookie.name === name).map(({ value }) => value)
  }

  /** Sets a cookie, as by a header `Set-Cookie` of an answer. */
  set (text: string): void {
    const [pair = '', ...attributes] = text.split(/; */)
    const [name = '', value = ''] = pair.split(/=(.*)/s)
    const of = new Map(attributes.map(attribute => attribute.toLowerCase().split('=')).map(([key = '', value = '']) => [key, value]))
    const domain = of.get('domain')
    if (domain !== undefined && this.host !== domain && !this.host.endsWith(`.${domain}`)) return
    const cookie = {
      name, value, domain: domain ?? this.host, isHostOnly: domain === undefined, path: of.get('path') ?? '/', isPartitioned: of.has('partitioned')
    }
    const isSame = (other: Kept): boolean => JSON.stringify({ ...other, value }) === JSON.stringify(cookie)
    const present = this.kept.find(isSame)
    const isOver = of.get('max-age') === '0' || new Date(of.get('expires') ?? '2999').getTime() <= Date.now()
    if (isOver) this.kept = this.kept.filter(other => other !== present)
    else if (present !== undefined) present.value = value
    else this.kept.push(cookie)
  }

  private sentTo (path: string): Kept[] {
    return this.kept.filter(({ domain, isHostOnly }) => this.host === domain || (!isHostOnly && this.host.endsWith(`.${domain}`)))
      .filter(cookie => `${path}/`.startsWith(cookie.path.endsWith('/') ? cookie.path : `${cookie.path}/`))
      .sort((one, other) => other.path.length - one.path.length)
  }
}
