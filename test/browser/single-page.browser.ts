/** Front ends on other origins in Chromium: the example, on the same site, and one on another site. */
import fastifyCors from '@fastify/cors'
import Fastify, { type FastifyInstance } from 'fastify'
import type { Browser, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { buildApi } from '../../examples/single-page/api.js'
import { buildFront } from '../../examples/single-page/front.js'
import authPlugin from '../../lib/index.js'
import type { SessionCookieOptions } from '../../lib/session/session-options.js'
import { type Mailbox, mailbox } from '../../lib/testing.js'
import { LOCAL_SECRET, SESSION_SECRET, localProvider } from '../helpers/app.js'
import { selfSigned } from '../helpers/certificate.js'
import { advanceClock } from '../helpers/clock.js'
import { freePort } from '../helpers/loopback.js'
import { type OpenIdProvider, startOpenIdProvider } from '../helpers/openid-provider.js'
import { startChromium } from './chromium.js'
import { barriersOn } from './visitor.js'

t.intercept(process, 'env', { value: { ...process.env, SVC_SESSION_SECRET: SESSION_SECRET, LOCAL_IDP_SECRET: LOCAL_SECRET } })

const ADA = { email: 'ada@example.com', password: 'correct horse' }
const NEW_PASSWORD = 'battery staple'

/** As if they had no third-party cookies, which Chromium lets its users choose. */
const chromium: Browser = await startChromium('--test-third-party-cookie-phaseout')

interface Setup {
  api: FastifyInstance
  url: string
  front: string
  idp: OpenIdProvider
  mails: Mailbox
}

/** The example, with another provider and a mailbox. */
async function startExample (t: Test): Promise<Setup> {
  const [port, frontPort] = [await freePort(), await freePort()]
  const [url, front] = [`http://localhost:${port}`, `http://localhost:${frontPort}`]
  const idp = await startOpenIdProvider(t, { redirectUris: [`${url}/auth/dev/callback`] })
  const mails = mailbox()
  const api = await buildApi({ url, front, providers: [idp.provider()], sendMail: mails.sendMail })
  const server = buildFront({ api: url })
  t.teardown(async () => Promise.all([api.close(), server.close()]))
  await api.listen({ host: 'localhost', port })
  await server.listen({ host: 'localhost', port: frontPort })
  return { api, url, front, idp, mails }
}

/** Opens a page in a browser profile of its own; the test fails for what the console complains of. */
async function open (t: Test, url: string, complaints: string[] = []): Promise<Page> {
  const context = await chromium.newContext({ ignoreHTTPSErrors: true })
  t.teardown(() => context.close())
  context.on('console', message => { if (message.type() === 'error') complaints.push(message.text()) })
  context.on('weberror', error => { complaints.push(error.error().message) })
  const page = await context.newPage()
  await page.goto(url)
  return page
}

/** Fills in the form with this button, and sends it. */
async function send (page: Page, button: string, fields: Record<string, string> = {}): Promise<void> {
  const form = page.locator('form', { has: page.getByRole('button', { name: button, exact: true }) })
  for (const [name, value] of Object.entries(fields)) await form.locator(`[name="${name}"]`).fill(value)
  await form.getByRole('button', { name: button, exact: true }).click()
}

const isUser = async (page: Page, email: string): Promise<void> => page.getByText(`You are ${email}.`).waitFor()
const isVisitor = async (page: Page): Promise<void> => page.getByRole('heading', { name: 'Register' }).waitFor()

t.test('on two origins of one site a user does all that there is to do', async t => {
  const { api, url, front, mails } = await startExample(t)
  const complaints: string[] = []
  const page = await open(t, front, complaints)
  await isVisitor(page)
  t.strictSame(await barriersOn(page), [])
  await send(page, 'Register', ADA)
  await isUser(page, ADA.email)
  const userId = String((await api.auth.findUser({ email: ADA.email }))?.userId)

  await page.goto(String((await mails.next('verify-email')).url))
  t.equal(new URL(page.url()).origin, front, 'the link of the mail leads to the front end')
  await send(page, 'Confirm')
  await page.getByText('The account has: password.').waitFor()
  await send(page, 'All mine: keep it')
  await page.getByText('Your e-mail is confirmed.').waitFor()
  t.match(await api.auth.findUser({ userId }), { emailVerified: true })

  await page.getByRole('button', { name: 'Add dev' }).click()
  await page.waitForURL(`${front}/*`)
  await isUser(page, ADA.email)
  t.match(await api.auth.links(userId), [{ provider: 'dev' }, { provider: 'local' }])

  await send(page, 'Change my e-mail', { email: 'countess@example.com' })
  await page.getByText('on its way to the new address').waitFor()
  await page.goto(String((await mails.next('change-email')).url))
  await send(page, 'Confirm')
  await isUser(page, 'countess@example.com')

  await send(page, 'Sign out')
  await isVisitor(page)
  await page.getByRole('link', { name: 'Sign in with dev' }).click()
  await isUser(page, ADA.email)
  t.equal((await api.auth.findUser({ email: 'countess@example.com' }))?.userId, userId, 'the provider has the earlier address')
  await send(page, 'Sign out')

  await send(page, 'Send the link', { email: 'countess@example.com' })
  await page.getByText('If there is an account').waitFor()
  await page.goto(String((await mails.next('reset-password')).url))
  await send(page, 'Save', { password: NEW_PASSWORD })
  await page.getByText('The password is new').waitFor()
  t.equal(page.url(), `${front}/`, 'the token is out of the address')

  await page.goto(`${url}/report`)
  t.equal(new URL(page.url()).origin, front, 'a page of the API sends its visitors to the front end')
  await send(page, 'Sign in', { email: 'countess@example.com', password: 'wrong horse' })
  await page.getByRole('alert').getByText('wrong').waitFor()
  await send(page, 'Sign in', { email: 'countess@example.com', password: NEW_PASSWORD })
  await page.getByText(`For ${userId}`).waitFor()
  t.equal(page.url(), `${url}/report`)
  // The refusals are answers to scripts, which the console lists; the text of the API has no icon.
  t.strictSame(complaints.filter(complaint => !/status of 40[0149]/.test(complaint)), [])
})

t.test('a failure at the provider, and a session that is too old, are shown by the front end', async t => {
  const { api, front, idp } = await startExample(t)
  const page = await open(t, front)
  idp.consents = false
  await page.getByRole('link', { name: 'Sign in with dev' }).click()
  await page.getByRole('alert').getByText('access_denied').waitFor()
  t.equal(page.url(), `${front}/?error=access_denied#`)

  idp.consents = true
  await send(page, 'Register', ADA)
  await isUser(page, ADA.email)
  advanceClock(t, 11 * 60_000)
  await page.getByRole('button', { name: 'Add dev' }).click()
  await page.waitForURL(`${front}/confirm?**`)
  await send(page, 'Continue', { password: ADA.password })
  await isUser(page, ADA.email)
  await page.getByRole('button', { name: 'Add dev' }).click()
  await isUser(page, ADA.email)
  const userId = String((await api.auth.findUser({ email: ADA.email }))?.userId)
  t.match(await api.auth.links(userId), [{ provider: 'dev' }, { provider: 'local' }])
})

t.test('attacks 22, 26 and 38: a third origin of the site can do none of this', async t => {
  const { api, url, front } = await startExample(t)
  const page = await open(t, front)
  await send(page, 'Register', ADA)
  await isUser(page, ADA.email)
  const userId = String((await api.auth.findUser({ email: ADA.email }))?.userId)

  const port = await freePort()
  const third = `http://localhost:${port}`
  const server = Fastify()
  t.teardown(() => server.close())
  server.get('/*', async (_request, reply) => reply.type('text/html').send(`<!doctype html><title>third</title><link rel="icon" href="data:,">
<a href="${url}/auth/dev/login?link=true">link</a>
<form method="post" action="${url}/auth/dev/login"><input name="link" value="true"><button>add</button></form>
<form method="post" action="${url}/auth/logout"><input name="next" value="${third}/"><button>leave</button></form>`))
  await server.listen({ host: 'localhost', port })

  await page.goto(third)
  const read: string = await page.evaluate(`fetch('${url}/auth/session', { credentials: 'include' }).then(() => 'read', () => 'not read')`)
  t.equal(read, 'not read')
  const [answer] = await Promise.all([page.waitForResponse(`${url}/auth/logout`), page.getByRole('button', { name: 'leave' }).click()])
  t.equal(answer.headers().location, `${front}/?error=cross_origin`)
  await page.goto(third)
  const [shown] = await Promise.all([page.waitForResponse(/link=true/), page.getByRole('link', { name: 'link' }).click()])
  t.equal(shown.status(), 200, 'a page with a button')
  await page.goto(third)
  const login = `${url}/auth/dev/login`
  const [start] = await Promise.all([page.waitForResponse(login), page.getByRole('button', { name: 'add' }).click()])
  t.match(start.headers().location, 'error=cross_origin')
  t.match(await api.auth.links(userId), [{ provider: 'local' }])

  await page.goto(front)
  await isUser(page, ADA.email)
  await page.goto(`${url}/auth/dev/login?${new URLSearchParams({ next: third })}`)
  t.not(new URL(page.url()).origin, third)
})

/** An API and a front end on two sites, over TLS, without which no cookie is for another site. */
async function startSites (t: Test, cookie: SessionCookieOptions): Promise<{ url: string, front: string }> {
  const [port, frontPort] = [await freePort(), await freePort()]
  const [url, front] = [`https://localhost:${port}`, `https://127.0.0.1:${frontPort}`]
  const https = await selfSigned('localhost')
  const api = Fastify({ https })
  await api.register(fastifyCors, { origin: [front], credentials: true })
  await api.register(authPlugin, {
    baseUrl: url, trustedOrigins: [front], local: localProvider(), rateLimit: false, session: { secret: SESSION_SECRET, cookie }
  })
  api.get('/me', async ({ principal }) => principal?.claims.email ?? 'nobody')
  const server = Fastify({ https })
  server.get('/*', async (_request, reply) => reply.type('text/html').send('<!doctype html><title>front</title><link rel="icon" href="data:,">'))
  t.teardown(async () => Promise.all([api.close(), server.close()]))
  await api.listen({ host: 'localhost', port })
  await server.listen({ host: '127.0.0.1', port: frontPort })
  return { url, front }
}

/** Asks the API from a script of the page. */
async function ask (page: Page, url: string, body?: object): Promise<string> {
  const sent = body === undefined
    ? ''
    : `, method: 'POST', headers: { 'content-type': 'application/json' }, body: ${JSON.stringify(JSON.stringify(body))}`
  return page.evaluate(`fetch('${url}', { credentials: 'include'${sent} }).then(answer => answer.text())`)
}

t.test('on two sites a user signs in with a password by a partitioned cookie, which only scripts of that page send', async t => {
  const { url, front } = await startSites(t, { sameSite: 'none', partitioned: true })
  const page = await open(t, front)
  await ask(page, `${url}/auth/local/register`, ADA)
  t.equal(await ask(page, `${url}/me`), ADA.email)
  await page.reload()
  t.equal(await ask(page, `${url}/me`), ADA.email)

  await page.goto(`${url}/me`)
  t.equal(await page.innerText('body'), 'nobody', 'a page of the API has other cookies: no sign-in at a provider ends in the front end')
  await page.goto(front)
  await ask(page, `${url}/auth/logout`, {})
  t.equal(await ask(page, `${url}/me`), 'nobody')
  await ask(page, `${url}/auth/local/login`, ADA)
  t.equal(await ask(page, `${url}/me`), ADA.email)
})

t.test('on two sites no other cookie is sent', async t => {
  for (const cookie of [{}, { sameSite: 'none' }] as const) {
    const { url, front } = await startSites(t, cookie)
    const page = await open(t, front)
    await ask(page, `${url}/auth/local/register`, ADA)
    t.equal(await ask(page, `${url}/me`), 'nobody', JSON.stringify(cookie))
  }
})
