/** Attack 138 in Chromium: cookies that the application does not see expire in the scopes that it names. */
import t from 'tap'
import { startProvider } from '../../lib/testing.js'
import { SESSION_SECRET, localProvider, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { freePort } from '../helpers/loopback.js'
import { ADA, GRACE } from '../helpers/shared-apps.js'
import { startChromium } from './chromium.js'

const FORMS = `<!doctype html><meta charset="utf-8">
<form method="post" action="/auth/local/login"><input name="email"><input name="password" type="password"><button>Sign in</button></form>
<form method="post" action="/auth/logout"><button>Sign out</button></form>`

t.test('attack 138: in Chromium a sign-in and a sign-out leave no other cookie of the name', async t => {
  const port = await freePort()
  const chromium = await startChromium('--host-resolver-rules=MAP *.example 127.0.0.1, MAP github.io 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1')
  // Chromium takes a cookie for the domain github.io as one of that host alone, as that is a public suffix.
  for (const [host, domain, scopes] of [
    ['www.shop.example', undefined, [['.shop.example', '/'], ['www.shop.example', '/auth'], ['.www.shop.example', '/'], ['.shop.example', '/auth/local']]],
    ['www.shop.example', 'shop.example', [['www.shop.example', '/'], ['.www.shop.example', '/auth']]],
    ['github.io', undefined, [['github.io', '/auth']]],
    ['127.0.0.1', undefined, [['127.0.0.1', '/auth']]]
  ] as const) {
    const app = await startApp(t, {
      baseUrl: `http://${host}:${port}`, local: localProvider(), rateLimit: false, session: { secret: SESSION_SECRET, cookie: { domain } }
    }, {}, app => {
      app.get('/', async (_request, reply) => reply.type('text/html').send(FORMS))
    })
    for (const user of [ADA, GRACE]) await app.auth.createUser(user)
    await app.listen({ host: '127.0.0.1', port })
    for (const scope of scopes) {
      const [older, present] = [new Browser(app), new Browser(app)]
      for (const browser of [older, present]) await browser.post('/auth/local/login', GRACE)
      const context = await chromium.newContext()
      const own = domain === undefined ? host : `.${domain}`
      await context.addCookies([[older, ...scope] as const, [present, own, '/'] as const].map(([{ cookies }, domain, path]) => (
        { name: 'svc_session', value: cookies.get('svc_session') ?? '', domain, path }
      )))
      const page = await context.newPage()
      await page.goto(`http://${host}:${port}/`)
      t.equal((await context.cookies()).length, 2)

      await page.fill('[name=email]', ADA.email)
      await page.fill('[name=password]', ADA.password)
      await Promise.all([page.waitForResponse('**/auth/local/login'), page.click('text=Sign in')])
      await page.waitForLoadState()
      await page.goto(`http://${host}:${port}/me`)

      t.match(await page.textContent('body'), ADA.email, `${host}: ${scope.join(' ')}`)
      t.match(await context.cookies(), [{ name: 'svc_session', domain: own, path: '/' }])
      await page.goto(`http://${host}:${port}/`)
      await Promise.all([page.waitForResponse('**/auth/logout'), page.click('text=Sign out')])
      await page.waitForLoadState()
      t.strictSame(await context.cookies(), [])
      await context.close()
    }
    await app.close()
  }
})

t.test('attack 4: in Chromium two tabs that open at one instant both arrive', async t => {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const idp = await startProvider()
  t.teardown(() => idp.close())
  const app = await startApp(t, { baseUrl: origin, providers: [idp.provider()], rateLimit: false, session: { secret: SESSION_SECRET } })
  await app.listen({ host: '127.0.0.1', port })
  const context = await (await startChromium()).newContext()
  const tabs = await Promise.all(['/me?one', '/me?other'].map(async next => ({ next, page: await context.newPage() })))
  // Neither leaves before the other one: none of them has a cookie yet.
  const waiting: Array<() => Promise<void>> = []
  await context.route('**/auth/test/login?*', async route => {
    waiting.push(async () => route.continue())
    if (waiting.length === tabs.length) await Promise.all(waiting.map(async leave => leave()))
  })

  await Promise.all(tabs.map(async ({ next, page }) => page.goto(`${origin}/auth/test/login?next=${encodeURIComponent(next)}`)))

  for (const { next, page } of tabs) t.equal(page.url(), `${origin}${next}#`)
  const names = (await context.cookies(origin)).map(({ name }) => name).filter(name => name.startsWith('svc_'))
  t.strictSame(names, ['svc_session'])
  await context.close()
})
