import { PGlite } from '@electric-sql/pglite'
import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePglite } from 'drizzle-orm/pglite'
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js'
import pg from 'pg'
import postgres from 'postgres'
import t, { type Test } from 'tap'
import type { DrizzlePostgres, PostgresClient } from '../../lib/store/sql-target.js'
import { SqlAuthStore } from '../../lib/store/sql.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { testAuthStore } from './contract.js'

t.test('a postgres: URL', async t => {
  const url = await emptyDatabase(t)
  const admin = clientOf(t, url)
  testAuthStore(t, async t => {
    await empty(admin)
    return { store: open(t, url), twin: open(t, url) }
  })
})
t.test('a client of the package postgres', async t => {
  const url = await emptyDatabase(t)
  const admin = clientOf(t, url)
  testAuthStore(t, async t => {
    await empty(admin)
    return { store: open(t, admin), twin: open(t, admin) }
  })
})
t.test('drizzle', async t => {
  const url = await emptyDatabase(t)
  const admin = clientOf(t, url)
  const other = clientOf(t, url)
  testAuthStore(t, async t => {
    await empty(admin)
    return { store: open(t, drizzlePostgresJs(other)), twin: open(t, drizzlePostgresJs(other)) }
  })
})
t.test('node-postgres', async t => {
  const url = await emptyDatabase(t)
  const admin = clientOf(t, url)
  const pool = new pg.Pool({ connectionString: url })
  t.teardown(() => pool.end())
  testAuthStore(t, async t => {
    await empty(admin)
    return { store: open(t, drizzleNodePostgres(pool)), twin: open(t, drizzleNodePostgres(pool)) }
  })
})
t.test('pglite', async t => {
  const client = await PGlite.create()
  t.teardown(() => client.close())
  testAuthStore(t, async t => {
    await client.query('drop table if exists svc_auth_users, svc_auth_credentials, svc_auth_provider_links, svc_auth_migrations')
    return { store: open(t, drizzlePglite(client)), twin: open(t, drizzlePglite(client)) }
  })
})

function open (t: Test, target: string | DrizzlePostgres | PostgresClient): SqlAuthStore {
  const store = new SqlAuthStore(target)
  t.teardown(() => store.close())
  return store
}
function clientOf (t: Test, url: string) {
  const client = postgres(url, { onnotice: () => {} })
  t.teardown(() => client.end())
  return client
}
async function empty (client: postgres.Sql) {
  await client.unsafe('drop table if exists svc_auth_users, svc_auth_credentials, svc_auth_provider_links, svc_auth_migrations')
}
