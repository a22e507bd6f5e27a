import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import {
  type SQL, and, desc, eq, getTableColumns, gt, isNull, lte, oneTimeEntries, providerLinks, sessions, sql, users
} from '../../drizzle/sqlite.js'
import { AuthError } from '../../errors.js'
import type { UserExtras } from '../../schema/extras.js'
import { type SessionRows, inPages, withSweeps } from '../capabilities.js'
import { excluded, givenAll } from '../columns.js'
import { columnsOf, foundSession, isOutdated, readColumns } from '../session-rows.js'
import { PENDING_MS } from '../one-time-entries.js'
import { ENDED_MS, MAX_LISTED, type StoredSessions, unwrittenRow } from '../sessions.js'
import { type SqliteDatabase, given } from './database.js'
import { sqliteEntries } from './entries.js'
import { isForeignKeyViolation, storeFailure } from './failures.js'

/** The number of sessions that a sweep looks at: it holds up the process meanwhile. */
const SWEPT = 1000

const isSession = eq(sessions.idHash, given('idHash'))
const isOpen = and(isNull(sessions.endedAt), gt(sessions.expiresAt, given('now')))

/** A JSON value that may be absent; Drizzle would write the text `null`. */
function json (name: string): SQL {
  const mapToDriverValue = (value: unknown): string | null => value === null ? null : JSON.stringify(value)
  return sql`${sql.param(given(name), { mapToDriverValue })}`
}

/** Keeps sessions and what they own on SQLite. */
export function sqliteSessions (database: SqliteDatabase): SessionRows {
  const sessions = {
    find: find(database),
    insert: insertSession(database),
    update: update(database),
    end: end(database),
    ofUser: ofUser(database)
  }
  return withSweeps({ sessions, entries: sqliteEntries(database) }, sweep(database))
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
  const { owner, startedAt } = oneTimeEntries
  const pending = database.prepared(db => db.select({ startedAt }).from(oneTimeEntries)
    .where(and(eq(owner, given('idHash')), gt(startedAt, given('since'))))
    .limit(1))

  return (idHash, now) => database.read(() => {
    const found = foundSession(session().get({ idHash }), now)
    if (found !== null) return found
    return pending().get({ idHash, since: now - PENDING_MS }) === undefined ? null : 'visitor'
  })
}

function insertSession (database: SqliteDatabase): StoredSessions['insert'] {
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
    .where(and(
      eq(users.userId, given('userId')), sql`json_extract(${users.extras}, '$.is_new') is not null`
    )))

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

function update (database: SqliteDatabase): StoredSessions['update'] {
  return (idHash, { user, ...change }) => database.write(() => {
    database.db.update(sessions).set({ ...user, ...change })
      .where(and(eq(sessions.idHash, idHash), isNull(sessions.endedAt)))
      .run()
  })
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

function ofUser (database: SqliteDatabase): StoredSessions['ofUser'] {
  const { idHash, userAgent, createdAt, seenAt, expiresAt } = sessions
  const proofs = sql`${sessions.proofs}`.mapWith(sessions.proofs)
  const listed = database.prepared(db => db.select({ idHash, proofs, userAgent, createdAt, seenAt, expiresAt })
    .from(sessions)
    .where(and(
      eq(sessions.userId, given('userId')), eq(sessions.generation, given('generation')), isOpen
    ))
    .orderBy(desc(sessions.seenAt))
    .limit(MAX_LISTED))

  return (userId, generation, now) => database.read(() => listed().all({ userId, generation, now }))
}

/** Removes what is over, a part of the sessions at a time. */
function sweep (database: SqliteDatabase): (now: number) => Promise<void> {
  const page = database.prepared(db => db.select({ idHash: sessions.idHash }).from(sessions)
    .where(gt(sessions.idHash, given('after')))
    .orderBy(sessions.idHash)
    .limit(SWEPT))
  const sweepSessions = inPages(async (after, now) => {
    const found = await database.read(() => page().all({ after }))
    const last = found.at(-1)?.idHash ?? after
    await database.write(() => {
      database.db.delete(sessions)
        .where(and(
          gt(sessions.idHash, after),
          lte(sessions.idHash, last),
          lte(sql`coalesce(${sessions.endedAt} + ${ENDED_MS}, ${sessions.expiresAt})`, now)
        ))
        .run()
    })
    return found.length < SWEPT ? null : last
  })

  return async now => {
    await database.write(() => {
      database.db.delete(oneTimeEntries).where(isOutdated(oneTimeEntries, now)).run()
    })
    await sweepSessions(now)
  }
}
