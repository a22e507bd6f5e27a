import { randomBytes } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { GUEST, statusOf, userOf } from '../accounts/account.js'
import type { UsersFilter } from '../accounts/auth-store.js'
import { Sweeper } from '../base/concurrency.js'
import { type Claims, mergeClaims } from '../claims.js'
import {
  type Column, type SQL, type SQLWrapper, and, count, desc, eq, getTableColumns, gt, inArray, isNull, lte, not, or, sql
} from '../drizzle/sql.js'
import { OptionsError } from '../errors.js'
import type { UserExtras } from '../schema/extras.js'
import type { sessions } from '../schema/sqlite.js'
import {
  ENDED_MS, type FoundSession, MAX_LISTED, type NewSession, type OneTimeEntries, PENDING_MS, RECORDS_OF_USE, RECORD_MS,
  type SessionRows, type SessionUser, type StoredSessions, TAKEN
} from '../session/store.js'
import type { StoredAccounts } from './apply-rule.js'
import type { SqlDatabase, Swept } from '../session/sql-database.js'

/**
 * Refuses a Drizzle database of the application whose drizzle-orm does not escape quotation marks
 * in names, by the SQL that it makes of {@link ODD_NAME}: a database does not tell its version.
 */
export function assertEscapes (statement: string): void {
  if (statement.includes('""""')) return
  throw new OptionsError('target is a database of a drizzle-orm before 0.45.2, which does not escape names; ' +
    'install a later one: npm install drizzle-orm@^0.45.2')
}

export const ODD_NAME = sql`${sql.identifier('"')}`

/** A value that a statement is given when it runs, by name. */
export const given = sql.placeholder

type Columns = Readonly<Record<string, Column>>

/** Returns values that a statement is given when it runs, by the names of columns. */
export const givenAll = <Some extends Columns>(columns: Some) => mapped(columns, (_, name) => given(name))

/** Returns what an update takes from the row that was to be inserted. */
export const excluded = <Some extends Columns>(columns: Some) =>
  mapped(columns, ({ name }) => sql`excluded.${sql.identifier(name)}`)

function mapped<Some extends Columns, Value> (columns: Some, valueOf: (column: Column, name: string) => Value) {
  const values = Object.entries(columns).map(([name, column]) => [name, valueOf(column, name)])
  return Object.fromEntries(values) as Record<keyof Some, Value>
}

/** What SQLite and Postgres write differently. */
export interface ReadingDialect {
  readonly userId: SQLWrapper
  byCodePoints (column: SQLWrapper): SQL
  /** Whether a text is the first one, or between it and the end, by code points. */
  isBetween (text: SQLWrapper, first: string, end: string): SQL
  /** A text of {@link UserExtras}, as its index has it where there is one. */
  note (name: 'name_key' | 'email_domain' | 'generation'): SQL
  /** The time of creation, as its index has it. */
  readonly createdAt: SQL
  isBlocked (now: number): SQL
  /** A column whose index is not used; absent where the database decides by how many match. */
  withoutIndex? (column: SQLWrapper): SQLWrapper
}

/** How many users are sorted at most where the database does not decide. */
const MANY = 2000

const asIs = (column: SQLWrapper): SQLWrapper => column

/**
 * Reads accounts, each time with one statement.
 *
 * @param withFactors with the table of factors, which is made with those of sessions
 */
export function accountReads (
  database: SqlDatabase, withFactors: SqlDatabase, dialect: ReadingDialect
): Omit<StoredAccounts, 'insert' | 'change'> {
  const { users, credentials, providerLinks, factors, sessions } = database.tables
  const isUser = eq(users.userId, dialect.userId)
  const isOwner = eq(users.userId, providerLinks.userId)
  const isLink = and(eq(providerLinks.provider, given('provider')), eq(providerLinks.subject, given('subject')))

  const byId = database.query(db => db.select().from(users).where(isUser))
  const byEmail = database.query(db => db.select().from(users).where(eq(users.email, given('email'))))
  const byLink = database.query(db => db.select(getTableColumns(users)).from(providerLinks)
    .innerJoin(users, isOwner)
    .where(isLink))

  const linksOfUser = database.query(db => db.select().from(providerLinks)
    .where(eq(providerLinks.userId, dialect.userId))
    .orderBy(dialect.byCodePoints(providerLinks.provider)))

  const { factorId: id, userId: _, ...others } = getTableColumns(factors)
  const factorColumns = { id, ...others }
  const factorsOfUser = withFactors.query(db => db.select(factorColumns).from(factors)
    .where(eq(factors.userId, dialect.userId))
    .orderBy(factors.createdAt, dialect.byCodePoints(id)), factorColumns, 'reads')

  const credentialColumns = {
    user: getTableColumns(users), link: getTableColumns(providerLinks), passwordHash: credentials.pwHash
  }
  // With the counts of the limits of sign-ins.
  const credential = database.query(db => db.select(credentialColumns)
    .from(providerLinks)
    .innerJoin(users, isOwner)
    .innerJoin(credentials, eq(credentials.userId, providerLinks.userId))
    .where(isLink), credentialColumns, 'sign-ins')

  const { email, extras } = users
  const statusOfUser = database.query(
    db => db.select({ email, extras }).from(users).where(isUser), { email, extras }, 'reads'
  )

  const isOpen = and(isNull(sessions.endedAt), gt(sessions.expiresAt, given('now')))
  const isPresent = sql`${sessions.generation} = coalesce(cast(${dialect.note('generation')} as integer), 0)`
  const ofGuest = and(eq(sessions.userId, users.userId), isOpen, isPresent)
  const isAbandoned = sql<1 | null>`case when ${dialect.createdAt} < ${given('createdBefore')}
    and not exists (select 1 from ${sessions} where ${ofGuest}) then 1 end`
  // The subject of a guest's link is their id, and is in the primary key.
  const guestsAfter = withFactors.query(db => db.select({ userId: users.userId, isAbandoned }).from(providerLinks)
    .innerJoin(users, isOwner)
    .where(and(eq(providerLinks.provider, GUEST), gt(providerLinks.subject, given('after'))))
    .orderBy(providerLinks.subject)
    .limit(SWEPT))

  const matches = ({ search, blocked }: UsersFilter, of: (text: SQLWrapper) => SQLWrapper = asIs): SQL | undefined => {
    const isBlocked = dialect.isBlocked(Date.now())
    const texts = [users.email, dialect.note('email_domain'), dialect.note('name_key')].map(of)
    return and(
      search === null ? undefined : or(...texts.map(text => dialect.isBetween(text, search, `${search}\u{10ffff}`))),
      blocked === null ? undefined : blocked ? isBlocked : not(isBlocked)
    )
  }

  const { withoutIndex = asIs } = dialect
  const isFew = async (filter: UsersFilter): Promise<boolean> => {
    if (filter.search === null || withoutIndex === asIs) return false
    const first = database.query(db => db.select({ id: users.userId }).from(users).where(matches(filter)).limit(MANY))
    return (await first({})).length < MANY
  }

  return {
    async findUser (query) {
      const find = 'userId' in query ? byId : 'email' in query ? byEmail : byLink
      const [row] = await find({ ...query })
      return row === undefined ? null : userOf(row)
    },
    links: async userId => linksOfUser({ userId }),
    factors: async userId => factorsOfUser({ userId }),
    async findCredential (email) {
      const [row] = await credential({ provider: 'local', subject: email })
      return row === undefined ? null : { ...row, user: userOf(row.user) }
    },
    async status (userId) {
      const [row] = await statusOfUser({ userId })
      return row === undefined ? null : statusOf(row)
    },
    async users ({ after, limit, order, ...filter }) {
      // Few users are found and sorted; of many, the next ones are soon met in their order.
      const [ofOrder, ofSearch] = await isFew(filter) ? [withoutIndex, asIs] : [asIs, withoutIndex]
      const [id, createdAt] = [ofOrder(users.userId), ofOrder(dialect.createdAt)]
      const { userId: lastId, createdAt: lastAt = new Date(0) } = after ?? {}
      const [isAfter, orderBy] = order === 'newest'
        ? [
            sql`${createdAt} <= ${lastAt.getTime()} and (${createdAt}, ${id}) < (${lastAt.getTime()}, ${lastId})`,
            sql`${createdAt} desc, ${id} desc`
          ]
        : [sql`${id} > ${lastId}`, sql`${id}`]
      const list = database.query(db => db.select().from(users)
        .where(and(after === null ? undefined : isAfter, matches(filter, ofSearch)))
        .orderBy(orderBy)
        .limit(limit))
      return (await list({})).map(userOf)
    },
    async abandonedGuests (createdBefore, now, limit, after) {
      const found: string[] = []
      for (let next: string | undefined = after; next !== undefined && found.length < limit;) {
        const page = await guestsAfter({ createdBefore, now, after: next })
        found.push(...page.flatMap(({ userId, isAbandoned }) => isAbandoned ? [userId] : []))
        next = page.length < SWEPT ? undefined : page.at(-1)?.userId
        await setImmediate()
      }
      return found.slice(0, limit)
    },
    async countUsers (filter) {
      const [row] = await database.query(db => db.select({ users: count() }).from(users).where(matches(filter)))({})
      return row?.users ?? 0
    }
  }
}

interface SqlSessionsDialect extends Required<Pick<StoredSessions, 'find' | 'insert' | 'end' | 'endAtProvider'>> {
  readonly entries: Omit<OneTimeEntries, 'find' | 'takenAt'>
  readonly userId: SQLWrapper
}

/** How many rows a sweep looks at in one statement: SQLite holds up the process meanwhile. */
const SWEPT = 1000

/** Keeps sessions and what they own, and removes what is over while some are written. */
export function sqlSessions (
  database: SqlDatabase, { find, insert, entries, userId: ofUser, ...ends }: SqlSessionsDialect
): SessionRows {
  const { sessions, oneTimeEntries } = database.tables
  const { idHash, userId, generation, userAgent, createdAt, seenAt, expiresAt, endedAt, shownUserId } = sessions
  const proofs = sql`${sessions.proofs}`.mapWith(sessions.proofs)
  const isOpen = and(isNull(endedAt), gt(expiresAt, given('now')))
  const listed = database.query(db => db.select({ idHash, proofs, userAgent, createdAt, seenAt, expiresAt })
    .from(sessions)
    .where(and(eq(userId, ofUser), eq(generation, given('generation')), isOpen))
    .orderBy(desc(seenAt))
    .limit(MAX_LISTED))
  const showing = database.query(db => db.select({ idHash, userId, proofs, userAgent, createdAt, seenAt, expiresAt })
    .from(sessions)
    .where(and(eq(shownUserId, ofUser), isOpen))
    .orderBy(desc(seenAt))
    .limit(MAX_LISTED))
  const { hash, kind, owner, content, startedAt } = oneTimeEntries
  const isEntry = and(eq(hash, given('hash')), eq(kind, given('kind')), eq(owner, given('owner')))
  const entryBy = database.query(db => db.select({ content, startedAt }).from(oneTimeEntries).where(isEntry))
  const lifetime = sql`case when ${inArray(kind, [...RECORDS_OF_USE])} then ${RECORD_MS} else ${PENDING_MS} end`
  const sweepers = [
    { table: sessions, hash: idHash, end: sql`coalesce(${endedAt} + cast(${ENDED_MS} as bigint), ${expiresAt})` },
    { table: oneTimeEntries, hash, end: sql`${startedAt} + cast(${lifetime} as bigint)` }
  ].map(swept => database.sweeper(swept))
  const startSweeps = (now: number): void => { for (const sweeper of sweepers) sweeper.start(now) }

  return {
    sessions: {
      find,
      ...ends,
      async insert (session, replaced) {
        const inserted = await insert(session, replaced)
        startSweeps(session.createdAt)
        return inserted
      },
      update: async (id, { user, ...change }) => database.execute(db => db.update(sessions)
        .set({ ...user, ...change })
        .where(and(eq(idHash, id), isNull(endedAt)))),
      ofUser: async (userId, generation, now) => listed({ userId, generation, now }),
      showing: async (userId, now) => showing({ userId, now })
    },
    entries: {
      ...entries,
      find: async entry => (await entryBy({ ...entry }))[0]?.content ?? null,
      takenAt: async entry => (await entryBy({ ...entry, kind: entry.kind + TAKEN }))[0]?.startedAt ?? null,
      async put (entry, most) {
        await entries.put(entry, most)
        startSweeps(entry.startedAt)
      }
    }
  }
}

export function sweeperOn (database: SqlDatabase, swept: Swept): Sweeper {
  return new Sweeper(sweep(database, swept), database.notSwept)
}

/**
 * Removes the rows of a table that are over, a page at a time, as long as a tenth of a page is: one
 * statement for a whole backlog would exceed its time, and be rolled back, at each sweep. It begins
 * at a random hash: a process that does not run for long would never come to the last rows
 * otherwise.
 */
function sweep (database: SqlDatabase, { table, hash, end }: Swept): (now: number) => Promise<void> {
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
type SessionColumns = typeof sessions.$inferSelect

type UserColumns = Pick<SessionColumns, 'userId' | 'provider' | 'claims' | 'generation' | 'proofs'>

type ReadColumn = keyof UserColumns | 'data' | 'createdAt' | 'seenAt' | 'expiresAt' | 'endedAt'

/** A row of `svc_auth_sessions`, joined with what is asked about the user. */
type SessionRow = { [Name in ReadColumn]: SessionColumns[Name] | null } & {
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

export function columnsOf ({ user, admits: _, onlyOpen: __, ...session }: NewSession) {
  const { acting, atProvider } = user?.proofs ?? {}
  return {
    ...session,
    ...(user ?? ANONYMOUS),
    seenAt: session.createdAt,
    signedOut: false,
    shownUserId: acting?.user.userId ?? null,
    providerSession: atProvider?.session ?? null,
    providerUser: atProvider?.user ?? null
  }
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
