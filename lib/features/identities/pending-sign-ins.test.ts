import t from 'tap'
import { type Test } from 'tap'
import { type FakeOpenIdProvider, startFakeOpenIdProvider } from '../../../test/fakes/openid-provider.js'
import { SESSION_SECRET, localProvider, startApp, userIdIn } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { SlowSessionStore } from '../../../test/helpers/slow-session-store.js'
import type { FastifyInstance } from 'fastify'

const BASE_URL = 'https://app.example'

interface Setting {
  app: FastifyInstance
  fake: FakeOpenIdProvider
  other: FakeOpenIdProvider
}

const SESSIONS = {
  'the own session store': () => ({}),
  'the own session store, with rolling sessions': () => ({ rolling: true }),
  'a store in another process': () => ({ store: new SlowSessionStore() }),
  'a store in another process, with rolling sessions': () => ({ store: new SlowSessionStore(), rolling: true })
}

for (const [name, sessionOptions] of Object.entries(SESSIONS)) {
  t.test(`the rules hold with ${name}`, async t => {
    async function start (t: Test): Promise<Setting> {
      const [fake, other] = [await startFakeOpenIdProvider(t), await startFakeOpenIdProvider(t)]
      const providers = [fake.provider(), other.provider({ name: 'other' })]
      const app = await startApp(t, { baseUrl: BASE_URL, providers, local: localProvider(), session: { secret: SESSION_SECRET, ...sessionOptions() } })
      return { app, fake, other }
    }

    t.test('a callback without a state, or with one that is unknown, is refused before the provider is asked', async t => {
      const { app, fake } = await start(t)
      const browser = new Browser(app)
      await browser.get('/auth/fake/login')
      for (const query of ['code=x', 'code=x&state=', 'code=x&state=guess', 'code=x&state=a&state=b', 'error=access_denied']) {
        const response = await browser.get(`/auth/fake/callback?${query}`)
        t.equal(response.statusCode, 400, query)
        t.equal(response.json().code, 'invalid_state', query)
      }
      t.notOk(fake.requests.includes('POST /token'))
    })

    t.test('a callback with its good state twice is refused', async t => {
      const { app, fake } = await start(t)
      const browser = new Browser(app)
      const callback = fake.consent((await browser.get('/auth/fake/login')).headers.location ?? '')
      const state = new URL(callback, BASE_URL).searchParams.get('state')
      t.equal((await browser.get(`${callback}&state=${state}`)).json().code, 'invalid_state')
    })

    t.test('a sign-in under way does not outlive the sign-out', async t => {
      const { app, fake } = await start(t)
      const browser = new Browser(app)
      await browser.get(fake.consent((await browser.get('/auth/fake/login')).headers.location ?? ''))
      const callback = fake.consent((await browser.get('/auth/fake/login')).headers.location ?? '')
      const cookies = new Map(browser.cookies)
      await browser.submit('/auth/local/revoke', {})
      for (const [name, value] of cookies) browser.cookies.set(name, value)
      t.equal((await browser.get(callback)).json().code, 'invalid_state')
    })

    t.test('the finished sign-in of another session is refused, and the own one still works', async t => {
      const { app, fake } = await start(t)
      const [victim, attacker] = [new Browser(app), new Browser(app)]
      const attackersCallback = fake.consent((await attacker.get('/auth/fake/login')).headers.location ?? '')
      const callback = fake.consent((await victim.get('/auth/fake/login')).headers.location ?? '')

      t.equal((await victim.get(attackersCallback)).json().code, 'invalid_state')
      t.equal((await victim.get(callback)).headers.location, '/')
      const before = (await victim.get('/me')).json()
      t.equal((await victim.get(attackersCallback)).json().code, 'invalid_state')
      t.strictSame((await victim.get('/me')).json(), before)
    })

    t.test('a callback that is sent ten times at once signs in once, is told so at most six times, and never again', async t => {
      const { app, fake } = await start(t)
      const browser = new Browser(app)
      const callback = fake.consent((await browser.get('/auth/fake/login')).headers.location ?? '')
      const cookies = new Map(browser.cookies)

      const responses = await Promise.all(Array.from({ length: 10 }, () => new Browser(app, cookies).get(callback)))

      const told = responses.filter(({ statusCode }) => statusCode === 302).length
      t.ok(told >= 2 && told <= 6, `${told} times`)
      t.ok(responses.every(({ statusCode }) => [302, 400].includes(statusCode)))
      const users = await Promise.all(responses.map(async ({ cookies }) =>
        userIdIn(new Browser(app, new Map(cookies.map(({ name, value }) => [name, value]))))))
      t.equal(users.filter(userId => userId !== null).length, 1, 'one session is left')
      t.equal(fake.requests.filter(request => request === 'POST /token').length, 1)
      t.equal((await browser.get(callback)).json().code, 'invalid_state')
    })

    t.test('three tabs start at once and each of them finishes, with its own next', async t => {
      const { app, fake } = await start(t)
      const browser = new Browser(app)
      await browser.get('/auth/fake/login')

      const logins = await Promise.all(['/one', '/two', '/three'].map(next => browser.get(`/auth/fake/login?next=${next}`)))
      const callbacks = logins.map(login => fake.consent(login.headers.location ?? '')).reverse()
      const landings = []
      for (const callback of callbacks) landings.push((await browser.get(callback)).headers.location)

      t.strictSame(landings, ['/three', '/two', '/one'])
    })

    t.test('the oldest of nine pending sign-ins is dropped', async t => {
      const { app, fake } = await start(t)
      const browser = new Browser(app)
      const callbacks: string[] = []
      for (let tab = 0; tab < 9; tab++) callbacks.push(fake.consent((await browser.get('/auth/fake/login')).headers.location ?? ''))

      const [oldest = '', second = ''] = callbacks
      t.equal((await browser.get(oldest)).json().code, 'invalid_state')
      t.equal((await browser.get(second)).statusCode, 302)
    })

    t.test('a sign-in is too old after ten minutes', async t => {
      const { app, fake } = await start(t)
      const browser = new Browser(app)
      const [withTimeout, tooLate] = [
        fake.consent((await browser.get('/auth/fake/login')).headers.location ?? ''),
        fake.consent((await browser.get('/auth/fake/login')).headers.location ?? '')
      ]
      const now = Date.now()
      t.intercept(Date, 'now', { value: () => now + 9.9 * 60_000 })
      fake.idTokenClaims = { iat: Math.floor(now / 1000), exp: Math.floor(now / 1000) + 3600 }
      t.equal((await browser.get(withTimeout)).statusCode, 302)
      t.intercept(Date, 'now', { value: () => now + 10 * 60_000 + 1000 })
      t.equal((await browser.get(tooLate)).json().code, 'invalid_state')
    })

    t.test('the state of one provider is refused at another, and is spent', async t => {
      const { app, fake, other } = await start(t)
      const browser = new Browser(app)
      const callback = fake.consent((await browser.get('/auth/fake/login')).headers.location ?? '')

      t.equal((await browser.get(callback.replace('/fake/', '/other/'))).json().code, 'invalid_state')
      t.equal((await browser.get(callback)).json().code, 'invalid_state')
      for (const { requests } of [fake, other]) t.notOk(requests.includes('POST /token'))
    })
  })
}
