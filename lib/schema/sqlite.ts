/**
 * The tables on SQLite, for Drizzle: for an application's own queries, relations and
 * drizzle-kit migrations.
 *
 * @module fastify-svc-auth/schema/sqlite
 */
import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'
import type { AuthorizationClaims, IdentityClaims } from '../claims.js'
import type { ConnectionContent } from './connections.js'
import type { FactorKind, UserExtras } from './extras.js'
import type { GrantContent, RegisteredClient } from './grants.js'
import type { EntryContent, SessionData, SessionProofs } from './sessions.js'

export type { Principal } from '../authentication.js'
export type { AuthorizationClaims, Claims, IdentityClaims } from '../claims.js'
export type * from './connections.js'
export type * from './extras.js'
export type * from './grants.js'
export type * from './sessions.js'

/** The user accounts. */
export const users = sqliteTable('svc_auth_users', {
  userId: text('user_id').primaryKey(),
  email: text('email'),
  name: text('name'),
  claims: text('claims', { mode: 'json' }).$type<AuthorizationClaims>().notNull(),
  extras: text('extras', { mode: 'json' }).$type<UserExtras>().notNull()
}, table => [
  uniqueIndex('svc_auth_users_email_unique').on(table.email),
  // Without commas, at which drizzle-kit cuts expressions.
  index('svc_auth_users_domain').on(sql`extras ->> '$.email_domain'`),
  index('svc_auth_users_name').on(sql`extras ->> '$.name_key'`),
  index('svc_auth_users_created').on(sql`extras ->> '$.created_at'`, table.userId),
  index('svc_auth_users_blocked').on(table.userId).where(sql`json_extract(extras, '$.blocked') is not null`)
])

/** The passwords, as Argon2id PHC strings. */
export const credentials = sqliteTable('svc_auth_credentials', {
  userId: text('user_id').primaryKey().references(() => users.userId, { onDelete: 'cascade' }),
  pwHash: text('pw_hash').notNull()
})

/** The links: which subject at which provider signs in which user. */
export const providerLinks = sqliteTable('svc_auth_provider_links', {
  provider: text('provider').notNull(),
  subject: text('subject').notNull(),
  userId: text('user_id').notNull().references(() => users.userId, { onDelete: 'cascade' }),
  claims: text('claims', { mode: 'json' }).$type<IdentityClaims>().notNull()
}, table => [
  primaryKey({ columns: [table.provider, table.subject] }),
  uniqueIndex('svc_auth_provider_links_user_provider_unique').on(table.userId, table.provider)
])

/**
 * The sessions. Their ids are not in the table, only hashes of them. Times are in milliseconds
 * since the epoch.
 */
export const sessions = sqliteTable('svc_auth_sessions', {
  idHash: text('id_hash').primaryKey(),
  userId: text('user_id').references(() => users.userId, { onDelete: 'cascade' }),
  provider: text('provider'),
  claims: text('claims', { mode: 'json' }).$type<AuthorizationClaims & IdentityClaims>(),
  generation: integer('generation').notNull(),
  proofs: text('proofs', { mode: 'json' }).$type<SessionProofs>(),
  data: text('data', { mode: 'json' }).$type<SessionData>(),
  userAgent: text('user_agent'),
  createdAt: integer('created_at').notNull(),
  seenAt: integer('seen_at').notNull(),
  expiresAt: integer('expires_at').notNull(),
  endedAt: integer('ended_at'),
  signedOut: integer('signed_out', { mode: 'boolean' }).notNull(),
  replacedBy: text('replaced_by'),
  /** The user whom an impersonation shows. */
  shownUserId: text('shown_user_id'),
  /** A hash of the provider, and of its id of the session in which the user signed in there. */
  providerSession: text('provider_session'),
  /** A hash of the provider, and of its id of the user. */
  providerUser: text('provider_user')
}, table => [
  index('svc_auth_sessions_user').on(table.userId),
  // Few sessions have an impersonation.
  index('svc_auth_sessions_shown').on(table.shownUserId).where(sql`shown_user_id is not null`),
  // Those of providers that tell of sign-outs.
  index('svc_auth_sessions_provider_session').on(table.providerSession).where(sql`provider_session is not null`),
  index('svc_auth_sessions_provider_user').on(table.providerUser).where(sql`provider_user is not null`)
])

/** What may be used once, such as the sign-ins that were started at a provider. */
export const oneTimeEntries = sqliteTable('svc_auth_pending', {
  hash: text('hash').primaryKey(),
  kind: text('kind').notNull(),
  owner: text('owner').notNull(),
  content: text('content', { mode: 'json' }).$type<EntryContent>().notNull(),
  attempts: integer('attempts').notNull(),
  startedAt: integer('started_at').notNull()
}, table => [
  index('svc_auth_pending_owner').on(table.owner)
])

/**
 * The factors of users: authenticator apps, recovery codes, passkeys. Times are in milliseconds
 * since the epoch.
 */
export const factors = sqliteTable('svc_auth_factors', {
  factorId: text('factor_id').primaryKey(),
  userId: text('user_id').notNull().references(() => users.userId, { onDelete: 'cascade' }),
  kind: text('kind').$type<FactorKind>().notNull(),
  name: text('name'),
  secret: text('secret'),
  data: text('data', { mode: 'json' }).$type<Record<string, unknown>>().notNull(),
  counter: integer('counter').notNull(),
  createdAt: integer('created_at').notNull(),
  usedAt: integer('used_at')
}, table => [
  index('svc_auth_factors_user').on(table.userId)
])

/** What users have allowed the clients of the authorization server. */
export const grants = sqliteTable('svc_auth_grants', {
  grantId: text('grant_id').primaryKey(),
  userId: text('user_id').notNull().references(() => users.userId, { onDelete: 'cascade' }),
  generation: integer('generation').notNull(),
  clientId: text('client_id').notNull(),
  content: text('content', { mode: 'json' }).$type<GrantContent>().notNull(),
  version: integer('version').notNull(),
  createdAt: integer('created_at').notNull(),
  usedAt: integer('used_at').notNull(),
  endsAt: integer('ends_at').notNull()
}, table => [
  index('svc_auth_grants_user').on(table.userId)
])

/** The clients that have registered themselves with the authorization server. */
export const oauthClients = sqliteTable('svc_auth_clients', {
  clientId: text('client_id').primaryKey(),
  content: text('content', { mode: 'json' }).$type<RegisteredClient>().notNull(),
  createdAt: integer('created_at').notNull(),
  usedAt: integer('used_at')
})

/**
 * The API keys of users and of other owners. Their secrets are not in the table, only hashes. Times
 * are in milliseconds since the epoch.
 */
export const keys = sqliteTable('svc_auth_keys', {
  keyId: text('key_id').primaryKey(),
  hash: text('hash').notNull(),
  userId: text('user_id').references(() => users.userId, { onDelete: 'cascade' }),
  owner: text('owner'),
  name: text('name').notNull(),
  scopes: text('scopes', { mode: 'json' }).$type<readonly string[]>().notNull(),
  generation: integer('generation').notNull(),
  createdAt: integer('created_at').notNull(),
  usedAt: integer('used_at'),
  expiresAt: integer('expires_at')
}, table => [
  index('svc_auth_keys_user').on(table.userId),
  index('svc_auth_keys_owner').on(table.owner)
])

/** The identity providers of customers. Times are in milliseconds since the epoch. */
export const connections = sqliteTable('svc_auth_connections', {
  connectionId: text('connection_id').primaryKey(),
  issuer: text('issuer').notNull(),
  clientId: text('client_id').notNull(),
  content: text('content', { mode: 'json' }).$type<ConnectionContent>().notNull(),
  version: integer('version').notNull(),
  createdAt: integer('created_at').notNull(),
  /** When its removal began. */
  removedAt: integer('removed_at')
})

/** The domains that connections claim. A domain is proven for one connection at most. */
export const domains = sqliteTable('svc_auth_domains', {
  domain: text('domain').notNull(),
  connectionId: text('connection_id').notNull()
    .references(() => connections.connectionId, { onDelete: 'cascade' }),
  token: text('token').notNull(),
  /** Null for a domain that is not proven, or not any more. */
  provenAt: integer('proven_at'),
  checkedAt: integer('checked_at'),
  /** Since when the record is missing; null while it is there. */
  missingSince: integer('missing_since'),
  /** When it was proven no longer; null before. */
  lapsedAt: integer('lapsed_at')
}, table => [
  primaryKey({ columns: [table.domain, table.connectionId] }),
  uniqueIndex('svc_auth_domains_proven').on(table.domain).where(sql`proven_at is not null`),
  index('svc_auth_domains_connection').on(table.connectionId)
])
