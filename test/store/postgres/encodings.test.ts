import { drizzle } from 'drizzle-orm/node-postgres'
import t from 'tap'
import { Accounts, SqlAuthStore } from '../../../lib/index.js'
import { databaseName } from '../../helpers/embedded-postgres.js'
import { clientOf, emptyDatabase, poolOf, query } from '../../helpers/postgres.js'
import { startLogged, whenLogged } from '../../helpers/start-log.js'
import { newUser } from '../users.js'
import { UNAVAILABLE, changed } from './database.js'

const remedy = (encoding: string) => new RegExp(
  `^Postgres: the database has the encoding ${encoding}, which cannot .*; create another one: create database app encoding 'UTF8' template template0`
)

for (const encoding of ['LATIN1', 'WIN1252', 'SQL_ASCII', 'EUC_JP']) {
  t.test(`a database with the encoding ${encoding} is refused at the start and by each call, and nothing is written`, async t => {
    const utf8 = await emptyDatabase(t)
    const name = databaseName('encoding')
    await query(utf8, `create database ${name} encoding '${encoding}' template template0 lc_collate 'C' lc_ctype 'C'`)
    t.teardown(() => query(utf8, `drop database ${name} with (force)`))
    const url = changed(utf8, { pathname: `/${name}` })

    for (const target of [url, clientOf(t, url), drizzle(poolOf(t, url))]) {
      const store = new SqlAuthStore(target)
      const { lines } = await startLogged(t, { store })
      t.match(await whenLogged(lines, 1), [{ level: 50, err: { message: remedy(encoding) } }])
      const calls = ['Łukasz', 'Ada', 'Grace'].map(name => new Accounts(store).createUser(newUser({ name })))
      await Promise.all([...calls, store.findUser({ email: 'ada@example.com' })]
        .map(call => t.rejects(call, { ...UNAVAILABLE, cause: { message: remedy(encoding) } })))
    }
    t.strictSame(await query(url, "select tablename from pg_tables where schemaname = 'public'"), [])
  })
}

t.test('tables that migrations of the application have made in another encoding are not written to', async t => {
  const utf8 = await emptyDatabase(t)
  const name = databaseName('encoding')
  await query(utf8, `create database ${name} encoding 'LATIN1' template template0 lc_collate 'C' lc_ctype 'C'`)
  t.teardown(() => query(utf8, `drop database ${name} with (force)`))
  const url = changed(utf8, { pathname: `/${name}` })
  await query(url, 'create table svc_auth_users (user_id uuid primary key, email text, name text, claims jsonb, extras jsonb)')
  const store = new SqlAuthStore(url, { createTables: false })
  t.teardown(() => store.close())

  // Each alone, and several on one connection.
  for (let round = 0; round < 3; round++) {
    const calls = Array.from({ length: 5 }, () => store.status(newUser().userId))
    await Promise.all(calls.map(call => t.rejects(call, { ...UNAVAILABLE, cause: { message: remedy('LATIN1') } })))
  }
  const { lines } = await startLogged(t, { store: new SqlAuthStore(clientOf(t, url), { createTables: false }) })
  t.match(await whenLogged(lines, 1), [{ level: 50, err: { message: remedy('LATIN1') } }], 'a client of the application is told')
})
