/** API keys on the page of the account in Chromium, in an application with the headers of @fastify/helmet. */
import type { Browser, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { ApiKeys } from '../../lib/api-keys.js'
import { SqlAuthStore } from '../../lib/index.js'
import { Pages, type Texts, ar, de, en, es, fr, ja } from '../../lib/pages.js'
import { some } from '../helpers/thorough.js'
import { startChromium } from './chromium.js'
import { fillIn, send, startShop, titleOf, widthsThatScroll } from './page-steps.js'
import { Visitor, barriersOn } from './visitor.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }
const SCOPES = { 'orders:read': 'Read your orders', 'orders:write': 'Change your orders, and send them to another address' }
/** A name without a blank at which it could be broken. */
const LONG = 'nightly-export-of-all-orders-to-the-warehouse-in-another-country'

const chromium: Browser = await startChromium()

interface Account {
  url: string
  page: Page
  visitor: Visitor
}

/** The page of the account of Ada, in an application whose orders a key reads. */
async function openAccount (t: Test, options: { scripts?: boolean, language?: string } = {}): Promise<Account> {
  const { url } = await startShop(t, {
    store: new SqlAuthStore(':memory:'),
    apiKeys: new ApiKeys({ prefix: 'shop', scopes: SCOPES, selfService: true }),
    pages: new Pages({ name: 'Shop', languages: [en, de, fr, es, ar, ja] })
  }, app => {
    const readers = app.auth.requireCaller({ by: ['key'], scopes: ['orders:read'] })
    app.get('/orders', { preHandler: readers }, async request => app.auth.caller(request).by)
  })
  const visitor = await Visitor.with(chromium, t, options)
  const page = await visitor.open(url)
  await page.request.post(`${url}/auth/local/register`, { data: ADA })
  await page.goto(`${url}/auth/pages/account?open=keys`)
  return { url, page, visitor }
}

/** Makes a key with the first scope, which stays on the page that shows it. */
async function makeKey (page: Page, { keys }: Texts, fields: Record<string, string>): Promise<string> {
  const button = await fillIn(page, keys.create, fields)
  await page.getByLabel(SCOPES['orders:read']).check()
  await button.click()
  await page.locator('.codes').waitFor()
  return page.locator('.codes').innerText()
}

t.test('a user makes a key without scripts, sees it once, uses it and ends it', async t => {
  const { url, page, visitor } = await openAccount(t, { scripts: false })
  const ask = async (key: string) => (await fetch(`${url}/orders`, { headers: { authorization: `Bearer ${key}` } })).status

  const key = await makeKey(page, en, { name: 'Laptop', expiresInDays: '30' })
  t.match(key, /^shop_\w{50}$/)
  t.equal(await titleOf(page), en.keys.made)
  t.equal(await ask(key), 200)

  await page.getByRole('link', { name: en.common.continue }).click()
  const row = page.getByRole('listitem').filter({ hasText: 'Laptop' })
  t.match(await row.innerText(), SCOPES['orders:read'])
  t.notMatch(await page.content(), key)

  await page.goto(`${url}/auth/pages/account?open=keys`)
  await page.getByRole('button', { name: 'End key Laptop' }).click()
  await row.waitFor({ state: 'detached' })
  t.equal(await ask(key), 401)
  t.strictSame(visitor.complaints, [])
})

t.test('a form without a scope says what is wrong, and keeps the name', async t => {
  const { page } = await openAccount(t)
  await send(page, en.keys.create, { name: 'Laptop' })
  t.equal(await page.getByRole('alert').innerText(), en.errors.invalid_request)
  t.equal(await page.getByLabel(en.keys.name).inputValue(), 'Laptop')
})

t.test('keys and their form have no barriers, light and dark, and do not scroll sideways in any language', async t => {
  for (const texts of some([en, de, fr, es, ar, ja], 2)) {
    const { url, page } = await openAccount(t, { language: texts.language })
    const look = async (name: string): Promise<void> => {
      t.strictSame(await barriersOn(page), [], `${texts.language}: ${name}`)
      t.strictSame(await widthsThatScroll(page), [], `${texts.language}: ${name}`)
    }
    await look('none')
    await makeKey(page, texts, { name: LONG, expiresInDays: '30' })
    await look('made')
    await page.goto(`${url}/auth/pages/account?open=keys`)
    await makeKey(page, texts, { name: 'Laptop' })
    await page.goto(`${url}/auth/pages/account?open=keys`)
    await look('list')
  }
})
