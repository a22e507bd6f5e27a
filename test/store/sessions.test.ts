import { setImmediate as immediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { MemorySessions } from '../../lib/store/memory/sessions.js'
import { SqlAuthStore } from '../../lib/store/sql.js'
import type { NewSession, StoredSessions } from '../../lib/store/sessions.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { postgresDatabase, sqliteDatabase } from './database.js'

const USER = '00000000-0000-4000-8000-00000000000a'
const NOW = Date.now()

const PROOFS = { at: NOW, methods: [{ method: 'password', at: NOW }] } as const
const ADA = { userId: USER, provider: 'local', claims: { sub: USER, role: 'admin' }, generation: 0, proofs: PROOFS }

function session (idHash: string, more: Partial<NewSession> = {}): NewSession {
  return { idHash, user: ADA, data: null, userAgent: null, createdAt: NOW, expiresAt: NOW + 60_000, ...more }
}

async function withAda (store: SqlAuthStore): Promise<StoredSessions> {
  await store.createUser({
    userId: USER, email: null, emailVerified: false, name: null, claims: {}, link: { provider: 'dev', subject: 'ada', claims: { sub: 'ada' } }
  })
  return store.sessions
}

const STORES: Record<string, (t: Test) => Promise<StoredSessions>> = {
  'the memory of the process': async () => new MemorySessions(),
  SQLite: async t => {
    const store = new SqlAuthStore(':memory:')
    t.teardown(() => store.close())
    return withAda(store)
  },
  Postgres: async t => {
    const store = new SqlAuthStore(await emptyDatabase(t))
    t.teardown(() => store.close())
    return withAda(store)
  }
}

const find = async (sessions: StoredSessions, idHash: string, now = NOW) => sessions.find(idHash, now)
const signOut = { now: NOW, isSignOut: true }
const end = { now: NOW, isSignOut: false }

for (const [name, open] of Object.entries(STORES)) {
  t.test(`sessions in ${name}`, async t => {
    t.test('are found as they were written, until they end', async t => {
      const sessions = await open(t)
      const data = { members: { cart: ['apples'] }, cookie: { path: '/shop' } }
      t.equal(await sessions.insert(session('a', { data, userAgent: 'a browser' }), null), true)
      t.equal(await sessions.insert(session('anonymous', { user: null }), null), true)

      const { standing, ...found } = await find(sessions, 'a') ?? {}

      t.strictSame(found, { user: ADA, data, createdAt: NOW, seenAt: NOW, expiresAt: NOW + 60_000 })
      t.strictSame(standing ?? { generation: 0, signedOutAt: 0, emailVerified: false }, { generation: 0, signedOutAt: 0, emailVerified: false })
      t.strictSame(await find(sessions, 'anonymous'), { user: null, data: null, createdAt: NOW, seenAt: NOW, expiresAt: NOW + 60_000 })
      t.equal(await find(sessions, 'a', NOW + 60_000), null)
      t.equal(await find(sessions, 'b'), null)
    })

    t.test('are changed in part, and not any more once they have ended', async t => {
      const sessions = await open(t)
      await sessions.insert(session('a'), null)

      await sessions.update('a', { data: { members: { cart: 1 } }, expiresAt: NOW + 90_000 })
      await sessions.update('a', { user: { ...ADA, claims: { sub: USER } }, seenAt: NOW + 1 })
      t.match(await find(sessions, 'a'), {
        user: { claims: { sub: USER, role: undefined } }, data: { members: { cart: 1 } }, seenAt: NOW + 1, expiresAt: NOW + 90_000
      })
      await sessions.update('a', { data: null })
      t.equal((await find(sessions, 'a'))?.data, null)

      t.has(await sessions.end('a', end), { userId: USER, wasOpen: true, replacedBy: null })
      await sessions.update('a', { data: { members: { cart: 2 } }, expiresAt: NOW + 900_000 })
      t.equal(await find(sessions, 'a'), null)
      t.has(await sessions.end('a', end), { userId: USER, wasOpen: false, replacedBy: null })
      t.equal(await sessions.end('b', end), null)
    })

    t.test('are replaced in one step, unless the user signed out', async t => {
      const sessions = await open(t)
      await sessions.insert(session('a'), null)

      t.equal(await sessions.insert(session('b'), 'a'), true)
      t.equal(await find(sessions, 'a'), null)
      t.ok(await find(sessions, 'b'))
      t.equal(await sessions.insert(session('c'), 'a'), true, 'a form that is sent twice')
      t.ok(await find(sessions, 'b'))

      t.has(await sessions.end('a', signOut), { userId: USER, wasOpen: false, replacedBy: 'c' })
      t.has(await sessions.end('c', signOut), { userId: USER, wasOpen: true, replacedBy: 'b' })
      t.equal(await sessions.insert(session('d'), 'a'), false)
      t.equal(await find(sessions, 'd'), null)
      t.match(await sessions.end('a', signOut), { replacedBy: 'c' }, 'what was refused has replaced nothing')
      t.equal(await sessions.insert(session('e'), 'unknown'), true)
    })

    t.test('that were never written are replaced too: the sign-ins that were started in them no longer tell that they exist', async t => {
      const sessions = await open(t)
      await sessions.addPending({ stateHash: 'state', sessionHash: 'visitor', content: { n: 1 }, startedAt: NOW })
      t.equal(await sessions.hasPending('visitor', 0), true)

      t.equal(await sessions.insert(session('a'), 'visitor'), true)

      t.equal(await sessions.hasPending('visitor', 0), false)
      t.equal(await sessions.insert(session('visitor', { user: null }), null), true, 'a late save')
      t.equal(await find(sessions, 'visitor'), null)
      t.equal(await sessions.insert(session('b'), 'visitor'), true)
      t.strictSame(await sessions.end('visitor', end), { userId: null, wasOpen: false, replacedBy: 'b' })
      t.strictSame(await sessions.takePending('state', ['visitor']), { n: 1 })
    })

    t.test('that have ended are not brought back by a sign-in that was started in them', async t => {
      const sessions = await open(t)
      await sessions.insert(session('a'), null)
      await sessions.addPending({ stateHash: 'state', sessionHash: 'a', content: {}, startedAt: NOW })
      await sessions.end('a', end)

      t.equal(await sessions.hasPending('a', 0), false)
    })

    t.test('are replaced and signed out at once by two calls, of which one sees the other', async t => {
      const sessions = await open(t)
      for (let round = 0; round < 30; round++) {
        const [before, after] = [`before ${round}`, `after ${round}`]
        await sessions.insert(session(before), null)

        const replacing = sessions.insert(session(after), before)
        const [isReplaced, ended] = await Promise.all([replacing, sessions.end(before, signOut)])

        t.equal(ended?.replacedBy ?? null, isReplaced ? after : null, `round ${round}`)
      }
    })

    t.test('are ended by one of ten calls at once, and replaced by all of them', async t => {
      const sessions = await open(t)
      const ten = Array.from({ length: 10 }, (_, index) => `${index}`)
      await sessions.insert(session('a'), null)

      const ended = await Promise.all(ten.map(async () => sessions.end('a', signOut)))
      const replaced = await Promise.all(ten.map(async id => sessions.insert(session(id), 'a visitor')))

      t.equal(ended.filter(session => session?.wasOpen).length, 1)
      t.strictSame(new Set(replaced), new Set([true]))
      for (const id of ten) t.ok(await find(sessions, id))
    })

    t.test('are listed for their user and generation, the last used first', async t => {
      const sessions = await open(t)
      await sessions.insert(session('a', { userAgent: 'first' }), null)
      await sessions.insert(session('b'), null)
      await sessions.insert(session('old', { user: { ...ADA, generation: 1 } }), null)
      await sessions.insert(session('ended'), null)
      await sessions.insert(session('expired', { expiresAt: NOW }), null)
      await sessions.end('ended', end)
      await sessions.update('a', { seenAt: NOW + 5 })

      const listed = await sessions.ofUser(USER, 0, NOW)

      t.strictSame(listed[0], { idHash: 'a', proofs: PROOFS, userAgent: 'first', createdAt: NOW, seenAt: NOW + 5, expiresAt: NOW + 60_000 })
      t.strictSame(listed.map(({ idHash }) => idHash), ['a', 'b'])
    })

    t.test('have pending sign-ins, of which each is taken once, by a session that may', async t => {
      const sessions = await open(t)
      const pending = { stateHash: 'state', sessionHash: 'a', content: { nonce: 'n' }, startedAt: NOW }
      await sessions.addPending(pending)

      t.equal(await sessions.hasPending('a', NOW - 1), true)
      t.equal(await sessions.hasPending('a', NOW), false)
      t.equal(await sessions.hasPending('b', NOW - 1), false)
      t.equal(await sessions.takePending('state', ['b', 'c']), null)
      const taken = await Promise.all(Array.from({ length: 10 }, async () => sessions.takePending('state', ['b', 'a'])))
      t.strictSame(taken.filter(content => content !== null), [{ nonce: 'n' }])
    })

    t.test('have at most eight pending sign-ins, which a sign-out ends', async t => {
      const sessions = await open(t)
      for (let i = 0; i < 9; i++) await sessions.addPending({ stateHash: `s${i}`, sessionHash: 'a', content: { i }, startedAt: NOW + i })
      t.equal(await sessions.takePending('s0', ['a']), null)
      t.strictSame(await sessions.takePending('s1', ['a']), { i: 1 })
      await sessions.end('a', end)
      t.equal(await sessions.hasPending('a', NOW - 1), true)
      t.strictSame(await sessions.takePending('s2', ['a']), { i: 2 })
      await sessions.end('a', signOut)
      t.equal(await sessions.hasPending('a', NOW - 1), false)
      t.equal(await sessions.takePending('s3', ['a']), null)
    })

    t.test('that have ended are kept for an hour, also when they would have expired meanwhile', async t => {
      const sessions = await open(t)
      await sessions.insert(session('expired'), null)
      await sessions.insert(session('ended'), null)
      await sessions.end('ended', signOut)

      // What was started in a session tells when its row is gone.
      const startedAt = NOW + 600_000
      for (let n = 0; !await sessions.hasPending('expired', 0); n++) {
        await sessions.addPending({ stateHash: `${n}`, sessionHash: 'expired', content: {}, startedAt: startedAt + n % 2 * 60_000 })
        await immediate()
      }

      t.equal(await sessions.insert(session('b'), 'ended'), false, 'a sign-in that is under way sees the sign-out')
    })

    t.test('that are over are removed in the background', async t => {
      const sessions = await open(t)
      const HOUR = 60 * 60_000
      await sessions.insert(session('expired'), null)
      await sessions.insert(session('ended', { expiresAt: NOW + 10 * HOUR }), null)
      await sessions.insert(session('open', { expiresAt: NOW + 10 * HOUR }), null)
      await sessions.addPending({ stateHash: 's', sessionHash: 'x', content: {}, startedAt: NOW })
      await sessions.end('ended', signOut)

      const isGone = async () => await sessions.end('expired', end) === null && await sessions.end('ended', end) === null &&
        !await sessions.hasPending('x', 0)
      const later = session('later', { createdAt: NOW + HOUR, expiresAt: NOW + 2 * HOUR })
      do {
        await sessions.insert(later, null)
        await immediate()
      } while (!await isGone())
      t.ok(await find(sessions, 'open', NOW + HOUR))
      t.ok(await find(sessions, 'later', NOW + HOUR))
    })
  })
}

for (const [name, open] of Object.entries({
  SQLite: sqliteDatabase,
  Postgres: async (t: Test) => postgresDatabase(await emptyDatabase(t))
})) {
  t.test(`nothing is written to a session in ${name} that has ended`, async t => {
    const { target, query } = await open(t)
    const store = new SqlAuthStore(target)
    t.teardown(() => store.close())
    const { sessions } = store
    const data = { members: { cart: 'late' } }
    await sessions.insert(session('a', { user: null }), null)
    await sessions.end('a', end)

    await sessions.update('a', { data, seenAt: NOW + 1 })
    t.equal(await sessions.insert(session('a', { user: null, data }), null), true)

    t.strictSame(await query('select data, seen_at from svc_auth_sessions'), [{ data: null, seen_at: name === 'SQLite' ? NOW : `${NOW}` }])
  })
}
