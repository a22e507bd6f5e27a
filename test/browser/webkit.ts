import { freePort } from '../helpers/loopback.js'
import { startProxy } from './proxy.js'
import { PATIENCE_MS, Tab, inTime, startProgram } from './tab.js'

export const WEBKIT = { driver: '/usr/bin/WebKitWebDriver', screen: '/usr/bin/Xvfb', browsers: '/usr/lib/*/webkit*gtk-*/MiniBrowser' }

/** How WebDriver calls the id of an element. */
const ELEMENT = 'element-6066-11e4-a52e-4f735466cecf'

/** Sends a command of WebDriver to the driver of WebKitGTK, which has one session at a time. */
type Send = <T = null>(method: 'DELETE' | 'GET' | 'POST', path: string, body?: object) => Promise<T>

let starting: Promise<Send> | undefined

/** Opens a window of WebKitGTK's own browser, by WebDriver (https://w3c.github.io/webdriver/), on a screen of its own. */
export async function openWebKit (binary: string, scripts: boolean): Promise<Tab> {
  starting ??= start()
  const send = await starting
  // Not by `sslProxy` of the capabilities, with which WebKitGTK's TLS handshakes fail.
  const proxy = `--proxy=http://${await startProxy()}`
  const args = ['--automation', `--enable-javascript=${scripts}`, proxy, '--ignore-host=localhost', '--ignore-host=127.0.0.1']
  const { sessionId } = await send<{ sessionId: string }>('POST', '/session', {
    // A click on what opens an app waits for a page that never comes; a tab waits for what it needs itself.
    capabilities: { alwaysMatch: { acceptInsecureCerts: true, pageLoadStrategy: 'none', 'webkitgtk:browserOptions': { binary, args } } }
  })
  return new WebKitTab(async (method, path, body) => send(method, `/session/${sessionId}${path}`, body))
}

async function start (): Promise<Send> {
  const screen = await startProgram(WEBKIT.screen, ['-displayfd', '1', '-nolisten', 'tcp']).says(/^(\d+)\n/m)
  const port = await freePort()
  const send: Send = async (method, path, body) => {
    const signal = AbortSignal.timeout(PATIENCE_MS)
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, signal, ...body && { body: JSON.stringify(body) } })
    const { value } = JSON.parse(await response.text())
    if (!response.ok) throw new Error(`${method} ${path}: ${value.error} ${value.message}`)
    return value
  }
  startProgram(WEBKIT.driver, [`--port=${port}`], { DISPLAY: `:${screen}` })
  await inTime(async () => send('GET', '/status'))
  return send
}

class WebKitTab extends Tab {
  readonly #send: Send

  constructor (send: Send) {
    super()
    this.#send = send
  }

  async open (url: string): Promise<void> {
    await this.#send('POST', '/url', { url })
  }

  async url (): Promise<string> {
    return this.#send('GET', '/url')
  }

  async cookies (): Promise<string[]> {
    return (await this.#send<Array<{ name: string }>>('GET', '/cookie')).map(({ name }) => name)
  }

  /** WebKit leaves it to its browser to open an app, once no policy forbids it; this one shows the URI, with an error. */
  async appUri (): Promise<string> {
    return this.url()
  }

  async close (): Promise<void> {
    await this.#send('DELETE', '')
  }

  protected async press (xpath: string): Promise<void> {
    await this.#send('POST', `${await this.#find(xpath)}/click`, {})
  }

  protected async type (xpath: string, text: string): Promise<void> {
    await this.#send('POST', `${await this.#find(xpath)}/value`, { text })
  }

  protected async read (xpath: string): Promise<string> {
    return this.#send('GET', `${await this.#find(xpath)}/text`)
  }

  async #find (xpath: string): Promise<string> {
    const { [ELEMENT]: id } = await this.#send<Record<string, string>>('POST', '/element', { using: 'xpath', value: xpath })
    return `/element/${id}`
  }
}
