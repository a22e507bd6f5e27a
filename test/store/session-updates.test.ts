import { randomUUID } from 'node:crypto'
import t from 'tap'
import { Accounts } from '../../lib/accounts/accounts.js'
import type { StoredSessions } from '../../lib/store/sessions.js'
import { SqlAuthStore } from '../../lib/store/sql.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { isSoon } from '../helpers/soon.js'
import { postgresDatabase } from './database.js'

const NOW = Date.now()
const HOUR_MS = 3_600_000
const USER_ID = '00000000-0000-4000-8000-00000000000a'
const user = { userId: USER_ID, provider: 'dev', claims: { sub: 'ada' }, generation: 0, proofs: { at: NOW, methods: [] } }
const USER = { ...user, email: null, emailVerified: false, name: null, claims: {}, link: { provider: 'dev', subject: 'ada', claims: { sub: 'ada' } } }

async function writeSessions (sessions: StoredSessions, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => randomUUID())
  await Promise.all(ids.map(async idHash => {
    const session = { idHash, user, data: null, userAgent: 'a browser', createdAt: NOW, expiresAt: NOW + HOUR_MS }
    return sessions.insert(session, null)
  }))
  return ids
}

t.test('almost no update of a session on Postgres writes an index, whatever it changes', async t => {
  const { target, query } = postgresDatabase(await emptyDatabase(t))
  const store = new SqlAuthStore(target)
  await new Accounts(store).createUser(USER)
  const ids = await writeSessions(store.sessions, 60)

  for (const id of ids) {
    await store.sessions.update(id, { seenAt: NOW + 1 })
    await store.sessions.update(id, { data: { members: { cart: ['apples'] } }, seenAt: NOW + 2, expiresAt: NOW + 2 * HOUR_MS })
    await store.sessions.update(id, { user: { ...user, claims: { sub: 'ada', role: 'admin' } } })
    await store.sessions.end(id, { now: NOW + 3, isSignOut: true })
  }
  // A server process tells what it has done when it ends, or later.
  await store.close()

  const counts = async (): Promise<unknown[]> => {
    const [counted] = await query("select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relname = 'svc_auth_sessions'")
    return Object.values(counted ?? {})
  }
  t.ok(await isSoon(async () => Number((await counts())[0]) === 4 * ids.length), 'all updates are counted')
  const [updated, hot] = await counts()
  // Beside other work on the server a page may have no room. With an index on one of the columns, a quarter would write it.
  t.ok(Number(hot) >= 0.8 * Number(updated), `${hot} of ${updated} updates were heap-only`)
})
