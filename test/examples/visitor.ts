import { totp } from '../../lib/testing.js'

interface Cookie {
  name: string
  value: string
  path: string
}

/** A page as it arrived. */
export interface Page {
  url: URL
  status: number
  headers: Headers
  text: string
}

/**
 * Somebody with a browser: keeps cookies (localhost is one host, whatever the port), follows redirects, sends Referer and Origin as the
 * page's policy says, and refuses what its Content-Security-Policy forbids a form to do.
 */
export class Visitor {
  readonly #cookies = new Map<string, Cookie>()
  #page: Page | undefined

  get page (): Page {
    if (this.#page === undefined) throw new Error('no page is open')
    return this.#page
  }

  /** Types an address. */
  async open (url: string): Promise<Page> {
    return this.#visit(new URL(url), {})
  }

  /** Follows the link with this text. */
  async follow (text: string): Promise<Page> {
    const href = new RegExp(`<a [^>]*href="([^"]*)"[^>]*>${text}</a>`).exec(this.page.text)?.[1]
    if (href === undefined) throw new Error(`there is no link "${text}" on ${this.page.url}`)
    return this.#visit(new URL(unescaped(href), this.page.url), { referer: this.page.url })
  }

  /** Fills in the form with this button and presses it. */
  async press (text: string, fields: Record<string, string> = {}): Promise<Page> {
    const form = this.page.text.match(/<form[^]*?<\/form>/g)?.find(markup => markup.includes(`>${text}</button>`))
    const button = form?.match(/<button[^]*?<\/button>/g)?.find(markup => markup.endsWith(`>${text}</button>`))
    if (form === undefined || button === undefined) throw new Error(`there is no button "${text}" on ${this.page.url}`)

    const inputs = (form.match(/<input[^>]*>/g) ?? []).filter(input => attribute(input, 'type') !== 'checkbox' && !/ disabled[ >]/.test(input))
    const presets = inputs.map(input => [attribute(input, 'name') ?? '', attribute(input, 'value') ?? ''])
    const body = new URLSearchParams({ ...Object.fromEntries(presets), ...fields })
    const action = attribute(button, 'formaction') ?? attribute(form, 'action') ?? ''
    return this.#visit(new URL(action, this.page.url), { referer: this.page.url, body, allowed: this.#formTargets() })
  }

  /** Goes from the sign-in page to the form for a new account, and sends that. */
  async register (fields: Record<string, string>): Promise<Page> {
    await this.follow('Create an account')
    return this.press('Create an account', fields)
  }

  /**
   * Opens the pages of administrators for the first time: they set up an authenticator app before.
   *
   * @returns the secret of the app
   */
  async becomeAdministrator (url: string): Promise<string> {
    await this.open(`${url}/admin`)
    await this.press('Set up an authenticator app')
    const [uri = ''] = /otpauth:[^"]*/.exec(this.page.text) ?? []
    await this.press('Confirm', { code: totp(unescaped(uri)) })
    await this.follow('Continue')
    return unescaped(uri)
  }

  /** Sends a form that stands on no page of this visitor's, from a site of this kind (Sec-Fetch-Site). */
  async send (url: string, fields: Record<string, string>, site: string): Promise<Page> {
    return this.#visit(new URL(url), { body: new URLSearchParams(fields), site })
  }

  /** The answer to an address, when it is a redirect that leads off the machine of the test. */
  async request (url: string): Promise<Response> {
    return this.#request(new URL(url), { redirect: 'manual', headers: { accept: 'text/html' } })
  }

  /** What a script of the page would do. */
  async post (path: string, body: unknown): Promise<Response> {
    const url = new URL(path, this.page.url)
    return this.#request(url, {
      method: 'POST',
      headers: { accept: 'application/json', 'content-type': 'application/json', origin: url.origin, 'sec-fetch-site': 'same-origin' },
      body: JSON.stringify(body)
    })
  }

  async #visit (
    target: URL,
    { referer, body, allowed, site }: { referer?: URL, body?: URLSearchParams, allowed?: Set<string> | undefined, site?: string }
  ): Promise<Page> {
    let url = target
    let method = body === undefined ? 'GET' : 'POST'
    let policy = this.#page?.headers.get('referrer-policy')
    for (;;) {
      if (allowed?.has(url.origin) === false) throw new Error(`form-action does not allow ${url}`)
      const isSameOrigin = referer?.origin === url.origin
      const response = await this.#request(url, {
        method,
        redirect: 'manual',
        headers: {
          accept: 'text/html,application/xhtml+xml,*/*;q=0.8',
          'sec-fetch-site': site ?? (referer === undefined ? 'none' : isSameOrigin ? 'same-origin' : 'same-site'),
          ...(referer !== undefined && isSameOrigin && policy !== 'no-referrer' && {
            referer: policy === 'strict-origin' ? `${referer.origin}/` : referer.href
          }),
          ...(method === 'POST' && { origin: isSameOrigin ? url.origin : 'null' })
        },
        ...(method === 'POST' && body !== undefined && { body })
      })
      const location = response.headers.get('location')
      if (location === null) {
        this.#page = { url, status: response.status, headers: response.headers, text: await response.text() }
        return this.#page
      }
      url = new URL(location, url)
      method = 'GET'
      policy = response.headers.get('referrer-policy') ?? policy
    }
  }

  async #request (url: URL, init: RequestInit & { headers: Record<string, string> }): Promise<Response> {
    const cookies = [...this.#cookies.values()].filter(({ path }) => path === '/' || url.pathname === path || url.pathname.startsWith(`${path}/`))
    const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join('; ')
    const response = await fetch(url, { ...init, headers: { ...init.headers, ...(cookie !== '' && { cookie }) } })
    for (const line of response.headers.getSetCookie()) this.#keep(line)
    return response
  }

  #keep (line: string): void {
    const { name = '', value = '' } = /^(?<name>[^=]+)=(?<value>[^;]*)/.exec(line)?.groups ?? {}
    const path = /; *path=([^;]*)/i.exec(line)?.[1] ?? '/'
    const expires = /; *expires=([^;]*)/i.exec(line)?.[1]
    const key = `${name} ${path}`
    if (expires !== undefined && Date.parse(expires) <= Date.now()) this.#cookies.delete(key)
    else this.#cookies.set(key, { name, value, path })
  }

  /** Chrome applies form-action to the redirects that answer a form, too. */
  #formTargets (): Set<string> | undefined {
    const policy = this.page.headers.get('content-security-policy') ?? ''
    const directive = policy.split('; ').find(directive => directive.startsWith('form-action '))
    if (directive === undefined) return undefined
    const [, ...sources] = directive.split(' ')
    return new Set(sources.map(source => source === "'self'" ? this.page.url.origin : source))
  }
}

/** The user id on an account page. */
export function userIdOn (page: string): string {
  const id = /<code>([0-9a-f-]{36})<\/code>/.exec(page)?.[1]
  if (id === undefined) throw new Error(`there is no user in ${page}`)
  return id
}

function attribute (tag: string, name: string): string | undefined {
  const value = new RegExp(`^<[^>]* ${name}="([^"]*)"`).exec(tag)?.[1]
  return value === undefined ? undefined : unescaped(value)
}

function unescaped (text: string): string {
  return text.replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))
}
