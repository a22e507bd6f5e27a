import fastifyRateLimit from '@fastify/rate-limit'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import Fastify from 'fastify'
import postgres from 'postgres'
import t, { type Test } from 'tap'
import authPlugin, { type AuthPluginOptions, MemoryAuthStore, type RateLimitOptions, SqlAuthStore, type AttemptCounter } from '../../lib/index.js'
import { SESSION_SECRET, localProvider, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { type MailApp, mailsInTheEnd, startMailApp } from '../helpers/mail-app.js'
import { MemoryAttempts } from '../helpers/memory-attempts.js'
import { emptyDatabase } from '../helpers/postgres.js'

const ADA = { email: 'ada@example.com', password: 'the right password' }
const ATTACKER = '203.0.113.7'
const QUARTER_OF_AN_HOUR_MS = 15 * 60_000

t.test('attack 41: two processes with one Postgres admit as many attempts at once as one', async t => {
  const apps = await twoApps(t, { rateLimit: { login: 9, network: 3 } })

  t.equal(await countAdmitted(apps, 50, () => ({ email: ADA.email })), 9, 'from one address')
  t.equal(await countAdmitted(apps, 50, index => ({ from: `2001:db8:1:${index.toString(16)}::1`, email: `user-${index}@example.com` })), 27, 'from a /48')
  t.equal(await countAdmitted(apps, 50, () => ({ from: '198.51.100.1' })), 9, 'another address has tries of its own')
})

t.test('attack 41: a client that is turned away by one process is told by the other for how long', async t => {
  const [one, other] = await twoApps(t, { rateLimit: { account: 1 } })
  await tryToLogIn(one)

  const { statusCode, headers } = await tryToLogIn(other)

  t.equal(statusCode, 429)
  const seconds = Number(headers['retry-after'])
  t.ok(seconds > 890 && seconds <= 900, String(seconds))
})

t.test('attack 62: a mailbox gets one mail a minute, whichever of two processes is asked', async t => {
  const url = await emptyDatabase(t)
  const started: MailApp[] = []
  for (const store of [new SqlAuthStore(url), new SqlAuthStore(url)]) {
    started.push(await startMailApp(t, { store, rateLimit: {} }, { registration: { verify: 'first' } }))
  }

  await Promise.all([...started, ...started].map(({ app }) => new Browser(app).post('/auth/local/register', { email: ADA.email })))

  const mails = await Promise.all(started.map(mailsInTheEnd))
  t.equal(mails.flat().length, 1)
})

const ELSEWHERE: Record<string, { admitted: number, rateLimit?: RateLimitOptions, register?: boolean }> = {
  "with rateLimit.store: 'memory' each process counts for itself": { admitted: 40, rateLimit: { store: 'memory' } },
  'with a store class of the application that class counts': { admitted: 20, rateLimit: { store: storeClass() } },
  'where the application has registered @fastify/rate-limit its store counts': { admitted: 20, register: true }
}

for (const [name, { admitted, rateLimit = {}, register = false }] of Object.entries(ELSEWHERE)) {
  t.test(`${name}, and no table of counts is made`, async t => {
    const url = await emptyDatabase(t)
    const store = storeClass()
    const apps: FastifyInstance[] = []
    for (let index = 0; index < 2; index++) {
      const app = Fastify()
      t.teardown(() => app.close())
      if (register) await app.register(fastifyRateLimit, { global: false, store })
      await app.register(authPlugin, { local: localProvider(), session: { secret: SESSION_SECRET }, store: new SqlAuthStore(url), rateLimit })
      apps.push(app)
    }

    t.equal(await countAdmitted(apps, 60), admitted)

    const client = postgres(url, { onnotice: () => {} })
    t.teardown(() => client.end())
    const [tables] = await client`select to_regclass('svc_auth_users') is not null as users, to_regclass('svc_auth_attempts') as counts`
    t.match(tables, { users: true, counts: null })
  })
}

t.test('attack 58: a flood of attempts beyond a limit does not reach the store of counts, until its time is over', async t => {
  const counts = new MemoryAttempts()
  const app = await startApp(t, { local: localProvider(), store: Object.assign(new MemoryAuthStore(), { attempts: counts }), rateLimit: { account: 2 } })

  t.equal(await countAdmitted([app], 100, undefined, 'one after the other'), 2)
  t.equal(counts.calls, 3)
  t.equal((await tryToLogIn(app, { email: 'bob@example.com' })).statusCode, 401, 'another account')
  t.equal((await tryToLogIn(app, { from: '198.51.100.1' })).statusCode, 401, 'another address')

  advanceClock(t, QUARTER_OF_AN_HOUR_MS)
  t.equal(await countAdmitted([app], 100, undefined, 'one after the other'), 2)
  t.equal(counts.calls, 8)
})

t.test('attack 59: a store that does not count lets no client try', async t => {
  const failing: AttemptCounter = { count: async () => { throw new Error('ECONNREFUSED 10.0.0.5:5432') } }
  const app = await startApp(t, { local: localProvider(), store: Object.assign(new MemoryAuthStore(), { attempts: failing }) })

  const response = await tryToLogIn(app)

  t.equal(response.statusCode, 503)
  t.match(response.json(), { code: 'unavailable' })
  t.notMatch(response.body, 'ECONNREFUSED')
})

async function twoApps (t: Test, options: AuthPluginOptions): Promise<[FastifyInstance, FastifyInstance]> {
  const url = await emptyDatabase(t)
  const start = () => startApp(t, { local: localProvider(), store: new SqlAuthStore(url), ...options })
  return [await start(), await start()]
}

interface Attempt {
  from?: string
  email?: string
}

function tryToLogIn (app: FastifyInstance, { from = ATTACKER, email = ADA.email }: Attempt = {}): Promise<LightMyRequestResponse> {
  return app.inject({ method: 'POST', url: '/auth/local/login', remoteAddress: from, payload: { ...ADA, email } })
}

/** How many attempts at applications in turn are not turned away. */
async function countAdmitted (
  apps: FastifyInstance[],
  tries: number,
  attempt: (index: number) => Attempt = () => ({}),
  order: 'at once' | 'one after the other' = 'at once'
): Promise<number> {
  const statuses: number[] = []
  const going = Array.from({ length: tries }, (_, index) => async () => {
    const [app] = apps.slice(index % apps.length)
    if (app !== undefined) statuses.push((await tryToLogIn(app, attempt(index))).statusCode)
  })
  if (order === 'at once') await Promise.all(going.map(go => go()))
  else for (const go of going) await go()
  if (statuses.some(status => status !== 429 && status !== 401)) throw new Error(`answered ${statuses}`)
  return statuses.filter(status => status !== 429).length
}

/** A store class with counts of its own, as an application may have it for @fastify/rate-limit. */
function storeClass () {
  const counts = new Map<string, number>()
  return class Store {
    incr (key: string, callback: (error: Error | null, result?: { current: number, ttl: number }) => void, timeWindow: number): void {
      counts.set(key, (counts.get(key) ?? 0) + 1)
      callback(null, { current: counts.get(key) ?? 0, ttl: timeWindow })
    }

    child (): Store {
      return this
    }
  }
}
