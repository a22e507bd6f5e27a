import { randomBytes } from 'node:crypto'
import { statusOf } from '../accounts/account.js'
import { Sweeper } from '../base/sweeper.js'
import { type Claims, mergeClaims } from '../claims.js'
import { type SQLWrapper, and, desc, eq, gt, isNull, lte, notInArray, or, sql } from '../drizzle/sql.js'
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
  /** How many sessions a sweep looks at. */
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
 * Removes what is over, of the sessions a page at a time, by their hashes. It begins at a random
 * one: a process that does not run for long would never come to the last rows otherwise.
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
