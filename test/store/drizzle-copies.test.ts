import { createRequire } from 'node:module'
import { join } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import * as sqliteModule from 'drizzle-orm/better-sqlite3'
import * as postgresModule from 'drizzle-orm/node-postgres'
import t from 'tap'
import { Accounts, SqlAuthStore } from '../../lib/index.js'
import * as postgresSchema from '../../lib/schema/postgres.js'
import * as sqliteSchema from '../../lib/schema/sqlite.js'
import { emptyDatabase, poolOf } from '../helpers/postgres.js'

// The store has a copy of Drizzle, the application another one: as ES modules, or by require().

const require = createRequire(import.meta.url)

const ADA = {
  userId: '6b1e1c9e-0c51-4c3a-9f44-2f0e8a2f5d11',
  email: 'ada@example.com',
  emailVerified: true,
  name: 'Ada',
  claims: { plan: 'pro' },
  link: { provider: 'dev', subject: '1', claims: { sub: '1' } }
}

const SQLITE = {
  'ES modules': sqliteModule,
  'require()': require('drizzle-orm/better-sqlite3') as typeof sqliteModule
}
const POSTGRES = {
  'ES modules': postgresModule,
  'require()': require('drizzle-orm/node-postgres') as typeof postgresModule
}

for (const [loadedBy, { drizzle }] of Object.entries(SQLITE)) {
  t.test(`the store runs on the application's Drizzle, loaded by ${loadedBy}, which reads the exported tables: SQLite`, async t => {
    const connection = new SqliteDatabase(join(t.testdir(), 'users.db'))
    t.teardown(() => connection.close())
    const db = drizzle({ client: connection, schema: sqliteSchema })
    const accounts = new Accounts(new SqlAuthStore(db))

    await accounts.createUser(ADA)
    const users = await db.select().from(sqliteSchema.users)
    const related = await db.query.providerLinks.findMany()

    t.match(await accounts.findUser({ userId: ADA.userId }), { email: ADA.email, claims: ADA.claims })
    t.match(users, [{ userId: ADA.userId, claims: ADA.claims }])
    t.match(related, [{ provider: 'dev', userId: ADA.userId }])
  })
}

for (const [loadedBy, { drizzle }] of Object.entries(POSTGRES)) {
  t.test(`the store runs on the application's Drizzle, loaded by ${loadedBy}, and in its transaction: Postgres`, async t => {
    const db = drizzle({ client: poolOf(t, await emptyDatabase(t)), schema: postgresSchema })
    await new SqlAuthStore(db).findUser({ email: ADA.email })

    await db.transaction(async tx => {
      await new Accounts(new SqlAuthStore(tx)).createUser(ADA)
      t.match(await tx.query.users.findMany(), [{ userId: ADA.userId, claims: ADA.claims }])
      tx.rollback()
    }).catch((error: unknown) => { t.match(error, { message: 'Rollback' }) })

    t.equal(await new SqlAuthStore(db).findUser({ email: ADA.email }), null)
  })
}
