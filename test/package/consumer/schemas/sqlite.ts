/** As postgres.ts. */
import Database from 'better-sqlite3'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import * as authTables from 'fastify-svc-auth/schema/sqlite'

export const schema = { ...authTables }
export const { users, sessions, oneTimeEntries, factors } = authTables
export const db = drizzle({ client: new Database(':memory:'), schema })
export const newest = () => db.query.users.findMany({ limit: 10 }).sync()
export const sessionsOf = () => db.select().from(sessions).all()
