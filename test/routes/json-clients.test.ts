/** Who gets JSON and who a redirect, and what the body of an error looks like. */
import Fastify, { type FastifyInstance } from 'fastify'
import t from 'tap'
import authPlugin from '../../lib/index.js'
import { SESSION_SECRET, localProvider, startApp } from '../helpers/app.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }
const JSON_TYPE = 'application/json'
const FORM_TYPE = 'application/x-www-form-urlencoded'

/** The answer to a login that fails, of a page that could show the error. */
async function failToLogIn (app: FastifyInstance, accept: string | undefined, contentType: string, payload: string) {
  const headers = { 'content-type': contentType, referer: 'http://localhost:80/sign-in', ...(accept !== undefined && { accept }) }
  return app.inject({ method: 'POST', url: '/auth/local/login', headers, payload })
}

t.test('a client whose Accept prefers neither JSON nor HTML is one of JSON when it sends JSON', async t => {
  const app = await startApp(t, { local: localProvider() })
  const form = new URLSearchParams(ADA).toString()
  const json = JSON.stringify(ADA)
  const cases: Array<[accept: string | undefined, type: string, body: string, status: number]> = [
    [undefined, JSON_TYPE, json, 401], ['*/*', JSON_TYPE, json, 401], ['*/*', 'Application/JSON ; charset=utf-8', json, 401],
    ['image/png', JSON_TYPE, json, 401], ['*/*', JSON_TYPE, '{', 400], ['text/html', JSON_TYPE, json, 303],
    ['text/html, application/json;q=0.9', JSON_TYPE, json, 303], [undefined, FORM_TYPE, form, 303], ['*/*', FORM_TYPE, form, 303],
    [JSON_TYPE, FORM_TYPE, form, 401], ['application/json, text/html', FORM_TYPE, form, 401], ['*/*', 'application/jsonp', json, 303]
  ]
  for (const [accept, type, body, status] of cases) {
    t.equal((await failToLogIn(app, accept, type, body)).statusCode, status, `${accept} with a body of ${type}`)
  }
})

t.test('a client that sends JSON gets the principal when it registers', async t => {
  const app = await startApp(t, { local: localProvider() })

  const response = await app.inject({ method: 'POST', url: '/auth/local/register', payload: ADA })

  t.equal(response.statusCode, 201)
  t.match(response.json(), { provider: 'local', claims: { email: ADA.email } })
})

t.test('errors of routes and of guards have one body, whatever the application sets for its own answers', async t => {
  const settings: Record<string, (app: FastifyInstance) => void> = {
    nothing: () => {},
    'a reply serializer': app => { app.setReplySerializer(() => 'of the application') },
    'a serializer compiler': app => { app.setSerializerCompiler(() => () => 'of the application') },
    'a preSerialization hook': app => { app.addHook('preSerialization', async () => ({ of: 'the application' })) },
    'a content type': app => { app.addHook('onRequest', async (_request, reply) => { reply.type('text/html') }) }
  }
  for (const [what, set] of Object.entries(settings)) {
    const app: FastifyInstance = Fastify()
    t.teardown(() => app.close())
    set(app)
    await app.register(authPlugin, { session: { secret: SESSION_SECRET }, local: localProvider() })
    app.get('/me', { preHandler: app.auth.requireUser }, async () => 'me')

    const [ofGuard, ofRoute] = [await app.inject('/me'), await app.inject({ method: 'POST', url: '/auth/local/token' })]

    const body = { statusCode: 401, code: 'unauthenticated', error: 'Unauthorized', message: 'Sign in first.' }
    for (const response of [ofGuard, ofRoute]) {
      t.strictSame(response.json(), body, what)
      t.equal(response.headers['content-type'], 'application/json; charset=utf-8', what)
    }
  }
})

t.test('attack 42: a body that is not UTF-8 is refused, where different passwords would become one', async t => {
  const app = await startApp(t, { local: localProvider() })
  const bytes = (text: string) => Buffer.from(text, 'latin1')
  const bodies: Array<[type: string, body: Buffer]> = [
    [JSON_TYPE, bytes('{"email":"ada@example.com","password":"12345678\xff"}')],
    [JSON_TYPE, bytes('{"email":"ada@example.com","password":"12345678\xc3"}')],
    [FORM_TYPE, bytes('email=ada@example.com&password=12345678\xff')],
    [FORM_TYPE, bytes('email=ada@example.com&password=12345678%ff')],
    [FORM_TYPE, bytes('email=ada@example.com&password=12345678%C3&name=%A4')],
    [FORM_TYPE, bytes('email=ada@example.com&password=12345678\xc3%a4')]
  ]
  for (const [type, payload] of bodies) {
    for (const url of ['/auth/local/register', '/auth/local/login']) {
      const response = await app.inject({ method: 'POST', url, headers: { 'content-type': type, accept: JSON_TYPE }, payload })
      t.match(
        [response.statusCode, response.json()],
        [400, { code: 'invalid_request', message: 'The body is not UTF-8.' }],
        `${url} ${payload.toString('latin1')}`
      )
    }
  }
  const good = await app.inject({
    method: 'POST',
    url: '/auth/local/register',
    headers: { 'content-type': FORM_TYPE, accept: JSON_TYPE },
    payload: 'email=ada@example.com&password=12345678%C3%A4+%&name=%EF%BF%BD'
  })
  t.equal(good.statusCode, 201)
  t.equal((await app.inject({ method: 'POST', url: '/auth/local/login', payload: { email: ADA.email, password: '12345678ä %' } })).statusCode, 200)
})

t.test('attack 42: a password with U+FFFD is refused', async t => {
  const app = await startApp(t, { local: localProvider() })
  for (const password of ['12345678\ufffd', '\ufffd\ufffd12345678']) {
    for (const url of ['/auth/local/register', '/auth/local/login']) {
      const response = await app.inject({ method: 'POST', url, headers: { 'content-type': JSON_TYPE }, payload: JSON.stringify({ ...ADA, password }) })
      t.match(
        [response.statusCode, response.json()],
        [400, { code: 'invalid_request', message: /^The password is not text/ }],
        `${url} ${JSON.stringify(password)}`
      )
    }
  }
  const half = await app.inject({
    method: 'POST',
    url: '/auth/local/login',
    payload: '{"email":"ada@example.com","password":"half \\ud800 a pair"}',
    headers: { 'content-type': JSON_TYPE }
  })
  t.match([half.statusCode, half.json()], [401, { code: 'invalid' }], 'half a character is a password that nobody has')
})
