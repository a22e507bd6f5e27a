import { randomBytes } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { statusOf } from '../accounts/account.js'
import { Sweeper } from '../base/sweeper.js'
import { type Claims, mergeClaims } from '../claims.js'
import { type SQL, type SQLWrapper, and, count, desc, eq, gt, inArray, isNull, lte, sql } from '../drizzle/sql.js'
import type { UserExtras } from '../schema/extras.js'
import type { sessions } from '../schema/sqlite.js'
import type { SessionRows } from './capabilities.js'
import { given } from './drizzle.js'
import { type OneTimeEntries, PENDING_MS, RECORDS_OF_USE, RECORD_MS } from './one-time-entries.js'
import {
  ENDED_MS, MAX_LISTED, type FoundSession, type NewSession, type SessionUser, type StoredSessions
} from './sessions.js'
import type { SqlDatabase } from './sql-database.js'

interface SqlSessionsDialect extends Pick<StoredSessions, 'find' | 'insert' | 'end'> {
  readonly entries: OneTimeEntries
  readonly userId: SQLWrapper
}

/** How many rows a sweep looks at in one statement: SQLite holds up the process meanwhile. */
const SWEPT = 1000

/** Keeps sessions and what they own, and removes what is over while some are written. */
export function sqlSessions (
  database: SqlDatabase, { find, insert, end, entries, userId: ofUser }: SqlSessionsDialect
): SessionRows {
  const { sessions, oneTimeEntries } = database.tables
  const { idHash, userId, generation, userAgent, createdAt, seenAt, expiresAt, endedAt } = sessions
  const proofs = sql`${sessions.proofs}`.mapWith(sessions.proofs)
  const isOpen = and(isNull(endedAt), gt(expiresAt, given('now')))
  const listed = database.query(db => db.select({ idHash, proofs, userAgent, createdAt, seenAt, expiresAt })
    .from(sessions)
    .where(and(eq(userId, ofUser), eq(generation, given('generation')), isOpen))
    .orderBy(desc(seenAt))
    .limit(MAX_LISTED))
  const { hash, kind, startedAt } = oneTimeEntries
  const lifetime = sql`case when ${inArray(kind, [...RECORDS_OF_USE])} then ${RECORD_MS} else ${PENDING_MS} end`
  const sweepers = [
    { table: sessions, hash: idHash, end: sql`coalesce(${endedAt} + cast(${ENDED_MS} as bigint), ${expiresAt})` },
    { table: oneTimeEntries, hash, end: sql`${startedAt} + cast(${lifetime} as bigint)` }
  ].map(swept => new Sweeper(sweep(database, swept), database.notSwept))
  const startSweeps = (now: number): void => { for (const sweeper of sweepers) sweeper.start(now) }

  return {
    sessions: {
      find,
      end,
      async insert (session, replaced) {
        const inserted = await insert(session, replaced)
        startSweeps(session.createdAt)
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
        startSweeps(entry.startedAt)
      }
    }
  }
}

/** A table whose rows have an end. */
interface Sweep {
  table: SQLiteTable
  hash: SQLiteColumn
  end: SQL
}

/**
 * Removes the rows of a table that are over, a page at a time, as long as a tenth of a page is: one
 * statement for a whole backlog would exceed its time, and be rolled back, at each sweep. It begins
 * at a random hash: a process that does not run for long would never come to the last rows
 * otherwise.
 */
function sweep (database: SqlDatabase, { table, hash, end }: Sweep): (now: number) => Promise<void> {
  const pageAfter = database.query(db => {
    const page = db.select({ hash, over: sql`case when ${lte(end, given('now'))} then 1 end`.as('over') }).from(table)
      .where(gt(hash, given('after')))
      .orderBy(hash)
      .limit(SWEPT)
      .as('page')
    return db.select({ last: sql<string>`max(${page.hash})`, rows: count(), over: count(page.over) }).from(page)
  })
  let after = randomBytes(24).toString('base64url')

  return async now => {
    let isGoingOn
    do {
      const [{ last, rows, over } = { last: '', rows: 0, over: 0 }] = await pageAfter({ after, now })
      const isOver = and(gt(hash, after), lte(hash, last), lte(end, now))
      // Rows that cannot be removed now do not keep those behind them.
      after = rows < SWEPT ? '' : last
      if (over > 0) await database.execute(db => db.delete(table).where(isOver))
      isGoingOn = after !== '' && over * 10 >= rows
      await setImmediate()
    } while (isGoingOn)
  }
}

/** What the columns of `svc_auth_sessions` hold; the same on every database. */
type Columns = typeof sessions.$inferSelect

type UserColumns = Pick<Columns, 'userId' | 'provider' | 'claims' | 'generation' | 'proofs'>

type ReadColumn = keyof UserColumns | 'data' | 'createdAt' | 'seenAt' | 'expiresAt' | 'endedAt'

/** A row of `svc_auth_sessions`, joined with what is asked about the user. */
type SessionRow = { [Name in ReadColumn]: Columns[Name] | null } & {
  email: string | null
  /** The notes about the user; null for an anonymous session. */
  extras: UserExtras | null
  /** The claims of the user as JSON, which few requests read. */
  userClaims: string | null
  /** The claims of the link by which the user signed in; null when it is gone. */
  linkClaims: string | null
}

const ANONYMOUS: UserColumns = { userId: null, provider: null, claims: null, generation: 0, proofs: null }

export function readColumns<Table extends Record<ReadColumn, unknown>> (table: Table): Pick<Table, ReadColumn> {
  const { userId, provider, claims, generation, proofs, data, createdAt, seenAt, expiresAt, endedAt } = table
  return { userId, provider, claims, generation, proofs, data, createdAt, seenAt, expiresAt, endedAt }
}

export function columnsOf ({ user, admits: _, ...session }: NewSession) {
  return { ...session, ...(user ?? ANONYMOUS), seenAt: session.createdAt, signedOut: false }
}

/** Null for a row that was not found, or whose columns are null because it was joined. */
export function foundSession (row: SessionRow | undefined, now: number): FoundSession | 'ended' | null {
  if (row === undefined) return null
  const { data, generation, createdAt, seenAt, expiresAt, endedAt, email, extras } = row
  if (generation === null || createdAt === null || seenAt === null || expiresAt === null) return null
  if (endedAt !== null || expiresAt <= now) return 'ended'
  const session = { user: userIn({ ...row, generation }), data, createdAt, seenAt, expiresAt }
  if (extras === null) return session
  return { ...session, status: statusOf({ email, extras }), presentClaims: () => presentClaims(row) }
}

function presentClaims ({ userClaims, linkClaims }: Pick<SessionRow, 'userClaims' | 'linkClaims'>): Claims | null {
  return userClaims === null || linkClaims === null ? null : mergeClaims(JSON.parse(linkClaims), JSON.parse(userClaims))
}

function userIn ({ userId, provider, claims, generation, proofs }: UserColumns): SessionUser | null {
  if (userId === null || provider === null || claims === null || proofs === null) return null
  return { userId, provider, claims, generation, proofs }
}
