import t from 'tap'
import { freePort } from '../helpers/loopback.js'
import { startApp } from '../helpers/app.js'
import { startOpenIdProvider } from '../helpers/openid-provider.js'
import { startChromium } from './chromium.js'

t.test('attack 108: Chromium signs in by a form that the page of another site posts, with the default cookie', async t => {
  const port = await freePort()
  // Another site than the provider's: for 127.0.0.1 and localhost a cookie is not the same site.
  const origin = `http://localhost:${port}`
  const idp = await startOpenIdProvider(t, { redirectUris: [`${origin}/auth/dev/callback`] })
  const app = await startApp(t, { baseUrl: origin, providers: [idp.provider({ responseMode: 'form_post' })] }, {}, app => {
    app.get('/', async (_request, reply) => reply.type('text/html').send('<!doctype html><title>Home</title>'))
  })
  await app.listen({ host: '127.0.0.1', port })
  const context = await (await startChromium()).newContext()
  t.teardown(() => context.close())
  const page = await context.newPage()
  const callbacks: Array<Promise<[method: string, status: number | undefined, hasCookie: boolean]>> = []
  page.on('requestfinished', request => {
    if (!request.url().startsWith(`${origin}/auth/dev/callback`)) return
    callbacks.push(Promise.all([request.allHeaders(), request.response()]).then(([{ cookie }, response]) =>
      [request.method(), response?.status(), cookie !== undefined]))
  })

  await page.goto(`${origin}/auth/dev/login?next=/me`)
  await page.waitForURL(`${origin}/me*`)

  t.match(JSON.parse(await page.locator('body').innerText()), { principal: { provider: 'dev', claims: { sub: 'ada' } } })
  t.match(await context.cookies(origin), [{ sameSite: 'Lax', httpOnly: true }])
  t.strictSame(await Promise.all(callbacks), [['POST', 303, false], ['GET', 302, true]])
})
