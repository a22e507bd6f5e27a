/** Impersonations on the pages of the plugin and of an application in Chromium, under the headers of @fastify/helmet. */
import formbody from '@fastify/formbody'
import type { FastifyInstance } from 'fastify'
import type { Browser, Locator, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { SqlAuthStore } from '../../lib/index.js'
import { Pages, ar, de, en, es, fr, ja } from '../../lib/pages.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { DATA_SECRET } from '../helpers/factor-app.js'
import { some } from '../helpers/thorough.js'
import { startChromium } from './chromium.js'
import { startShop, titleOf, widthsThatScroll } from './page-steps.js'
import { Visitor, barriersOn } from './visitor.js'

const ADA = { name: 'Augusta Ada King, Countess of Lovelace', email: 'ada@example.com', password: 'correct horse' }
const SUE = { name: 'Sue', email: 'sue@example.com', password: 'battery staple' }
/** The pages of the plugin that an impersonation shows. */
const SHOWN = [
  'account', 'account?open=name', 'account?open=email', 'account?open=password', 'account?open=devices', 'account?open=delete',
  'factors', 'sign-in'
]

const chromium: Browser = await startChromium()

interface Support {
  url: string
  visitor: Visitor
  /** Of Sue of the support, who sees the application as Ada. */
  page: Page
}

/** An application whose support sees it as a customer does, from its list of customers. */
async function impersonating (t: Test, language = 'en'): Promise<Support> {
  const { app, url } = await startShop(t, {
    store: new SqlAuthStore(':memory:'),
    dataSecret: DATA_SECRET,
    secondFactor: new SecondFactor({ issuer: 'Shop' }),
    impersonation: { allow: ({ actor }) => actor.claims.role === 'support' },
    pages: new Pages({ name: 'Shop', languages: [en, de, fr, es, ar, ja] })
  }, mountSupport)
  const [ada, visitor] = [await Visitor.with(chromium, t), await Visitor.with(chromium, t, { language })]
  await (await ada.open(url)).request.post(`${url}/auth/local/register`, { data: ADA })
  const page = await visitor.open(url)
  await page.request.post(`${url}/auth/local/register`, { data: SUE })
  const { users } = await app.auth.users()
  const sue = users.find(({ email }) => email === SUE.email)
  await app.auth.grant(String(sue?.userId), { role: 'support' })
  await page.goto(`${url}/support`)
  await page.getByRole('button', { name: ADA.email }).click()
  await page.waitForURL(`${url}/`)
  return { url, visitor, page }
}

function mountSupport (app: FastifyInstance): void {
  const { auth } = app
  app.register(async support => {
    await support.register(formbody)
    support.addHook('onRequest', auth.refuseCrossOrigin)
    support.get('/support', { preHandler: auth.requireUser }, async (request, reply) => {
      const { users } = await auth.users()
      return reply.type('text/html').send(`<!doctype html><link rel="icon" href="data:,"><title>Customers</title>
        <h1>For ${auth.user(request).claims.name}</h1>
        ${await auth.impersonationBar(request, { next: '/support' })}
        ${users.map(({ userId, email }) => `<form method="post" action="/support/${userId}"><button>${email}</button></form>`).join('')}`)
    })
    support.post<{ Params: { userId: string } }>('/support/:userId', async (request, reply) => {
      await auth.impersonate(request, request.params.userId, { reason: 'ticket 4711' })
      return reply.redirect('/', 303)
    })
  })
}

/** What the browser noted, but for pages that show a refusal. */
function complaintsOf ({ complaints }: Visitor): string[] {
  return complaints.filter(complaint => !/status of 403 .*\/auth\//.test(complaint))
}

const barOf = (page: Page): Locator => page.locator('.svc-auth-impersonation')

t.test('pages in an impersonation say so, without barriers, light and dark, on a desk and on a phone', async t => {
  const { url, visitor, page } = await impersonating(t)
  for (const name of SHOWN) {
    await page.goto(`${url}/auth/pages/${name}`)
    t.equal(await barOf(page).locator('p').innerText(), `You see this as ${ADA.name}.`, name)
    t.strictSame(await barriersOn(page), [], name)
  }
  t.strictSame(complaintsOf(visitor), [])
})

t.test('no page in an impersonation scrolls sideways in any language, also at 320 px and at 200 %', async t => {
  for (const { language } of some([en, de, fr, es, ar, ja], 2)) {
    const { url, page } = await impersonating(t, language)
    for (const name of SHOWN) {
      await page.goto(`${url}/auth/pages/${name}`)
      t.strictSame(await widthsThatScroll(page), [], `${language}: ${name}`)
      await page.setViewportSize({ width: 320, height: 800 })
      t.equal(await page.evaluate('document.documentElement.scrollWidth'), 320, `${language}: ${name}`)
    }
  }
})

t.test('with forced colors the bar and its button have borders that differ from the page', async t => {
  const { url, page } = await impersonating(t)
  await page.emulateMedia({ forcedColors: 'active' })
  await page.goto(`${url}/auth/pages/account`)
  for (const selector of ['.svc-auth-impersonation', '.svc-auth-impersonation button']) {
    const [style, width, isSeen] = await page.evaluate<[string, number, boolean]>(`(() => {
      const { borderTopStyle, borderTopWidth, borderTopColor } = getComputedStyle(document.querySelector('${selector}'))
      const { backgroundColor } = getComputedStyle(document.body)
      return [borderTopStyle, parseFloat(borderTopWidth), borderTopColor !== backgroundColor]
    })()`)
    t.match([style, width >= 1, isSeen], ['solid', true, true], selector)
  }
})

t.test('the button of the bar ends the impersonation, and the support is back in its own session', async t => {
  const { url, visitor, page } = await impersonating(t)
  await page.goto(`${url}/auth/pages/account`)
  t.match(await page.locator('main').innerText(), ADA.name)
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.waitForURL(`${url}/`)
  await page.goto(`${url}/auth/pages/account`)
  t.match(await page.locator('main').innerText(), SUE.email)
  t.equal(await barOf(page).count(), 0)

  await page.goto(`${url}/support`)
  await page.getByRole('button', { name: ADA.email }).click()
  await page.waitForURL(`${url}/`)
  await page.goto(`${url}/support`)
  await barOf(page).getByRole('button', { name: en.impersonation.end }).click()
  await page.getByText('For Sue').waitFor()
  t.equal(page.url(), `${url}/support`, 'the bar on a page of the application leads where that says')
  t.equal(await barOf(page).count(), 0)
  t.strictSame(complaintsOf(visitor), [])
})

t.test('what the pages refuse in an impersonation is a sentence on a page, and changes nothing', async t => {
  const { url, visitor, page } = await impersonating(t)
  for (const name of ['account', 'factors']) {
    const address = `${url}/auth/pages/${name}`
    await page.goto(address)
    const title = await titleOf(page)
    const actions: string[] = await page.evaluate(`Array.from(document.forms, form => {
      return form.getAttribute('action') + (form.elements.everywhere ? '#everywhere' : '')
    })`)
    for (const [index, action] of actions.entries()) {
      // The end of the impersonation, and that of the session.
      if (/\/(?:impersonation\/end|logout)$/.test(action)) continue
      await page.goto(address)
      const answered = page.waitForResponse(response => response.request().method() === 'POST')
      // Also where a field is empty: the refusal comes first.
      await page.evaluate(`document.forms[${index}].submit()`)
      t.equal((await answered).status(), 403, action)
      t.equal(await page.getByRole('alert').innerText(), en.errors.impersonating, action)
      t.equal(await titleOf(page), title, action)
      t.ok(await barOf(page).isVisible(), action)
    }
    t.ok(actions.length > 1, name)
  }
  await page.goto(`${url}/auth/pages/account`)
  t.match(await page.locator('main').innerText(), ADA.name)
  t.strictSame(complaintsOf(visitor), [])
})
