import { randomUUID } from 'node:crypto'
import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js'
import pg from 'pg'
import postgres from 'postgres'
import t, { type Test } from 'tap'
import { Accounts, type MailTokenClaims, MemoryAuthStore, SqlAuthStore, type SqlEngine } from '../../lib/index.js'
import { membersOf } from '../../lib/store/members.js'
import { advanceClock } from '../helpers/clock.js'
import { Ear, connectionsListening, endListening, endingsIn, openStore, whenListening } from '../helpers/revocations.js'
import { clientOf, emptyDatabase } from '../helpers/postgres.js'
import { startProxy } from '../helpers/tcp-proxy.js'
import { isThorough } from '../helpers/thorough.js'
import { postgresDatabase } from './database.js'

/** A user with a password and a link at `dev`; the address is not confirmed. */
async function createUser (store: SqlAuthStore): Promise<MailTokenClaims> {
  const userId = randomUUID()
  const email = `${userId}@example.com`
  const link = { provider: 'local', subject: email, claims: { sub: userId, email } }
  await new Accounts(store).createUser({ userId, email, emailVerified: false, name: null, claims: {}, link, passwordHash: 'a hash' })
  await new Accounts(store).addLink(userId, { provider: 'dev', subject: userId, claims: { sub: userId }, verifiedEmail: null })
  return { userId, email, generation: 0 }
}

/** What ends all sessions of a user, or tells of one that the store does not keep. */
const ENDINGS: Record<string, (store: SqlAuthStore, proof: MailTokenClaims) => Promise<unknown>> = {
  changeUser: (store, { userId }) => new Accounts(store).changeUser(userId, { endSessions: true, blocked: { at: new Date() } }),
  setPassword: (store, { userId }) => new Accounts(store).setPassword(userId, { passwordHash: 'another hash' }),
  removeLink: (store, { userId }) => new Accounts(store).removeLink(userId, 'dev'),
  resetPassword: (store, proof) => new Accounts(store).resetPassword(proof, 'another hash'),
  changeEmail: (store, proof) => new Accounts(store).changeEmail(proof, `new-${proof.email}`),
  releaseEmail: (store, proof) => new Accounts(store).releaseEmail(proof),
  'removeLink and releaseEmail, which deletes the user': async (store, proof) => {
    await new Accounts(store).removeLink(proof.userId, 'dev')
    await new Accounts(store).releaseEmail({ ...proof, generation: 1 })
  },
  'a record of a sign-out': (store, { userId }) => endingsIn(store).record(userId)
}

/** What ends no session. */
const OTHERS: typeof ENDINGS = {
  'a new name': (store, { userId }) => new Accounts(store).changeUser(userId, { name: 'Ada' }),
  'a link that the user does not have': (store, { userId }) => new Accounts(store).removeLink(userId, 'other'),
  'a password that was changed meanwhile': (store, { userId }) => new Accounts(store).setPassword(userId, { passwordHash: 'a', current: 'b' }),
  'a confirmation': (store, proof) => new Accounts(store).verifyEmail(proof),
  'proofs that do not hold': async (store, proof) => {
    const old = { ...proof, generation: 7 }
    await new Accounts(store).resetPassword(old, 'a hash')
    await new Accounts(store).changeEmail(old, 'new@example.com')
    await new Accounts(store).releaseEmail(old)
  },
  'the last link': async (store, { userId }) => {
    await new Accounts(store).removeLink(userId, 'dev')
    await new Accounts(store).removeLink(userId, 'local').catch(() => {})
  }
}

/** Resolves when all that was recorded before has been told. */
async function settled (t: Test, url: string, ...ears: Ear[]): Promise<void> {
  const last = randomUUID()
  await endingsIn(openStore(t, url)).record(last)
  await Promise.all(ears.map(ear => ear.hears(last)))
  for (const { heard } of ears) t.equal(heard.pop(), last)
}

t.test('each method that ends all sessions of a user is heard once by another store, and never by its own', async t => {
  const url = await emptyDatabase(t)
  const [one, other] = [openStore(t, url), openStore(t, url)]
  const [own, far] = [await Ear.of(one), await Ear.of(other)]
  const client = postgres(url, { max: 1 })
  t.teardown(() => client.end())

  for (const [name, end] of Object.entries({ ...ENDINGS, ...OTHERS })) {
    t.test(name, async t => {
      const proof = await createUser(one)
      await client`select pg_notify('svc_auth_revocations', 'not an id'), pg_notify('svc_auth_revocations', ${randomUUID()})`

      await end(one, proof)

      await settled(t, url, own, far)
      const times = { 'removeLink and releaseEmail, which deletes the user': 2, 'the last link': 1 }[name] ?? (name in ENDINGS ? 1 : 0)
      t.strictSame(far.heard.splice(0), Array(times).fill(proof.userId))
      t.strictSame(own.heard, [])
    })
  }
})

t.test('each application on a store hears an ending once', async t => {
  const url = await emptyDatabase(t)
  const store = openStore(t, url)
  const ears = [await Ear.of(store), await Ear.of(store)]

  await settled(t, url, ...ears)

  for (const { heard } of ears) t.strictSame(heard, [])
})

t.test('a method that fails has told of no ending', async t => {
  const url = await emptyDatabase(t)
  const store = openStore(t, url)
  const ear = await Ear.of(openStore(t, url))
  const [one, two] = [await createUser(store), await createUser(store)]

  await t.rejects(new Accounts(store).changeEmail(one, two.email), { code: 'exists' })
  await t.rejects(new Accounts(store).changeUser(randomUUID(), { endSessions: true }), { code: 'unknown_user' })
  await t.rejects(new Accounts(store).setPassword(randomUUID(), { passwordHash: 'a hash' }), { code: 'unknown_user' })

  await settled(t, url, ear)
  t.strictSame(ear.heard, [])
})

const LISTENING: Record<string, (t: Test, url: string) => string | SqlEngine> = {
  'a URL': (_t, url) => url,
  'a client of the package postgres': clientOf,
  'Drizzle on the package postgres': (t, url) => drizzlePostgresJs(clientOf(t, url))
}

for (const [engine, targetOf] of Object.entries(LISTENING)) {
  t.test(`a store on ${engine} hears each ending once while its connection is ended again and again`, async t => {
    const url = await emptyDatabase(t)
    const ear = await Ear.of(openStore(t, targetOf(t, url)))
    const store = openStore(t, url)
    const userIds = Array.from({ length: 60 }, () => randomUUID())

    for (let batch = 0; batch < 3; batch++) {
      await whenListening(url, 1)
      const ended = endListening(url)
      await Promise.all(userIds.slice(20 * batch, 20 * batch + 20).map(userId => endingsIn(store).record(userId)))
      t.equal(await ended, 1)
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
    const pool = new pg.Pool({ connectionString: url })
    t.teardown(() => pool.end())
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
      await postgresDatabase(url).query(`insert into svc_auth_revocations values
        ('${randomUUID()}', '${userId}', extract(epoch from clock_timestamp()) * 1000 - 2000)`)
      await ear.hears(userId)
      while (await connectionsListening(url) > 0);
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

t.test('an ending whose row could not be read when it was notified is heard in the next round', async t => {
  const url = await emptyDatabase(t)
  const ear = await Ear.of(openStore(t, url))
  await settled(t, url, ear)
  const [id, userId] = [randomUUID(), randomUUID()]
  const { query } = postgresDatabase(url)
  const [{ now } = {}] = await query('select clock_timestamp()::text as now')
  const hasLookedUp = async (): Promise<boolean> => (await query(`
    select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
    and query like '%jsonb_array_elements_text%' and query_start > '${String(now)}' and state = 'idle'`)).length > 0
  await query('alter table svc_auth_revocations rename to hidden')
  await query(`insert into hidden values ('${id}', '${userId}', extract(epoch from clock_timestamp()) * 1000)`)

  await query(`select pg_notify('svc_auth_revocations', '${id}')`)
  while (!await hasLookedUp());
  await query('alter table hidden rename to svc_auth_revocations')
  t.equal(await endListening(url), 1)

  await ear.hears(userId)
  await settled(t, url, ear)
})

t.test('a closed store on a client that stays open tells of nothing', async t => {
  const url = await emptyDatabase(t)
  const store = openStore(t, clientOf(t, url))
  const [ear, other] = [await Ear.of(store), await Ear.of(openStore(t, url))]
  await settled(t, url, ear, other)

  await store.close()

  await settled(t, url, other)
  t.strictSame(ear.heard, [])
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
      (await postgresDatabase(url).query(`select from svc_auth_revocations where user_id = '${userId}'`)).length > 0
    let named = 0
    proxy.hear = data => { if (data.includes(userId) && ++named === statements) setImmediate(() => { proxy.silence() }) }

    const isRefused = t.rejects(end(store, userId), { code: 'unavailable' })
    while (!await isRecorded());
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

t.test('stores in other schemas of the database hear nothing', async t => {
  const url = await emptyDatabase(t)
  await postgresDatabase(url).query('create schema one; create schema other')
  const [one, other] = [`${url}?search_path=one`, `${url}?search_path=other`]
  const ear = await Ear.of(openStore(t, other))
  await whenListening(url, 1)

  await endingsIn(openStore(t, one)).record(randomUUID())

  await settled(t, other, ear)
  t.strictSame(ear.heard, [])
})

t.test('endings from before a store followed are not told', async t => {
  const url = await emptyDatabase(t)
  const store = openStore(t, url)
  await endingsIn(store).record(randomUUID())
  await postgresDatabase(url).query('update svc_auth_revocations set revoked_at = revoked_at - 10000')

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

t.test('without the table, what ends sessions fails and names it, the rest works, and endings are heard once there is one', async t => {
  const url = await emptyDatabase(t)
  await endingsIn(openStore(t, url)).record(randomUUID())
  const { query } = postgresDatabase(url)
  const table = 'create table svc_auth_revocations (id uuid primary key, user_id uuid not null, revoked_at bigint not null)'
  await query('drop table svc_auth_revocations')
  const store = new SqlAuthStore(url, { createTables: false })
  t.teardown(() => store.close())
  const { userId } = await createUser(store)
  const ear = await Ear.of(store)

  await t.rejects(new Accounts(store).changeUser(userId, { endSessions: true }), {
    code: 'unavailable', cause: { message: /"svc_auth_revocations" does not exist; run the migrations/ }
  })
  t.match(await new Accounts(store).changeUser(userId, { name: 'Ada' }), { name: 'Ada' })
  t.equal((await store.status(userId))?.generation, 0, 'nothing was written')

  await ear.isNoted()
  t.match(ear.notes, [{ message: /cannot be heard of/, err: { code: 'unavailable' } }])
  for (let round = 0; round < 2; round++) {
    await whenListening(url, 1)
    t.equal(await endListening(url), 1)
  }
  await whenListening(url, 1)
  await query(table)
  await settled(t, url, ear)
  t.equal(ear.notes.length, 1)
})

t.test('old endings are removed', async t => {
  const url = await emptyDatabase(t)
  const store = openStore(t, url)
  const { query } = postgresDatabase(url)
  await endingsIn(store).record(randomUUID())
  await query(`
    insert into svc_auth_revocations
    select gen_random_uuid(), gen_random_uuid(), extract(epoch from now()) * 1000 - 3600001 from generate_series(1, 2001)`)
  advanceClock(t, 60_001)

  await endingsIn(store).record(randomUUID())

  const count = async (): Promise<number> => (await query('select from svc_auth_revocations')).length
  while (await count() > 2);
  t.equal(await count(), 2)
})

t.test('a store in memory and one on SQLite share no endings', async t => {
  t.equal(membersOf(new MemoryAuthStore()).revocations, null)
  t.equal(membersOf(openStore(t, ':memory:')).revocations, null)
})
