/**
 * The whole chain of redirects of the authorization server in Chromium, Firefox and WebKit, in an application with the headers of
 * @fastify/helmet, to clients on another site and to an app.
 */
import { createHash, randomBytes } from 'node:crypto'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { SqlAuthStore } from '../../lib/index.js'
import { OAuthServer } from '../../lib/oauth-server.js'
import { en } from '../../lib/pages.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { totp } from '../../lib/testing.js'
import { Browser } from '../helpers/browser.js'
import { selfSigned } from '../helpers/certificate.js'
import { DATA_SECRET, enrolAt } from '../helpers/factor-app.js'
import { freePort } from '../helpers/loopback.js'
import { APP_SCHEME, BROWSERS, openTab } from './driver.js'
import { startShop } from './page-steps.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }
const APP = `${APP_SCHEME}:/callback`
const CODE = /^sac_[\w-]{67}$/

/** What a client shows to which the browser has come back. */
const CALLBACK = `<!doctype html><link rel="icon" href="data:,"><h1>Connected without scripts</h1>
<script>document.querySelector('h1').textContent = 'Connected with scripts'</script>`

interface Setup {
  app: FastifyInstance
  issuer: string
  /** Where a client on the web is sent back, and a program of this machine. */
  web: string
  loopback: string
  /** Returns an authorization request. */
  request (clientId: string, redirectUri: string): string
  /** What violated the policy of a page. */
  violations: unknown[]
}

/** An application on `localhost` in which Ada is registered, and clients on other sites. */
async function start (t: Test, resource: { secondFactor?: boolean } = {}): Promise<Setup> {
  const port = await freePort()
  const issuer = `http://localhost:${port}`
  const [web, loopback] = [await startClient(t, 'client.example'), await startClient(t)]
  const client = { redirect_uris: [web, loopback, APP] }
  const violations: unknown[] = []
  const { app } = await startShop(t, {
    baseUrl: issuer,
    store: new SqlAuthStore(':memory:'),
    dataSecret: DATA_SECRET,
    secondFactor: new SecondFactor({ issuer: 'Shop' }),
    oauthServer: new OAuthServer({
      resources: { [`${issuer}/mcp`]: { scopes: { read: 'Read your notes' }, ...resource } },
      clients: [
        { ...client, client_id: 'assistant', client_name: 'Assistant' },
        { ...client, client_id: 'own', client_name: 'Own', firstParty: true }
      ]
    })
  }, app => {
    app.get('/me', async ({ principal }) => ({ principal }))
    app.addHook('onSend', async (_request, reply) => {
      const policy = reply.getHeader('Content-Security-Policy')
      if (policy !== undefined) reply.header('Content-Security-Policy', `${String(policy)}; report-uri /violations`)
    })
    app.addContentTypeParser('application/csp-report', { parseAs: 'string' }, async (_request: unknown, body: string) => JSON.parse(body))
    app.post('/violations', async ({ body }, reply) => {
      // A browser looks for the icon of each site, which a page without one does not let it load.
      if (!JSON.stringify(body).includes('/favicon.ico"')) violations.push(body)
      return reply.code(204).send()
    })
  }, port)
  await app.auth.createUser({ ...ADA, emailVerified: true })
  const challenge = createHash('sha256').update(randomBytes(32)).digest('base64url')
  const request: Setup['request'] = (clientId, redirectUri) => `${issuer}/auth/oauth/authorize?${new URLSearchParams({
    response_type: 'code', client_id: clientId, redirect_uri: redirectUri, state: 'a state', code_challenge: challenge, code_challenge_method: 'S256'
  })}`
  return { app, issuer, web, loopback, request, violations }
}

/** Starts a client, on the web if it has a host, and returns where it is sent back. */
async function startClient (t: Test, host?: string): Promise<string> {
  const app = Fastify({ https: host === undefined ? null : await selfSigned(host) })
  t.teardown(() => app.close())
  app.get<{ Querystring: { to: string } }>('/', async ({ query: { to } }, reply) => reply.type('text/html').send(`<a href="${to}">Connect</a>`))
  app.get('/callback', async (_request, reply) => reply.type('text/html').send(CALLBACK))
  const url = new URL('/callback', await app.listen({ host: '127.0.0.1', port: 0 }))
  if (host !== undefined) url.hostname = host
  return url.href
}

for (const browser of BROWSERS) {
  t.test(`in ${browser.name}`, { skip: browser.missing }, async t => {
    for (const scripts of [true, false]) {
      const how = scripts ? 'with scripts' : 'without scripts'
      t.test(`a visitor comes from a client, signs in by password and code, allows the client and arrives there, ${how}`, async t => {
        const { app, issuer, web, request, violations } = await start(t, { secondFactor: true })
        const elsewhere = new Browser(app)
        await elsewhere.post('/auth/local/login', ADA)
        const { secret } = await enrolAt(t, elsewhere)
        const tab = await openTab(t, browser, scripts)
        const offer = new URL(`/?${new URLSearchParams({ to: request('assistant', web) })}`, web).href
        await tab.open(offer)
        await tab.click('Connect')
        await tab.waitForHeading(en.signIn.titleAt.replace('{name}', 'Shop'))
        await tab.fill(ADA)
        await tab.click(en.signIn.title)
        await tab.waitForHeading(en.factors.secondTitle)
        await tab.fill({ code: totp(secret, { step: 1 }) })
        await tab.click(en.confirm.submit)
        await tab.waitForHeading('Connect Assistant?')
        t.ok((await tab.cookies()).includes('svc_session'))

        await tab.click(en.oauth.allow)
        t.match(Object.fromEntries((await tab.waitForUrl(web)).searchParams), { code: CODE, state: 'a state', iss: issuer })
        await tab.waitForHeading(`Connected ${how}`)

        await tab.open(offer)
        await tab.click('Connect')
        await tab.waitForHeading('Connect Assistant?')
        t.strictSame(violations, [])
      })
    }

    t.test('an app is opened by its scheme behind the sign-in and the consent', async t => {
      const { issuer, request, violations } = await start(t)
      const tab = await openTab(t, browser)
      await tab.open(request('assistant', APP))
      await tab.fill(ADA)
      await tab.click(en.signIn.title)
      await tab.waitForHeading('Connect Assistant?')
      t.match(await tab.text(), /app on this device/)
      await tab.click(en.oauth.allow)
      t.match(Object.fromEntries((await tab.waitForApp(APP)).searchParams), { code: CODE, state: 'a state', iss: issuer })
      t.strictSame(violations, [])
    })

    t.test('a client on the machine is asked for although it belongs to the owner, and a refusal arrives there', async t => {
      const { issuer, loopback, request, violations } = await start(t)
      const tab = await openTab(t, browser)
      await tab.open(request('own', loopback))
      await tab.fill(ADA)
      await tab.click(en.signIn.title)
      await tab.waitForHeading('Connect Own?')
      t.match(await tab.text(), /program on this device/)
      await tab.click(en.oauth.deny)
      const { searchParams } = await tab.waitForUrl(loopback)
      t.match(Object.fromEntries(searchParams), { error: 'access_denied', state: 'a state', iss: issuer })
      t.notOk(searchParams.has('code'))
      t.strictSame(violations, [])
    })

    t.test('a client on the web that belongs to the owner is reached from the form of the sign-in, without a question', async t => {
      const { web, issuer, request, violations } = await start(t)
      const tab = await openTab(t, browser)
      await tab.open(request('own', web))
      await tab.fill(ADA)
      await tab.click(en.signIn.title)
      t.match(Object.fromEntries((await tab.waitForUrl(web)).searchParams), { code: CODE, state: 'a state', iss: issuer })
      t.strictSame(violations, [])
    })

    t.test('an app is told of a failure by a page that opens it', async t => {
      const { issuer, request, violations } = await start(t)
      const tab = await openTab(t, browser)
      await tab.open(`${request('assistant', APP)}&prompt=none`)
      await tab.fill(ADA)
      await tab.click(en.signIn.title)
      const { searchParams } = await tab.waitForApp(APP)
      t.match(Object.fromEntries(searchParams), { error: 'interaction_required', state: 'a state', iss: issuer })
      t.strictSame(violations, [])
    })
  })
}
