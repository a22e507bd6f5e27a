import { setImmediate as immediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Accounts } from '../../lib/accounts/accounts.js'
import type { AuthStore } from '../../lib/accounts/auth-store.js'
import { MemoryAuthStore } from '../../lib/engines/memory/memory.js'
import type { NewSession, SessionRows, StoredSessions } from '../../lib/session/store.js'
import { SqlAuthStore } from '../../lib/engines/sql.js'
import { openSession } from '../helpers/shared-apps.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { postgresDatabase, sqliteDatabase } from './database.js'

const USER = '00000000-0000-4000-8000-00000000000a'
const NOW = Date.now()

const PROOFS = { at: NOW, methods: [{ method: 'password', at: NOW }] } as const
const ADA = { userId: USER, provider: 'local', claims: { sub: USER, role: 'admin' }, generation: 0, proofs: PROOFS }

function session (idHash: string, more: Partial<NewSession> = {}): NewSession {
  return { idHash, user: ADA, data: null, userAgent: null, createdAt: NOW, expiresAt: NOW + 60_000, ...more }
}

async function withAda<S extends AuthStore & SessionRows> (store: S): Promise<SessionRows> {
  await new Accounts(store).createUser({
    userId: USER, email: null, emailVerified: false, name: null, claims: {}, link: { provider: 'dev', subject: 'ada', claims: { sub: 'ada' } }
  })
  return store
}

const STORES: Record<string, (t: Test) => Promise<SessionRows>> = {
  'the memory of the process': async () => withAda(new MemoryAuthStore()),
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

const find = async (sessions: StoredSessions, idHash: string, now = NOW) => openSession(sessions, idHash, now)
const signOut = { now: NOW, isSignOut: true }
const end = { now: NOW, isSignOut: false }

for (const [name, open] of Object.entries(STORES)) {
  t.test(`sessions in ${name}`, async t => {
    t.test('that have ended are kept for an hour, also when they would have expired meanwhile', async t => {
      const { sessions } = await open(t)
      await sessions.insert(session('expired'), null)
      await sessions.insert(session('ended'), null)
      await sessions.end('ended', signOut)

      for (let n = 0; await sessions.find('expired', NOW) !== null; n++) {
        await sessions.insert(session(`later ${n}`, { createdAt: NOW + 600_000 + n % 2 * 60_000, expiresAt: NOW + 900_000 }), null)
        await immediate()
      }

      t.equal(await sessions.insert(session('b'), 'ended'), false, 'a sign-in that is under way sees the sign-out')
    })

    t.test('that are over are removed in the background', async t => {
      const { sessions, entries } = await open(t)
      const HOUR = 60 * 60_000
      await sessions.insert(session('expired'), null)
      await sessions.insert(session('ended', { expiresAt: NOW + 10 * HOUR }), null)
      await sessions.insert(session('open', { expiresAt: NOW + 10 * HOUR }), null)
      await entries.put({ hash: 's', kind: 'sign-in', owner: 'x', content: {}, startedAt: NOW }, 8)
      for (const signedOut of ['ended', 'never written']) await sessions.end(signedOut, signOut)

      const areGone = async (...ended: string[]) =>
        (await Promise.all(ended.map(async idHash => sessions.end(idHash, end)))).every(session => session === null)
      const isGone = async () => await areGone('expired', 'ended', 'never written') && await entries.count('x', 'sign-in', 0) === 0
      const later = session('later', { createdAt: NOW + HOUR, expiresAt: NOW + 2 * HOUR })
      const entry = { hash: 'later', kind: 'sign-in', owner: 'y', content: {}, startedAt: NOW + HOUR }
      do {
        await sessions.insert(later, null)
        await entries.take('later', 'sign-in', ['y'])
        await entries.put(entry, 8)
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
