import t from 'tap'
import { Pages } from '../../lib/pages.js'
import { Browser } from '../helpers/browser.js'
import { linkAt } from '../helpers/own-provider.js'
import { connect, proveAll, signInBy, startConnectionApp, startTenants } from '../helpers/tenants.js'

t.test('the sign-in page asks for the address first, and goes on by what its domain says', async t => {
  const world = await startTenants(t)
  const { tenants: [acme] } = world
  const { app } = await startConnectionApp(t, { pages: new Pages({ name: 'Shop' }) })
  const connection = await connect(app, acme, { domains: ['example.com'] })
  const before = await new Browser(app).get('/auth/pages/sign-in')
  await proveAll(app, world, connection)
  const browser = new Browser(app)
  t.match(before.body, 'type="password"', 'without a proven domain nothing changes')
  const page = await browser.get('/auth/pages/sign-in?next=/home')
  t.match(page.body, /action="\/auth\/connections\/start"/)
  t.notMatch(page.body, 'type="password"')
  const fields = { next: '/home', error_next: '/auth/pages/sign-in?next=%2Fhome' }

  const led = await browser.submit('/auth/connections/start', { ...fields, email: ' Ada@EXAMPLE.com ' })
  t.equal(led.statusCode, 200, led.body)
  t.match(led.body, 'Acme')
  const [, url = ''] = /<a [^>]*href="([^"]*\/login[^"]*)"/.exec(led.body) ?? []
  const answer = await signInBy(browser, acme, { loginPath: url.replaceAll('&amp;', '&') })
  t.match(answer, { statusCode: 302, headers: { location: '/home' } }, answer.body)

  const other = new Browser(app)
  const shown = await other.submit('/auth/connections/start', { ...fields, email: 'bob@elsewhere.example' })
  t.equal(shown.statusCode, 200)
  t.match(shown.body, /value="bob@elsewhere\.example"/)
  t.match(shown.body, 'type="password"')
  t.match(shown.body, /name="next" value="\/home"/)
  t.notMatch(JSON.stringify(shown.headers), 'bob', 'no address in a URL')

  const wrong = await other.submit('/auth/local/login', { ...fields, email: 'bob@elsewhere.example', password: 'a wrong password' })
  t.equal(wrong.statusCode, 401)
  t.match(wrong.body, 'type="password"', 'a failure stays at the second step')
  const invalid = await other.submit('/auth/connections/start', { ...fields, email: 'nobody' })
  t.equal(invalid.statusCode, 400)
  t.notMatch(invalid.body, 'type="password"', 'a wrong address stays at the first')
})

t.test('a script is told where the sign-in of an address begins, with the address as the hint', async t => {
  const world = await startTenants(t)
  const { tenants: [acme] } = world
  const { app } = await startConnectionApp(t)
  const connection = await connect(app, acme, { domains: ['example.com'] })
  const ask = async (email: string) => (await new Browser(app).post('/auth/connections/start', { email })).json()

  t.strictSame(await ask('ada@example.com'), { url: null }, 'a claim is no proof')
  await proveAll(app, world, connection)
  const remembered = await new Browser(app).post('/auth/connections/start', { email: 'ada@example.com', remember: true })
  t.match(remembered.json().url, 'remember=on')
  const { url } = await ask('ada@example.com')
  t.ok(url.startsWith(connection.loginPath))
  const { headers: { location } } = await new Browser(app).get(url)
  t.equal(new URL(String(location)).searchParams.get('login_hint'), 'ada@example.com')
  t.strictSame(await ask('ada@sub.example.com'), { url: null })
})

t.test('without passwords and mails an address without a connection is refused', async t => {
  const { app } = await startConnectionApp(t, { local: undefined, pages: new Pages({ name: 'Shop' }) } as object)

  const answer = await new Browser(app).post('/auth/connections/start', { email: 'ada@example.com' })

  t.match(answer.json(), { code: 'not_allowed' })
})

t.test('the account page names the connection by which the user signs in, and other providers', async t => {
  const { tenants: [acme] } = await startTenants(t)
  const { app } = await startConnectionApp(t, { pages: new Pages({ name: 'Shop' }) })
  const connection = await connect(app, acme, { name: 'Acme Inc' })
  const browser = new Browser(app)
  await signInBy(browser, acme, connection)
  await linkAt(browser, 'a', { subject: 'ada-at-a' })

  const { body } = await browser.get('/auth/pages/account', { accept: 'text/html' })

  t.match(body, 'A · Acme Inc')
  t.notMatch(body, connection.id.slice(0, 8) + '</')
  const confirm = await browser.get('/auth/pages/confirm', { accept: 'text/html' })
  t.match(confirm.body, `action="/auth/connections/${connection.id}/login"`)
})
