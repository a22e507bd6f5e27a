/** A package for the database alone: it does not import the plugin, so only the entry point of the schema names types. */
import { drizzle } from 'drizzle-orm/postgres-js'
import * as authTables from 'fastify-svc-auth/schema/postgres'
import postgres from 'postgres'

export const schema = { ...authTables }
export const { users, sessions, oneTimeEntries, factors } = authTables
export const db = drizzle({ client: postgres(), schema })
export const newest = async () => db.query.users.findMany({ limit: 10 })
export const sessionsOf = async () => db.select().from(sessions)
