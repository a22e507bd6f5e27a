import { hash as digest } from 'node:crypto'
import { Sweeper } from '../../base/concurrency.js'
import {
  type SQL, and, attempts as attemptsTable, count, desc, eq, getTableColumns, gt, inArray, lt, lte, not, oneTimeEntries,
  sql
} from '../../drizzle/postgres.js'
import {
  type Attempt, type AttemptCounter, type EntryContent, type OneTimeEntries, RECORDS_OF_USE, TAKEN
} from '../../session/store.js'
import { excluded, given } from '../sql-rows.js'
import type { PostgresDrizzle } from '../sql-target.js'
import { type PostgresDatabase, type Prepared, json } from './database.js'

const NUMBER = { mapFromDriverValue: Number }

/** One time for all parts of a statement, by the clock that all processes share. */
const STATEMENT_START = sql`(extract(epoch from statement_timestamp()) * 1000)::bigint`

const { hash, ...columns } = getTableColumns(oneTimeEntries)
const { kind, owner, content, attempts, startedAt } = columns

const isEntry = and(eq(hash, given('hash')), eq(kind, given('kind')))
const isOfOwner = and(eq(owner, given('owner')), eq(kind, given('kind')))

/** Each operation is one statement. */
export function postgresEntries (database: PostgresDatabase): Omit<OneTimeEntries, 'find' | 'takenAt'> {
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
export function postgresAttempts (database: PostgresDatabase): AttemptCounter {
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
    insert into ${attemptsTable} (key_hash, count, resets_at)
    select ${given(`key${index}`)}::text, 1, ${STATEMENT_START} + ${given(`timeWindow${index}`)}::bigint
    ${index > 0 ? sql`from ${names[index - 1]} where count <= ${given(`max${index - 1}`)}::bigint` : sql``}
    on conflict (key_hash) do update set
      count = case when ${attemptsTable.resetsAt} > ${STATEMENT_START} then ${attemptsTable.count} + 1 else 1 end,
      resets_at = case when ${attemptsTable.resetsAt} > ${STATEMENT_START} then ${attemptsTable.resetsAt}
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
  const expired = db.select({ keyHash: attemptsTable.keyHash }).from(attemptsTable)
    .where(lte(attemptsTable.resetsAt, STATEMENT_START))
    .limit(SWEPT_AT_ONCE)
    .for('update', { skipLocked: true })
  const swept = db.$with('swept').as(db.delete(attemptsTable)
    .where(inArray(attemptsTable.keyHash, expired))
    .returning({ keyHash: attemptsTable.keyHash }))
  return db.with(swept).select({ count: sql`count(*)`.mapWith(Number) }).from(swept)
}
