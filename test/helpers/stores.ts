import postgres from 'postgres'
import root, { type Test } from 'tap'
import { type AuthStore, MemoryAuthStore, SqlAuthStore } from '../../lib/index.js'
import { emptyDatabase } from './postgres.js'

/** Makes an empty store of each kind, closed at the end of the test. */
export const STORES: Readonly<Record<'memory' | 'SQLite' | 'Postgres', (t: Test) => Promise<AuthStore>>> = {
  memory: async () => new MemoryAuthStore(),
  SQLite: async t => closed(t, new SqlAuthStore(':memory:')),
  async Postgres (t) {
    // One database serves all tests of a file, one after the other.
    database ??= emptyDatabase(root)
    const url = await database
    const client = postgres(url, { max: 1, onnotice: () => {} })
    const [found] = await client`select to_regclass('svc_auth_users') as tables`
    if (found?.tables !== null) await client`truncate svc_auth_users cascade`
    await client.end()
    return closed(t, new SqlAuthStore(url))
  }
}

let database: Promise<string> | undefined

function closed (t: Test, store: AuthStore): AuthStore {
  t.teardown(() => store.close())
  return store
}
