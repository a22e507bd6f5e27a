/**
 * The tables on Postgres, for Drizzle: for an application's own queries, relations and
 * drizzle-kit migrations.
 *
 * @module fastify-svc-auth/schema/postgres
 */
import { sql } from 'drizzle-orm'
import { index, jsonb, pgTable, primaryKey, text, uniqueIndex, uuid } from 'drizzle-orm/pg-core'
import type { AuthorizationClaims, IdentityClaims } from '../claims.js'
import type { UserExtras } from './extras.js'

/** The user accounts. */
export const users = pgTable('svc_auth_users', {
  userId: uuid('user_id').primaryKey(),
  email: text('email'),
  name: text('name'),
  claims: jsonb('claims').$type<AuthorizationClaims>().notNull(),
  extras: jsonb('extras').$type<UserExtras>().notNull()
}, table => [
  // By bytes, so that it finds prefixes in any collation.
  uniqueIndex('svc_auth_users_email_unique').on(table.email.op('text_pattern_ops')),
  index('svc_auth_users_blocked').on(table.userId).where(sql`extras -> 'blocked' is not null`)
])

/** The passwords, as Argon2id PHC strings. */
export const credentials = pgTable('svc_auth_credentials', {
  userId: uuid('user_id').primaryKey().references(() => users.userId, { onDelete: 'cascade' }),
  pwHash: text('pw_hash').notNull()
})

/** The links: which subject at which provider signs in which user. */
export const providerLinks = pgTable('svc_auth_provider_links', {
  provider: text('provider').notNull(),
  subject: text('subject').notNull(),
  userId: uuid('user_id').notNull().references(() => users.userId, { onDelete: 'cascade' }),
  claims: jsonb('claims').$type<IdentityClaims>().notNull()
}, table => [
  primaryKey({ columns: [table.provider, table.subject] }),
  uniqueIndex('svc_auth_provider_links_user_provider_unique').on(table.userId, table.provider)
])
