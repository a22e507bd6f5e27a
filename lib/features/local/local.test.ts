import { once } from 'node:events'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import type { AccountQuery, Rule, UniqueKeys } from '../../accounts/auth-store.js'
import authPlugin, {
  LocalIdentityProvider, MemoryAuthStore, type PasswordCheck, SignInRefused, SqlAuthStore
} from '../../index.js'
import { hashing } from '../password/hashing.js'
import { CHEAP_ARGON2, LOCAL_SECRET, SESSION_SECRET, localProvider, startApp } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { deferred } from '../../../test/helpers/deferred.js'
import { CAPACITY } from '../../../test/helpers/hashing.js'

const USER = { email: 'ada@example.com', password: 'correct horse', name: 'Ada' }
const PAGE = 'http://localhost:80/sign-in?lang=en&error=old#form'

async function startBrowser (t: Test, options: Parameters<typeof startApp>[1] = {}): Promise<Browser> {
  return new Browser(await startApp(t, { local: localProvider(), ...options }))
}

for (const Store of [MemoryAuthStore, SqlAuthStore]) {
  t.test(`the rules hold with ${Store.name}`, async t => {
    const store = () => new Store(':memory:')

    t.test('a browser registers, signs out and signs in again', async t => {
      const browser = await startBrowser(t, { store: store() })

      const registered = await browser.submit('/auth/local/register', { ...USER, email: ' Ada@Example.com ', next: '/welcome' })
      t.equal(registered.statusCode, 303)
      t.equal(registered.headers.location, '/welcome')
      const { principal } = (await browser.get('/me')).json()
      t.match(principal, { userId: /^[0-9a-f-]{36}$/, provider: 'local' })
      t.strictSame(principal.claims, { sub: principal.userId, email: 'ada@example.com', name: 'Ada' })

      const revoked = await browser.submit('/auth/local/revoke', { next: '/bye' })
      t.equal(revoked.statusCode, 303)
      t.equal(revoked.headers.location, '/bye')
      t.equal(browser.cookies.size, 0)
      t.equal((await browser.get('/me')).json().principal, null)

      const signedIn = await browser.submit('/auth/local/login', { email: 'ADA@example.com', password: USER.password })
      t.equal(signedIn.statusCode, 303)
      t.equal(signedIn.headers.location, '/')
      t.strictSame((await browser.get('/me')).json().principal, principal)
    })

    t.test('a JSON client gets the principal', async t => {
      const browser = await startBrowser(t, { store: store() })

      const registered = await browser.post('/auth/local/register', USER)
      const signedIn = await browser.post('/auth/local/login', USER)
      const revoked = await browser.post('/auth/local/revoke')

      t.equal(registered.statusCode, 201)
      t.match(registered.json(), { provider: 'local', claims: { email: USER.email } })
      t.equal(signedIn.statusCode, 200)
      t.strictSame(signedIn.json(), registered.json())
      t.equal(revoked.statusCode, 204)
      t.equal(revoked.body, '')
    })

    t.test('an e-mail can be registered once, in whatever spelling, and the second try leaves nothing', async t => {
      const browser = await startBrowser(t, { store: store() })
      await browser.post('/auth/local/register', USER)

      const again = await new Browser(browser.app).submit(
        '/auth/local/register',
        { ...USER, email: 'ADA@EXAMPLE.COM', password: 'something else' },
        { referer: PAGE }
      )

      t.equal(again.statusCode, 303)
      t.equal(again.headers.location, '/sign-in?lang=en&error=exists#form')
      t.equal(again.cookies.length, 0)
      t.equal((await browser.post('/auth/local/login', { ...USER, password: 'something else' })).json().code, 'invalid')
    })

    t.test('one of twenty registrations of one e-mail at once succeeds', async t => {
      const browser = await startBrowser(t, { store: store() })
      const spellings = ['ada@example.com', 'Ada@Example.com', ' ADA@EXAMPLE.COM']
      const responses = await Promise.all(Array.from({ length: 20 }, (_, index) =>
        new Browser(browser.app).post('/auth/local/register', { ...USER, email: spellings[index % 3], password: `${USER.password} ${index}` })))
      t.strictSame(responses.map(({ statusCode }) => statusCode).sort(), [201, ...Array(19).fill(409)])
    })
  })
}

t.test('a wrong password and an unknown e-mail are answered alike', async t => {
  const browser = await startBrowser(t)
  await browser.post('/auth/local/register', USER)
  const stranger = new Browser(browser.app)
  const attempts = [
    { ...USER, password: 'wrong horse' },
    { ...USER, email: 'eve@example.com' },
    { ...USER, password: 'x'.repeat(1100) }
  ]

  for (const attempt of attempts) {
    const page = await stranger.submit('/auth/local/login', attempt, { referer: PAGE })
    const json = await stranger.post('/auth/local/login', attempt)

    t.equal(page.statusCode, 303)
    t.equal(page.headers.location, '/sign-in?lang=en&error=invalid#form')
    t.equal(page.headers['set-cookie'], undefined)
    t.equal(json.statusCode, 401)
    t.strictSame(json.json(), { statusCode: 401, code: 'invalid', error: 'Unauthorized', message: 'The e-mail or the password is wrong.' })
  }
})

t.test('errors of forms have a page and a code', async t => {
  t.test('errors go to error_next, which goes before the Referer', async t => {
    const browser = await startBrowser(t)
    const response = await browser.submit('/auth/local/login', { ...USER, error_next: '/oops' }, { referer: PAGE })
    t.equal(response.headers.location, '/oops?error=invalid')
  })

  t.test('errors never leave this origin', async t => {
    const browser = await startBrowser(t)
    for (const elsewhere of ['https://evil.example/', '//evil.example', 'http://localhost.evil.example/', 'http://localhost@evil.example/', 'null']) {
      const response = await browser.submit('/auth/local/login', { ...USER, error_next: elsewhere }, { referer: elsewhere === 'null' ? 'null://' : elsewhere })
      const target = response.headers.location ?? '/'
      t.equal(new URL(target, 'http://localhost').origin, 'http://localhost', elsewhere)
    }
    t.equal((await browser.submit('/auth/local/login', USER, { referer: 'https://evil.example/' })).statusCode, 401)
    t.strictSame((await browser.submit('/auth/local/login', USER)).json().code, 'invalid')
  })

  t.test('errors of the form itself are invalid_request and name the field', async t => {
    const browser = await startBrowser(t)
    for (const body of [
      {}, [], null, { email: 'ada@example.com' }, { ...USER, password: true }, { ...USER, email: ['ada@example.com'] },
      { ...USER, name: 'Ada\0' }, { ...USER, name: '\ud800' }, { ...USER, next: {} },
      { ...USER, name: 'x'.repeat(1001) }
    ]) {
      const response = await browser.post('/auth/local/register', body)
      t.equal(response.statusCode, 400, JSON.stringify(body))
      t.equal(response.json().code, 'invalid_request')
    }
    t.match((await browser.post('/auth/local/register', { ...USER, password: null })).json().message, /password/)
    t.equal((await browser.submit('/auth/local/login', {}, { referer: PAGE })).headers.location, '/sign-in?lang=en&error=invalid_request#form')
  })

  t.test('errors of the content type or the body are invalid_request with their own status', async t => {
    const browser = await startBrowser(t)
    const send = async (contentType: string, payload: string) => {
      const response = await browser.send({ method: 'POST', url: '/auth/local/login', headers: { 'content-type': contentType }, payload })
      return [response.statusCode, response.json().code]
    }
    t.strictSame(await send('text/plain', JSON.stringify(USER)), [415, 'invalid_request'])
    t.strictSame(await send('multipart/form-data; boundary=x', '--x--'), [415, 'invalid_request'])
    t.strictSame(await send('application/json', '{'), [400, 'invalid_request'])
    t.strictSame(await send('application/json', '{"__proto__":{"a":1}}'), [400, 'invalid_request'])
    t.strictSame(await send('application/json', ''), [400, 'invalid_request'])
    t.strictSame(await send('application/x-www-form-urlencoded', 'email=a&email=b&password=c'), [400, 'invalid_request'])
    t.strictSame(await send('application/json', JSON.stringify({ ...USER, name: 'x'.repeat(1_100_000) })), [413, 'invalid_request'])
  })
})

t.test('registration makes a user and grants what the application allows', async t => {
  t.test('registration refuses what is not an e-mail or not a password, and makes no user', async t => {
    const browser = await startBrowser(t, { local: localProvider({ password: { check: password => !password.includes('horse') || 'No horses.' } }) })
    t.match((await browser.post('/auth/local/register', { ...USER, email: 'ada' })).json(), { code: 'invalid_email' })
    t.match((await browser.post('/auth/local/register', { ...USER, password: 'short' })).json(), { code: 'weak_password' })
    t.match((await browser.post('/auth/local/register', USER)).json(), { code: 'weak_password', message: 'No horses.' })
    const check: PasswordCheck = () => { throw new SignInRefused('no_horses', 'No horses.') }
    const form = await startBrowser(t, { local: localProvider({ password: { check } }) })
    const { headers } = await form.submit('/auth/local/register', USER, { referer: PAGE })
    t.equal(headers.location, '/sign-in?lang=en&error=no_horses#form', 'a page without scripts learns the reason by its code')
    t.equal(await browser.app.auth.findUser({ email: USER.email }), null)
  })

  t.test('the name of a new user has neither line breaks nor characters that change the direction of text', async t => {
    const browser = await startBrowser(t)
    await browser.post('/auth/local/register', { ...USER, name: 'Ada\r\nBcc: x\u202egpj.\u2028' })
    const user = await browser.app.auth.findUser({ email: USER.email })
    t.match(user, { name: 'AdaBcc: xgpj.' })
    t.match(await browser.app.auth.links(user?.userId ?? ''), [{ claims: { name: 'AdaBcc: xgpj.' } }])
    await browser.post('/auth/local/register', { ...USER, email: 'bob@example.com', name: '\u202e' })
    t.match(await browser.app.auth.findUser({ email: 'bob@example.com' }), { name: null })
  })

  t.test('registration hands out no claim unless the application allows it', async t => {
    const browser = await startBrowser(t)
    for (const claim of [{ role: 'admin' }, { email_verified: 'on' }, { email_verified: 'true' }, { email_verified: '1' }]) {
      const response = await browser.submit('/auth/local/register', { ...USER, ...claim }, { referer: PAGE })
      t.equal(response.headers.location, '/sign-in?lang=en&error=claim_not_allowed#form')
    }
    t.equal((await browser.post('/auth/local/register', { ...USER, email_verified: true })).statusCode, 403)
    t.equal((await browser.post('/auth/local/register', { ...USER, role: ['admin'] })).statusCode, 400)
    t.equal(await browser.app.auth.findUser({ email: USER.email }), null)
  })

  t.test('registration hands out the claims that the application allows, and nothing else of the form', async t => {
    const browser = await startBrowser(t, { local: localProvider({ registration: { roles: ['member'], emailVerified: true } }) })
    const form = { ...USER, role: 'member', email_verified: 'on', tier: 'gold', sub: 'x', user_id: 'y', 'claims[role]': 'admin', extras: '{}' }

    t.equal((await browser.submit('/auth/local/register', { ...form, role: 'admin' })).statusCode, 403)
    await browser.submit('/auth/local/register', form)

    const { principal } = (await browser.get('/me')).json()
    t.strictSame(principal.claims, { sub: principal.userId, email: USER.email, email_verified: true, name: 'Ada', role: 'member' })
    t.match(await browser.app.auth.findUser({ email: USER.email }), { claims: { role: 'member' }, emailVerified: false }, 'the form is no proof')
  })

  t.test('registration takes empty fields and an unchecked box for absent', async t => {
    const browser = await startBrowser(t)
    for (const [index, unchecked] of ['', 'off', 'false', '0'].entries()) {
      const email = `ada${index}@example.com`
      const response = await browser.submit('/auth/local/register', { email, password: USER.password, name: ' ', role: '', email_verified: unchecked })
      t.equal(response.statusCode, 303)
      t.match(await browser.app.auth.findUser({ email }), { name: null, claims: {} })
    }
  })

  t.test('registration is not there when it is switched off', async t => {
    const browser = await startBrowser(t, { local: localProvider({ registration: false }) })
    t.equal((await browser.post('/auth/local/register', USER)).statusCode, 404)
  })
})

t.test('a hash of other parameters is renewed at the next sign-in', async t => {
  const store = new MemoryAuthStore()
  await (await startBrowser(t, { store })).post('/auth/local/register', USER)
  const before = (await store.findCredential(USER.email))?.passwordHash ?? ''
  const stronger = new LocalIdentityProvider({ secret: LOCAL_SECRET, argon2: { ...CHEAP_ARGON2, timeCost: 2 } })
  const browser = await startBrowser(t, { store, local: stronger })

  t.equal((await browser.post('/auth/local/login', { ...USER, password: 'wrong horse' })).statusCode, 401)
  t.equal((await store.findCredential(USER.email))?.passwordHash, before, 'not for a wrong password')
  t.equal((await browser.post('/auth/local/login', USER)).statusCode, 200)

  const after = (await store.findCredential(USER.email))?.passwordHash ?? ''
  t.match(before, /t=1,/)
  t.match(after, /t=2,/)
  t.equal((await browser.post('/auth/local/login', USER)).statusCode, 200)
  t.equal((await store.findCredential(USER.email))?.passwordHash, after)
})

t.test('a sign-in does not fail for want of a new hash', async t => {
  class ReadOnlyStore extends MemoryAuthStore {
    isReadOnly = false

    override async change<T> (find: AccountQuery, wanted: UniqueKeys, rule: Rule<T>): Promise<T> {
      if (this.isReadOnly) throw new Error('read-only')
      return super.change(find, wanted, rule)
    }
  }
  const store = new ReadOnlyStore()
  await (await startBrowser(t, { store })).post('/auth/local/register', USER)
  store.isReadOnly = true
  const browser = await startBrowser(t, { store, local: localProvider({ argon2: { ...CHEAP_ARGON2, timeCost: 2 } }) })
  t.equal((await browser.post('/auth/local/login', USER)).statusCode, 200)
})

t.test('tokens are issued to signed-in users', async t => {
  t.test('tokens are issued to the signed-in user and verified', async t => {
    const browser = await startBrowser(t, { local: localProvider({ ttl: 60 }) })
    const { userId } = (await browser.post('/auth/local/register', USER)).json()
    await browser.app.auth.grant(userId, { role: 'admin' })
    await browser.post('/auth/local/login', USER)

    const issued = await browser.post('/auth/local/token', { sub: 'eve', ttl: 1e6, role: 'god' })
    t.equal(issued.statusCode, 200)
    t.equal(issued.headers['cache-control'], 'no-store, no-transform')
    t.match(issued.json(), { token_type: 'Bearer', expires_in: 60 })

    const verified = await new Browser(browser.app).post('/auth/local/verify-token', { token: issued.json().token })
    t.equal(verified.statusCode, 200)
    const claims = verified.json()
    t.match(claims, { iss: 'svc-auth-local', sub: userId, email: USER.email, name: 'Ada', role: 'admin', jti: String })
    t.equal(claims.exp - claims.iat, 60)
  })

  t.test('tokens are not issued to anonymous sessions nor to users who are gone, however the client asks', async t => {
    const browser = await startBrowser(t)
    t.equal((await browser.post('/auth/local/token')).statusCode, 401)
    t.match((await browser.submit('/auth/local/token', {})).json(), { code: 'unauthenticated' })

    class ForgetfulStore extends MemoryAuthStore {
      override async findUser (): Promise<null> { return null }
    }
    const forgotten = await startBrowser(t, { store: new ForgetfulStore() })
    await forgotten.post('/auth/local/register', USER)
    t.equal((await forgotten.post('/auth/local/token')).statusCode, 401)
  })

  t.test('tokens that are too long to be sent are not issued', async t => {
    const browser = await startBrowser(t)
    const { userId } = (await browser.post('/auth/local/register', { ...USER, name: '\u8a9e'.repeat(1000) })).json()
    t.equal((await browser.post('/auth/local/token')).statusCode, 200)
    await browser.app.auth.grant(userId, { essay: '\u8a9e'.repeat(5000) })
    await browser.post('/auth/local/login', USER)
    t.match((await browser.post('/auth/local/token')).json(), { code: 'invalid_claims', message: /16384 characters/ })
  })

  t.test('tokens are refused with a status, also to the script of a page', async t => {
    const browser = await startBrowser(t)
    for (const [url, status] of [['/auth/local/token', 401], ['/auth/local/verify-token', 400]] as const) {
      const response = await browser.send({ method: 'POST', url, headers: { accept: '*/*', referer: PAGE } })
      t.equal(response.statusCode, status)
      t.equal(response.headers.location, undefined)
    }
  })

  t.test('tokens that are not valid are invalid_token', async t => {
    const browser = await startBrowser(t)
    const foreign = await new LocalIdentityProvider({ secret: 'another secret of 32 characters!' }).issueIdToken('ada')
    for (const token of ['', 'a.b.c', foreign]) {
      const response = await browser.post('/auth/local/verify-token', { token })
      t.equal(response.statusCode, 401)
      t.equal(response.json().code, 'invalid_token')
    }
    for (const body of [{}, { token: 1 }, [], undefined]) t.equal((await browser.post('/auth/local/verify-token', body)).statusCode, 400)
  })
})

t.test('revoking tells the listeners of the channel', async t => {
  t.test('a listener that throws or rejects is logged, and stops neither the other listeners nor the answer', async t => {
    const lines: string[] = []
    const app = await startApp(t, { local: localProvider() }, { logger: { level: 'error', stream: { write: (line: string) => { lines.push(line) } } } })
    const told: string[] = []
    app.auth.channel.on('revoke', () => { throw new Error('threw at once') })
    app.auth.channel.on('revoke', async () => { throw new Error('threw later') })
    app.auth.channel.on('revoke', userId => { told.push(userId) })
    const browser = new Browser(app)
    const { userId } = (await browser.post('/auth/local/register', USER)).json()

    t.equal((await browser.post('/auth/local/revoke')).statusCode, 204)

    t.strictSame(told, [userId])
    t.strictSame(lines.map(line => JSON.parse(line)).map(({ event, err }) => [event, err.message]), [['revoke', 'threw at once'], ['revoke', 'threw later']])
  })

  t.test('a listener gets the channel as this, and one of once is told once, whatever it does', async t => {
    const browser = await startBrowser(t)
    const { channel } = browser.app.auth
    const heard: unknown[] = []
    const listener = function (this: unknown, userId: string): void { heard.push([this === channel, userId]) }
    channel.on('revoke', listener)
    channel.once('revoke', async function (this: unknown, userId: string) {
      heard.push([this === channel, `once ${userId}`])
      channel.off('revoke', listener)
      await Promise.reject(new Error('a listener'))
    })
    const next = once(channel, 'revoke')
    const { userId } = (await browser.post('/auth/local/register', USER)).json()
    await browser.post('/auth/local/revoke')
    await browser.post('/auth/local/login', USER)
    await browser.post('/auth/local/revoke')

    t.strictSame(heard, [[true, userId], [true, `once ${userId}`]])
    t.strictSame(await next, [userId])
    t.equal(channel.listenerCount('revoke'), 0)
  })

  t.test('revoking tells the channel once, and only of a user', async t => {
    const browser = await startBrowser(t)
    const revoked: string[] = []
    browser.app.auth.channel.on('revoke', () => { throw new Error('a listener') })
    browser.app.auth.channel.on('revoke', userId => { revoked.push(userId) })
    browser.app.auth.channel.once('revoke', userId => { revoked.push(`once ${userId}`) })
    const { userId } = (await browser.post('/auth/local/register', USER)).json()

    t.equal((await browser.post('/auth/local/revoke')).statusCode, 204)
    t.equal((await browser.post('/auth/local/revoke')).statusCode, 204)
    await browser.post('/auth/local/login', USER)
    t.equal((await browser.post('/auth/local/revoke')).statusCode, 204)

    t.strictSame(revoked, [userId, `once ${userId}`, userId])
  })
})

t.test('requests of other origins are refused', async t => {
  const options = { baseUrl: 'https://app.example', trustedOrigins: ['https://admin.app.example'] }
  const paths = ['register', 'login', 'token', 'verify-token', 'revoke'].map(action => `/auth/local/${action}`)
  const foreign: Array<Record<string, string>> = [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site', origin: 'https://blog.app.example' },
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: 'http://app.example' },
    { origin: 'https://app.example:444' },
    { origin: 'https://app.example.evil.example' }
  ]
  const own: Array<Record<string, string>> = [
    {},
    { 'sec-fetch-site': 'same-origin' },
    { 'sec-fetch-site': 'none' },
    { origin: 'https://app.example' },
    { 'sec-fetch-site': 'same-site', origin: 'https://admin.app.example' }
  ]
  const browser = await startBrowser(t, options)
  await browser.post('/auth/local/register', USER)

  for (const headers of foreign) {
    for (const path of paths) {
      const response = await browser.post(path, USER, headers)
      t.strictSame([response.statusCode, response.json().code], [403, 'cross_origin'], `${path} ${JSON.stringify(headers)}`)
    }
  }
  t.ok((await browser.get('/me')).json().principal, 'nobody was signed out')
  for (const headers of own) t.equal((await browser.post('/auth/local/login', USER, headers)).statusCode, 200, JSON.stringify(headers))
})

t.test('without a baseUrl the origin is that of the request', async t => {
  const browser = await startBrowser(t)
  await browser.post('/auth/local/register', USER)
  t.equal((await browser.post('/auth/local/login', USER, { host: 'app.example', origin: 'http://app.example' })).statusCode, 200)
  t.equal((await browser.post('/auth/local/login', USER, { host: 'app.example', origin: 'http://evil.example' })).statusCode, 403)
  t.equal((await browser.submit('/auth/local/login', USER, { host: 'a b' })).statusCode, 400)
})

t.test('a failure without a code is unavailable, and its reason stays in the log', async t => {
  class BrokenStore extends MemoryAuthStore {
    override async findCredential (): Promise<never> { throw new Error('relation "svc_auth_users" is on fire') }
  }
  const lines: string[] = []
  const app = await startApp(t, { local: localProvider(), store: new BrokenStore() }, { logger: { stream: { write: (line: string) => { lines.push(line) } } } })
  const response = await new Browser(app).post('/auth/local/login', USER)
  t.equal(response.statusCode, 503)
  t.equal(response.json().code, 'unavailable')
  t.notMatch(response.body, /fire|stack/)
  const failure = lines.map(line => JSON.parse(line)).find(({ err }) => err !== undefined)
  const { message } = response.json()
  t.strictSame([failure.code, failure.msg, failure.err.message], ['unavailable', message, 'relation "svc_auth_users" is on fire'])
})

t.test('a limit that the application itself sets is answered in the words of the plugin, with its own Retry-After', async t => {
  const app: FastifyInstance = Fastify()
  t.teardown(() => app.close())
  app.addHook('onRequest', async (_request, reply) => {
    reply.header('Retry-After', 7)
    throw Object.assign(new Error('slow down, said the limiter'), { statusCode: 429 })
  })
  await app.register(authPlugin, { local: localProvider(), session: { secret: SESSION_SECRET } })
  const response = await new Browser(app).post('/auth/local/login', USER)
  t.strictSame([response.statusCode, response.json().code, response.headers['retry-after']], [429, 'rate_limited', '7'])
})

t.test('a full queue is busy, with Retry-After', async t => {
  const browser = await startBrowser(t, { rateLimit: false })
  const size = CAPACITY + 10
  const allAreThere = deferred()
  let there = 0
  const { verify } = hashing
  t.intercept(hashing, 'verify', {
    value: async (...args: Parameters<typeof verify>) => {
      if (++there === size) allAreThere.resolve()
      await allAreThere.promise
      return verify(...args)
    }
  })
  const attempts = await Promise.all(Array.from({ length: size }, () => new Browser(browser.app).post('/auth/local/login', USER)))
  const busy = attempts.filter(({ statusCode }) => statusCode === 503)
  t.equal(busy.length, 10)
  t.match(busy[0]?.json(), { code: 'busy' })
  t.match(busy[0]?.headers['retry-after'], /^\d+$/)
  t.ok(attempts.every(({ statusCode }) => [401, 503].includes(statusCode)))
  t.equal((await browser.post('/auth/local/login', USER)).statusCode, 401, 'and then it is not')
})

t.test('what is no address is invalid_email at the sign-in too, which tells nothing about accounts', async t => {
  const browser = await startBrowser(t)
  await browser.post('/auth/local/register', USER)
  for (const email of ['', 'ada', 'mailto:ada@example.com', 'Ada <ada@example.com>', `${USER.email},${USER.email}`]) {
    t.match((await new Browser(browser.app).post('/auth/local/login', { ...USER, email })).json(), { statusCode: 400, code: 'invalid_email' }, email)
  }
  t.equal((await new Browser(browser.app).post('/auth/local/login', { ...USER, email: `\u200e${USER.email}\u200b` })).statusCode, 200)
})

t.test('a name that nobody would see is no name', async t => {
  const browser = await startBrowser(t)
  for (const [index, name] of ['', ' ', '\u200b\u200d', '\u2066\u2069', '\u00ad'].entries()) {
    const answer = await browser.post('/auth/local/register', { ...USER, email: `${index}@example.com`, name })
    t.equal(answer.json().claims.name, undefined, JSON.stringify(name))
  }
  const own = await browser.post('/auth/local/register', { ...USER, email: 'own@example.com', name: '\uf8ff' })
  t.equal(own.json().claims.name, '\uf8ff', 'a letter of the font of the user is seen')
})
