/** How guests end: without use, by a sweep; and how many of them there may be. */
import { randomUUID } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import SqliteDatabase from 'better-sqlite3'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { Accounts, AuthError, type AuthPluginOptions, type AuthStore, MemoryAuthStore, type Principal, SqlAuthStore } from '../../index.js'
import { GUEST } from '../../accounts/account.js'
import { DAY_MS } from '../../base/values.js'
import { capabilitiesOf } from '../../session/store.js'
import { localProvider, startApp } from '../../../test/helpers/app.js'
import { eventsOf } from '../../../test/helpers/audit-events.js'
import { Browser } from '../../../test/helpers/browser.js'
import { advanceClock } from '../../../test/helpers/clock.js'
import { ADA, BASE_URL } from '../../../test/helpers/mail-app.js'
import { SOME_STORES } from '../../../test/helpers/stores.js'

const [MINUTE, HOUR] = [60_000, 60 * 60_000]

interface Shop {
  app: FastifyInstance
  lines: Array<{ msg: string, guests: number, userId: string }>
  /** Makes a visitor a guest. */
  enter: (browser?: Browser) => Promise<string>
  /** Makes guests without a session. */
  leave: (count: number) => Promise<string[]>
  /** Starts the next sweep, when the one before is done. */
  begin: () => Promise<void>
  /** Lets a sweep run to its end. */
  sweep: () => Promise<void>
  isThere: (userId: string) => Promise<boolean>
}

async function start (t: Test, store: AuthStore, options: AuthPluginOptions = {}): Promise<Shop> {
  const lines: Shop['lines'] = []
  const stream = { write: (line: string) => { lines.push(JSON.parse(line)) } }
  let sweeps = 0
  const find = store.abandonedGuests?.bind(store)
  Object.assign(store, {
    async abandonedGuests (...asked: Parameters<NonNullable<typeof find>>) {
      sweeps++
      return await find?.(...asked) ?? []
    }
  })
  const app = await startApp(t, {
    baseUrl: BASE_URL,
    store,
    local: localProvider({ registration: {} }),
    rateLimit: false,
    guests: {},
    ...options
  }, { logger: { level: 'warn', stream } }, app => {
    app.post('/basket', async request => app.auth.signInGuest(request))
    app.get('/basket', { preHandler: app.auth.requireClaims({}, { guests: true }) }, async request => request.principal)
  })
  const enter = async (browser = new Browser(app)): Promise<string> => (await browser.post('/basket')).json<Principal>().userId
  const begin = async (): Promise<void> => {
    // Sweeps are a minute apart.
    advanceClock(t, MINUTE)
    const before = sweeps
    for (let isBegun = false; !isBegun; isBegun = sweeps > before) {
      await enter()
      // A sweep makes pauses.
      await setImmediate()
    }
  }
  return {
    app,
    lines,
    enter,
    begin,
    async leave (count) {
      const made = Array.from({ length: count }, () => randomUUID())
      for (const userId of made) {
        const link = { provider: GUEST, subject: userId, claims: { sub: userId } }
        await new Accounts(store).createUser({ userId, email: null, emailVerified: false, name: null, claims: {}, link })
      }
      return made
    },
    async sweep () {
      await begin()
      await begin()
    },
    isThere: async userId => await app.auth.findUser({ userId }) !== null
  }
}

for (const [kind, open] of Object.entries(SOME_STORES)) {
  t.test(`a guest without use for \`days\` is deleted, and the application is told before, on ${kind}`, async t => {
    const told: unknown[] = []
    const { app, enter, sweep, isThere } = await start(t, await open(t), {
      guests: { days: 2 },
      async onDelete (deletion) { told.push({ ...deletion, isThere: await isThere(deletion.userId) }) }
    })
    const deleted = eventsOf(t, 'deletion')
    const userId = await enter()

    advanceClock(t, DAY_MS)
    await sweep()
    t.ok(await isThere(userId))
    advanceClock(t, DAY_MS)
    await sweep()

    t.strictSame(told, [{ request: null, userId, isThere: true }])
    t.match(deleted, [{ userId }])
    t.notOk(await isThere(userId))
    t.equal(await app.auth.findUser({ provider: GUEST, subject: userId }), null)
  })

  t.test(`each use moves the end of the session of a guest, on ${kind}`, async t => {
    const store = await open(t)
    const { app, enter, sweep, isThere } = await start(t, store, { guests: { days: 10 } })
    const browser = new Browser(app)
    const userId = await enter(browser)
    const end = async () => (await capabilitiesOf(store).sessions?.ofUser(userId, 0, Date.now()))?.[0]?.expiresAt ?? 0
    const use = async () => (await browser.get('/basket')).statusCode

    const first = await end()
    advanceClock(t, DAY_MS / 2)
    t.equal(await use(), 200)
    t.equal(await end(), first, 'which is written when a tenth is over')
    for (let days = 0; days < 20; days += 5) {
      advanceClock(t, 5 * DAY_MS)
      t.equal(await use(), 200)
      await sweep()
      t.ok(await isThere(userId))
      t.ok(await end() > Date.now() + 9 * DAY_MS)
    }
    advanceClock(t, 10 * DAY_MS)
    t.equal(await use(), 401)
    await sweep()
    t.notOk(await isThere(userId))
  })

  t.test(`a guest without a session stays for an hour, and a guest whose sessions the application ended too, on ${kind}`, async t => {
    const { app, enter, leave, sweep, isThere } = await start(t, await open(t))
    const guests = [...await leave(1), await enter()]
    for (const userId of guests.slice(1)) await app.auth.signOutEverywhere(userId)

    advanceClock(t, HOUR - 3 * MINUTE)
    await sweep()
    for (const userId of guests) t.ok(await isThere(userId))
    advanceClock(t, 4 * MINUTE)
    await sweep()
    for (const userId of guests) t.notOk(await isThere(userId))
  })

  t.test(`a guest who has become a user stays, on ${kind}`, async t => {
    const told: string[] = []
    const { app, enter, sweep, isThere } = await start(t, await open(t), { onDelete ({ userId }) { told.push(userId) } })
    const browser = new Browser(app)
    const userId = await enter(browser)
    t.equal((await browser.post('/auth/local/register', ADA)).statusCode, 201)
    await browser.post('/auth/logout')
    const addressed = await enter()
    await app.auth.updateUser(addressed, { email: 'bob@example.com' })

    advanceClock(t, 500 * DAY_MS)
    await sweep()

    t.ok(await isThere(userId))
    t.ok(await isThere(addressed))
    t.strictSame(told, [])
  })

  t.test(`attack 215: at most a hundred guests are deleted at a time, on ${kind}`, async t => {
    const told = new Set<string>()
    const { begin, leave, sweep } = await start(t, await open(t), { onDelete ({ userId }) { told.add(userId) } })
    const made = await leave(250)
    advanceClock(t, 2 * HOUR)

    for (let begun = 0; begun < 3; begun++) {
      t.ok(told.size <= begun * 100)
      await begin()
      t.ok(told.size >= begun * 100)
    }
    await sweep()
    t.strictSame([...told].sort(), made.sort())
  })

  t.test(`guests who cannot be deleted stay, and do not keep the others, on ${kind}`, async t => {
    let refuses = true
    const { begin, leave, lines, sweep, isThere } = await start(t, await open(t), {
      onDelete ({ userId }) {
        if (refuses && userId !== last) throw new AuthError('forbidden')
      }
    })
    const made = (await leave(150)).sort()
    const last = made.at(-1) ?? ''
    advanceClock(t, 2 * HOUR)

    for (let turn = 0; turn < 3; turn++) await begin()
    t.notOk(await isThere(last))
    t.equal((await Promise.all(made.map(isThere))).filter(Boolean).length, 149)
    t.match(lines.slice(0, 2), [
      { msg: /^Guests whose sessions are over could not be deleted/, guests: 100 }, { guests: 49 }
    ])
    refuses = false
    for (let turn = 0; turn < 2; turn++) await sweep()
    t.equal((await Promise.all(made.map(isThere))).filter(Boolean).length, 0, 'and are tried again')
  })
}

t.test('a guest to whom a table of the application refers stays, and does not keep the others', async t => {
  const connection = new SqliteDatabase(':memory:')
  connection.pragma('foreign_keys = on')
  t.teardown(() => connection.close())
  const { leave, lines, sweep, isThere } = await start(t, new SqlAuthStore(connection))
  const [kept = '', ...others] = await leave(3)
  connection.exec('create table baskets (user_id text references svc_auth_users (user_id))')
  connection.prepare('insert into baskets values (?)').run(kept)
  advanceClock(t, 2 * HOUR)

  await sweep()

  t.ok(await isThere(kept))
  for (const userId of others) t.notOk(await isThere(userId))
  t.match(lines[0], { userId: kept, guests: 1, err: { code: 'user_in_use' } })
})

t.test('attack 215: twenty visitors from one address become guests in an hour', async t => {
  const { app } = await start(t, new MemoryAuthStore(), { rateLimit: {} })
  const enter = async (remoteAddress: string, browser = new Browser(app)) =>
    browser.send({ method: 'POST', url: '/basket', remoteAddress, headers: { accept: 'application/json' } })
  const browser = new Browser(app)
  t.equal((await enter('192.0.2.1', browser)).statusCode, 200)
  for (let count = 1; count < 20; count++) t.equal((await enter('192.0.2.1')).statusCode, 200)

  const refused = await enter('192.0.2.1')
  t.match(refused.json(), { statusCode: 429, code: 'rate_limited' })
  t.equal((await app.auth.users()).users.length, 20, 'nobody is made')
  t.equal((await enter('192.0.2.1', browser)).statusCode, 200, 'one who is a guest already is not counted')
  t.equal((await enter('192.0.2.2')).statusCode, 200, 'nor is another address')
  advanceClock(t, HOUR - MINUTE)
  t.equal((await enter('192.0.2.1')).statusCode, 429)
  advanceClock(t, 2 * MINUTE)
  t.equal((await enter('192.0.2.1')).statusCode, 200)
})

t.test('rateLimit.guest says how many, whatever its window', async t => {
  const { app } = await start(t, new MemoryAuthStore(), { rateLimit: { guest: 2, timeWindow: MINUTE } })
  const enter = async () => (await new Browser(app).post('/basket')).statusCode
  t.strictSame([await enter(), await enter(), await enter()], [200, 200, 429])
  advanceClock(t, 2 * MINUTE)
  t.equal(await enter(), 429)
})

t.test('attack 215: a form of another origin makes no guest', async t => {
  const { app } = await start(t, new MemoryAuthStore())
  for (const headers of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }, { origin: 'null' }]) {
    const browser = new Browser(app)
    const answer = await browser.post('/basket', undefined, headers)
    t.match(answer.json(), { statusCode: 403, code: 'cross_origin' })
    t.equal(browser.cookies.size, 0)
  }
  t.strictSame((await app.auth.users()).users, [])
})

t.test('a guest who signs in as a user, and becomes another one in a second tab meanwhile, is not deleted', async t => {
  const promoted: unknown[] = []
  const { app, enter, isThere } = await start(t, new SqlAuthStore(':memory:'), {
    async onGuest () { promoted.push((await tab.post('/auth/local/register', { ...ADA, email: 'bob@example.com' })).json()) }
  })
  await new Browser(app).post('/auth/local/register', ADA)
  const browser = new Browser(app)
  const userId = await enter(browser)
  const tab = new Browser(app, browser.cookies)
  const deleted = eventsOf(t, 'deletion')

  t.equal((await browser.post('/auth/local/login', ADA)).statusCode, 200)

  t.match(promoted, [{ userId }])
  t.ok(await isThere(userId))
  t.match((await tab.get('/auth/session')).json().principal, { userId })
  t.strictSame(deleted, [])
})
