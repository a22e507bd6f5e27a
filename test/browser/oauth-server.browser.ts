/** The pages of the authorization server in Chromium, in an application with the headers of @fastify/helmet. */
import { createHash, randomBytes } from 'node:crypto'
import Fastify from 'fastify'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { SqlAuthStore } from '../../lib/index.js'
import { OAuthServer } from '../../lib/oauth-server.js'
import { ar, de, en, es, fr, ja } from '../../lib/pages.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { freePort } from '../helpers/loopback.js'
import { startChromium } from './chromium.js'
import { type Shop, send, startShop, titleOf } from './page-steps.js'
import { Visitor, barriersOn, inEachLook } from './visitor.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }
const CODE = /^sac_[\w-]{67}$/

const chromium = await startChromium()

interface Setup extends Shop {
  /** Returns an authorization request of the client. */
  request: () => string
  /** What the client at the web site was sent. */
  answers: Array<Record<string, string>>
  client: string
}

/** An application on `localhost` in which Ada is registered, and a web client on `127.0.0.1`: two sites. */
async function start (t: Test, resource: { within?: number, secondFactor?: boolean } = {}): Promise<Setup> {
  const port = await freePort()
  const url = `http://localhost:${port}`
  const web = Fastify()
  t.teardown(() => web.close())
  const answers: Setup['answers'] = []
  web.get<{ Querystring: Record<string, string> }>('/callback', async ({ query }, reply) => {
    answers.push(query)
    return reply.type('text/html').send('<!doctype html><link rel="icon" href="data:,"><h1>Connected</h1>')
  })
  const client = await web.listen({ host: '127.0.0.1', port: 0 })
  const oauthServer = new OAuthServer({
    resources: { [`${url}/mcp`]: { scopes: { read: { en: 'Read your notes', de: 'Ihre Notizen lesen' } }, ...resource } },
    clients: [{ client_id: 'assistant', client_name: 'Assistant', redirect_uris: [`${client}/callback`] }]
  })
  const shop = await startShop(t, {
    store: new SqlAuthStore(':memory:'),
    oauthServer,
    dataSecret: 'a data secret of 32 characters or more',
    secondFactor: new SecondFactor({ issuer: 'Shop' })
  }, () => {}, port)
  await shop.app.auth.createUser({ ...ADA, emailVerified: true })
  const challenge = createHash('sha256').update(randomBytes(32)).digest('base64url')
  const request = (): string => `${url}/auth/oauth/authorize?${new URLSearchParams({
    response_type: 'code',
    client_id: 'assistant',
    redirect_uri: `${client}/callback`,
    state: 'a state',
    code_challenge: challenge,
    code_challenge_method: 'S256'
  })}`
  return { ...shop, request, answers, client }
}

async function signIn (page: Page): Promise<void> {
  await send(page, 'Sign in', ADA)
}

for (const scripts of [true, false]) {
  t.test(`a visitor signs in, allows the client and arrives there, ${scripts ? 'with' : 'without'} scripts`, async t => {
    const { request, answers, client } = await start(t)
    const visitor = await Visitor.with(chromium, t, { scripts })
    const page = await visitor.open(request())
    await signIn(page)
    t.equal(await titleOf(page), 'Connect Assistant?')

    await send(page, 'Allow')

    await page.waitForURL(`${client}/callback?**`)
    t.match(answers, [{ code: CODE, state: 'a state' }])
    t.strictSame(visitor.complaints, [])
  })
}

t.test('a user becomes another one, and comes back to the request', async t => {
  const { app, request } = await start(t)
  await app.auth.createUser({ email: 'grace@example.com', password: 'a nanosecond', name: 'Grace', emailVerified: true })
  const page = await (await Visitor.with(chromium, t)).open(request())
  await signIn(page)
  await send(page, 'Use another account')
  t.equal(await titleOf(page), 'Sign in to Shop')
  await send(page, 'Sign in', { email: 'grace@example.com', password: 'a nanosecond' })
  t.equal(await titleOf(page), 'Connect Assistant?')
  t.match(await page.locator('main').innerText(), /Grace/)
})

t.test('a resource that needs a second factor leads to setting one up, and back', async t => {
  const { request } = await start(t, { secondFactor: true })
  const page = await (await Visitor.with(chromium, t)).open(request())
  await signIn(page)
  t.match(page.url(), /\/auth\/pages\/factors\?/)
  t.match(new URL(page.url()).searchParams.get('next'), /^\/auth\/oauth\/authorize\?waiting=/)
})

for (const texts of [en, de, fr, es, ar, ja]) {
  t.test(`everyone can use the consent, in ${texts.language}`, async t => {
    const { request } = await start(t)
    const page = await (await Visitor.with(chromium, t, { language: texts.language })).open(request())
    await send(page, texts.signIn.title, ADA)
    await inEachLook(page, async ({ device, colorScheme }) => {
      t.strictSame(await barriersOn(page), [], `${device} ${colorScheme}`)
    })
    t.match(await page.locator('main').innerText(), texts.language === 'de' ? /Ihre Notizen lesen/ : /Read your notes/)
  })
}
