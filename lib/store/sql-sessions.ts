import { randomBytes } from 'node:crypto'
import { Sweeper } from '../base/sweeper.js'
import { type SQLWrapper, and, desc, eq, gt, isNull, lte, notInArray, or, sql } from '../drizzle/sql.js'
import type { SessionRows } from './capabilities.js'
import { type OneTimeEntries, PENDING_MS, RECORDS_OF_USE, RECORD_MS } from './one-time-entries.js'
import { ENDED_MS, MAX_LISTED, type StoredSessions } from './sessions.js'
import type { SqlDatabase } from './sql-database.js'

const given = sql.placeholder

/** What SQLite and Postgres do differently for sessions. */
interface SqlSessionsDialect extends Pick<StoredSessions, 'find' | 'insert' | 'end'> {
  readonly entries: OneTimeEntries
  /** The id of a user that a statement is given. */
  readonly userId: SQLWrapper
  /** The number of sessions that a sweep looks at. */
  readonly swept: number
}

/** Keeps sessions and what they own, and removes what is over while some are written. */
export function sqlSessions (
  database: SqlDatabase, { find, insert, end, entries, userId: ofUser, swept }: SqlSessionsDialect
): SessionRows {
  const { sessions } = database.tables
  const { idHash, userId, generation, userAgent, createdAt, seenAt, expiresAt, endedAt } = sessions
  const proofs = sql`${sessions.proofs}`.mapWith(sessions.proofs)
  const isOpen = and(isNull(endedAt), gt(expiresAt, given('now')))
  const listed = database.query(db => db.select({ idHash, proofs, userAgent, createdAt, seenAt, expiresAt })
    .from(sessions)
    .where(and(eq(userId, ofUser), eq(generation, given('generation')), isOpen))
    .orderBy(desc(seenAt))
    .limit(MAX_LISTED))
  const sweeper = new Sweeper(sweep(database, swept))

  return {
    sessions: {
      find,
      end,
      async insert (session, replaced) {
        const inserted = await insert(session, replaced)
        sweeper.start(session.createdAt)
        return inserted
      },
      update: async (id, { user, ...change }) => database.execute(db => db.update(sessions)
        .set({ ...user, ...change })
        .where(and(eq(idHash, id), isNull(endedAt)))),
      ofUser: async (userId, generation, now) => listed({ userId, generation, now })
    },
    entries: {
      ...entries,
      async put (entry, most) {
        await entries.put(entry, most)
        sweeper.start(entry.startedAt)
      }
    }
  }
}

/**
 * Removes what is over, of the sessions a page at a time, in the order of their hashes. It begins
 * at a random one: a process that does not run for long would never come to the last rows
 * otherwise.
 */
function sweep (database: SqlDatabase, size: number): (now: number) => Promise<void> {
  const { sessions: { idHash, expiresAt, endedAt }, sessions, oneTimeEntries: { kind, startedAt }, oneTimeEntries } =
    database.tables
  const pageAfter = database.query(db => {
    const page = db.select({ idHash }).from(sessions)
      .where(gt(idHash, given('after')))
      .orderBy(idHash)
      .limit(size)
      .as('page')
    return db.select({ last: sql<string | null>`max(${page.idHash})`, size: sql`count(*)`.mapWith(Number) }).from(page)
  })

  /** Sweeps the page after a hash; returns its last hash, null when no row follows. */
  const sweepPage = async (after: string, now: number): Promise<string | null> => {
    const [page] = await pageAfter({ after })
    const last = page?.last ?? after
    const endOfRow = sql`coalesce(${endedAt} + cast(${ENDED_MS} as bigint), ${expiresAt})`
    await database.execute(db => db.delete(sessions)
      .where(and(gt(idHash, after), lte(idHash, last), lte(endOfRow, now))))
    return Number(page?.size) < size ? null : last
  }
  let after = randomBytes(24).toString('base64url')

  return async now => {
    await database.execute(db => db.delete(oneTimeEntries)
      .where(or(
        lte(startedAt, now - RECORD_MS),
        and(lte(startedAt, now - PENDING_MS), notInArray(kind, [...RECORDS_OF_USE]))
      )))
    after = await sweepPage(after, now) ?? await sweepPage('', now) ?? ''
  }
}
