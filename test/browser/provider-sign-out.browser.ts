/** A sign-out at a real OpenID provider in Chromium, from an application with the headers of @fastify/helmet. */
import type { FastifyInstance } from 'fastify'
import helmet from '@fastify/helmet'
import type { Page, Request } from 'playwright-core'
import t, { type Test } from 'tap'
import { Pages, type Texts, ar, de, en, es, fr, ja } from '../../lib/pages.js'
import { startApp } from '../helpers/app.js'
import { DATA_SECRET } from '../helpers/factor-app.js'
import { freePort } from '../helpers/loopback.js'
import { type OpenIdProvider, startOpenIdProvider } from '../helpers/openid-provider.js'
import { startChromium } from './chromium.js'
import { HOME, titleOf, widthsThatScroll } from './page-steps.js'
import { Visitor, barriersOn } from './visitor.js'

const FORM = `${HOME}<form method="post" action="/auth/logout">
<input type="hidden" name="provider" value="true"><input type="hidden" name="next" value="/bye"><button>Leave</button></form>`

/** What a script of the application does. */
const BY_SCRIPT = `(async () => {
  const headers = { accept: 'application/json', 'content-type': 'application/json' }
  const answer = await fetch('/auth/logout', { method: 'POST', headers, body: JSON.stringify({ provider: true, next: '/bye' }) })
  location.assign((await answer.json()).url)
})()`

const chromium = await startChromium()

/** An application on `localhost` and a provider on `127.0.0.1`: two sites. */
async function start (t: Test, pages?: Pages): Promise<{ url: string, idp: OpenIdProvider }> {
  const port = await freePort()
  const url = `http://localhost:${port}`
  const idp = await startOpenIdProvider(t, {
    redirectUris: [`${url}/auth/dev/callback`],
    client: { post_logout_redirect_uris: [`${url}/auth/dev/signed-out`] }
  })
  const app: FastifyInstance = await startApp(t, {
    baseUrl: url, providers: [idp.provider({ signOut: true })], dataSecret: DATA_SECRET, rateLimit: false, pages
  }, {}, app => {
    app.register(helmet)
    app.get('/', async (_request, reply) => reply.type('text/html').send(FORM))
    app.get('/bye', async (_request, reply) => reply.type('text/html').send(HOME.replace('<h1>Home', '<h1>Bye')))
  })
  await app.listen({ host: 'localhost', port })
  return { url, idp }
}

/** Signs in; resolves to whether the provider asked who the user is. */
async function signIn (page: Page, { url, idp }: { url: string, idp: OpenIdProvider }): Promise<boolean> {
  const before = idp.requests.length
  await page.goto(`${url}/auth/dev/login`)
  await page.waitForURL(`${url}/*`)
  return idp.requests.slice(before).some(path => path.startsWith('/interaction/'))
}

for (const scripts of [true, false]) {
  for (const way of ['a form', ...scripts ? ['a script'] : []]) {
    t.test(`attack 99: a user signs out here and at the provider by ${way}, ${scripts ? 'with' : 'without'} scripts`, async t => {
      const server = await start(t)
      const visitor = await Visitor.with(chromium, t, { scripts })
      const page = await visitor.open(server.url)
      t.equal(await signIn(page, server), true)
      t.equal(await signIn(page, server), false, 'the provider knows the user')
      const requests: Request[] = []
      page.on('request', request => { requests.push(request) })

      await (way === 'a form' ? page.getByRole('button', { name: 'Leave' }).click() : page.evaluate(BY_SCRIPT))

      // The provider asks whether to sign out there.
      await page.waitForURL(`${server.idp.issuer}/session/end?**`)
      const atProvider = requests.find(request => request.url().startsWith(`${server.idp.issuer}/session/end?`))
      const { searchParams } = new URL(atProvider?.url() ?? '')
      t.strictSame([...searchParams.keys()], ['id_token_hint', 'client_id', 'post_logout_redirect_uri', 'state'])
      t.equal((await atProvider?.allHeaders())?.referer, undefined, 'the provider is not told which page it was')
      t.strictSame((await visitor.cookies()).filter(({ domain }) => domain === 'localhost'), [], 'signed out here before')
      await page.locator('[name="logout"]').click()
      await page.waitForURL(`${server.url}/bye`)
      t.equal(await titleOf(page), 'Bye')
      // The page of the provider lacks a font and an icon.
      const isOfProvider = (complaint: string): boolean => complaint.includes('fonts.googleapis.com') || complaint.includes(server.idp.issuer)
      t.strictSame(visitor.complaints.filter(complaint => !isOfProvider(complaint)), [])
      t.equal(await signIn(page, server), true, 'the provider asks again')
    })
  }
}

t.test('the page of the sign-out has no barriers, in each language, and its link leads to the provider too', async t => {
  const texts: Texts[] = [en, de, fr, es, ar, ja]
  const server = await start(t, new Pages({ name: 'Shop', languages: [en, ...texts.slice(1)] }))
  for (const { language, signOut, common } of texts) {
    const visitor = await Visitor.with(chromium, t, { language })
    const page = await visitor.open(server.url)
    await signIn(page, server)
    // The browser stays on the page: an answer without content is no navigation.
    await page.route(`${server.idp.issuer}/session/end?**`, async route => route.fulfill({ status: 204 }))
    await Promise.all([page.waitForRequest(`${server.idp.issuer}/session/end?**`), page.getByRole('button', { name: 'Leave' }).click()])
    t.equal(await titleOf(page), signOut.title)
    t.equal(page.url(), `${server.url}/auth/logout`)
    t.strictSame(await barriersOn(page), [], language)
    t.strictSame(await widthsThatScroll(page), [], language)
    t.match(await page.locator('main').innerText(), new URL(server.idp.issuer).host)
    await page.unrouteAll()
    await page.getByRole('link', { name: common.continue }).click()
    await page.waitForURL(`${server.idp.issuer}/session/end?**`)
  }
})
