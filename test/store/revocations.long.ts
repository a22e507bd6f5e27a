/** Revocations while connections end, answers get lost and clocks differ. */
import { randomUUID } from 'node:crypto'
import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import t, { type Test } from 'tap'
import { Accounts, type SqlAuthStore, type SqlEngine } from '../../lib/index.js'
import { emptyDatabase, poolOf, query } from '../helpers/postgres.js'
import {
  Ear, connectionsListening, createUser, endListening, endingsIn, listeningClientOf, openStore, settled, whenListening
} from '../helpers/revocations.js'
import { isSoon } from '../helpers/soon.js'
import { startProxy } from '../helpers/tcp-proxy.js'
import { isThorough } from '../helpers/thorough.js'

const LISTENING: Record<string, (t: Test, url: string) => string | SqlEngine> = {
  'a URL': (_t, url) => url,
  'a client of the package postgres': listeningClientOf,
  'Drizzle on the package postgres': (t, url) => drizzlePostgresJs(listeningClientOf(t, url))
}

for (const [engine, targetOf] of Object.entries(LISTENING)) {
  t.test(`a store on ${engine} hears each ending once while its connection is ended again and again`, async t => {
    const url = await emptyDatabase(t)
    const ear = await Ear.of(openStore(t, targetOf(t, url)))
    const store = openStore(t, url)
    const userIds = Array.from({ length: 60 }, () => randomUUID())

    for (let batch = 0; batch < 3; batch++) {
      await whenListening(url, 1)
      const [ended] = await Promise.all([
        endListening(url),
        ...userIds.slice(20 * batch, 20 * batch + 20).map(userId => endingsIn(store).record(userId))
      ])
      t.equal(ended, 1)
    }

    await Promise.all(userIds.map(userId => ear.hears(userId)))
    await settled(t, url, ear)
    t.strictSame(ear.heard.sort(), userIds.sort())
    t.strictSame(ear.notes, [])
  })

  t.test(`a store on ${engine} that may not listen says that it looks for endings every ten seconds`, async t => {
    const proxy = await startProxy(t, await emptyDatabase(t))
    proxy.hear = data => { if (data.includes('listen ')) data.write('lisxxn', data.indexOf('listen ')) }
    const ear = await Ear.of(openStore(t, targetOf(t, proxy.url)))

    await ear.isNoted()

    t.match(ear.notes, [{ message: /within ten seconds and not at once/, err: { message: /syntax error/ } }])
  })

  t.test(`a store on ${engine} that cannot reach Postgres is closed at once`, async t => {
    const proxy = await startProxy(t, await emptyDatabase(t))
    const store = openStore(t, targetOf(t, proxy.url))
    const ear = await Ear.of(store)
    await whenListening(proxy.url, 1)
    await settled(t, proxy.url, ear)
    proxy.fate = 'is silent'
    proxy.reset()

    await store.close()

    t.strictSame(ear.heard, [])
  })
}

t.test('a store that could not reach Postgres at first hears endings when it can', async t => {
  const url = await emptyDatabase(t)
  const proxy = await startProxy(t, url)
  proxy.fate = 'is closed'
  const ear = await Ear.of(openStore(t, proxy.url))
  await ear.isNoted()
  t.match(ear.notes, [{ message: /cannot be heard of/, err: { code: 'unavailable' } }])

  proxy.fate = 'works'

  await settled(t, url, ear)
  t.equal(ear.notes.length, 1)
})

t.test('stores that look for endings every ten seconds', { jobs: 2 }, async t => {
  t.test('one on another engine says so, and hears them', async t => {
    const url = await emptyDatabase(t)
    const pool = poolOf(t, url)
    const ear = await Ear.of(openStore(t, drizzleNodePostgres(pool)))

    await settled(t, url, ear)

    t.strictSame(ear.heard, [])
    t.match(ear.notes, [{ message: /within ten seconds and not at once/ }])
    t.equal(ear.notes.length, 1)
  })

  t.test('one whose notifications do not arrive says so and what to do, listens no more, and hears them all the same', async t => {
    const url = await emptyDatabase(t)
    const ear = await Ear.of(openStore(t, url))
    await settled(t, url, ear)

    for (let round = 0; round < (isThorough ? 2 : 1); round++) {
      const userId = randomUUID()
      await query(url, `insert into svc_auth_revocations values
        ('${randomUUID()}', '${userId}', extract(epoch from clock_timestamp()) * 1000 - 2000)`)
      await ear.hears(userId)
      t.ok(await isSoon(async () => await connectionsListening(url) === 0))
    }
    t.match(ear.notes, [{ message: /within ten seconds and not at once.*without a pooler or through one in session mode/ }])
    t.equal(ear.notes.length, 1)
  })
})

t.test('an ending that is committed after a later one is heard', async t => {
  const url = await emptyDatabase(t)
  const ear = await Ear.of(openStore(t, url))
  const client = postgres(url)
  t.teardown(() => client.end())
  await settled(t, url, ear)
  const slow = randomUUID()

  await client.begin(async client => {
    await client`insert into svc_auth_revocations values (${randomUUID()}, ${slow}, extract(epoch from clock_timestamp()) * 1000)`
    await settled(t, url, ear)
    await endListening(url)
    await whenListening(url, 1)
    await settled(t, url, ear)
  })
  await endListening(url)

  await ear.hears(slow)
  t.strictSame(ear.heard, [slow])
})

/** Methods whose answer is lost after they have recorded an ending. */
const LOST: Record<string, { end: (store: SqlAuthStore, userId: string) => Promise<unknown>, times: number, statements: number }> = {
  'a method that ends sessions is told to its own store, because the caller took it for failed': {
    end: (store, userId) => new Accounts(store).changeUser(userId, { endSessions: true }),
    times: 1,
    // One that loads the account, and one that writes it.
    statements: 2
  },
  'a record is not told to its own store, because the caller had announced the sign-out': {
    end: (store, userId) => endingsIn(store).record(userId), times: 0, statements: 1
  }
}

for (const [name, { end, times, statements }] of Object.entries(LOST)) {
  t.test(`the ending of ${name}`, async t => {
    const url = await emptyDatabase(t)
    const proxy = await startProxy(t, url)
    const store = openStore(t, proxy.url)
    const ear = await Ear.of(store)
    await settled(t, url, ear)
    const { userId } = await createUser(store)
    const isRecorded = async (): Promise<boolean> =>
      (await query(url, `select from svc_auth_revocations where user_id = '${userId}'`)).length > 0
    let named = 0
    proxy.hear = data => { if (data.includes(userId) && ++named === statements) setImmediate(() => { proxy.silence() }) }

    const isRefused = t.rejects(end(store, userId), { code: 'unavailable' })
    t.ok(await isSoon(isRecorded))
    proxy.hear = () => {}
    proxy.reset()
    await isRefused

    await whenListening(url, 1)
    await settled(t, url, ear)
    t.strictSame(ear.heard, Array(times).fill(userId))
  })
}

t.test('an ending is remembered for longer than it is read', async t => {
  const url = await emptyDatabase(t)
  const ear = await Ear.of(openStore(t, url))
  await settled(t, url, ear)
  const { now } = performance
  t.intercept(performance, 'now', { value: () => now.call(performance) + 65_000 })

  for (let read = 0; read < 3; read++) {
    await whenListening(url, 1)
    t.equal(await endListening(url), 1)
  }

  await whenListening(url, 1)
  await settled(t, url, ear)
  t.strictSame(ear.heard, [])
})

t.test('an ending is forgotten after two minutes', async t => {
  const url = await emptyDatabase(t)
  const ear = await Ear.of(openStore(t, url))
  const userId = randomUUID()
  await endingsIn(openStore(t, url)).record(userId)
  await ear.hears(userId)
  ear.heard.length = 0
  const { now } = performance
  t.intercept(performance, 'now', { value: () => now.call(performance) + 121_000 })

  for (let read = 0; read < 2; read++) {
    await whenListening(url, 1)
    t.equal(await endListening(url), 1)
  }

  // The clock of the server has not moved, so that the row is read and told again.
  await ear.hears(userId)
})

t.test('endings from before a store followed are not told', async t => {
  const url = await emptyDatabase(t)
  const store = openStore(t, url)
  await endingsIn(store).record(randomUUID())
  await query(url, 'update svc_auth_revocations set revoked_at = revoked_at - 10000')

  const ear = await Ear.of(openStore(t, url))

  await settled(t, url, ear)
  // It connects again, and reads a second time.
  t.equal(await endListening(url), 1)
  await whenListening(url, 1)
  await settled(t, url, ear)
  t.equal(await endListening(url), 1, 'the round with the second read is over')
  await whenListening(url, 1)
  await settled(t, url, ear)
  t.strictSame(ear.heard, [])
})
