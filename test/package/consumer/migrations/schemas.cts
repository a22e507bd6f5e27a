import postgres = require('fastify-svc-auth/schema/postgres')
import sqlite = require('fastify-svc-auth/schema/sqlite')

/** The schemas have their types in a CommonJS module too. */
export type Emails = [typeof postgres.users.$inferSelect.email, typeof sqlite.users.$inferSelect.email]

export const emails: Emails = [null, 'ada@example.com']

// @ts-expect-error an e-mail is a text or null
export const wrong: Emails = [1, 2]
