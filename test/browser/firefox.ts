import { once } from 'node:events'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import root from 'tap'
import { startProxy } from './proxy.js'
import { Tab, startProgram } from './tab.js'

export const FIREFOX = '/usr/bin/firefox-esr'

/** What answers of WebDriver BiDi have, each command some of it. */
interface Result {
  context: string
  contexts: Array<{ url: string }>
  cookies: Array<{ name: string }>
  nodes: Array<{ sharedId: string }>
  result: { value: string }
  userContext: string
}

interface Answer {
  id: number | null
  result: Result
  /** Of a failure. */
  message?: string
}

interface Firefox {
  /** Sends a command of WebDriver BiDi. */
  send (method: string, params: object): Promise<Result>
  /** Where the app writes down the URI that it was opened with. */
  opened: string
}

const started = new Map<boolean, Promise<Firefox>>()

/**
 * Opens a window of Debian's Firefox, by WebDriver BiDi (https://w3c.github.io/webdriver-bidi/). The windows of a process share a program,
 * which knows an app of a scheme, and each has cookies of its own.
 */
export async function openFirefox (scripts: boolean, scheme: string): Promise<Tab> {
  const starting = started.get(scripts) ?? start(scripts, scheme)
  started.set(scripts, starting)
  const { send, opened } = await starting
  rmSync(opened, { force: true })
  const { userContext } = await send('browser.createUserContext', {})
  const { context } = await send('browsingContext.create', { type: 'window', userContext })
  return new FirefoxTab({ send, opened }, context, userContext)
}

async function start (scripts: boolean, scheme: string): Promise<Firefox> {
  const profile = await mkdtemp(join(tmpdir(), 'firefox-'))
  root.teardown(async () => rm(profile, { recursive: true, force: true, maxRetries: 5 }))
  const opened = join(profile, 'opened')
  const path = join(profile, 'app')
  writeFileSync(path, `#!/bin/sh\nprintf %s "$1" > ${opened}\n`, { mode: 0o755 })
  // Action 2 opens a program (nsIHandlerInfo.useHelperApp).
  const handlers = { defaultHandlersVersion: {}, mimeTypes: {}, schemes: { [scheme]: { action: 2, handlers: [{ name: 'App', path }] } } }
  writeFileSync(join(profile, 'handlers.json'), JSON.stringify(handlers))
  const preferences = {
    'javascript.enabled': scripts,
    // Nobody is there to be asked whether the app may be opened.
    'security.external_protocol_requires_permission': false,
    [`network.protocol-handler.external.${scheme}`]: true
  }
  writeFileSync(join(profile, 'user.js'), Object.entries(preferences).map(([name, value]) => `user_pref("${name}", ${value});\n`).join(''))

  const args = ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port=0', 'about:blank']
  const address = await startProgram(FIREFOX, args, { HOME: profile }).says(/BiDi listening on (\S+)\n/)
  const socket = new WebSocket(`${address}/session`)
  await once(socket, 'open')
  const closed = once(socket, 'close').then((): never => { throw new Error('Firefox has ended') })
  closed.catch(() => {})
  const waiting: Array<(answer: Answer) => void> = []
  socket.onmessage = ({ data }) => {
    const answer: Answer = JSON.parse(data)
    if (answer.id !== null) waiting[answer.id]?.(answer)
  }
  const send: Firefox['send'] = async (method, params) => {
    const answered = new Promise<Answer>(resolve => {
      socket.send(JSON.stringify({ id: waiting.push(resolve) - 1, method, params }))
    })
    const { result, message } = await Promise.race([answered, closed])
    if (message !== undefined) throw new Error(`${method}: ${message}`)
    return result
  }
  const proxy = { proxyType: 'manual', sslProxy: await startProxy() }
  await send('session.new', { capabilities: { alwaysMatch: { acceptInsecureCerts: true, proxy } } })
  return { send, opened }
}

class FirefoxTab extends Tab {
  readonly #firefox: Firefox
  readonly #context: string
  readonly #userContext: string

  constructor (firefox: Firefox, context: string, userContext: string) {
    super()
    this.#firefox = firefox
    this.#context = context
    this.#userContext = userContext
  }

  async open (url: string): Promise<void> {
    await this.#send('browsingContext.navigate', { url, wait: 'complete' })
  }

  async url (): Promise<string> {
    const { contexts } = await this.#firefox.send('browsingContext.getTree', { root: this.#context })
    return contexts[0]?.url ?? ''
  }

  async cookies (): Promise<string[]> {
    const { cookies } = await this.#firefox.send('storage.getCookies', { partition: { type: 'context', context: this.#context } })
    return cookies.map(({ name }) => name)
  }

  async appUri (): Promise<string> {
    return existsSync(this.#firefox.opened) ? readFileSync(this.#firefox.opened, 'utf8') : ''
  }

  async close (): Promise<void> {
    await this.#firefox.send('browser.removeUserContext', { userContext: this.#userContext })
  }

  protected async press (xpath: string): Promise<void> {
    const element = await this.#find(xpath)
    await this.#call('element => element.scrollIntoView({ block: "center" })', element)
    await this.#perform('pointer', [
      { type: 'pointerMove', x: 0, y: 0, origin: { type: 'element', element } },
      { type: 'pointerDown', button: 0 },
      { type: 'pointerUp', button: 0 }
    ])
  }

  protected async type (xpath: string, text: string): Promise<void> {
    await this.press(xpath)
    await this.#perform('key', [...text].flatMap(value => [{ type: 'keyDown', value }, { type: 'keyUp', value }]))
  }

  protected async read (xpath: string): Promise<string> {
    return this.#call('element => element.innerText', await this.#find(xpath))
  }

  async #find (xpath: string): Promise<{ sharedId: string }> {
    const { nodes: [element] } = await this.#send('browsingContext.locateNodes', { locator: { type: 'xpath', value: xpath } })
    if (element === undefined) throw new Error(`${await this.url()} has no ${xpath}`)
    return { sharedId: element.sharedId }
  }

  /** Calls a function of the driver, also where pages run no scripts. */
  async #call (functionDeclaration: string, element: object): Promise<string> {
    const { result } = await this.#firefox.send('script.callFunction', {
      functionDeclaration, arguments: [element], target: { context: this.#context }, awaitPromise: false
    })
    return result.value
  }

  async #perform (type: 'key' | 'pointer', actions: object[]): Promise<void> {
    await this.#send('input.performActions', { actions: [{ type, id: type, actions }] })
  }

  async #send (method: string, params: object): Promise<Result> {
    return this.#firefox.send(method, { context: this.#context, ...params })
  }
}
