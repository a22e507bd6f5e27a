import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin, { type AuthPluginOptions, SqlAuthStore } from '../../index.js'
import { SESSION_SECRET, localProvider } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'

const ADA = { email: 'ada@example.com', password: 'correct horse battery staple' }

async function start (t: Test, options: AuthPluginOptions = {}): Promise<{ app: FastifyInstance, browser: Browser }> {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(authPlugin, {
    store: new SqlAuthStore(':memory:'), session: { secret: SESSION_SECRET }, local: localProvider(), guests: {}, ...options
  })
  app.post('/basket', async request => app.auth.signInGuest(request))
  app.get('/basket', { preHandler: app.auth.requireClaims({}, { guests: true }) }, async request => request.principal)
  app.get('/account', { preHandler: app.auth.requireUser }, async request => request.principal)
  app.get('/anyone', async request => request.principal)
  return { app, browser: new Browser(app) }
}

t.test('a visitor becomes a guest, and the guest a user with the same id by registering', async t => {
  const { app, browser } = await start(t)

  const guest = (await browser.post('/basket')).json()
  t.match(guest, { provider: 'guest', guest: true, claims: { sub: guest.userId } })
  t.equal((await browser.post('/basket')).json().userId, guest.userId, 'once')
  t.match((await browser.get('/basket')).json(), { userId: guest.userId, guest: true })
  t.match((await browser.get('/anyone')).json(), { userId: guest.userId })
  t.equal((await browser.get('/account')).statusCode, 401)
  t.match((await browser.get('/auth/session')).json(), { principal: { userId: guest.userId, guest: true }, authentication: null })
  await app.auth.grant(guest.userId, { role: 'member' })

  const answer = await browser.post('/auth/local/register', ADA)
  t.equal(answer.statusCode, 201, answer.body)
  t.match(answer.json(), { userId: guest.userId, provider: 'local', claims: { role: 'member', email: ADA.email } })
  t.notOk(answer.json().guest)
  t.equal((await browser.get('/account')).json().userId, guest.userId)
  t.match(await app.auth.findUser({ email: ADA.email }), { userId: guest.userId, guest: undefined })
  t.match(await app.auth.links(guest.userId), [{ provider: 'local' }])
})
