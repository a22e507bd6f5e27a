import { and, gte, inArray, lt, sql } from 'drizzle-orm'
import { AuthError } from '../../errors.js'
import { credentials, providerLinks, users } from '../../schema/sqlite.js'
import { OWN_PROVIDERS, endOfPrefix, endedSessions, isConfirmed, localClaims } from '../accounts.js'
import { notesOfChange, standingIn, userOf } from '../rows.js'
import type { ManagedAccounts } from '../store.js'
import type { SqliteDatabase } from './database.js'
import {
  insertLink, isCredentialOfUser, isLinkOfUser, isUser, linkBySubject, linksOfUser, putCredential, setLinkClaims,
  setUser, userById
} from './statements.js'

/** Manages accounts on SQLite. */
export function sqliteManagedAccounts (database: SqliteDatabase): ManagedAccounts {
  return {
    standing: standing(database),
    changeUser: changeUser(database),
    setPassword: setPassword(database),
    users: listUsers(database)
  }
}

function standing (database: SqliteDatabase): ManagedAccounts['standing'] {
  const ofUser = database.prepared(db => db.select({ extras: users.extras }).from(users).where(isUser).prepare())

  return userId => database.read(() => {
    const user = ofUser().get({ userId })
    return user === undefined ? null : standingIn(user.extras)
  })
}

function changeUser (database: SqliteDatabase): ManagedAccounts['changeUser'] {
  const byId = database.prepared(userById)
  const ownLinks = database.prepared(db => db.select().from(providerLinks)
    .where(and(isLinkOfUser, inArray(providerLinks.provider, [...OWN_PROVIDERS])))
    .prepare())
  const setClaims = database.prepared(setLinkClaims)
  const set = database.prepared(setUser)

  return (userId, change) => database.transaction(() => {
    const user = byId().get({ userId })
    if (user === undefined) throw new AuthError('unknown_user')
    const { name = user.name } = change
    if (change.name !== undefined) {
      for (const { claims: { name: _, ...claims }, ...link } of ownLinks().all({ userId })) {
        setClaims().run({ ...link, claims: { ...claims, ...(name !== null && { name }) } })
      }
    }
    const { blocked, ...others } = { ...user.extras, ...notesOfChange(change) }
    const extras = { ...others, ...(blocked && { blocked }) }
    return userOf(set().get({ ...user, name, extras: change.endSessions ? endedSessions(extras) : extras }))
  })
}

function setPassword (database: SqliteDatabase): ManagedAccounts['setPassword'] {
  const byId = database.prepared(userById)
  const bySubject = database.prepared(linkBySubject)
  const links = database.prepared(linksOfUser)
  const insert = database.prepared(insertLink)
  const credential = database.prepared(db => db.select().from(credentials).where(isCredentialOfUser).prepare())
  const setHash = database.prepared(putCredential)
  const set = database.prepared(setUser)

  return (userId, { passwordHash, current }) => database.transaction(() => {
    const user = byId().get({ userId })
    if (user === undefined) throw new AuthError('unknown_user')
    const { email, name } = user
    if (email === null) return null
    const present = () => credential().get({ userId })?.pwHash ?? null
    if (current !== undefined && present() !== current) return null
    if (!links().all({ userId }).some(link => link.provider === 'local')) {
      if (bySubject().get({ provider: 'local', subject: email }) !== undefined) return null
      const claims = localClaims({ userId, email, name, isConfirmed: isConfirmed(user.extras.email_verified_by) })
      insert().run({ provider: 'local', subject: email, userId, claims })
    }
    setHash().run({ userId, passwordHash })
    return userOf(set().get({ ...user, extras: endedSessions(user.extras) }))
  })
}

function listUsers (database: SqliteDatabase): ManagedAccounts['users'] {
  // The first condition is that of the partial index.
  const isBlocked = (now: number) => and(
    sql`json_extract(${users.extras}, '$.blocked') is not null`,
    sql`coalesce(json_extract(${users.extras}, '$.blocked.until') > ${now}, true)`
  )
  const isFree = (now: number) => sql`coalesce(json_extract(${users.extras}, '$.blocked.until') <= ${now},
    json_extract(${users.extras}, '$.blocked') is null)`

  return ({ after, limit, email, blocked }) => database.read(() => {
    // With a plus, SQLite does not go through all users by id: the index on e-mails finds fewer.
    const userId = email === null ? users.userId : sql`+${users.userId}`
    const rows = database.db.select().from(users)
      .where(and(
        after === null ? undefined : sql`${userId} > ${after}`,
        email === null ? undefined : and(gte(users.email, email), lt(users.email, endOfPrefix(email))),
        blocked === null ? undefined : (blocked ? isBlocked : isFree)(Date.now())
      ))
      .orderBy(userId)
      .limit(limit)
      .all()
    return rows.map(row => userOf(row))
  })
}
