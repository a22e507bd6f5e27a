import fastifyCookie from '@fastify/cookie'
import fastifySession from '@fastify/session'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin, { type AuthPluginOptions } from '../../index.js'
import { SESSION_SECRET, localProvider, principalIn, startApp } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { OwnProvider, signInAt } from '../../../test/helpers/own-provider.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }
const PATHS = ['/auth/logout', '/auth/local/revoke']

/** A browser in which Ada is signed in by password, and the ids that the channel announces. */
async function signedIn (
  t: Test,
  options: AuthPluginOptions = {},
  extend?: (app: FastifyInstance) => void
): Promise<{ browser: Browser, userId: string, announced: string[] }> {
  const app = await startApp(t, { local: localProvider(), ...options }, {}, extend)
  const browser = new Browser(app)
  const announced: string[] = []
  app.auth.channel.on('revoke', userId => { announced.push(userId) })
  const { userId } = (await browser.post('/auth/local/register', ADA)).json()
  return { browser, userId, announced }
}

for (const path of PATHS) {
  t.test(`POST ${path} ends the session, clears the cookie and announces it once`, async t => {
    const { browser, userId, announced } = await signedIn(t)
    const stolen = new Browser(browser.app, browser.cookies)

    const answer = await browser.post(path)

    t.equal(answer.statusCode, 204)
    t.match(answer.headers['set-cookie'], /^svc_session=; Max-Age=0; Path=\/; /)
    t.equal(await principalIn(stolen), null)
    t.equal((await stolen.post(path)).statusCode, 204, 'again, with a cookie that is good no more')
    t.strictSame(announced, [userId])
  })

  t.test(`POST ${path} sends a browser to next, to / without one, and never to another origin`, async t => {
    const { browser } = await signedIn(t)
    for (const [next, location] of [['/bye', '/bye'], ['', '/'], ['https://evil.example/', '/']] as const) {
      const answer = await browser.submit(path, { next })
      t.strictSame([answer.statusCode, answer.headers.location], [303, location])
    }
  })

  t.test(`POST ${path} from another origin signs no user out`, async t => {
    const { browser, userId, announced } = await signedIn(t)

    t.equal((await browser.submit(path, {}, { origin: 'https://evil.example' })).statusCode, 403)
    t.equal((await principalIn(browser))?.userId, userId)
    t.strictSame(announced, [])
  })
}

t.test('an application with external providers alone signs its users out', async t => {
  const app = await startApp(t, { baseUrl: 'https://app.example', providers: [new OwnProvider('own')] })
  const browser = new Browser(app)
  await signInAt(browser, 'own', { subject: 'ada' })
  t.equal((await principalIn(browser))?.provider, 'own')

  t.equal((await browser.post('/auth/logout')).statusCode, 204)

  t.equal(await principalIn(browser), null)
  t.equal((await browser.post('/auth/local/revoke')).statusCode, 404, 'there is no local identity provider')
})

t.test('app.auth.signOut does in a route of the application what POST /auth/logout does', async t => {
  const { browser, userId, announced } = await signedIn(t, {}, app => {
    app.post('/goodbye', async (request, reply) => {
      await app.auth.signOut(request, reply)
      await app.auth.signOut(request, reply)
      return { principal: request.principal }
    })
  })
  const stolen = new Browser(browser.app, browser.cookies)

  const answer = await browser.post('/goodbye')

  t.strictSame([answer.statusCode, answer.json()], [200, { principal: null }])
  t.match(answer.headers['set-cookie'], /^svc_session=;/)
  t.equal(await principalIn(stolen), null)
  t.strictSame(announced, [userId])
  t.equal((await new Browser(browser.app).post('/goodbye')).statusCode, 200, 'an anonymous request')
})

t.test('app.auth.signOut keeps a session of the application ended before any route of the plugin was used', async t => {
  const app: FastifyInstance = Fastify()
  t.teardown(() => app.close())
  await app.register(fastifyCookie)
  await app.register(fastifySession, { secret: SESSION_SECRET, cookie: { secure: false } })
  await app.register(authPlugin, {})
  const principal = { userId: '6b1e1c9e-0c51-4c3a-9f44-2f0e8a2f5d11', provider: 'a', claims: { sub: '1' } }
  app.get('/sign-in', async request => { request.session.svcAuth = { principal, generation: 0, at: 0, methods: [] } })
  app.get('/me', async request => ({ principal: request.principal }))
  const [held, asked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  app.get('/slow', async request => {
    asked.resolve()
    await held.promise
    request.session.set('visits' as never, 1 as never)
    return {}
  })
  app.post('/goodbye', async (request, reply) => {
    await app.auth.signOut(request, reply)
    return {}
  })
  const browser = new Browser(app)
  await browser.get('/sign-in')
  const stolen = new Browser(app, browser.cookies)
  const slow = stolen.get('/slow')
  await asked.promise
  await browser.post('/goodbye')
  held.resolve()
  await slow

  t.equal((await stolen.get('/me')).json().principal, null)
})
