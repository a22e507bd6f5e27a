import { statusOf, userOf } from '../accounts/account.js'
import type { UsersFilter } from '../accounts/auth-store.js'
import { type SQL, type SQLWrapper, and, count, eq, getTableColumns, not, or, sql } from '../drizzle/sql.js'
import type { StoredAccounts } from './apply-rule.js'
import { given } from './drizzle.js'
import type { SqlDatabase } from './sql-database.js'

/** What SQLite and Postgres write differently. */
export interface ReadingDialect {
  readonly userId: SQLWrapper
  byCodePoints (column: SQLWrapper): SQL
  /** Whether a text is the first one, or between it and the end, by code points. */
  isBetween (text: SQLWrapper, first: string, end: string): SQL
  /** A text of {@link UserExtras}, as its index has it. */
  note (name: 'name_key' | 'email_domain'): SQL
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
  const { users, credentials, providerLinks, factors } = database.tables
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
    async countUsers (filter) {
      const [row] = await database.query(db => db.select({ users: count() }).from(users).where(matches(filter)))({})
      return row?.users ?? 0
    }
  }
}
