import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, BrowserContext, Cookie, Page } from 'playwright-core'
import type { Test } from 'tap'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Chromium without a window calls itself by another name. */
const USER_AGENT = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36'

const PHONE = { width: 360, height: 740 }
const DESK = { width: 1024, height: 768 }

/** How a page is looked at. */
interface Look {
  device: string
  width: number
  colorScheme: 'light' | 'dark'
}

/** A user with a browser profile of their own, which records what goes wrong. */
export class Visitor {
  /** Errors of the console and violations of the Content-Security-Policy. */
  readonly complaints: string[] = []
  readonly #context: BrowserContext

  private constructor (context: BrowserContext) {
    this.#context = context
    context.on('console', message => { if (['error', 'warning'].includes(message.type())) this.complaints.push(`${message.text()} ${message.location().url}`) })
    context.on('weberror', error => { this.complaints.push(error.error().message) })
  }

  /** @param options `language`: what the browser prefers, such as `de` */
  static async with (
    browser: Browser,
    t: Test,
    { scripts = true, language = 'en' }: { scripts?: boolean, language?: string } = {}
  ): Promise<Visitor> {
    const context = await browser.newContext({
      viewport: DESK, javaScriptEnabled: scripts, locale: language, userAgent: USER_AGENT
    })
    t.teardown(() => context.close())
    return new Visitor(context)
  }

  async cookies (): Promise<Cookie[]> {
    return this.#context.cookies()
  }

  async open (url: string): Promise<Page> {
    const page = await this.#context.newPage()
    await page.goto(url)
    return page
  }
}

/** Calls a function with the page as it is on a desk and on a phone, light and dark; then it is light on a desk. */
export async function inEachLook (page: Page, act: (look: Look) => Promise<void>): Promise<void> {
  for (const [device, viewport] of Object.entries({ desk: DESK, phone: PHONE })) {
    await page.setViewportSize(viewport)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await act({ device, width: viewport.width, colorScheme })
    }
  }
  await page.setViewportSize(DESK)
  await page.emulateMedia({ colorScheme: 'light' })
}

/**
 * What axe-core finds wrong with a page, and whether it has to be scrolled sideways, on a desk and on a phone, light and dark.
 * Each rule sees each width and each color scheme, and rules about colors all four looks. A mail is part of the page of a client, which has
 * the landmarks.
 */
export async function barriersOn (page: Page, { isMail = false } = {}): Promise<string[]> {
  const barriers: string[] = []
  // By the protocol, as `evaluate` takes twice the time for half a megabyte. Not detached: that would end the page's virtual authenticators.
  const session = await page.context().newCDPSession(page)
  await session.send('Runtime.evaluate', { expression: AXE })
  await inEachLook(page, async ({ device, colorScheme, width }) => {
    const isWhole = (device === 'desk') === (colorScheme === 'light')
    const options = {
      resultTypes: ['violations'],
      ...isMail && { rules: { region: { enabled: false }, 'landmark-one-main': { enabled: false } } },
      ...!isWhole && { runOnly: ['color-contrast', 'link-in-text-block'] }
    }
    // As text, for the types of a page are not those of this project.
    const found: string[] = await page.evaluate(`axe.run(${JSON.stringify(options)}).then(({ violations }) => {
      return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ": " + html))
    })`)
    const isWider: boolean = await page.evaluate('document.scrollingElement.scrollWidth > innerWidth')
    barriers.push(...found.map(violation => `${colorScheme}, ${width} px: ${violation}`))
    if (isWider) barriers.push(`wider than ${width} px`)
  })
  return barriers
}
