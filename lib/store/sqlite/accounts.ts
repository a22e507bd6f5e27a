import { isDeepStrictEqual } from 'node:util'
import type { Account } from '../../accounts/account.js'
import type { AccountQuery, UniqueKeys } from '../../accounts/auth-store.js'
import { lazilyBy } from '../../base/once.js'
import {
  and, credentials, eq, factors, getTableColumns, or, providerLinks, sql, users
} from '../../drizzle/sqlite.js'
import { AuthError } from '../../errors.js'
import { accountReads } from '../account-reads.js'
import {
  type AccountChange, type StoredAccounts, applyRule, factorChanges, factorExists, linkChanges, valuesOf
} from '../apply-rule.js'
import { excluded, given, givenAll } from '../drizzle.js'
import type { SqliteDatabase } from './database.js'
import { isFactorTaken, isForeignKeyViolation, isUniqueViolation, storeFailure } from './failures.js'

const isUser = eq(users.userId, given('userId'))
const isLinkOfUser = eq(providerLinks.userId, given('userId'))
const isFactorOfUser = eq(factors.userId, given('userId'))

const COLUMNS = ['email', 'name', 'claims', 'extras'] as const

const NOTHING = { links: [], passwordHash: null, factors: [] }

/**
 * Keeps accounts on SQLite. better-sqlite3 runs statements without a pause; a change runs in an
 * immediate transaction, which takes the write lock before it reads.
 */
export function sqliteAccounts (database: SqliteDatabase): StoredAccounts {
  const reads = accountReads(database, database.with('sessions'), {
    userId: given('userId'),
    byCodePoints: column => sql`${column}`,
    isBetween: (text, first, end) => sql`(${text} >= ${first} and ${text} < ${end})`,
    note: name => sql`(${users.extras} ->> ${sql.raw(`'$.${name}'`)})`,
    createdAt: sql`(${users.extras} ->> '$.created_at')`,
    // The first condition is that of the partial index.
    isBlocked: now => sql`(json_extract(${users.extras}, '$.blocked') is not null
      and coalesce(json_extract(${users.extras}, '$.blocked.until') > ${now}, true))`,
    // By a plus. Without it SQLite may go through all users in their order, or sort a million.
    withoutIndex: column => sql`+${column}`
  })
  return { ...reads, insert: insert(database), change: change(database) }
}

function insert (database: SqliteDatabase): StoredAccounts['insert'] {
  const { add } = writes(database)

  return account => database.write(() => {
    try {
      database.db.transaction(() => { add(account) }, { behavior: 'immediate' })
      return true
    } catch (error) {
      if (isUniqueViolation(error)) return false
      throw error
    }
  })
}

function change (database: SqliteDatabase): StoredAccounts['change'] {
  const load = loading(database)
  const { write } = writes(database)
  const failure = (error: unknown): AuthError => {
    if (isForeignKeyViolation(error)) return new AuthError('user_in_use', { cause: error })
    return isFactorTaken(error) ? factorExists() : storeFailure(error)
  }

  return async (find, keys, rule) => {
    const ask = () => applyRule(rule, { find, keys }, load(find, keys))
    // Most sign-ins change nothing: these need no write lock, and no commit to the disk. Other
    // changes do not read before the lock, so that those of many processes take turns at it.
    const seen = 'userId' in find ? null : await database.read(ask)
    if (seen?.change === null) return seen.result
    return database.transaction(() => {
      const { result, change } = ask()
      if (change !== null) write(change)
      return result
    }, { failure })
  }
}

function loading (database: SqliteDatabase) {
  const isOwner = (provider: string, subject: string) => sql`${users.userId} = (
    select ${providerLinks.userId} from ${providerLinks}
    where ${providerLinks.provider} = ${given(provider)} and ${providerLinks.subject} = ${given(subject)})`
  const rows = database.prepared(db => db.select().from(users)
    .where(or(
      isUser, eq(users.email, given('email')), isOwner('provider', 'subject'), isOwner('otherProvider', 'otherSubject')
    )))
  const { provider, subject, claims } = providerLinks
  const links = database.prepared(db => db.select({ provider, subject, claims }).from(providerLinks)
    .where(isLinkOfUser)
    .orderBy(provider))
  const credential = database.prepared(db => db.select().from(credentials)
    .where(eq(credentials.userId, given('userId'))))
  const { factorId: id, userId: _, ...others } = getTableColumns(factors)
  const factorsOf = database.prepared(db => db.select({ id, ...others }).from(factors)
    .where(isFactorOfUser)
    .orderBy(factors.createdAt, id))

  return (find: AccountQuery, keys: UniqueKeys): Account[] => rows().all(valuesOf(find, keys)).map(user => ({
    ...user,
    links: links().all({ userId: user.userId }),
    passwordHash: credential().get({ userId: user.userId })?.pwHash ?? null,
    factors: user.extras.factors === undefined ? [] : factorsOf().all({ userId: user.userId })
  }))
}

function writes (database: SqliteDatabase) {
  const columns = {
    email: sql`${given('email')}`,
    name: sql`${given('name')}`,
    claims: sql`${sql.param(given('claims'), users.claims)}`,
    extras: sql`${sql.param(given('extras'), users.extras)}`
  }
  const addUser = database.prepared(db => db.insert(users).values({ userId: given('userId'), ...columns }))
  const setting = lazilyBy((changed: ReadonlyArray<keyof typeof columns>) => database.prepared(db => db.update(users)
    .set(Object.fromEntries(changed.map(name => [name, columns[name]])))
    .where(isUser)))
  const removeUser = database.prepared(db => db.delete(users).where(isUser))
  const putLink = database.prepared(db => db.insert(providerLinks)
    .values(givenAll(getTableColumns(providerLinks)))
    .onConflictDoUpdate({
      target: [providerLinks.userId, providerLinks.provider],
      set: excluded({ subject: providerLinks.subject, claims: providerLinks.claims })
    }))
  const removeLink = database.prepared(db => db.delete(providerLinks)
    .where(and(isLinkOfUser, eq(providerLinks.provider, given('provider')))))
  const putPassword = database.prepared(db => db.insert(credentials)
    .values({ userId: given('userId'), pwHash: given('passwordHash') })
    .onConflictDoUpdate({ target: credentials.userId, set: { pwHash: sql`excluded.pw_hash` } }))
  const removePassword = database.prepared(db => db.delete(credentials)
    .where(eq(credentials.userId, given('userId'))))
  const removeFactor = database.prepared(db => db.delete(factors)
    .where(and(isFactorOfUser, eq(factors.factorId, given('id')))))
  const addFactor = database.prepared(db => db.insert(factors)
    .values({ ...givenAll(getTableColumns(factors)), factorId: given('id') }))

  /** SQLite writes each index of a column that is set, whether or not the value is another one. */
  const setUser = (before: Account, after: Account): void => {
    const changed = COLUMNS.filter(name => !isDeepStrictEqual(before[name], after[name]))
    if (changed.length > 0) setting(changed)().run({ ...after })
  }
  const setBelongings = (before: Account, after: Account): void => {
    const { userId, passwordHash } = after
    const { removed, written } = linkChanges(before, after)
    for (const provider of removed) removeLink().run({ userId, provider })
    for (const link of written) putLink().run({ ...link, userId })
    const { removed: gone, written: made } = factorChanges(before, after)
    for (const id of [...gone, ...made.map(({ id }) => id)]) removeFactor().run({ userId, id })
    for (const factor of made) addFactor().run({ ...factor, userId })
    if (passwordHash === before.passwordHash) return
    if (passwordHash === null) removePassword().run({ userId })
    else putPassword().run({ userId, passwordHash })
  }
  const add = (account: Account): void => {
    addUser().run({ ...account })
    setBelongings({ ...account, ...NOTHING }, account)
  }
  const write = ({ before, after }: AccountChange): void => {
    if (before !== null && after !== null) {
      setUser(before, after)
      setBelongings(before, after)
    } else if (before !== null) {
      // An application's connection may have foreign keys switched off.
      setBelongings(before, { ...before, ...NOTHING })
      removeUser().run({ userId: before.userId })
    } else if (after !== null) add(after)
  }
  return { add, write }
}
