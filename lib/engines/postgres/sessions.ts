import { hash as digest } from 'node:crypto'
import type { PgColumn } from 'drizzle-orm/pg-core'
import { Sweeper } from '../../base/concurrency.js'
import {
  type SQL, and, attempts as counts, count, desc, eq, getTableColumns, gt, inArray, isNull, lt, lte, not,
  oneTimeEntries, providerLinks, sessions, sql, users
} from '../../drizzle/postgres.js'
import {
  type Attempt, type AttemptCounter, type EntryContent, type OneTimeEntries, PENDING_MS, RECORDS_OF_USE,
  type SessionRows, type StoredSessions, TAKEN
} from '../../session/store.js'
import { columnsOf, excluded, foundSession, given, readColumns, sqlSessions } from '../sql-rows.js'
import type { PostgresDrizzle } from '../sql-target.js'
import {
  type BuiltStatement, type PostgresDatabase, type Prepared, TEXT, USER_ID, isTrue, isUser, json
} from './database.js'
import { postgresFailures } from './failures.js'
import { type PostgresRevocations, recordedRevocation } from './revocations.js'

const BOOLEAN = { mapFromDriverValue: (text: string) => text === '1' }

const isSession = eq(sessions.idHash, given('idHash'))
const isOpen = and(isNull(sessions.endedAt), gt(sessions.expiresAt, given('now')))

/** Each operation is one statement. */
export function postgresSessions (
  database: PostgresDatabase, revocations: PostgresRevocations
): SessionRows & { attempts: AttemptCounter } {
  const rows = sqlSessions(database, {
    find: find(database),
    insert: insert(database),
    end: end(database, revocations),
    endAtProvider: endAtProvider(database, revocations),
    entries: postgresEntries(database),
    userId: USER_ID
  })
  return { ...rows, attempts: postgresAttempts(database) }
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
    const { admits = false, onlyOpen = false } = session
    const statement = replaced === null ? (admits ? admitting : alone) : (admits ? both : replacing)
    const [row] = await statement({ ...columnsOf(session), replaced, onlyOpen })
    return row?.isAdmitted === true ? 'admitted' : replaced === null || row !== undefined
  }
}

type Insertion = Record<'replaces' | 'admits', boolean>

function insertionOf (db: PostgresDrizzle, { replaces, admits }: Insertion): BuiltStatement<{ isAdmitted: boolean }> {
  // A locked row is read as it is after the wait: a sign-in sees the sign-out that it waited for.
  const before = db.$with('before').as(db
    .select({
      idHash: sessions.idHash,
      refuses: sql<boolean>`${sessions.signedOut}
        or (${given('onlyOpen')}::boolean and ${sessions.endedAt} is not null)`.as('refuses'),
      replacedBy: sessions.replacedBy
    })
    .from(sessions)
    .where(eq(sessions.idHash, given('replaced')))
    .for('no key update'))
  const replaced = db.$with('replaced').as(db.update(sessions)
    .set({
      endedAt: sql`coalesce(${sessions.endedAt}, ${given('createdAt')}::bigint)`,
      replacedBy: sql`${given('idHash')}`
    })
    .from(before)
    .where(and(eq(sessions.idHash, before.idHash), not(before.refuses))))
  const unwritten = unwrittenOf(db, 'replaced', 'createdAt', sql`false, ${given('idHash')}`)
  const parts = replaces ? [before, replaced, unwritten] : []
  const replacedBy = replaces ? sql`(select replaced_by from ${before})` : sql`null`
  const unlessRefused = replaces ? sql` where not exists (select from ${before} where refuses)` : sql``
  const insert = (db: Pick<PostgresDrizzle, 'insert'>) => db.insert(sessions)
    .select(sql`select ${given('idHash')}, ${given('userId')}::uuid, ${given('provider')}, ${jsonOrNull('claims')},
      ${given('generation')}::int, ${jsonOrNull('proofs')}, ${jsonOrNull('data')}, ${given('userAgent')},
      ${given('createdAt')}::bigint, ${given('createdAt')}::bigint, ${given('expiresAt')}::bigint, null::bigint,
      false, ${replacedBy}, ${given('shownUserId')}::uuid, ${given('providerSession')}, ${given('providerUser')}
      ${unlessRefused}`)
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
      ${time}, ${time}, ${time}, ${time}, ${outcome}, null::uuid, null, null where not exists (select from before)`))
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

function endAtProvider (
  database: PostgresDatabase, revocations: PostgresRevocations
): Required<StoredSessions>['endAtProvider'] {
  const statements = {
    session: database.prepared(db => endingAtProvider(db, sessions.providerSession)),
    user: database.prepared(db => endingAtProvider(db, sessions.providerUser))
  }
  return async ({ by, hash }, now) => {
    const ended = await revocations.run(revocation => statements[by]({ hash, now, ...revocation }))
    return ended.flatMap(({ userId }, index) => userId === null ? [] : [{ userId, isRecorded: index === 0 }])
  }
}

/** Records the revocation for the first user: a session at a provider is one user's. */
function endingAtProvider (db: PostgresDrizzle, column: PgColumn) {
  const { idHash, userId } = sessions
  // In one order, so that two of these statements do not wait for each other.
  const open = db.$with('open').as(db.select({ idHash, userId })
    .from(sessions)
    .where(and(eq(column, given('hash')), isOpen))
    .orderBy(idHash)
    .for('no key update'))
  const ended = db.$with('ended').as(db.update(sessions)
    .set({ endedAt: sql`${given('now')}::bigint` })
    .from(open)
    .where(eq(sessions.idHash, open.idHash)))
  const revocation = recordedRevocation(db, sql`(select user_id from ${open} order by user_id limit 1) first`)
  return db.with(open, ended, revocation).selectDistinct({ userId: open.userId }).from(open).orderBy(open.userId)
}

const NUMBER = { mapFromDriverValue: Number }

/** One time for all parts of a statement, by the clock that all processes share. */
const STATEMENT_START = sql`(extract(epoch from statement_timestamp()) * 1000)::bigint`

const { hash, ...columns } = getTableColumns(oneTimeEntries)
const { kind, owner, content, attempts, startedAt } = columns

const isEntry = and(eq(hash, given('hash')), eq(kind, given('kind')))
const isOfOwner = and(eq(owner, given('owner')), eq(kind, given('kind')))

/** Each operation is one statement. */
function postgresEntries (database: PostgresDatabase): Omit<OneTimeEntries, 'find' | 'takenAt'> {
  const insertion = (condition: SQL, how: 'alone' | 'entries') => database.prepared(db => {
    // The new one is not among those that the statement sees.
    const oldest = db.$with('oldest').as(db.delete(oneTimeEntries)
      .where(inArray(hash, db.select({ hash }).from(oneTimeEntries)
        .where(and(isOfOwner, not(eq(hash, given('hash')))))
        .orderBy(desc(startedAt))
        .offset(given('others')))))
    return db.with(oldest).insert(oneTimeEntries)
      .select(sql`select ${given('hash')}, ${given('kind')}, ${given('owner')}, ${json('content')}, 0,
        ${given('startedAt')}::bigint where ${condition}`)
      .onConflictDoUpdate({ target: hash, set: excluded(columns) })
      .returning({ hash })
  }, { hash }, how)
  const insert = insertion(database.asyncCommit, 'entries')
  const insertRecord = insertion(sql`true`, 'alone')
  const owners = sql`(select jsonb_array_elements_text(${json('owners')}))`
  const take = database.prepared(
    db => db.update(oneTimeEntries)
      .set({ kind: sql`${given('kind')} || ${TAKEN}`, startedAt: sql`${given('now')}::bigint` })
      .where(and(isEntry, inArray(owner, owners), database.asyncCommit))
      .returning({ content }),
    { content },
    'entries'
  )
  const noteAttempt = database.prepared(db => db.update(oneTimeEntries).set({ attempts: sql`${attempts} + 1` })
    .where(and(isEntry, isOfOwner, lt(attempts, given('most'))))
    .returning({ content }))
  const counted = database.prepared(
    db => db.select({ entries: count() }).from(oneTimeEntries).where(and(isOfOwner, gt(startedAt, given('since')))),
    { entries: NUMBER },
    'reads'
  )
  const contentOf = (rows: Array<{ content: EntryContent }>): EntryContent | null => rows[0]?.content ?? null

  return {
    // After a crash of the machine a sign-in starts again, and the session that an entry was taken
    // for is written after it.
    async put (entry, most) {
      const statement = RECORDS_OF_USE.includes(entry.kind) ? insertRecord : insert
      await statement({ ...entry, others: most - 1 })
    },
    take: async (hash, kind, owners) => contentOf(await take({ hash, kind, owners, now: Date.now() })),
    attempt: async (entry, most) => contentOf(await noteAttempt({ ...entry, most })),
    count: async (owner, kind, since) => Number((await counted({ owner, kind, since }))[0]?.entries)
  }
}

/** How many expired counts one statement deletes: others may wait for its locks. */
const SWEPT_AT_ONCE = 2000

/** By it, the processes agree on one sweep a minute. */
const SWEEP: Attempt = { key: 'svc-auth-sweep', max: 1, timeWindow: 60_000 }

/** Counts attempts on Postgres: those of one call are one statement, which is atomic. */
function postgresAttempts (database: PostgresDatabase): AttemptCounter {
  const statements = new Map<number, Prepared<{ count: number, wait: number }>>()
  const sweep = database.prepared(expiredRemoved)

  const count: AttemptCounter['count'] = async counted => {
    const { length } = counted
    const statement = statements.get(length) ??
      database.prepared(db => counting(db, length), { count: NUMBER, wait: NUMBER }, 'sign-ins')
    statements.set(length, statement)
    const rows = await statement(Object.fromEntries(counted.flatMap(valuesOf)))
    // The last count that was added to: only that one can be beyond its limit.
    const [last, limit] = [rows.at(-1), counted[rows.length - 1]]
    if (last === undefined || limit === undefined || last.count <= limit.max) return null
    return { key: limit.key, wait: last.wait }
  }

  const sweeper = new Sweeper(async () => {
    if (await count([SWEEP]) !== null) return
    let swept
    do swept = (await sweep({}))[0]?.count
    while (swept === SWEPT_AT_ONCE)
  }, database.notSwept, Date.now())

  return {
    count (attempts) {
      sweeper.start(Date.now())
      return count(attempts)
    }
  }
}

/**
 * Adds one to each of several counts, as long as the one before is within its limit. The rows are
 * the counts that were added to, in their order.
 */
function counting (db: PostgresDrizzle, length: number) {
  const names = Array.from({ length }, (_, index) => sql.identifier(`attempt_${index}`))
  const steps = names.map(({ value: name }, index) => db.$with(name, {}).as(sql`
    insert into ${counts} (key_hash, count, resets_at)
    select ${given(`key${index}`)}::text, 1, ${STATEMENT_START} + ${given(`timeWindow${index}`)}::bigint
    ${index > 0 ? sql`from ${names[index - 1]} where count <= ${given(`max${index - 1}`)}::bigint` : sql``}
    on conflict (key_hash) do update set
      count = case when ${counts.resetsAt} > ${STATEMENT_START} then ${counts.count} + 1 else 1 end,
      resets_at = case when ${counts.resetsAt} > ${STATEMENT_START} then ${counts.resetsAt}
        else excluded.resets_at end
    returning count, resets_at - ${STATEMENT_START} as wait`))
  const rows = names.map((name, index) => sql`select ${sql.raw(String(index))} as step, count, wait from ${name}`)
  return db.with(...steps)
    .select({ count: sql`count`.mapWith(Number), wait: sql`wait`.mapWith(Number) })
    .from(sql`(${sql.join(rows, sql` union all `)}) as attempts`)
    .orderBy(sql`step`)
}

/** Keys have addresses and e-mails in them: only their hashes are stored. */
function valuesOf ({ key, max, timeWindow }: Attempt, index: number): Array<[string, unknown]> {
  return [[`key${index}`, digest('sha256', key, 'base64url')], [`max${index}`, max], [`timeWindow${index}`, timeWindow]]
}

function expiredRemoved (db: PostgresDrizzle) {
  const expired = db.select({ keyHash: counts.keyHash }).from(counts)
    .where(lte(counts.resetsAt, STATEMENT_START))
    .limit(SWEPT_AT_ONCE)
    .for('update', { skipLocked: true })
  const swept = db.$with('swept').as(db.delete(counts)
    .where(inArray(counts.keyHash, expired))
    .returning({ keyHash: counts.keyHash }))
  return db.with(swept).select({ count: sql`count(*)`.mapWith(Number) }).from(swept)
}
