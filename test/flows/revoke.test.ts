import type { EventEmitter } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import type { SessionStore } from '@fastify/session'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { Authorization } from '../../lib/index.js'
import { SESSION_SECRET, localProvider, startApp, userIdIn } from '../helpers/app.js'
import { eventsOf } from '../helpers/audit-events.js'
import { Browser } from '../helpers/browser.js'
import { Ear, connectionsListening, openStore } from '../helpers/revocations.js'
import { emptyDatabase, query } from '../helpers/postgres.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }

/** Where the sessions are. */
const SESSIONS: Record<string, () => { store?: SessionStore }> = {
  'in the database': () => ({}),
  'in another store': () => ({ store: new SlowSessionStore() })
}

/** Two applications with stores of their own on one database, as in two processes, and the errors that they log. */
async function startApps (t: Test, url: string, sessions: { store?: SessionStore } = {}) {
  const errors: string[] = []
  const stream = { write: (line: string) => { errors.push(JSON.parse(line).msg) } }
  const start = async (): Promise<FastifyInstance> => startApp(t, {
    baseUrl: 'http://app.example',
    local: localProvider({ sendMail: async () => {} }),
    rateLimit: false,
    store: openStore(t, url),
    session: { secret: SESSION_SECRET, ...sessions }
  }, { logger: { level: 'error', stream } }, app => {
    app.post('/cart', async ({ session }) => Object.assign(session, { cart: 'apples' }).cart)
  })
  return { one: await start(), other: await start(), errors }
}

/** The channel of an application: what it announces, until it announces a user. */
function listenTo ({ auth }: FastifyInstance): Ear {
  const ear = new Ear()
  auth.channel.on('revoke', userId => { ear.revoked(userId) })
  return ear
}

async function register (app: FastifyInstance, email = ADA.email): Promise<{ browser: Browser, userId: string }> {
  const browser = new Browser(app)
  return { browser, userId: (await browser.post('/auth/local/register', { ...ADA, email })).json().userId }
}

/** Asserts that each channel announces a user, and until the next one nothing else. Resolves to that next user, whom `app` signs out. */
async function assertAnnouncedOnce (t: Test, { app: { auth }, ears }: { app: FastifyInstance, ears: Ear[] }, userId: string): Promise<string> {
  await Promise.all(ears.map(ear => ear.hears(userId)))
  const { userId: last } = await auth.createUser({})
  await auth.signOutEverywhere(last)
  await Promise.all(ears.map(ear => ear.hears(last)))
  t.strictSame(ears.map(({ heard }) => heard), ears.map(() => [userId, last]))
  return last
}

const ENDINGS: Record<string, (app: FastifyInstance, browser: Browser, userId: string) => Promise<unknown>> = {
  'a sign-out': (_app, browser) => browser.post('/auth/logout'),
  'a sign-out everywhere': (_app, browser) => browser.post('/auth/logout', { everywhere: true }),
  'a sign-out everywhere by the application': ({ auth }, _browser, userId) => auth.signOutEverywhere(userId),
  'a block': ({ auth }, _browser, userId) => auth.block(userId),
  'a deletion by the user': (_app, browser) => browser.post('/auth/local/delete-account', { current: ADA.password }),
  'a new password': ({ auth }, _browser, userId) => auth.setPassword(userId, 'another password')
}

for (const [place, sessions] of Object.entries(SESSIONS)) {
  t.test(`with sessions ${place}`, async t => {
    const { one, other } = await startApps(t, await emptyDatabase(t), sessions())

    for (const [index, [name, end]] of Object.entries(ENDINGS).entries()) {
      t.test(`${name} is announced once in each process, and audited once`, async t => {
        const ears = [one, other].map(listenTo)
        const audited = eventsOf(t, 'revoke')
        const { browser, userId } = await register(one, `user-${index}@example.com`)

        await end(one, browser, userId)
        const last = await assertAnnouncedOnce(t, { app: other, ears }, userId)

        t.strictSame(audited.map(({ userId }) => userId), [userId, last])
      })
    }
  })
}

t.test('a sign-out from sessions that replaced the same one is announced once', async t => {
  const { one, other } = await startApps(t, await emptyDatabase(t))
  const ears = [one, other].map(listenTo)
  const { browser: first, userId } = await register(one)
  const tabs = [new Browser(one, first.cookies), new Browser(one, first.cookies)]
  for (const tab of tabs) t.equal((await tab.post('/auth/local/login', ADA)).statusCode, 200)

  await tabs[1]?.post('/auth/logout')

  await assertAnnouncedOnce(t, { app: one, ears }, userId)
})

t.test('a session that is ended by its id in the list is announced once in each process', async t => {
  const { one, other } = await startApps(t, await emptyDatabase(t))
  const ears = [one, other].map(listenTo)
  const { browser, userId } = await register(one)
  const [session] = await other.auth.sessions(userId)

  t.equal(await other.auth.endSession(userId, session?.id ?? ''), true)

  t.equal(await userIdIn(browser), null)
  await assertAnnouncedOnce(t, { app: one, ears }, userId)
})

t.test('an anonymous session and one that has ended are announced nowhere', async t => {
  const { one, other } = await startApps(t, await emptyDatabase(t))
  const ears = [one, other].map(listenTo)
  const { browser, userId } = await register(one)
  const jars = Array.from({ length: 5 }, () => new Browser(one, browser.cookies))

  const anonymous = new Browser(one)
  await anonymous.post('/cart')
  t.ok(anonymous.cookies.has('svc_session'))

  const answers = await Promise.all([new Browser(one), anonymous, ...jars].map(jar => jar.post('/auth/logout')))

  t.ok(answers.every(({ statusCode }) => statusCode === 204))
  await assertAnnouncedOnce(t, { app: one, ears }, userId)
})

t.test('what a script ends is announced in each process', async t => {
  const url = await emptyDatabase(t)
  const { one, other } = await startApps(t, url)
  const ears = [one, other].map(listenTo)
  const { userId } = await one.auth.createUser({})

  await new Authorization(openStore(t, url)).block(userId)

  await Promise.all(ears.map(ear => ear.hears(userId)))
})

t.test('a listener that throws at what another process ended is logged, and the others are called', async t => {
  const { one, other, errors } = await startApps(t, await emptyDatabase(t))
  other.auth.channel.on('revoke', () => { throw new Error('a mistake') })
  other.auth.channel.on('revoke', async () => { throw new Error('another mistake') })
  const ear = listenTo(other)
  const { browser, userId } = await register(one)

  await browser.post('/auth/logout')

  await ear.hears(userId)
  t.strictSame(errors, Array(2).fill('a listener of app.auth.channel failed'))
})

t.test('a process follows the others from its first listener on, with one connection', async t => {
  const url = await emptyDatabase(t)
  const { one, other } = await startApps(t, url)
  const emitter: EventEmitter = one.auth.channel
  emitter.on('error', () => {})
  await register(one)

  const ears = [listenTo(other), listenTo(other), listenTo(other)]
  const { userId } = await one.auth.createUser({})
  await one.auth.signOutEverywhere(userId)

  await Promise.all(ears.map(ear => ear.hears(userId)))
  t.equal(await connectionsListening(url), 1)
  t.strictSame(ears.map(({ heard }) => heard), Array(3).fill([userId]))
})

t.test('a listener for each of many sockets causes no warning', async t => {
  const { auth } = await startApp(t)
  const warnings: Error[] = []
  const note = (warning: Error): void => { warnings.push(warning) }
  process.on('warning', note)
  t.teardown(() => { process.off('warning', note) })

  for (let socket = 0; socket < 100; socket++) auth.channel.on('revoke', () => {})
  await setImmediate()

  t.strictSame(warnings, [])
})

t.test('a sign-out that the others cannot be told of is refused where it is one statement with the end of the session', async t => {
  const url = await emptyDatabase(t)
  const { one } = await startApps(t, url)
  const ear = listenTo(one)
  const { browser, userId } = await register(one)
  await one.auth.signOutEverywhere((await one.auth.createUser({})).userId)
  await query(url, 'alter table svc_auth_revocations rename revoked_at to other')

  t.equal((await browser.post('/auth/logout')).statusCode, 503)

  t.equal(await userIdIn(browser), userId)
  t.notOk(ear.heard.includes(userId))
})

t.test('a sign-out from a session in another store that the others cannot be told of is done all the same, and logged', async t => {
  const url = await emptyDatabase(t)
  const { one, errors } = await startApps(t, url, SESSIONS['in another store']?.())
  const ear = listenTo(one)
  const { browser, userId } = await register(one)
  await one.auth.signOutEverywhere((await one.auth.createUser({})).userId)
  await query(url, 'alter table svc_auth_revocations rename revoked_at to other')

  t.equal((await browser.post('/auth/logout')).statusCode, 204)

  t.equal(await userIdIn(browser), null)
  t.ok(ear.heard.includes(userId))
  t.strictSame(errors, ['other processes will not hear of a sign-out'])
})
