/**
 * Debian's Chromium, Firefox and WebKit, for a test that does the same in each. Playwright drives the first. It brings builds of its own of
 * the others, and asks Firefox for commands that Debian's does not have; they speak the protocols of the W3C, with nothing between.
 */
import { existsSync, globSync } from 'node:fs'
import type { Page } from 'playwright-core'
import type { Test } from 'tap'
import { startChromium } from './chromium.js'
import { FIREFOX, openFirefox } from './firefox.js'
import { startProxy } from './proxy.js'
import { Tab } from './tab.js'
import { WEBKIT, openWebKit } from './webkit.js'

/** The scheme of an app. Firefox knows the app, and opens it. */
export const APP_SCHEME = 'com.example.app'

export interface DrivenBrowser {
  readonly name: string
  /** Says how to install the browser; false for one that must be there. */
  readonly missing: string | false
  open (scripts: boolean): Promise<Tab>
}

const [miniBrowser = ''] = globSync(WEBKIT.browsers)

export const BROWSERS: readonly DrivenBrowser[] = [
  {
    name: 'Chromium',
    missing: false,
    async open (javaScriptEnabled) {
      const proxy = { server: await startProxy(), bypass: 'localhost,127.0.0.1' }
      const context = await (await startChromium()).newContext({ javaScriptEnabled, ignoreHTTPSErrors: true, proxy })
      return new ChromiumTab(await context.newPage())
    }
  },
  {
    name: 'Firefox',
    missing: !existsSync(FIREFOX) && 'there is no Firefox: apt-get install firefox-esr',
    open: async scripts => openFirefox(scripts, APP_SCHEME)
  },
  {
    name: 'WebKit',
    missing: ![WEBKIT.driver, WEBKIT.screen, miniBrowser].every(existsSync) && 'there is no WebKit: apt-get install webkit2gtk-driver xvfb',
    open: async scripts => openWebKit(miniBrowser, scripts)
  }
]

/** Opens a window with a profile of its own, which is closed at the end of the test. */
export async function openTab (t: Test, browser: DrivenBrowser, scripts = true): Promise<Tab> {
  const tab = await browser.open(scripts)
  t.teardown(async () => tab.close())
  return tab
}

class ChromiumTab extends Tab {
  readonly #page: Page
  #appUri = ''

  constructor (page: Page) {
    super()
    this.#page = page
    // There is one behind a redirect, too, unless a policy forbids where that leads.
    page.on('request', request => { if (request.url().startsWith(`${APP_SCHEME}:`)) this.#appUri = request.url() })
  }

  async open (url: string): Promise<void> {
    await this.#page.goto(url)
  }

  async url (): Promise<string> {
    return this.#page.url()
  }

  async cookies (): Promise<string[]> {
    return (await this.#page.context().cookies(this.#page.url())).map(({ name }) => name)
  }

  async appUri (): Promise<string> {
    return this.#appUri
  }

  async close (): Promise<void> {
    await this.#page.context().close()
  }

  protected async press (xpath: string): Promise<void> {
    await this.#page.click(`xpath=${xpath}`)
  }

  protected async type (xpath: string, text: string): Promise<void> {
    await this.#page.fill(`xpath=${xpath}`, text)
  }

  protected async read (xpath: string): Promise<string> {
    return this.#page.innerText(`xpath=${xpath}`)
  }
}
