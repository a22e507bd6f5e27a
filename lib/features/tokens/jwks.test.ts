import fastifyCookie from '@fastify/cookie'
import fastifySession from '@fastify/session'
import Fastify, { type FastifyInstance } from 'fastify'
import { createLocalJWKSet, jwtVerify } from 'jose'
import t from 'tap'
import authPlugin from '../../index.js'
import { SESSION_SECRET, localProvider, startApp } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { ecKey, edKey } from '../../../test/helpers/signing-key.js'

const URL = '/auth/local/jwks.json'
const USER = { email: 'ada@example.com', password: 'correct horse' }

const withSigningKey = (...signingKey: ReturnType<typeof ecKey>[]) => localProvider({ secret: undefined, signingKey })

t.test('with a signing key the public keys are served to everyone, and caches may keep them', async t => {
  const app = await startApp(t, { local: withSigningKey(ecKey(), ecKey()) })

  const response = await app.inject(URL)

  t.equal(response.statusCode, 200)
  t.equal(response.headers['content-type'], 'application/json; charset=utf-8')
  t.equal(response.headers['cache-control'], 'public, max-age=300')
  t.strictSame(response.json(), app.localIdp?.jwks)
  t.equal(response.json().keys.length, 2)
  t.equal((await app.inject({ url: URL, headers: { 'sec-fetch-site': 'cross-site' } })).statusCode, 200)
})

t.test('attack 47: no private member of a key is served', async t => {
  for (const key of [ecKey(), edKey()]) {
    const app = await startApp(t, { local: localProvider({ secret: undefined, signingKey: { ...key, alg: undefined, kid: 'mine' } }) })
    const { body } = await app.inject(URL)

    t.notOk(body.includes(key.d))
    t.strictSame(Object.keys(JSON.parse(body).keys[0]).filter(name => !['kty', 'crv', 'x', 'y', 'alg', 'use', 'kid'].includes(name)), [])
  }
})

t.test('with a secret no keys are served', async t => {
  t.equal((await (await startApp(t, { local: localProvider() })).inject(URL)).statusCode, 404)
})

t.test('the token of a signed-in user is verified by the keys, by requireBearer and by the verify-token route', async t => {
  const app = await startApp(t, { local: withSigningKey(ecKey()) }, {}, app => {
    app.get('/api', { preHandler: app.auth.requireBearer }, async request => request.token)
  })
  const ada = new Browser(app)
  const { userId } = (await ada.post('/auth/local/register', USER)).json()

  const { token } = (await ada.post('/auth/local/token')).json()

  const { payload } = await jwtVerify(token, createLocalJWKSet((await app.inject(URL)).json()), { issuer: 'svc-auth-local' })
  t.match(payload, { sub: userId, email: USER.email })
  t.match((await app.inject({ url: '/api', headers: { authorization: `Bearer ${token}` } })).json(), { sub: userId })
  t.match((await ada.post('/auth/local/verify-token', { token })).json(), { sub: userId })
})

t.test('an answer that carries the cookie of a session is kept by no cache', async t => {
  const app: FastifyInstance = Fastify()
  t.teardown(() => app.close())
  await app.register(fastifyCookie)
  await app.register(fastifySession, { secret: SESSION_SECRET, cookie: { secure: false }, rolling: true })
  await app.register(authPlugin, { local: withSigningKey(ecKey()) })
  const ada = new Browser(app)
  await ada.post('/auth/local/register', USER)

  const { headers } = await ada.get(URL)

  t.ok(headers['set-cookie'])
  t.equal(headers['cache-control'], 'no-store, no-transform')
})

t.test('an error in place of the keys is kept by no cache', async t => {
  const store = { get: (_id: string, callback: (error: Error) => void) => { callback(new Error('down')) }, set () {}, destroy () {} }
  const app = await startApp(t, { local: withSigningKey(ecKey()), session: { secret: SESSION_SECRET, store } })
  const { headers } = await new Browser(await startApp(t, { local: localProvider() })).post('/auth/local/register', USER)

  const response = await app.inject({ url: URL, headers: { cookie: String(headers['set-cookie']).split(';', 1)[0] } })

  t.equal(response.statusCode, 503)
  t.equal(response.headers['cache-control'], 'no-store, no-transform')
})
