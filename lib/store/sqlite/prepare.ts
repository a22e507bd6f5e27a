import { and, eq, getTableColumns, sql } from 'drizzle-orm'
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3'
import { credentials, providerLinks, users } from '../../schema/sqlite.js'

/** What a statement is given when it is run, by name. */
const given = sql.placeholder

const isUser = eq(users.userId, given('userId'))
const isLink = and(eq(providerLinks.provider, given('provider')), eq(providerLinks.subject, given('subject')))
const isLinkOfUser = eq(providerLinks.userId, given('userId'))
const isCredentialOfUser = eq(credentials.userId, given('userId'))

export type Prepared = ReturnType<typeof prepare>

/** The statements, built and compiled once: both take longer than to run one. The tables must be there. */
export function prepare (db: BetterSQLite3Database) {
  return {
    userById: db.select().from(users).where(isUser).prepare(),
    userByEmail: db.select().from(users).where(eq(users.email, given('email'))).prepare(),
    userByLink: db.select(getTableColumns(users)).from(providerLinks)
      .innerJoin(users, eq(users.userId, providerLinks.userId))
      .where(isLink)
      .prepare(),
    link: db.select().from(providerLinks).where(isLink).prepare(),
    links: db.select().from(providerLinks).where(isLinkOfUser).orderBy(providerLinks.provider).prepare(),
    known: db.select({ user: users, claims: providerLinks.claims }).from(providerLinks)
      .innerJoin(users, eq(users.userId, providerLinks.userId))
      .where(isLink)
      .prepare(),
    credential: db.select({ user: users, link: providerLinks, passwordHash: credentials.pwHash }).from(providerLinks)
      .innerJoin(users, eq(users.userId, providerLinks.userId))
      .innerJoin(credentials, eq(credentials.userId, providerLinks.userId))
      .where(isLink)
      .prepare(),

    insertUser: db.insert(users)
      .values({ userId: given('userId'), email: given('email'), name: given('name'), claims: given('claims'), extras: given('extras') })
      .returning()
      .prepare(),
    insertLink: db.insert(providerLinks)
      .values({ provider: given('provider'), subject: given('subject'), userId: given('userId'), claims: given('claims') })
      .prepare(),
    insertCredential: db.insert(credentials).values({ userId: given('userId'), pwHash: given('passwordHash') }).prepare(),

    // A name and an e-mail that are null change nothing.
    setIdentity: db.update(users)
      .set({
        name: sql`coalesce(${given('name')}, ${users.name})`,
        email: sql`coalesce(${given('newEmail')}, ${users.email})`,
        extras: sql`${sql.param(given('extras'), users.extras)}`
      })
      .where(isUser)
      .returning()
      .prepare(),
    admitUser: db.update(users)
      .set({ extras: sql`json_remove(${users.extras}, '$.is_new')` })
      .where(and(isUser, sql`json_type(${users.extras}, '$.is_new') is not null`))
      .prepare(),
    setExtras: db.update(users).set({ extras: sql`${sql.param(given('extras'), users.extras)}` }).where(isUser).prepare(),
    setClaims: db.update(users).set({ claims: sql`${sql.param(given('claims'), users.claims)}` }).where(isUser).prepare(),
    setLinkClaims: db.update(providerLinks).set({ claims: sql`${sql.param(given('claims'), providerLinks.claims)}` }).where(isLink).prepare(),
    replacePasswordHash: db.update(credentials)
      .set({ pwHash: sql`${given('next')}` })
      .where(and(isCredentialOfUser, eq(credentials.pwHash, given('current'))))
      .prepare(),

    deleteUser: db.delete(users).where(isUser).prepare(),
    deleteLink: db.delete(providerLinks).where(and(isLinkOfUser, eq(providerLinks.provider, given('provider')))).prepare(),
    deleteLinks: db.delete(providerLinks).where(isLinkOfUser).prepare(),
    deleteCredential: db.delete(credentials).where(isCredentialOfUser).prepare()
  }
}
