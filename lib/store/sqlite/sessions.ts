import { type SQL, and, desc, eq, gt, inArray, isNull, lte, notExists, sql } from 'drizzle-orm'
import type { UserExtras } from '../../schema/extras.js'
import { pendingSignIns, sessions, users } from '../../schema/sqlite.js'
import { changedColumns, columnsOf, foundSession } from '../session-rows.js'
import {
  ENDED_MS, MAX_LISTED, MAX_PENDING, PENDING_MS, type StoredSessions, visitorRow, withSweeps
} from '../sessions.js'
import type { SqliteDatabase } from './database.js'
import { given } from './statements.js'

/** The number of sessions that a sweep looks at: it holds up the process meanwhile. */
const SWEPT = 1000

const isSession = eq(sessions.idHash, given('idHash'))
const isOpen = and(isNull(sessions.endedAt), gt(sessions.expiresAt, given('now')))

/** A JSON value that may be absent; Drizzle would write the text `null`. */
function json (name: string): SQL {
  const mapToDriverValue = (value: unknown): string | null => value === null ? null : JSON.stringify(value)
  return sql`${sql.param(given(name), { mapToDriverValue })}`
}

/** Keeps sessions on SQLite. */
export function sqliteSessions (database: SqliteDatabase): StoredSessions {
  return withSweeps({
    find: find(database),
    insert: insertSession(database),
    update: update(database),
    end: end(database),
    ofUser: ofUser(database),
    addPending: addPendingSignIn(database),
    hasPending: hasPending(database),
    takePending: takePending(database)
  }, sweep(database))
}

function find (database: SqliteDatabase): StoredSessions['find'] {
  // A join takes SQLite three times as long.
  const isOfSession = eq(users.userId, sessions.userId)
  const extras = sql<UserExtras | null>`(select ${users.extras} from ${users} where ${isOfSession})`
  const session = database.prepared(db => db
    .select({
      userId: sessions.userId,
      provider: sessions.provider,
      claims: sessions.claims,
      generation: sessions.generation,
      proofs: sessions.proofs,
      data: sessions.data,
      createdAt: sessions.createdAt,
      seenAt: sessions.seenAt,
      expiresAt: sessions.expiresAt,
      extras: extras.mapWith(users.extras)
    })
    .from(sessions)
    .where(and(isSession, isOpen))
    .prepare())

  return (idHash, now) => database.read(() => foundSession(session().get({ idHash, now })))
}

function insertSession (database: SqliteDatabase): StoredSessions['insert'] {
  const byId = database.prepared(db => db.select().from(sessions).where(isSession).prepare())
  const insert = database.prepared(db => db.insert(sessions)
    .values({
      idHash: given('idHash'),
      userId: given('userId'),
      provider: given('provider'),
      claims: json('claims'),
      generation: given('generation'),
      proofs: json('proofs'),
      data: json('data'),
      userAgent: given('userAgent'),
      createdAt: given('createdAt'),
      seenAt: given('seenAt'),
      expiresAt: given('expiresAt'),
      signedOut: given('signedOut'),
      replacedBy: given('replacedBy')
    })
    .onConflictDoUpdate({
      target: sessions.idHash,
      set: { data: sql`excluded.data`, expiresAt: sql`excluded.expires_at` },
      setWhere: isNull(sessions.endedAt)
    })
    .prepare())
  const replace = database.prepared(db => db.update(sessions)
    .set({
      endedAt: sql`coalesce(${sessions.endedAt}, ${given('now')})`,
      replacedBy: sql`${given('replacedBy')}`
    })
    .where(isSession)
    .prepare())

  return (session, replaced) => {
    const columns = { ...columnsOf(session), replacedBy: null }
    if (replaced === null) {
      return database.write(() => {
        insert().run(columns)
        return true
      })
    }
    return database.transaction(() => {
      const before = byId().get({ idHash: replaced })
      if (before?.signedOut === true) return false
      insert().run({ ...columns, replacedBy: before?.replacedBy ?? null })
      if (before === undefined) insert().run({ ...columnsOf(visitorRow(replaced, session)), replacedBy: null })
      replace().run({ idHash: replaced, now: session.createdAt, replacedBy: session.idHash })
      return true
    })
  }
}

function update (database: SqliteDatabase): StoredSessions['update'] {
  return (idHash, change) => database.write(() => {
    database.db.update(sessions).set(changedColumns(change))
      .where(and(eq(sessions.idHash, idHash), isNull(sessions.endedAt)))
      .run()
  })
}

function end (database: SqliteDatabase): StoredSessions['end'] {
  const byId = database.prepared(db => db.select().from(sessions).where(isSession).prepare())
  const setEnd = database.prepared(db => db.update(sessions)
    .set({
      endedAt: sql`coalesce(${sessions.endedAt}, ${given('now')})`,
      signedOut: sql`${sessions.signedOut} or ${given('isSignOut')}`
    })
    .where(isSession)
    .prepare())
  const deletePending = database.prepared(db => db.delete(pendingSignIns)
    .where(eq(pendingSignIns.sessionHash, given('idHash')))
    .prepare())

  return (idHash, { now, isSignOut }) => database.transaction(() => {
    if (isSignOut) deletePending().run({ idHash })
    const session = byId().get({ idHash })
    if (session === undefined) return null
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
    .limit(MAX_LISTED)
    .prepare())

  return (userId, generation, now) => database.read(() => listed().all({ userId, generation, now }))
}

function addPendingSignIn (database: SqliteDatabase): StoredSessions['addPending'] {
  const insert = database.prepared(db => db.insert(pendingSignIns)
    .values({
      stateHash: given('stateHash'),
      sessionHash: given('sessionHash'),
      content: given('content'),
      startedAt: given('startedAt')
    })
    .prepare())
  const deleteOldest = database.prepared(db => db.delete(pendingSignIns)
    .where(inArray(pendingSignIns.stateHash, db.select({ stateHash: pendingSignIns.stateHash }).from(pendingSignIns)
      .where(eq(pendingSignIns.sessionHash, given('sessionHash')))
      .orderBy(desc(pendingSignIns.startedAt))
      .limit(MAX_LISTED)
      .offset(MAX_PENDING)))
    .prepare())

  return pending => database.transaction(() => {
    insert().run({ ...pending })
    deleteOldest().run({ sessionHash: pending.sessionHash })
  })
}

function hasPending (database: SqliteDatabase): StoredSessions['hasPending'] {
  const pending = database.prepared(db => db.select({ one: sql`1` }).from(pendingSignIns)
    .where(and(
      eq(pendingSignIns.sessionHash, given('sessionHash')),
      gt(pendingSignIns.startedAt, given('since')),
      notExists(db.select({ one: sql`1` }).from(sessions).where(eq(sessions.idHash, pendingSignIns.sessionHash)))
    ))
    .limit(1)
    .prepare())

  return (sessionHash, since) => database.read(() => pending().get({ sessionHash, since }) !== undefined)
}

function takePending (database: SqliteDatabase): StoredSessions['takePending'] {
  return (stateHash, sessionHashes) => database.write(() => {
    const taken = database.db.delete(pendingSignIns)
      .where(and(
        eq(pendingSignIns.stateHash, stateHash), inArray(pendingSignIns.sessionHash, [...sessionHashes])
      ))
      .returning({ content: pendingSignIns.content })
      .get()
    // `get` of Drizzle has no undefined in its type.
    return (taken as typeof taken | undefined)?.content ?? null
  })
}

/** Removes what is over, a part of the sessions at a time, in the order of the primary key. */
function sweep (database: SqliteDatabase): (now: number) => Promise<void> {
  let after = ''
  const page = database.prepared(db => db.select({ idHash: sessions.idHash }).from(sessions)
    .where(gt(sessions.idHash, given('after')))
    .orderBy(sessions.idHash)
    .limit(SWEPT)
    .prepare())

  return async now => {
    const found = await database.read(() => page().all({ after }))
    const last = found.at(-1)?.idHash ?? after
    await database.write(() => {
      database.db.delete(pendingSignIns).where(lte(pendingSignIns.startedAt, now - PENDING_MS)).run()
    })
    await database.write(() => {
      database.db.delete(sessions)
        .where(and(
          gt(sessions.idHash, after),
          lte(sessions.idHash, last),
          lte(sql`coalesce(${sessions.endedAt} + ${ENDED_MS}, ${sessions.expiresAt})`, now)
        ))
        .run()
    })
    after = found.length < SWEPT ? '' : last
  }
}
