import { isDeepStrictEqual } from 'node:util'
import { and, eq, getTableColumns, sql } from 'drizzle-orm'
import type { AuthorizationClaims } from '../../claims.js'
import { AuthError } from '../../errors.js'
import { credentials, providerLinks, users } from '../../schema/sqlite.js'
import { endedSessions, isAtGeneration, isConfirmed, linksWithout, vouchedBy } from '../accounts.js'
import { type UserRow, credentialOf, extrasOf, userOf } from '../rows.js'
import type { Accounts, LinkedIdentity, User } from '../store.js'
import type { SqliteDatabase } from './database.js'
import { isForeignKeyViolation, storeFailure } from './failures.js'
import {
  deleteCredential, deleteLink, given, insertLink, isCredentialOfUser, isLink, isLinkOfUser, isUser, linkBySubject,
  linksOfUser, setLinkClaims, setUser, userByEmail, userById
} from './statements.js'

/**
 * Keeps accounts on SQLite. better-sqlite3 runs statements without a pause; operations that must be
 * atomic between processes too run in an immediate transaction, which takes the write lock before
 * it reads.
 */
export function sqliteAccounts (database: SqliteDatabase): Accounts {
  return {
    findUser: findUser(database),
    links: links(database),
    findCredential: findCredential(database),
    refreshIdentity: refreshIdentity(database),
    createUser: createUser(database),
    addLink: addLink(database),
    removeLink: removeLink(database),
    deleteUser: deleteUser(database),
    admitUser: admitUser(database),
    deleteNewUser: deleteNewUser(database),
    replacePasswordHash: replacePasswordHash(database),
    grant: grant(database),
    withdraw: withdraw(database)
  }
}

function findUser (database: SqliteDatabase): Accounts['findUser'] {
  const byId = database.prepared(userById)
  const byEmail = database.prepared(userByEmail)
  const byLink = database.prepared(db => db.select(getTableColumns(users)).from(providerLinks)
    .innerJoin(users, eq(users.userId, providerLinks.userId))
    .where(isLink)
    .prepare())

  return query => database.read(() => {
    if ('userId' in query) return userOf(byId().get(query))
    return userOf('email' in query ? byEmail().get(query) : byLink().get(query))
  })
}

function links (database: SqliteDatabase): Accounts['links'] {
  const links = database.prepared(linksOfUser)

  return userId => database.read(() => links().all({ userId }))
}

function findCredential (database: SqliteDatabase): Accounts['findCredential'] {
  const credential = database.prepared(db => db
    .select({ user: users, link: providerLinks, passwordHash: credentials.pwHash })
    .from(providerLinks)
    .innerJoin(users, eq(users.userId, providerLinks.userId))
    .innerJoin(credentials, eq(credentials.userId, providerLinks.userId))
    .where(isLink)
    .prepare())

  return email => database.read(() => credentialOf(credential().get({ provider: 'local', subject: email })))
}

function refreshIdentity (database: SqliteDatabase): Accounts['refreshIdentity'] {
  const known = database.prepared(db => db.select({ user: users, claims: providerLinks.claims }).from(providerLinks)
    .innerJoin(users, eq(users.userId, providerLinks.userId))
    .where(isLink)
    .prepare())
  const setClaims = database.prepared(setLinkClaims)
  const { noted, note } = noteIdentity(database)

  return async identity => {
    const { provider, subject, claims } = identity
    const find = () => known().get({ provider, subject })
    // Most sign-ins report what the store has: these need no write lock, and no commit to the disk.
    const unchanged = await database.read(() => {
      const row = find()
      if (row === undefined || !isDeepStrictEqual(row.claims, claims)) return null
      return isDeepStrictEqual(noted(row.user, identity), row.user) ? userOf(row.user) : null
    })
    return unchanged ?? database.transaction(() => {
      const row = find()
      if (row === undefined) return null
      setClaims().run({ provider, subject, claims })
      return note(row.user, identity, row.claims)
    })
  }
}

function createUser (database: SqliteDatabase): Accounts['createUser'] {
  const byEmail = database.prepared(userByEmail)
  const bySubject = database.prepared(linkBySubject)
  const insertUser = database.prepared(db => db.insert(users)
    .values({
      userId: given('userId'),
      email: given('email'),
      name: given('name'),
      claims: given('claims'),
      extras: given('extras')
    })
    .returning()
    .prepare())
  const insert = database.prepared(insertLink)
  const insertCredential = database.prepared(db => db.insert(credentials)
    .values({ userId: given('userId'), pwHash: given('passwordHash') })
    .prepare())

  return newUser => database.transaction(() => {
    const { userId, email, name, claims, link, passwordHash } = newUser
    const isTaken = email !== null && byEmail().get({ email }) !== undefined
    if (isTaken || bySubject().get({ ...link }) !== undefined) return null
    const row = insertUser().get({ userId, email, name, claims, extras: extrasOf(newUser) })
    insert().run({ ...link, userId })
    if (passwordHash !== undefined) insertCredential().run({ userId, passwordHash })
    return userOf(row)
  })
}

function addLink (database: SqliteDatabase): Accounts['addLink'] {
  const byId = database.prepared(userById)
  const bySubject = database.prepared(linkBySubject)
  const links = database.prepared(linksOfUser)
  const insert = database.prepared(insertLink)
  const { note } = noteIdentity(database)

  return (userId, identity, generation) => database.transaction(() => {
    const { provider, subject, claims } = identity
    const user = byId().get({ userId })
    if (user === undefined || !isAtGeneration(generation, user.extras)) return null
    if (bySubject().get({ provider, subject }) !== undefined) return null
    if (links().all({ userId }).some(link => link.provider === provider)) return null
    insert().run({ provider, subject, userId, claims })
    return note(user, identity)
  })
}

function removeLink (database: SqliteDatabase): Accounts['removeLink'] {
  const byId = database.prepared(userById)
  const links = database.prepared(linksOfUser)
  const remove = database.prepared(deleteLink)
  const set = database.prepared(setUser)
  const removeCredential = database.prepared(deleteCredential)

  return (userId, provider) => database.transaction(() => {
    const user = byId().get({ userId })
    if (user === undefined) throw new AuthError('unknown_user')
    const left = linksWithout(links().all({ userId }), provider)
    const { changes } = remove().run({ userId, provider })
    if (changes > 0) {
      const extras = vouchedBy(user.extras, { provider, vouches: false, isNewEmail: false })
      set().get({ ...user, extras: endedSessions(extras) })
    }
    if (provider === 'local') removeCredential().run({ userId })
    return left
  })
}

function deleteUser (database: SqliteDatabase): Accounts['deleteUser'] {
  return deleteIf(database, user => {
    if (user === null) throw new AuthError('unknown_user')
    return true
  })
}

function admitUser (database: SqliteDatabase): Accounts['admitUser'] {
  const admit = database.prepared(db => db.update(users)
    .set({ extras: sql`json_remove(${users.extras}, '$.is_new')` })
    .where(and(isUser, sql`json_type(${users.extras}, '$.is_new') is not null`))
    .prepare())

  return userId => database.write(() => admit().run({ userId }).changes > 0)
}

function deleteNewUser (database: SqliteDatabase): Accounts['deleteNewUser'] {
  return deleteIf(database, user => user?.isNew === true)
}

function replacePasswordHash (database: SqliteDatabase): Accounts['replacePasswordHash'] {
  const replace = database.prepared(db => db.update(credentials)
    .set({ pwHash: sql`${given('next')}` })
    .where(and(isCredentialOfUser, eq(credentials.pwHash, given('current'))))
    .prepare())

  return async (userId, current, next) => {
    await database.write(() => replace().run({ userId, current, next }))
  }
}

function grant (database: SqliteDatabase): Accounts['grant'] {
  const change = changeClaims(database)

  return (userId, claims) => change(userId, granted => ({ ...granted, ...claims }))
}

function withdraw (database: SqliteDatabase): Accounts['withdraw'] {
  const change = changeClaims(database)

  return (userId, names) => change(userId, granted => {
    return Object.fromEntries(Object.entries(granted).filter(([name]) => !names.includes(name)))
  })
}

function changeClaims (database: SqliteDatabase) {
  const byId = database.prepared(userById)
  const setClaims = database.prepared(db => db.update(users)
    .set({ claims: sql`${sql.param(given('claims'), users.claims)}` })
    .where(isUser)
    .prepare())

  return (userId: string, change: (granted: AuthorizationClaims) => AuthorizationClaims) => database.transaction(() => {
    const user = byId().get({ userId })
    if (user === undefined) throw new AuthError('unknown_user')
    const claims = change(user.claims)
    setClaims().run({ userId, claims })
    return claims
  })
}

function deleteIf (database: SqliteDatabase, isDue: (user: User | null) => boolean) {
  const byId = database.prepared(userById)
  const remove = userRemoval(database)

  return (userId: string) => database.transaction(() => {
    if (isDue(userOf(byId().get({ userId })))) remove(userId)
  }, removalFailure)
}

/** Removes a user with their links and their password, inside a transaction. */
export function userRemoval (database: SqliteDatabase): (userId: string) => void {
  const removeLinks = database.prepared(db => db.delete(providerLinks).where(isLinkOfUser).prepare())
  const removeCredential = database.prepared(deleteCredential)
  const remove = database.prepared(db => db.delete(users).where(isUser).prepare())

  return userId => {
    // An application's connection may have foreign keys switched off.
    removeLinks().run({ userId })
    removeCredential().run({ userId })
    remove().run({ userId })
  }
}

/** The error of a transaction that could not remove a user. */
export function removalFailure (error: unknown): AuthError {
  return isForeignKeyViolation(error) ? new AuthError('user_in_use', { cause: error }) : storeFailure(error)
}

function noteIdentity (database: SqliteDatabase) {
  const byEmail = database.prepared(userByEmail)
  const set = database.prepared(setUser)

  // A new link has no earlier claims: nothing in them has changed.
  const noted = (user: UserRow, { provider, claims, verifiedEmail }: LinkedIdentity, earlier = claims): UserRow => {
    const hasChanged = earlier.email !== claims.email && !isConfirmed(user.extras.email_verified_by)
    const isDue = user.email === null || hasChanged
    const isFree = () => byEmail().get({ email: verifiedEmail }) === undefined
    const takesEmail = verifiedEmail !== null && (user.email === verifiedEmail || (isDue && isFree()))
    const email = takesEmail ? verifiedEmail : user.email
    const vouching = { provider, vouches: takesEmail, isNewEmail: email !== user.email }
    const name = user.extras.name_set ? user.name : claims.name ?? user.name
    return { ...user, name, email, extras: vouchedBy(user.extras, vouching) }
  }
  const note = (...given: Parameters<typeof noted>): User | null => userOf(set().get({ ...noted(...given) }))
  return { noted, note }
}
