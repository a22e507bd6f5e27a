/** The sign-in by mail in Chromium, with real mails, in an application without passwords. */
import { buffer } from 'node:stream/consumers'
import { createTransport } from 'nodemailer'
import { SMTPServer, type SMTPServerDataStream } from 'smtp-server'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { Pages, en } from '../../lib/pages.js'
import { listening } from '../helpers/loopback.js'
import { isSoon } from '../helpers/soon.js'
import { startChromium } from './chromium.js'
import { REMEMBERED, send, signInTitle, startShop, titleOf, widthsThatScroll } from './page-steps.js'
import { Visitor, barriersOn } from './visitor.js'

const ADA = 'ada@example.com'
const CART = '<!doctype html><link rel="icon" href="data:,"><title>Cart</title><h1>Cart</h1>'

const chromium = await startChromium()

/** What the mailbox of Ada has received. */
interface Received {
  link: string
  code: string
}

/** Starts a mail server, and an application that sends its mails there. */
async function start (t: Test, signInByMail: boolean | { anyBrowser: boolean } = true) {
  const received: Received[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData (stream: SMTPServerDataStream, _session, answer) {
      buffer(stream).then(raw => {
        const text = raw.toString().replaceAll('=\r\n', '').replaceAll('=3D', '=')
        const [, link = '', code = ''] = /(http\S+)\s+(\d{6})/.exec(text) ?? []
        received.push({ link, code })
      }).then(() => { answer() }, answer)
    }
  })
  t.teardown(() => new Promise<void>(resolve => { server.close(resolve) }))
  const transport = createTransport(`smtp://127.0.0.1:${await listening(server.server)}`, { from: 'Shop <shop@shop.example>' })
  t.teardown(() => { transport.close() })
  const shop = await startShop(t, {
    session: REMEMBERED,
    rateLimit: {},
    pages: new Pages({ name: 'Shop' }),
    local: {
      password: false,
      signInByMail,
      mails: { limits: false },
      async sendMail ({ to, url, code }) {
        await transport.sendMail({ to: { name: '', address: to }, subject: 'Sign in', text: `${url}\n\n${code}\n` })
      }
    }
  }, app => {
    app.get('/cart', { preHandler: app.auth.requireUser }, async (_request, reply) => reply.type('text/html').send(CART))
  })
  const next = async (): Promise<Received> => {
    await isSoon(async () => received.length > 0)
    return received.shift() ?? { link: '', code: '' }
  }
  return { ...shop, next }
}

/** Asks for a mail on the way to the cart. */
async function ask (page: Page, url: string): Promise<void> {
  await page.goto(`${url}/cart`)
  await send(page, en.mail.ask, { email: ADA })
  await page.getByText('If you can sign in here').waitFor()
}

/** What a program does that examines mails: it fetches, runs scripts, presses all buttons and sends all forms. */
async function scan (t: Test, link: string): Promise<Visitor> {
  for (const method of ['HEAD', 'GET', 'GET']) await (await fetch(link, { method, redirect: 'manual' })).text()
  const scanner = await Visitor.with(chromium, t)
  const page = await scanner.open(link)
  for (const button of await page.getByRole('button').all()) await button.click()
  const token = new URL(link).searchParams.get('token') ?? ''
  await fetch(new URL('/auth/local/mail-login/confirm', link), { method: 'POST', body: new URLSearchParams({ token }), redirect: 'manual' })
  return scanner
}

for (const scripts of [true, false]) {
  t.test(`attack 70: the link signs in the browser that asked, after a scanner had it, ${scripts ? 'with' : 'without'} scripts`, async t => {
    const { url, next } = await start(t)
    const ada = await Visitor.with(chromium, t, { scripts })
    const page = await ada.open(`${url}/cart`)
    await ask(page, url)
    t.strictSame(await widthsThatScroll(page), [])
    if (scripts) t.strictSame(await barriersOn(page), [])
    const { link } = await next()
    const scanner = await scan(t, link)
    const seen = await scanner.open(`${url}/cart`)
    t.equal(await titleOf(seen), signInTitle(en), 'the scanner is signed out')

    await page.goto(link)
    if (scripts) t.strictSame(await barriersOn(page), [])
    await page.getByRole('button', { name: en.mail.submit }).click()
    t.equal(page.url(), `${url}/cart`)
    t.equal(await titleOf(page), 'Cart')
    t.strictSame(ada.complaints, [])
  })
}

t.test('a link that opens in another browser names the way, and the code signs in where it was asked for', async t => {
  const { url, next } = await start(t)
  const [app, mails] = [await Visitor.with(chromium, t), await Visitor.with(chromium, t)]
  const page = await app.open(`${url}/cart`)
  await ask(page, url)
  const { link, code } = await next()

  const reader = await mails.open(link)
  t.match(await reader.getByRole('main').innerText(), en.mail.elsewhere)
  t.equal(await reader.getByRole('button').count(), 0)
  await page.getByLabel(en.factors.mailCode).fill(code)
  await page.getByRole('button', { name: en.confirm.submit }).click()

  t.equal(await titleOf(page), 'Cart')
  const other = await mails.open(`${url}/cart`)
  t.equal(await titleOf(other), signInTitle(en))
})

t.test('with anyBrowser the link signs in where it is opened', async t => {
  const { url, next } = await start(t, { anyBrowser: true })
  const [phone, desk] = [await Visitor.with(chromium, t), await Visitor.with(chromium, t)]
  await ask(await phone.open(`${url}/cart`), url)
  const page = await desk.open((await next()).link)
  await page.getByRole('button', { name: en.mail.submit }).click()
  t.equal(await titleOf(page), 'Cart')
})
