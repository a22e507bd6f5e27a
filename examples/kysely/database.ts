import { type Generated, Kysely, PostgresDialect } from 'kysely'
import { Pool } from 'pg'

interface Database {
  'app.orders': { id: Generated<number>, user_id: string, item: string }
  /** A table of the plugin: read it, and change users by app.auth. */
  'svc_auth.svc_auth_users': { user_id: string, email: string | null, name: string | null }
}

export const db = new Kysely<Database>({
  dialect: new PostgresDialect({ pool: new Pool({ connectionString: process.env.DATABASE_URL }) })
})
