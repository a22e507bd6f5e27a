import { and, eq, sql } from 'drizzle-orm'
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3'
import { credentials, providerLinks, users } from '../../schema/sqlite.js'

/** A value that a statement is given when it runs, by name. */
export const given = sql.placeholder

export const isUser = eq(users.userId, given('userId'))
export const isLink = and(eq(providerLinks.provider, given('provider')), eq(providerLinks.subject, given('subject')))
export const isLinkOfUser = eq(providerLinks.userId, given('userId'))
export const isCredentialOfUser = eq(credentials.userId, given('userId'))

export const userById = (db: BetterSQLite3Database) => db.select().from(users).where(isUser).prepare()
export const userByEmail = (db: BetterSQLite3Database) => db.select().from(users)
  .where(eq(users.email, given('email')))
  .prepare()
export const linkBySubject = (db: BetterSQLite3Database) => db.select().from(providerLinks).where(isLink).prepare()
export const linksOfUser = (db: BetterSQLite3Database) => db.select().from(providerLinks)
  .where(isLinkOfUser)
  .orderBy(providerLinks.provider)
  .prepare()
export const insertLink = (db: BetterSQLite3Database) => db.insert(providerLinks)
  .values({
    provider: given('provider'),
    subject: given('subject'),
    userId: given('userId'),
    claims: given('claims')
  })
  .prepare()
/** Adds a link, in place of the one that the user has at this provider. */
export const putLink = (db: BetterSQLite3Database) => db.insert(providerLinks)
  .values({
    provider: given('provider'),
    subject: given('subject'),
    userId: given('userId'),
    claims: given('claims')
  })
  .onConflictDoUpdate({
    target: [providerLinks.userId, providerLinks.provider],
    set: { subject: sql`excluded.subject`, claims: sql`excluded.claims` }
  })
  .prepare()
export const deleteLink = (db: BetterSQLite3Database) => db.delete(providerLinks)
  .where(and(isLinkOfUser, eq(providerLinks.provider, given('provider'))))
  .prepare()
export const putCredential = (db: BetterSQLite3Database) => db.insert(credentials)
  .values({ userId: given('userId'), pwHash: given('passwordHash') })
  .onConflictDoUpdate({ target: credentials.userId, set: { pwHash: sql`excluded.pw_hash` } })
  .prepare()
export const deleteCredential = (db: BetterSQLite3Database) => db.delete(credentials)
  .where(isCredentialOfUser)
  .prepare()
export const setUser = (db: BetterSQLite3Database) => db.update(users)
  .set({
    name: sql`${given('name')}`,
    email: sql`${given('email')}`,
    extras: sql`${sql.param(given('extras'), users.extras)}`
  })
  .where(isUser)
  .returning()
  .prepare()
export const setLinkClaims = (db: BetterSQLite3Database) => db.update(providerLinks)
  .set({ claims: sql`${sql.param(given('claims'), providerLinks.claims)}` })
  .where(isLink)
  .prepare()
