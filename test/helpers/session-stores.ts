import type { Test } from 'tap'
import { type AuthStore, MemoryAuthStore, SqlAuthStore } from '../../lib/index.js'
import type { SessionOptions } from '../../lib/session/session-options.js'
import { emptyDatabase } from './postgres.js'
import { SlowSessionStore } from './slow-session-store.js'
import { isThorough } from './thorough.js'

/** What the option `session.store` may be. */
export type SessionStores = SessionOptions['store']

/** What must hold, holds with the sessions that the store of users keeps, as by default, and with a session store of the application. */
export const SESSION_STORES: ReadonlyArray<readonly [name: string, create: () => SessionStores]> = [
  ['the sessions of the store', () => undefined],
  ['a session store that serialises', () => new SlowSessionStore()],
  ...(isThorough ? [['sessions in memory that were asked for', () => 'memory' as const] as const] : [])
]

/** All of them in `test:all`. `npm test` runs on the default, where sessions are not what is tested. */
export const SOME_SESSION_STORES = isThorough ? SESSION_STORES : SESSION_STORES.slice(0, 1)

/** Where applications keep users and sessions together. */
export interface Kept {
  store: AuthStore
  sessions: SessionStores
}

/** Each test has a database of its own, because several run side by side. */
const DATABASES: Record<string, (t: Test) => Promise<Kept>> = {
  'sessions in SQLite': async t => inDatabase(t, ':memory:'),
  'sessions in Postgres': async t => inDatabase(t, await emptyDatabase(t))
}

type Keepers = ReadonlyArray<readonly [name: string, keep: (t: Test) => Promise<Kept>]>

/** Wherever sessions can be kept. */
export const ALL_SESSIONS: Keepers = [
  ['the sessions of the store', async () => ({ store: new MemoryAuthStore(), sessions: undefined })],
  ['a session store that serialises', async () => ({ store: new MemoryAuthStore(), sessions: new SlowSessionStore() })],
  ...Object.entries(DATABASES)
]

/** What must hold for several applications on one store: in `test:all` with sessions in each database too. */
export const SHARED_SESSIONS: Keepers = isThorough ? ALL_SESSIONS : ALL_SESSIONS.slice(0, 2)

/** All of them in `test:all`. `npm test` runs on the default, where sessions are not what is tested. */
export const SOME_SHARED_SESSIONS: Keepers = isThorough ? ALL_SESSIONS : ALL_SESSIONS.slice(0, 1)

function inDatabase (t: Test, target: string): Kept {
  const store = new SqlAuthStore(target)
  t.teardown(() => store.close())
  return { store, sessions: undefined }
}
