import fastifyCookie from '@fastify/cookie'
import fastifySession from '@fastify/session'
import Fastify, { type FastifyInstance, type Session } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin from '../../lib/index.js'
import { type SessionRecord, principalIn, recordIn } from '../../lib/session/record.js'
import { SESSION_SECRET, localProvider } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }

/** An application that keeps something of its own as `session.user`, as many do. */
async function startOwnApp (t: Test, user: object): Promise<Browser> {
  const app: FastifyInstance = Fastify()
  t.teardown(() => app.close())
  await app.register(fastifyCookie)
  await app.register(fastifySession, { secret: SESSION_SECRET, cookie: { secure: false } })
  await app.register(authPlugin, { local: localProvider() })
  app.get('/visit', async request => {
    request.session.set('user' as never, user as never)
    return {}
  })
  app.get('/guarded', { preHandler: [app.auth.refresh, app.auth.requireUser] }, async request => request.principal)
  app.get('/session', async request => request.session.get('user' as never) ?? null)
  return new Browser(app)
}

t.test('a session.user of the application signs no user in, whatever it looks like, and stays', async t => {
  for (const user of [{ name: 'max' }, { userId: '6b1e1c9e-0c51-4c3a-9f44-2f0e8a2f5d11', provider: 'local', claims: { sub: '1', role: 'admin' } }]) {
    const browser = await startOwnApp(t, user)
    await browser.get('/visit')

    t.equal((await browser.get('/guarded')).statusCode, 401)
    t.strictSame((await browser.get('/session')).json(), user)
  }
})

t.test('a session.user that the application sets beside a signed-in user stays, and the user stays signed in', async t => {
  const browser = await startOwnApp(t, { name: 'max' })
  const { userId } = (await browser.post('/auth/local/register', ADA)).json()
  await browser.get('/visit')
  await browser.app.auth.grant(userId, { role: 'admin' })

  t.match((await browser.get('/guarded')).json(), { userId, claims: { role: 'admin' } })
  t.strictSame((await browser.get('/session')).json(), { name: 'max' })
})

t.test('a part of the session that is not in the form of the plugin signs no user in', async t => {
  for (const svcAuth of [null, 7, {}, { principal: null }, { principal: { userId: 7 } }, { principal: { userId: 'ada' } }]) {
    const app: FastifyInstance = Fastify()
    t.teardown(() => app.close())
    await app.register(fastifyCookie)
    await app.register(fastifySession, { secret: SESSION_SECRET, cookie: { secure: false } })
    await app.register(authPlugin, {})
    app.get('/visit', async request => {
      request.session.set('svcAuth', svcAuth as never)
      return request.principal
    })
    t.equal((await app.inject('/visit')).body, 'null', JSON.stringify(svcAuth))
  }
})

t.test('a session whose end has come while a request was under way has no user', async t => {
  const principal = { userId: '6b1e1c9e-0c51-4c3a-9f44-2f0e8a2f5d11', provider: 'local', claims: { sub: 'ada' } }
  const userIn = (until?: number) =>
    principalIn(sessionWith({ principal, generation: 0, at: 0, methods: [], ...(until !== undefined && { until }) }))

  t.equal(userIn(), principal)
  t.equal(userIn(Date.now() + 60_000), principal)
  t.equal(userIn(Date.now()), null)
  t.equal(userIn(NaN), null)
})

t.test('a session that lacks its generation, or how and when the user authenticated, has no user', async t => {
  const principal = { userId: '6b1e1c9e-0c51-4c3a-9f44-2f0e8a2f5d11', provider: 'local', claims: { sub: 'ada' } }
  const whole: SessionRecord = { principal, generation: 0, at: 0, methods: [] }
  t.strictSame(recordIn(sessionWith(whole)), whole)

  for (const name of Object.keys(whole)) {
    const session = sessionWith({ ...whole, [name]: undefined })
    t.strictSame([principalIn(session), recordIn(session)], [null, null], name)
  }
})

function sessionWith (svcAuth: SessionRecord): Session {
  return { cookie: { originalMaxAge: null }, svcAuth }
}
