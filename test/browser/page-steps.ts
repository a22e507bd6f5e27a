/** What users do on the pages of the plugin, and an application with them. */
import helmet from '@fastify/helmet'
import Fastify, { type FastifyInstance } from 'fastify'
import type { Locator, Page } from 'playwright-core'
import type { Test } from 'tap'
import authPlugin, { type AuthPluginOptions, type LocalIdentityProviderOptions } from '../../lib/index.js'
import { Pages, type Texts } from '../../lib/pages.js'
import { type Mailbox, mailbox } from '../../lib/testing.js'
import { SESSION_SECRET, localProvider } from '../helpers/app.js'
import { freePort } from '../helpers/loopback.js'

export const HOME = '<!doctype html><link rel="icon" href="data:,"><title>Home</title><h1>Home</h1>'

/** A session that a user may ask to stay in. */
export const REMEMBERED = { secret: SESSION_SECRET, remember: { days: 30 } }

/** An application that runs. */
export interface Shop {
  app: FastifyInstance
  url: string
  mails: Mailbox
}

/**
 * Starts an application with the headers of @fastify/helmet and the pages of the plugin.
 *
 * @param mount adds routes
 * @param port default a free one
 */
export async function startShop (
  t: Test,
  { local, ...options }: Omit<AuthPluginOptions, 'local'> & { local?: LocalIdentityProviderOptions } = {},
  mount: (app: FastifyInstance) => void = () => {},
  port?: number
): Promise<Shop> {
  port ??= await freePort()
  const url = `http://localhost:${port}`
  const mails = mailbox()
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(helmet)
  await app.register(authPlugin, {
    baseUrl: url,
    session: { secret: SESSION_SECRET },
    local: localProvider({ sendMail: mails.sendMail, ...local }),
    rateLimit: false,
    pages: new Pages({ name: 'Shop' }),
    ...options
  })
  app.get('/', async (_request, reply) => reply.type('text/html').send(HOME))
  mount(app)
  await app.listen({ host: 'localhost', port })
  return { app, url, mails }
}

/** Fills in the form with this button, by the names of its fields, and sends it; opens the row that it is in. */
export async function send (page: Page, button: string, fields: Record<string, string> = {}): Promise<void> {
  await (await fillIn(page, button, fields)).click()
}

/** Fills in the form as {@link send} does, and returns its button. */
export async function fillIn (page: Page, button: string, fields: Record<string, string> = {}): Promise<Locator> {
  const has = page.getByRole('button', { name: button, exact: true, includeHidden: true })
  const form = page.locator('form:not([data-passkey])', { has }).first()
  const closed = page.locator('details:not([open])', { has: form })
  if (await closed.count() > 0) await closed.locator('summary').click()
  for (const [name, value] of Object.entries(fields)) await form.locator(`[name="${name}"]`).fill(value)
  return form.getByRole('button', { name: button, exact: true })
}

export async function titleOf (page: Page): Promise<string> {
  return page.locator('h1').innerText()
}

/** The title of the sign-in page of the {@link startShop shop}. */
export function signInTitle ({ signIn }: Texts): string {
  return signIn.titleAt.replace('{name}', 'Shop')
}

/** The buttons of a page that are filled with another color than the page is. */
export async function primaryButtonsOn (page: Page): Promise<string[]> {
  return page.evaluate(`[...document.querySelectorAll('button, .button')].filter(button => {
    const of = element => getComputedStyle(element).backgroundColor
    return button.checkVisibility() && of(button) !== of(document.querySelector('main'))
  }).map(button => button.innerText)`)
}

/** The widths at which a page is wider than the window: at 200 % a window has half as many pixels. */
export async function widthsThatScroll (page: Page): Promise<number[]> {
  const scrolling: number[] = []
  for (const width of [1024, 512, 390, 320, 195]) {
    await page.setViewportSize({ width, height: 800 })
    const isWider: boolean = await page.evaluate(
      'document.documentElement.scrollWidth > document.documentElement.clientWidth'
    )
    if (isWider) scrolling.push(width)
  }
  return scrolling
}
