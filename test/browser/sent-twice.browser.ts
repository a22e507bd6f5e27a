/** Users who click twice in Chromium, with a slow network: the first answer is dropped, with its cookies. */
import { connect, createServer } from 'node:net'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { en } from '../../lib/pages.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { startProvider, totp } from '../../lib/testing.js'
import { advanceClock } from '../helpers/clock.js'
import { DATA_SECRET } from '../helpers/factor-app.js'
import { freePort } from '../helpers/loopback.js'
import { startChromium } from './chromium.js'
import { HOME, type Shop, fillIn, send, startShop, titleOf } from './page-steps.js'
import { Visitor } from './visitor.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }
const LATENCY_MS = 250
const BETWEEN_CLICKS_MS = 150
const STEP_MS = 30_000

const chromium = await startChromium()

/** Starts a relay on a port, which passes each piece on after a while, one way and the other. */
async function startRelay (t: Test, port: number, target: number): Promise<void> {
  const relay = createServer(client => {
    const server = connect(target, 'localhost')
    for (const [from, to] of [[client, server], [server, client]] as const) {
      from.on('data', data => { setTimeout(() => { to.write(data) }, LATENCY_MS) })
      from.on('error', () => {})
      from.on('close', () => { setTimeout(() => { to.destroy() }, LATENCY_MS) })
    }
  })
  t.teardown(() => { relay.close() })
  await new Promise<void>(resolve => { relay.listen(port, 'localhost', resolve) })
}

async function start (t: Test): Promise<Shop & { requireFactor: (isRequired: boolean) => void }> {
  const provider = await startProvider({ user: { sub: '1', ...ADA, email_verified: true } })
  t.teardown(() => provider.close())
  const port = await freePort()
  let isRequired = false
  const shop = await startShop(t, {
    baseUrl: `http://localhost:${port}`,
    providers: [provider.provider()],
    rateLimit: {},
    local: { mails: { limits: false }, signInByMail: true },
    dataSecret: DATA_SECRET,
    secondFactor: new SecondFactor({ issuer: 'Shop', required: () => isRequired })
  }, app => {
    app.get('/cart', { preHandler: app.auth.requireUser }, async (_request, reply) => reply.type('text/html').send(HOME.replaceAll('Home', 'Cart')))
  })
  await startRelay(t, port, Number(new URL(shop.url).port))
  return { ...shop, url: `http://localhost:${port}`, requireFactor (now) { isRequired = now } }
}

/** Fills in the form with this button and clicks it twice, while the first answer is on its way. */
async function clickTwice (page: Page, button: string, fields: Record<string, string> = {}): Promise<void> {
  const target = await fillIn(page, button, fields)
  await target.scrollIntoViewIfNeeded()
  const { x, y, width, height } = await target.boundingBox() ?? { x: 0, y: 0, width: 0, height: 0 }
  const before = page.url()
  const posts: string[] = []
  page.on('request', request => { if (request.method() === 'POST') posts.push(request.url()) })
  for (let click = 0; click < 2; click++) {
    await page.mouse.click(x + width / 2, y + height / 2)
    await page.waitForTimeout(BETWEEN_CLICKS_MS)
  }
  if (posts.length !== 2) throw new Error(`${posts.length} forms were sent`)
  await page.waitForURL(({ href }) => href !== before)
}

async function register (page: Page, { url, mails }: Shop): Promise<string> {
  await page.goto(`${url}/auth/pages/register?next=/cart`)
  await clickTwice(page, en.titles.register, ADA)
  return (await mails.next('verify-email')).token
}

t.test('attack 171: a registration that is clicked twice signs in, and sends one mail', async t => {
  const shop = await start(t)
  const page = await (await Visitor.with(chromium, t)).open(shop.url)

  await register(page, shop)

  t.equal(await titleOf(page), 'Cart')
  t.equal(shop.mails.all.length, 1)
})

t.test('attack 171: an app that is confirmed twice shows recovery codes that work, and a second step that is clicked twice signs in', async t => {
  const shop = await start(t)
  const page = await (await Visitor.with(chromium, t)).open(shop.url)
  await register(page, shop)
  await page.goto(`${shop.url}/auth/pages/factors`)
  await page.getByRole('button', { name: en.factors.setUp, exact: true }).click()
  const uri = new URL(await page.locator('a[href^="otpauth:"]').getAttribute('href') ?? '')
  const secret = uri.searchParams.get('secret') ?? ''

  await clickTwice(page, en.confirm.submit, { code: totp(secret) })

  await page.waitForSelector('.codes')
  const codes = await page.locator('.codes li').allInnerTexts()
  t.equal(codes.length, 10)
  const other = await (await Visitor.with(chromium, t)).open(`${shop.url}/cart`)
  await clickTwice(other, en.signIn.title, ADA)
  advanceClock(t, STEP_MS)
  await clickTwice(other, en.confirm.submit, { code: codes[0] ?? '' })
  t.equal(await titleOf(other), 'Cart')
})

t.test('attack 171: a password that is changed by two clicks leaves its user signed in', async t => {
  const shop = await start(t)
  const page = await (await Visitor.with(chromium, t)).open(shop.url)
  await register(page, shop)
  await page.goto(`${shop.url}/auth/pages/account#before`)

  await clickTwice(page, en.account.passwordSubmit, { current: ADA.password, password: 'battery staple' })

  await page.goto(`${shop.url}/cart`)
  t.equal(await titleOf(page), 'Cart')
})

t.test('attack 171: the link of a mail that is clicked twice signs in', async t => {
  const shop = await start(t)
  const page = await (await Visitor.with(chromium, t)).open(`${shop.url}/cart`)
  await send(page, en.mail.ask, { email: ADA.email })
  await page.getByText('If you can sign in here').waitFor()
  const { url } = await shop.mails.next('sign-in')
  await page.goto(String(url))

  await clickTwice(page, en.mail.submit)

  t.equal(await titleOf(page), 'Cart')
})
