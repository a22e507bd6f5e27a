import { hash } from 'node:crypto'
import { Sweeper } from '../../base/sweeper.js'
import { attempts, inArray, lte, sql } from '../../drizzle/postgres.js'
import { given } from '../drizzle.js'
import type { PostgresDrizzle } from '../sql-target.js'
import type { Attempt, AttemptCounter } from '../attempts.js'
import type { PostgresDatabase, Prepared } from './database.js'
import { NUMBER, STATEMENT_START } from './statements.js'

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
    insert into ${attempts} (key_hash, count, resets_at)
    select ${given(`key${index}`)}::text, 1, ${STATEMENT_START} + ${given(`timeWindow${index}`)}::bigint
    ${index > 0 ? sql`from ${names[index - 1]} where count <= ${given(`max${index - 1}`)}::bigint` : sql``}
    on conflict (key_hash) do update set
      count = case when ${attempts.resetsAt} > ${STATEMENT_START} then ${attempts.count} + 1 else 1 end,
      resets_at = case when ${attempts.resetsAt} > ${STATEMENT_START} then ${attempts.resetsAt}
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
  return [[`key${index}`, hash('sha256', key, 'base64url')], [`max${index}`, max], [`timeWindow${index}`, timeWindow]]
}

function expiredRemoved (db: PostgresDrizzle) {
  const expired = db.select({ keyHash: attempts.keyHash }).from(attempts)
    .where(lte(attempts.resetsAt, STATEMENT_START))
    .limit(SWEPT_AT_ONCE)
    .for('update', { skipLocked: true })
  const swept = db.$with('swept').as(db.delete(attempts)
    .where(inArray(attempts.keyHash, expired))
    .returning({ keyHash: attempts.keyHash }))
  return db.with(swept).select({ count: sql`count(*)`.mapWith(Number) }).from(swept)
}
