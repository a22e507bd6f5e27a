/** Migrates to the migration that the argument names, else to the last: `node migrate.ts 1_schemas`. */
import type { Kysely } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import { db } from './database.ts'

async function createSchemas (db: Kysely<unknown>): Promise<void> {
  await db.schema.createSchema('app').ifNotExists().execute()
  await db.schema.createSchema('svc_auth').ifNotExists().execute()
}

/** The tables of the plugin are there: `fastify-svc-auth migrate` ran before. */
async function createOrders (db: Kysely<unknown>): Promise<void> {
  await db.schema.withSchema('app').createTable('orders')
    .addColumn('id', 'integer', column => column.primaryKey().generatedAlwaysAsIdentity())
    .addColumn('item', 'text', column => column.notNull())
    .addColumn('user_id', 'uuid', column => {
      return column.notNull().references('svc_auth.svc_auth_users.user_id').onDelete('cascade')
    })
    .execute()
}

const migrations: Record<string, Migration> = {
  '1_schemas': { up: createSchemas },
  '2_orders': { up: createOrders }
}

const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations }, migrationTableSchema: 'app' })
const [,, target] = process.argv
const { error } = target === undefined ? await migrator.migrateToLatest() : await migrator.migrateTo(target)
await db.destroy()
if (error !== undefined) throw error
