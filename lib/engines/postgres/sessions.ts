import {
  type SQL, and, eq, gt, isNull, not, oneTimeEntries, providerLinks, sessions, sql, users
} from '../../drizzle/postgres.js'
import { PENDING_MS, type SessionRows, type StoredSessions, TAKEN } from '../../session/store.js'
import { columnsOf, excluded, foundSession, given, readColumns, sqlSessions } from '../sql-rows.js'
import type { PostgresDrizzle } from '../sql-target.js'
import { type BuiltStatement, type PostgresDatabase, TEXT, USER_ID, isTrue, isUser, json } from './database.js'
import { postgresEntries } from './entries.js'
import { postgresFailures } from './failures.js'
import { type PostgresRevocations, recordedRevocation } from './revocations.js'

const BOOLEAN = { mapFromDriverValue: (text: string) => text === '1' }

const isSession = eq(sessions.idHash, given('idHash'))
const isOpen = and(isNull(sessions.endedAt), gt(sessions.expiresAt, given('now')))

/** Each operation is one statement. */
export function postgresSessions (database: PostgresDatabase, revocations: PostgresRevocations): SessionRows {
  return sqlSessions(database, {
    find: find(database),
    insert: insert(database),
    end: end(database, revocations),
    entries: postgresEntries(database),
    userId: USER_ID
  })
}

function find (database: PostgresDatabase): StoredSessions['find'] {
  const columns = { ...readColumns(sessions), email: users.email, extras: users.extras }
  const ofUser = {
    userClaims: sql<string>`${users.claims}::text`,
    linkClaims: sql<string>`${providerLinks.claims}::text`
  }
  const isVisitor = sql`exists (select from ${oneTimeEntries} where ${oneTimeEntries.owner} = ${given('idHash')}
    and ${oneTimeEntries.startedAt} > ${given('since')}::bigint and ${oneTimeEntries.kind} not like ${`%${TAKEN}`})`
  const asked = sql`(select ${given('idHash')}::text as id_hash) asked`
  const session = database.prepared(
    db => db.select({ ...columns, ...ofUser, isVisitor: isTrue(sql`${sessions.idHash} is null and ${isVisitor}`) })
      .from(asked)
      .leftJoin(sessions, eq(sessions.idHash, sql`asked.id_hash`))
      .leftJoin(users, eq(users.userId, sessions.userId))
      .leftJoin(providerLinks, and(
        eq(providerLinks.userId, sessions.userId), eq(providerLinks.provider, sessions.provider)
      )),
    { ...columns, userClaims: TEXT, linkClaims: TEXT, isVisitor: BOOLEAN },
    'reads'
  )

  return async (idHash, now) => {
    const [row] = await session({ idHash, since: now - PENDING_MS })
    return row?.isVisitor === true ? 'visitor' : foundSession(row, now)
  }
}

function insert (database: PostgresDatabase): StoredSessions['insert'] {
  // A statement for each case: the server would plan the parts that have nothing to do too.
  const insertion = (given: Insertion) =>
    database.prepared(db => insertionOf(db, given), { isAdmitted: BOOLEAN }, 'alone', postgresFailures.ofSession)
  const alone = insertion({ replaces: false, admits: false })
  const admitting = insertion({ replaces: false, admits: true })
  const replacing = insertion({ replaces: true, admits: false })
  const both = insertion({ replaces: true, admits: true })

  return async (session, replaced) => {
    const { admits = false } = session
    const statement = replaced === null ? (admits ? admitting : alone) : (admits ? both : replacing)
    const [row] = await statement({ ...columnsOf(session), replaced })
    return row?.isAdmitted === true ? 'admitted' : replaced === null || row !== undefined
  }
}

type Insertion = Record<'replaces' | 'admits', boolean>

function insertionOf (db: PostgresDrizzle, { replaces, admits }: Insertion): BuiltStatement<{ isAdmitted: boolean }> {
  // A locked row is read as it is after the wait: a sign-in sees the sign-out that it waited for.
  const before = db.$with('before').as(db
    .select({ idHash: sessions.idHash, signedOut: sessions.signedOut, replacedBy: sessions.replacedBy })
    .from(sessions)
    .where(eq(sessions.idHash, given('replaced')))
    .for('no key update'))
  const replaced = db.$with('replaced').as(db.update(sessions)
    .set({
      endedAt: sql`coalesce(${sessions.endedAt}, ${given('createdAt')}::bigint)`,
      replacedBy: sql`${given('idHash')}`
    })
    .from(before)
    .where(and(eq(sessions.idHash, before.idHash), not(before.signedOut))))
  const unwritten = unwrittenOf(db, 'replaced', 'createdAt', sql`false, ${given('idHash')}`)
  const isSignedOut = sql`exists (select from ${before} where signed_out)`
  const parts = replaces ? [before, replaced, unwritten] : []
  const replacedBy = replaces ? sql`(select replaced_by from ${before}) where not ${isSignedOut}` : sql`null`
  const insert = (db: Pick<PostgresDrizzle, 'insert'>) => db.insert(sessions)
    .select(sql`select ${given('idHash')}, ${given('userId')}::uuid, ${given('provider')}, ${jsonOrNull('claims')},
      ${given('generation')}::int, ${jsonOrNull('proofs')}, ${jsonOrNull('data')}, ${given('userAgent')},
      ${given('createdAt')}::bigint, ${given('createdAt')}::bigint, ${given('expiresAt')}::bigint, null::bigint,
      false, ${replacedBy}`)
    .onConflictDoUpdate({
      target: sessions.idHash,
      set: excluded({ data: sessions.data, expiresAt: sessions.expiresAt }),
      setWhere: isNull(sessions.endedAt)
    })
    .returning({ isAdmitted: isTrue(sql`false`).as('is_admitted') })
  if (!admits) return insert(db.with(...parts))
  const inserted = db.$with('inserted').as(insert(db))
  // As the rule `admitUser` of accounts does.
  const admitted = db.$with('admitted').as(db.update(users)
    .set({ extras: sql`${users.extras} - 'is_new'` })
    .where(and(isUser, sql`${users.extras} -> 'is_new' is not null and exists (select from ${inserted})`))
    .returning({ userId: users.userId }))
  return db.with(...parts, inserted, admitted)
    .select({ isAdmitted: isTrue(sql`exists (select from ${admitted})`) })
    .from(inserted)
}

function jsonOrNull (name: string): SQL {
  return sql`nullif(${json(name)}, 'null')`
}

/**
 * Writes a session as one that has ended, if the part `before` of the statement has not found it.
 * Of two that write it at once, the second is run again and finds it.
 *
 * @param outcome the columns `signed_out` and `replaced_by`
 */
function unwrittenOf (db: PostgresDrizzle, idHash: string, endedAt: string, outcome: SQL) {
  const time = sql`${given(endedAt)}::bigint`
  return db.$with('unwritten').as(db.insert(sessions)
    .select(sql`select ${given(idHash)}, null::uuid, null, null::jsonb, 0, null::jsonb, null::jsonb, null,
      ${time}, ${time}, ${time}, ${time}, ${outcome} where not exists (select from before)`))
}

function end (database: PostgresDatabase, revocations: PostgresRevocations): StoredSessions['end'] {
  const endSession = database.prepared(db => endingOf(db, { isSignOut: false }))
  const signOut = database.prepared(db => endingOf(db, { isSignOut: true }))

  return async (idHash, { now, isSignOut, isRecorded = false }) => {
    const values = { idHash, now }
    const [row] = isSignOut
      ? await revocations.run(revocation => signOut({ ...values, isRecorded, ...revocation }))
      : await endSession(values)
    if (row === undefined) return null
    return isSignOut ? { ...row, isRecorded: true } : row
  }
}

function endingOf (db: PostgresDrizzle, { isSignOut }: { isSignOut: boolean }) {
  const { idHash, userId, replacedBy } = sessions
  const before = db.$with('before').as(db
    .select({ idHash, userId, replacedBy, wasOpen: isTrue(sql`${isOpen}`).as('was_open') })
    .from(sessions)
    .where(isSession)
    .for('no key update'))
  const ended = db.$with('ended').as(db.update(sessions)
    .set({
      endedAt: sql`coalesce(${sessions.endedAt}, ${given('now')}::bigint)`,
      ...(isSignOut && { signedOut: true })
    })
    .from(before)
    .where(eq(sessions.idHash, before.idHash)))
  const pending = db.$with('pending').as(db.delete(oneTimeEntries).where(eq(oneTimeEntries.owner, given('idHash'))))
  const isTold = sql`not ${before.wasOpen}::boolean or ${before.userId} is null or ${given('isRecorded')}::boolean`
  const unwritten = unwrittenOf(db, 'idHash', 'now', sql`true, null`)
  const ofSignOut = isSignOut ? [pending, unwritten, recordedRevocation(db, sql`${before} where not (${isTold})`)] : []
  return db.with(before, ended, ...ofSignOut)
    .select({ userId: before.userId, wasOpen: before.wasOpen, replacedBy: before.replacedBy })
    .from(before)
}
