import t from 'tap'
import { Browser } from '../../../test/helpers/browser.js'
import { principalIn } from '../../../test/helpers/app.js'
import { connect, proveAll, signInBy, startConnectionApp, startTenants } from '../../../test/helpers/tenants.js'

t.test('a user signs in by a connection that was just added, with its id among the claims', async t => {
  const world = await startTenants(t)
  const [acme] = world.tenants
  const { app } = await startConnectionApp(t)
  const connection = await connect(app, acme, { domains: ['example.com'] })
  const browser = new Browser(app)

  const answer = await signInBy(browser, acme, connection, '/home')

  t.match(answer, { statusCode: 302, headers: { location: '/home' } }, answer.body)
  t.match(await principalIn(browser), {
    provider: connection.provider,
    claims: { sub: 'ada', email: 'ada@example.com', email_verified: false, name: 'Ada', connection: connection.id }
  })
})

t.test('an address of a proven domain is verified, and only of a proven one', async t => {
  const world = await startTenants(t)
  const [acme] = world.tenants
  const { app } = await startConnectionApp(t)
  const connection = await connect(app, acme, { domains: ['example.com'] })
  await proveAll(app, world, connection)
  const [ada, eve] = [new Browser(app), new Browser(app)]

  await signInBy(ada, acme, connection)
  acme.idp.account = { sub: 'eve', email: 'eve@sub.example.com', email_verified: true }
  await signInBy(eve, acme, connection)

  t.match(await principalIn(ada), { claims: { email: 'ada@example.com', email_verified: true } })
  t.match(await principalIn(eve), { claims: { email: 'eve@sub.example.com', email_verified: false } })
  t.match(await app.auth.findUser({ email: 'ada@example.com' }), { emailVerified: true })
  t.equal(await app.auth.findUser({ email: 'eve@sub.example.com' }), null)
})
