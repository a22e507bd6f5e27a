import { randomUUID } from 'node:crypto'
import postgres from 'postgres'
import t from 'tap'
import { Accounts, MemoryAuthStore, SqlAuthStore } from '../../lib/index.js'
import type { MailTokenClaims } from '../../lib/accounts/credentials.js'
import { capabilitiesOf } from '../../lib/session/store.js'
import { advanceClock } from '../helpers/clock.js'
import { emptyDatabase, query } from '../helpers/postgres.js'
import { Ear, createUser, endListening, endingsIn, listeningClientOf, openStore, settled, whenListening } from '../helpers/revocations.js'
import { isSoon } from '../helpers/soon.js'
import { startProxy } from '../helpers/tcp-proxy.js'

/** What ends all sessions of a user, or tells of one that the store does not keep. */
const ENDINGS: Record<string, (store: SqlAuthStore, proof: MailTokenClaims) => Promise<unknown>> = {
  changeUser: (store, { userId }) => new Accounts(store).changeUser(userId, { endSessions: true, blocked: { at: new Date() } }),
  setPassword: (store, { userId }) => new Accounts(store).setPassword(userId, { passwordHash: 'another hash' }),
  removeLink: (store, { userId }) => new Accounts(store).removeLink(userId, 'dev'),
  resetPassword: (store, proof) => new Accounts(store).resetPassword(proof, 'another hash'),
  'the first proof of an address': (store, proof) => new Accounts(store).verifyEmail(proof),
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

t.test('a sign-out that cannot be recorded is no revocation', async t => {
  const url = await emptyDatabase(t)
  const [store, other] = [openStore(t, url), openStore(t, url)]
  const [ear, userId] = [await Ear.of(other), randomUUID()]
  await t.rejects(endingsIn(store).record('no user id'))
  await endingsIn(store).record(userId)
  await ear.hears(userId)
  t.strictSame(ear.heard, [userId])
})

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

t.test('an ending of a method whose answer was lost is heard at once while notifications arrive', async t => {
  const url = await emptyDatabase(t)
  const proxy = await startProxy(t, url)
  const store = openStore(t, proxy.url)
  const ear = await Ear.of(store)
  const { userId } = await createUser(store)
  await settled(t, url, ear)
  const isRecorded = async (): Promise<boolean> =>
    (await query(url, `select from svc_auth_revocations where user_id = '${userId}'`)).length > 0
  let named = 0
  let lose = (): void => {}
  proxy.hear = (data, line) => {
    // One statement loads the account, the next one writes it.
    if (!data.includes(userId) || ++named < 2) return
    setImmediate(() => { line.isSilent = true })
    lose = () => { line.client.resetAndDestroy() }
  }

  const isRefused = t.rejects(new Accounts(store).changeUser(userId, { endSessions: true }), { code: 'unavailable' })
  t.ok(await isSoon(isRecorded))
  proxy.hear = () => {}
  lose()
  await isRefused

  await settled(t, url, ear)
  t.strictSame(ear.heard, [userId])
  t.strictSame(ear.notes, [])
})

t.test('an ending whose row could not be read when it was notified is heard in the next round', async t => {
  const url = await emptyDatabase(t)
  const ear = await Ear.of(openStore(t, url))
  await settled(t, url, ear)
  const [id, userId] = [randomUUID(), randomUUID()]
  const [{ now } = {}] = await query(url, 'select clock_timestamp()::text as now')
  const hasLookedUp = async (): Promise<boolean> => (await query(url, `
    select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
    and query like '%jsonb_array_elements_text%' and query_start > '${String(now)}' and state = 'idle'`)).length > 0
  await query(url, 'alter table svc_auth_revocations rename column user_id to hidden')
  await query(url, `insert into svc_auth_revocations values ('${id}', '${userId}', extract(epoch from clock_timestamp()) * 1000)`)

  await query(url, `select pg_notify('svc_auth_revocations', '${id}')`)
  t.ok(await isSoon(hasLookedUp))
  await query(url, 'alter table svc_auth_revocations rename column hidden to user_id')
  t.equal(await endListening(url), 1)

  await ear.hears(userId)
  await settled(t, url, ear)
})

t.test('a closed store on a client that stays open tells of nothing', async t => {
  const url = await emptyDatabase(t)
  const store = openStore(t, listeningClientOf(t, url))
  const [ear, other] = [await Ear.of(store), await Ear.of(openStore(t, url))]
  await settled(t, url, ear, other)

  await store.close()

  await settled(t, url, other)
  t.strictSame(ear.heard, [])
})

t.test('stores in other schemas of the database hear nothing', async t => {
  const url = await emptyDatabase(t)
  await query(url, 'create schema one; create schema other')
  const [one, other] = [`${url}?search_path=one`, `${url}?search_path=other`]
  const ear = await Ear.of(openStore(t, other))
  await whenListening(url, 1)

  await endingsIn(openStore(t, one)).record(randomUUID())

  await settled(t, other, ear)
  t.strictSame(ear.heard, [])
})

t.test('without the table, what ends sessions fails and names it, the rest works, and endings are heard once there is one', async t => {
  const url = await emptyDatabase(t)
  await endingsIn(openStore(t, url)).record(randomUUID())
  const table = 'create table svc_auth_revocations (id uuid primary key, user_id uuid not null, revoked_at bigint not null)'
  await query(url, 'drop table svc_auth_revocations')
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
  await query(url, table)
  await settled(t, url, ear)
  t.equal(ear.notes.length, 1)
})

t.test('old endings are removed', async t => {
  const url = await emptyDatabase(t)
  const store = openStore(t, url)
  await endingsIn(store).record(randomUUID())
  await query(url, `
    insert into svc_auth_revocations
    select gen_random_uuid(), gen_random_uuid(), extract(epoch from now()) * 1000 - 3600001 from generate_series(1, 2001)`)
  advanceClock(t, 60_001)

  await endingsIn(store).record(randomUUID())

  const count = async (): Promise<number> => (await query(url, 'select from svc_auth_revocations')).length
  t.ok(await isSoon(async () => await count() === 2))
})

t.test('a store in memory and one on SQLite share no endings', async t => {
  t.equal(capabilitiesOf(new MemoryAuthStore()).revocations, null)
  t.equal(capabilitiesOf(openStore(t, ':memory:')).revocations, null)
})
