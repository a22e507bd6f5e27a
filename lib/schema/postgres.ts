/**
 * The tables on Postgres, for Drizzle: for an application's own queries, relations and
 * drizzle-kit migrations.
 *
 * @module fastify-svc-auth/schema/postgres
 */
import { sql } from 'drizzle-orm'
import {
  bigint, boolean, foreignKey, index, integer, jsonb, pgTable, primaryKey, text, uniqueIndex, uuid
} from 'drizzle-orm/pg-core'
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
export const users = pgTable('svc_auth_users', {
  userId: uuid('user_id').primaryKey(),
  email: text('email'),
  name: text('name'),
  claims: jsonb('claims').$type<AuthorizationClaims>().notNull(),
  extras: jsonb('extras').$type<UserExtras>().notNull()
}, table => [
  // By bytes, so that it finds prefixes in any collation.
  uniqueIndex('svc_auth_users_email_unique').on(table.email.op('text_pattern_ops')),
  index('svc_auth_users_domain').on(sql`(extras ->> 'email_domain') text_pattern_ops`),
  index('svc_auth_users_name').on(sql`(extras ->> 'name_key') text_pattern_ops`),
  // All as expressions, which is how drizzle-kit reads it: `push` would make it again otherwise.
  index('svc_auth_users_created').on(sql`((extras ->> 'created_at')::bigint)`, sql`user_id`),
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

/** Milliseconds since the epoch. */
const milliseconds = (name: string) => bigint(name, { mode: 'number' })

/**
 * The sessions. Their ids are not in the table, only hashes of them. No column that changes has an
 * index, so that an update writes the row alone.
 */
export const sessions = pgTable('svc_auth_sessions', {
  idHash: text('id_hash').primaryKey(),
  userId: uuid('user_id').references(() => users.userId, { onDelete: 'cascade' }),
  provider: text('provider'),
  claims: jsonb('claims').$type<AuthorizationClaims & IdentityClaims>(),
  generation: integer('generation').notNull(),
  proofs: jsonb('proofs').$type<SessionProofs>(),
  data: jsonb('data').$type<SessionData>(),
  userAgent: text('user_agent'),
  createdAt: milliseconds('created_at').notNull(),
  seenAt: milliseconds('seen_at').notNull(),
  expiresAt: milliseconds('expires_at').notNull(),
  endedAt: milliseconds('ended_at'),
  signedOut: boolean('signed_out').notNull(),
  replacedBy: text('replaced_by'),
  /** The user whom an impersonation shows. */
  shownUserId: uuid('shown_user_id'),
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
export const oneTimeEntries = pgTable('svc_auth_pending', {
  hash: text('hash').primaryKey(),
  kind: text('kind').notNull(),
  owner: text('owner').notNull(),
  content: jsonb('content').$type<EntryContent>().notNull(),
  attempts: integer('attempts').notNull(),
  startedAt: milliseconds('started_at').notNull()
}, table => [
  index('svc_auth_pending_owner').on(table.owner)
])

/** The counts of attempts, which may be lost: the table is unlogged. */
export const attempts = pgTable('svc_auth_attempts', {
  keyHash: text('key_hash').primaryKey(),
  count: integer('count').notNull(),
  resetsAt: milliseconds('resets_at').notNull()
})

/** The revocations of the last hour, by which each process learns of those in the others. */
export const revocations = pgTable('svc_auth_revocations', {
  id: uuid('id').primaryKey(),
  userId: uuid('user_id').notNull(),
  revokedAt: milliseconds('revoked_at').notNull()
})

/** The factors of users: authenticator apps, recovery codes, passkeys. */
export const factors = pgTable('svc_auth_factors', {
  factorId: text('factor_id').primaryKey(),
  userId: uuid('user_id').notNull().references(() => users.userId, { onDelete: 'cascade' }),
  kind: text('kind').$type<FactorKind>().notNull(),
  name: text('name'),
  secret: text('secret'),
  data: jsonb('data').$type<Record<string, unknown>>().notNull(),
  counter: bigint('counter', { mode: 'number' }).notNull(),
  createdAt: milliseconds('created_at').notNull(),
  usedAt: milliseconds('used_at')
}, table => [
  index('svc_auth_factors_user').on(table.userId)
])

/** What users have allowed the clients of the authorization server. */
export const grants = pgTable('svc_auth_grants', {
  grantId: text('grant_id').primaryKey(),
  userId: uuid('user_id').notNull().references(() => users.userId, { onDelete: 'cascade' }),
  generation: integer('generation').notNull(),
  clientId: text('client_id').notNull(),
  content: jsonb('content').$type<GrantContent>().notNull(),
  version: integer('version').notNull(),
  createdAt: milliseconds('created_at').notNull(),
  usedAt: milliseconds('used_at').notNull(),
  endsAt: milliseconds('ends_at').notNull()
}, table => [
  index('svc_auth_grants_user').on(table.userId)
])

/** The clients that have registered themselves with the authorization server. */
export const oauthClients = pgTable('svc_auth_clients', {
  clientId: text('client_id').primaryKey(),
  content: jsonb('content').$type<RegisteredClient>().notNull(),
  createdAt: milliseconds('created_at').notNull(),
  usedAt: milliseconds('used_at')
})

/** The API keys of users and of other owners. Their secrets are not in the table, only hashes. */
export const keys = pgTable('svc_auth_keys', {
  keyId: text('key_id').primaryKey(),
  hash: text('hash').notNull(),
  userId: uuid('user_id').references(() => users.userId, { onDelete: 'cascade' }),
  owner: text('owner'),
  name: text('name').notNull(),
  scopes: jsonb('scopes').$type<readonly string[]>().notNull(),
  generation: integer('generation').notNull(),
  createdAt: milliseconds('created_at').notNull(),
  usedAt: milliseconds('used_at'),
  expiresAt: milliseconds('expires_at')
}, table => [
  index('svc_auth_keys_user').on(table.userId),
  index('svc_auth_keys_owner').on(table.owner)
])

/** The identity providers of customers. */
export const connections = pgTable('svc_auth_connections', {
  connectionId: text('connection_id').primaryKey(),
  issuer: text('issuer').notNull(),
  clientId: text('client_id').notNull(),
  content: jsonb('content').$type<ConnectionContent>().notNull(),
  version: integer('version').notNull(),
  createdAt: milliseconds('created_at').notNull(),
  /** When its removal began. */
  removedAt: milliseconds('removed_at')
})

/** The domains that connections claim. A domain is proven for one connection at most. */
export const domains = pgTable('svc_auth_domains', {
  domain: text('domain').notNull(),
  connectionId: text('connection_id').notNull(),
  token: text('token').notNull(),
  /** Null for a domain that is not proven, or not any more. */
  provenAt: milliseconds('proven_at'),
  checkedAt: milliseconds('checked_at'),
  /** Since when the record is missing; null while it is there. */
  missingSince: milliseconds('missing_since'),
  /** When it was proven no longer; null before. */
  lapsedAt: milliseconds('lapsed_at')
}, table => [
  primaryKey({ columns: [table.domain, table.connectionId] }),
  // The default name is longer than Postgres allows, and `push` would make it again.
  foreignKey({
    name: 'svc_auth_domains_connection_fk', columns: [table.connectionId], foreignColumns: [connections.connectionId]
  }).onDelete('cascade'),
  uniqueIndex('svc_auth_domains_proven').on(table.domain).where(sql`proven_at is not null`),
  index('svc_auth_domains_connection').on(table.connectionId)
])
