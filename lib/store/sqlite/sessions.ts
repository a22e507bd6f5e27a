import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import {
  type SQL, and, eq, getTableColumns, gt, isNull, oneTimeEntries, providerLinks, sessions, sql, users
} from '../../drizzle/sqlite.js'
import { AuthError } from '../../errors.js'
import type { UserExtras } from '../../schema/extras.js'
import type { SessionRows } from '../capabilities.js'
import { excluded, given, givenAll } from '../drizzle.js'
import { PENDING_MS, TAKEN } from '../one-time-entries.js'
import { type StoredSessions, unwrittenRow } from '../sessions.js'
import { columnsOf, foundSession, readColumns, sqlSessions } from '../sql-sessions.js'
import type { SqliteDatabase } from './database.js'
import { sqliteEntries } from './entries.js'
import { isForeignKeyViolation, storeFailure } from './failures.js'

const isSession = eq(sessions.idHash, given('idHash'))

/** A JSON value that may be absent; Drizzle would write the text `null`. */
function json (name: string): SQL {
  const mapToDriverValue = (value: unknown): string | null => value === null ? null : JSON.stringify(value)
  return sql`${sql.param(given(name), { mapToDriverValue })}`
}

export function sqliteSessions (database: SqliteDatabase): SessionRows {
  return sqlSessions(database, {
    find: find(database),
    insert: insert(database),
    end: end(database),
    entries: sqliteEntries(database),
    userId: given('userId')
  })
}

function find (database: SqliteDatabase): StoredSessions['find'] {
  // A join takes SQLite three times as long.
  const isOfSession = eq(users.userId, sessions.userId)
  const ofUser = <Value>(column: SQLiteColumn) =>
    sql<Value | null>`(select ${column} from ${users} where ${isOfSession})`
  const isLink = and(eq(providerLinks.userId, sessions.userId), eq(providerLinks.provider, sessions.provider))
  const linkClaims = sql<string | null>`(select ${providerLinks.claims} from ${providerLinks} where ${isLink})`
  const session = database.prepared(db => db
    .select({
      ...readColumns(sessions),
      email: ofUser<string>(users.email),
      extras: ofUser<UserExtras>(users.extras).mapWith(users.extras),
      userClaims: ofUser<string>(users.claims),
      linkClaims
    })
    .from(sessions)
    .where(isSession))
  const { kind, owner, startedAt } = oneTimeEntries
  const pending = database.prepared(db => db.select({ startedAt }).from(oneTimeEntries)
    .where(and(eq(owner, given('idHash')), gt(startedAt, given('since')), sql`${kind} not like ${`%${TAKEN}`}`))
    .limit(1))

  return (idHash, now) => database.read(() => {
    const found = foundSession(session().get({ idHash }), now)
    if (found !== null) return found
    return pending().get({ idHash, since: now - PENDING_MS }) === undefined ? null : 'visitor'
  })
}

function insert (database: SqliteDatabase): StoredSessions['insert'] {
  const byId = database.prepared(db => db.select().from(sessions).where(isSession))
  const insert = database.prepared(db => db.insert(sessions)
    .values({
      ...givenAll(getTableColumns(sessions)), claims: json('claims'), proofs: json('proofs'), data: json('data')
    })
    .onConflictDoUpdate({
      target: sessions.idHash,
      set: excluded({ data: sessions.data, expiresAt: sessions.expiresAt }),
      setWhere: isNull(sessions.endedAt)
    }))
  const replace = database.prepared(db => db.update(sessions)
    .set({
      endedAt: sql`coalesce(${sessions.endedAt}, ${given('endedAt')})`,
      replacedBy: sql`${given('replacedBy')}`
    })
    .where(isSession))

  // As the rule `admitUser` of accounts does.
  const admit = database.prepared(db => db.update(users)
    .set({ extras: sql`json_remove(${users.extras}, '$.is_new')` })
    .where(and(eq(users.userId, given('userId')), sql`json_extract(${users.extras}, '$.is_new') is not null`)))

  // The user of the session may have been deleted meanwhile.
  const failure = (error: unknown): AuthError =>
    isForeignKeyViolation(error) ? new AuthError('unauthenticated', { cause: error }) : storeFailure(error)

  return async (session, replaced) => {
    const { admits = false } = session
    const columns = { ...columnsOf(session), endedAt: null, replacedBy: null }
    if (replaced === null && !admits) {
      return database.write(() => {
        insert().run(columns)
        return true
      }, { failure, isSynced: false })
    }
    // A session that a crash of the machine loses signs nobody in; one that is known must end.
    const isSynced = admits || await database.read(() => byId().get({ idHash: replaced }) !== undefined)
    return database.transaction(() => {
      const before = replaced === null ? undefined : byId().get({ idHash: replaced })
      if (before?.signedOut === true) return false
      insert().run({ ...columns, replacedBy: before?.replacedBy ?? null })
      const end = { endedAt: session.createdAt, replacedBy: session.idHash }
      if (before !== undefined) replace().run({ ...end, idHash: before.idHash })
      else if (replaced !== null) insert().run({ ...columnsOf(unwrittenRow(replaced, session.createdAt)), ...end })
      return admits && admit().run({ userId: columns.userId }).changes > 0 ? 'admitted' : true
    }, { failure, isSynced })
  }
}

function end (database: SqliteDatabase): StoredSessions['end'] {
  const byId = database.prepared(db => db.select().from(sessions).where(isSession))
  const setEnd = database.prepared(db => db.update(sessions)
    .set({
      endedAt: sql`coalesce(${sessions.endedAt}, ${given('now')})`,
      signedOut: sql`${sessions.signedOut} or ${given('isSignOut')}`
    })
    .where(isSession))
  const deletePending = database.prepared(db => db.delete(oneTimeEntries)
    .where(eq(oneTimeEntries.owner, given('idHash'))))

  return (idHash, { now, isSignOut }) => database.transaction(() => {
    if (isSignOut) deletePending().run({ idHash })
    const session = byId().get({ idHash })
    if (session === undefined) {
      const ended = { ...columnsOf(unwrittenRow(idHash, now)), endedAt: now, signedOut: true }
      if (isSignOut) database.db.insert(sessions).values(ended).run()
      return null
    }
    setEnd().run({ idHash, now, isSignOut: Number(isSignOut) })
    const { userId, endedAt, expiresAt, replacedBy } = session
    return { userId, wasOpen: endedAt === null && expiresAt > now, replacedBy }
  })
}
