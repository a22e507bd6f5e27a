import { isDeepStrictEqual } from 'node:util'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Account } from '../../accounts/account.js'
import type { AccountQuery, UniqueKeys } from '../../accounts/auth-store.js'
import { lazilyBy } from '../../base/concurrency.js'
import {
  and, count, credentials, desc, eq, factors, getTableColumns, gt, inArray, isNull, lt, not, oneTimeEntries,
  or, providerLinks, sessions, sql, users
} from '../../drizzle/sqlite.js'
import type { AuthError } from '../../errors.js'
import type { UserExtras } from '../../schema/extras.js'
import {
  type OneTimeEntries, PENDING_MS, RECORDS_OF_USE, type SessionRows, type StoredSessions, TAKEN, unwrittenRow
} from '../../session/store.js'
import {
  type AccountChange, type StoredAccounts, applyRule, factorChanges, linkChanges, makesUser, valuesOf
} from '../apply-rule.js'
import type { Values } from '../../session/sql-database.js'
import {
  accountReads, columnsOf, excluded, foundSession, given, givenAll, readColumns, sqlSessions
} from '../sql-rows.js'
import { type SqliteDatabase, sqliteFailures } from './database.js'

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
  return { ...reads, insert: insertAccount(database), change: change(database) }
}

function insertAccount (database: SqliteDatabase): StoredAccounts['insert'] {
  const { write } = writes(database)

  return (account, hook) => database.write(() => {
    try {
      database.atomically(ask => {
        write({ before: null, after: account })
        if (hook !== undefined) write({ before: account, after: ask(hook, account) })
      })
      return true
    } catch (error) {
      if (sqliteFailures.isUniqueViolation(error)) return false
      throw error
    }
  })
}

function change (database: SqliteDatabase): StoredAccounts['change'] {
  const load = loading(database)
  const { write } = writes(database)
  const { isFactorTaken, ofChange, ofDeletion } = sqliteFailures
  const failure = (error: unknown): AuthError => isFactorTaken(error) ? ofChange(error) : ofDeletion(error)

  return async (find, keys, rule, hook) => {
    const ask = () => applyRule(rule, { find, keys }, load(find, keys))
    // Most sign-ins change nothing: these need no write lock, and no commit to the disk. Other
    // changes do not read before the lock, so that those of many processes take turns at it.
    const seen = 'userId' in find ? null : await database.read(ask)
    if (seen?.change === null) return seen.result
    return database.transaction(askHook => {
      const { result, change } = ask()
      if (change !== null) write(change)
      const { after = null } = { ...change }
      if (change !== null && after !== null && makesUser(change) && hook !== undefined) {
        write({ before: after, after: askHook(hook, after) })
      }
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
  return { write }
}

const { hash, ...columns } = getTableColumns(oneTimeEntries)
const { kind, owner, content, attempts, startedAt } = columns

const isEntry = and(eq(hash, given('hash')), eq(kind, given('kind')))
const isOfOwner = and(eq(owner, given('owner')), eq(kind, given('kind')))

function sqliteEntries (database: SqliteDatabase): Omit<OneTimeEntries, 'find' | 'takenAt'> {
  const insert = database.prepared(db => db.insert(oneTimeEntries)
    .values({ ...givenAll({ hash, ...columns }), attempts: 0 })
    .onConflictDoUpdate({ target: hash, set: excluded(columns) }))
  const removeOldest = database.prepared(db => db.delete(oneTimeEntries)
    .where(inArray(hash, db.select({ hash }).from(oneTimeEntries)
      .where(and(isOfOwner, not(eq(hash, given('hash')))))
      .orderBy(desc(startedAt))
      .limit(Number.MAX_SAFE_INTEGER)
      .offset(given('others')))))
  const take = database.prepared(db => db.update(oneTimeEntries)
    .set({ kind: sql`${given('kind')} || ${TAKEN}`, startedAt: sql`${given('now')}` })
    .where(and(isEntry, inArray(owner, sql`(select value from json_each(${given('owners')}))`)))
    .returning({ content }))
  const noteAttempt = database.prepared(db => db.update(oneTimeEntries).set({ attempts: sql`${attempts} + 1` })
    .where(and(isEntry, isOfOwner, lt(attempts, given('most'))))
    .returning({ content }))
  const counted = database.prepared(db => db.select({ entries: count() }).from(oneTimeEntries)
    .where(and(isOfOwner, gt(startedAt, given('since')))))
  const countOf = (values: Values): number => Number(counted().get(values)?.entries)

  return {
    // After a crash of the machine a sign-in starts again, and the session that an entry was taken
    // for is written after it.
    put: (entry, most) => database.transaction(() => {
      insert().run({ ...entry })
      // Counting is a fifth of what sorting costs where there is nothing to remove.
      if (countOf({ ...entry, since: 0 }) > most) removeOldest().run({ ...entry, others: most - 1 })
    }, { isSynced: RECORDS_OF_USE.includes(entry.kind) }),
    take: (hash, kind, owners) => database.write(
      () => take().get({ hash, kind, owners: JSON.stringify(owners), now: Date.now() })?.content ?? null,
      { isSynced: false }
    ),
    attempt: (entry, most) => database.write(() => noteAttempt().get({ ...entry, most })?.content ?? null),
    count: (owner, kind, since) => database.read(() => countOf({ owner, kind, since }))
  }
}

const isSession = eq(sessions.idHash, given('idHash'))

export function sqliteSessions (database: SqliteDatabase): SessionRows {
  return sqlSessions(database, {
    find: find(database),
    insert: insertSession(database),
    end: end(database),
    endAtProvider: endAtProvider(database),
    entries: sqliteEntries(database),
    userId: given('userId')
  })
}

function find (database: SqliteDatabase): StoredSessions['find'] {
  // A join takes SQLite three times as long.
  const isOfSession = eq(users.userId, sessions.userId)
  const ofUser = <Value>(column: SQLiteColumn) =>
    sql<Value | null>`(select ${column} from ${users} where ${isOfSession})`
  const isLink = and(eq(providerLinks.userId, sessions.userId), eq(providerLinks.provider, sessions.provider))
  const linkClaims = sql<string | null>`(select ${providerLinks.claims} from ${providerLinks} where ${isLink})`
  const session = database.prepared(db => db
    .select({
      ...readColumns(sessions),
      email: ofUser<string>(users.email),
      extras: ofUser<UserExtras>(users.extras).mapWith(users.extras),
      userClaims: ofUser<string>(users.claims),
      linkClaims
    })
    .from(sessions)
    .where(isSession))
  const { kind, owner, startedAt } = oneTimeEntries
  const pending = database.prepared(db => db.select({ startedAt }).from(oneTimeEntries)
    .where(and(eq(owner, given('idHash')), gt(startedAt, given('since')), sql`${kind} not like ${`%${TAKEN}`}`))
    .limit(1))

  return (idHash, now) => database.read(() => {
    const found = foundSession(session().get({ idHash }), now)
    if (found !== null) return found
    return pending().get({ idHash, since: now - PENDING_MS }) === undefined ? null : 'visitor'
  })
}

function insertSession (database: SqliteDatabase): StoredSessions['insert'] {
  const byId = database.prepared(db => db.select().from(sessions).where(isSession))
  const insert = database.prepared(db => db.insert(sessions)
    .values({
      ...givenAll(getTableColumns(sessions)),
      claims: database.json('claims'),
      proofs: database.json('proofs'),
      data: database.json('data')
    })
    .onConflictDoUpdate({
      target: sessions.idHash,
      set: excluded({ data: sessions.data, expiresAt: sessions.expiresAt }),
      setWhere: isNull(sessions.endedAt)
    }))
  const replace = database.prepared(db => db.update(sessions)
    .set({
      endedAt: sql`coalesce(${sessions.endedAt}, ${given('endedAt')})`,
      replacedBy: sql`${given('replacedBy')}`
    })
    .where(isSession))

  // As the rule `admitUser` of accounts does.
  const admit = database.prepared(db => db.update(users)
    .set({ extras: sql`json_remove(${users.extras}, '$.is_new')` })
    .where(and(eq(users.userId, given('userId')), sql`json_extract(${users.extras}, '$.is_new') is not null`)))

  const { ofSession: failure } = sqliteFailures
  return async (session, replaced) => {
    const { admits = false, onlyOpen = false } = session
    const columns = { ...columnsOf(session), endedAt: null, replacedBy: null }
    if (replaced === null && !admits) {
      return database.write(() => {
        insert().run(columns)
        return true
      }, { failure, isSynced: false })
    }
    // A session that a crash of the machine loses signs nobody in; one that is known must end.
    const isSynced = admits || await database.read(() => byId().get({ idHash: replaced }) !== undefined)
    return database.transaction(() => {
      const before = replaced === null ? undefined : byId().get({ idHash: replaced })
      if (before?.signedOut === true || (onlyOpen && before?.endedAt != null)) return false
      insert().run({ ...columns, replacedBy: before?.replacedBy ?? null })
      const end = { endedAt: session.createdAt, replacedBy: session.idHash }
      if (before !== undefined) replace().run({ ...end, idHash: before.idHash })
      else if (replaced !== null) insert().run({ ...columnsOf(unwrittenRow(replaced, session.createdAt)), ...end })
      return admits && admit().run({ userId: columns.userId }).changes > 0 ? 'admitted' : true
    }, { failure, isSynced })
  }
}

function end (database: SqliteDatabase): StoredSessions['end'] {
  const byId = database.prepared(db => db.select().from(sessions).where(isSession))
  const setEnd = database.prepared(db => db.update(sessions)
    .set({
      endedAt: sql`coalesce(${sessions.endedAt}, ${given('now')})`,
      signedOut: sql`${sessions.signedOut} or ${given('isSignOut')}`
    })
    .where(isSession))
  const deletePending = database.prepared(db => db.delete(oneTimeEntries)
    .where(eq(oneTimeEntries.owner, given('idHash'))))

  return (idHash, { now, isSignOut }) => database.transaction(() => {
    if (isSignOut) deletePending().run({ idHash })
    const session = byId().get({ idHash })
    if (session === undefined) {
      const ended = { ...columnsOf(unwrittenRow(idHash, now)), endedAt: now, signedOut: true }
      if (isSignOut) database.db.insert(sessions).values(ended).run()
      return null
    }
    setEnd().run({ idHash, now, isSignOut: Number(isSignOut) })
    const { userId, endedAt, expiresAt, replacedBy } = session
    return { userId, wasOpen: endedAt === null && expiresAt > now, replacedBy }
  })
}

function endAtProvider (database: SqliteDatabase): Required<StoredSessions>['endAtProvider'] {
  const { providerSession, providerUser, userId, endedAt, expiresAt } = sessions
  const ending = (column: SQLiteColumn) => database.prepared(db => db.update(sessions)
    .set({ endedAt: sql`${given('now')}` })
    .where(and(eq(column, given('hash')), isNull(endedAt), gt(expiresAt, given('now'))))
    .returning({ userId }))
  const statements = { session: ending(providerSession), user: ending(providerUser) }

  return async ({ by, hash }, now) => {
    const ended = await database.write(() => statements[by]().all({ hash, now }))
    const users = new Set(ended.flatMap(({ userId }) => userId ?? []))
    return Array.from(users, userId => ({ userId, isRecorded: false }))
  }
}
