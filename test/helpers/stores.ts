import postgres from 'postgres'
import root, { type Test } from 'tap'
import { type AuthStore, MemoryAuthStore, SqlAuthStore } from '../../lib/index.js'
import { emptyDatabase } from './postgres.js'
import { isThorough } from './thorough.js'

/** Makes an empty store of each kind, closed at the end of the test. */
export const STORES: Readonly<Record<'memory' | 'SQLite' | 'Postgres', (t: Test) => Promise<AuthStore>>> = {
  memory: async () => new MemoryAuthStore(),
  SQLite: async t => closed(t, new SqlAuthStore(':memory:')),
  async Postgres (t) {
    client ??= onPostgres()
    const store = new SqlAuthStore(await client)
    await store.findUser({ email: 'nobody@example.com' }) // The tables are there.
    await (await client)`delete from svc_auth_users`
    // The table is there when an earlier test counted tries.
    await (await client)`do $$ begin if to_regclass('svc_auth_attempts') is not null then delete from svc_auth_attempts; end if; end $$`
    return closed(t, store)
  }
}

/** All of them in `test:all`. `npm test` runs on SQLite, which starts at once, where stores are not what is tested. */
export const SOME_STORES = isThorough ? STORES : { SQLite: STORES.SQLite }

/** One pool of connections serves all tests of a file, one after the other: a new connection costs more than most tests. */
let client: Promise<postgres.Sql> | undefined

async function onPostgres (): Promise<postgres.Sql> {
  const client = postgres(await emptyDatabase(root), { onnotice: () => {} })
  root.teardown(() => client.end())
  return client
}

function closed (t: Test, store: AuthStore): AuthStore {
  t.teardown(() => store.close())
  return store
}
