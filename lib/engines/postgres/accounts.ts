import { type Account, type AccountLink, type Factor, generationOf } from '../../accounts/account.js'
import { type AccountQuery, type CreateHook, type UniqueKeys, refusalBy } from '../../accounts/auth-store.js'
import { KeyedMutex, TIMEOUT_MS, TimeoutError, lazily, lazilyBy } from '../../base/concurrency.js'
import {
  type SQL, type SQLWrapper, type WithSubquery, alias, and, credentials, eq, factors, getTableColumns, inArray, or,
  providerLinks, sql, users
} from '../../drizzle/postgres.js'
import { AuthError } from '../../errors.js'
import { accountReads, excluded, given } from '../sql-rows.js'
import {
  type AccountChange, type StoredAccounts, applyRule, factorChanges, linkChanges, makesUser, valuesOf
} from '../apply-rule.js'
import type { PostgresDrizzle } from '../sql-target.js'
import {
  type Begin, type PostgresDatabase, type Prepared, type RunOptions, TEXT, UNNAMED, USER_ID, isUser, json
} from './database.js'
import { type PostgresRevocations, recordedRevocation } from './revocations.js'
import { postgresFailures } from './failures.js'

/** Where the user's row is, and by which transaction it was written. */
const VERSION = sql<string>`${users}.xmin::text || ${users}.ctid::text`

const USER_COLUMNS = {
  email: sql`${given('email')}`,
  name: sql`${given('name')}`,
  claims: json('claims'),
  extras: json('extras')
}

const BLOCK = sql`${users.extras} -> 'blocked'`

/** So often a change is tried when another user has what its rule takes for free. */
const MAX_COLLISIONS = 5

/**
 * A new account is one statement; a change is one that loads and one that writes if the rows are as
 * they were loaded. Each is atomic on every driver.
 *
 * What writes locks the user's row first: concurrent changes wait instead of deadlocking. Every
 * change writes that row, so that its version tells of links, password and factors too.
 *
 * @param withFactors with the table of factors, which is made with those of sessions
 */
export function postgresAccounts (
  database: PostgresDatabase, withFactors: PostgresDatabase, revocations: PostgresRevocations
): StoredAccounts {
  const reads = accountReads(database, withFactors, {
    userId: USER_ID,
    byCodePoints,
    isBetween: (text, first, end) => sql`(${text} ~>=~ ${first} and ${text} ~<~ ${end})`,
    note: name => sql`(${users.extras} ->> ${sql.raw(`'${name}'`)})`,
    createdAt: sql`(${users.extras} ->> 'created_at')::bigint`,
    // The first condition is that of the partial index.
    isBlocked: now => sql`(${BLOCK} is not null and coalesce((${BLOCK} ->> 'until')::bigint > ${now}, true))`
  })
  return { ...reads, insert: insert(database, withFactors), change: change(database, withFactors, revocations) }
}

/** Orders by code points: the databases' own collations differ. */
function byCodePoints (column: SQLWrapper): SQL {
  return sql`${column} collate "C"`
}

function insert (database: PostgresDatabase, withFactors: PostgresDatabase): StoredAccounts['insert'] {
  const add = addition(database, withFactors)

  return (account, hook) => add(account, async statement => {
    try {
      await statement
      return true
    } catch (error) {
      if (postgresFailures.isUniqueViolation(error) || postgresFailures.isFactorTaken(error)) return false
      throw error
    }
  }, {}, hook)
}

function change (
  database: PostgresDatabase, withFactors: PostgresDatabase, revocations: PostgresRevocations
): StoredAccounts['change'] {
  const load = loading(database, withFactors)
  const write = writing(database, withFactors, revocations)
  const mutex = new KeyedMutex()

  return async (find, keys, rule, hook) => {
    const deadline = Date.now() + TIMEOUT_MS
    const changeOne = async () => {
      for (let collisions = 0; collisions < MAX_COLLISIONS && Date.now() < deadline;) {
        const loaded = await load(find, keys, deadline)
        const { result, change } = applyRule(rule, { find, keys }, loaded.map(({ account }) => account))
        if (change === null) return result
        const version = loaded.find(({ account }) => account === change.before)?.version
        const written = await write(change, { version, deadline, hook })
        if (written === 'done') return result
        if (written === 'collided') collisions++
      }
      throw new AuthError('unavailable', { cause: new Error('other changes of the account came first all the time') })
    }
    // Those of one process do not compete with each other.
    return 'userId' in find ? mutex.run(find.userId, changeOne) : changeOne()
  }
}

function loading (database: PostgresDatabase, withFactors: PostgresDatabase) {
  // With nulls for what is not asked, the server would plan one statement for all anew each time.
  const accounts = (database: PostgresDatabase, ofFactors: SQL): Prepared<LoadedRow> => {
    const statementFor = lazilyBy((asked: ReadonlyArray<typeof ASKED[number]>) =>
      database.prepared(db => accountsBy(db, asked, ofFactors), LOADED_COLUMNS, 'reads'))
    return (values, deadline) => statementFor(ASKED.filter(name => values[name] !== null))(values, deadline)
  }
  const plain = accounts(database, sql`'[]'`)
  const whole = accounts(withFactors, FACTORS_OF_USER)

  return async (find: AccountQuery, keys: UniqueKeys, deadline: number) => {
    const values = valuesOf(find, keys)
    const seen = withFactors.isMade ? null : await plain(values, deadline)
    const hasAll = seen?.every(({ extras }) => extras.factors === undefined) === true
    const rows = hasAll ? seen : await whole(values, deadline)
    return rows.map(({ version, ...account }) => ({ account, version }))
  }
}

const ASKED = ['userId', 'email', 'provider', 'otherProvider'] as const

const LOADED_COLUMNS = {
  ...getTableColumns(users),
  links: { mapFromDriverValue: listIn<AccountLink> },
  factors: { mapFromDriverValue: listIn<Factor> },
  passwordHash: credentials.pwHash,
  version: TEXT
}

/** Another version of the user's row means that the account was written since. */
type LoadedRow = Account & { version: string }

function accountsBy (db: PostgresDrizzle, asked: ReadonlyArray<typeof ASKED[number]>, ofFactors: SQL) {
  const own = alias(providerLinks, 'own_links')
  const link = sql`jsonb_build_object('provider', ${own.provider}, 'subject', ${own.subject}, 'claims', ${own.claims})`
  const links = sql`(select coalesce(jsonb_agg(${link} order by ${byCodePoints(own.provider)}), '[]')
    from ${providerLinks} own_links where ${own.userId} = ${users.userId})`
  const owner = (provider: string, subject: string) => db.select({ userId: providerLinks.userId }).from(providerLinks)
    .where(and(eq(providerLinks.provider, given(provider)), eq(providerLinks.subject, given(subject))))
  const conditions = {
    userId: isUser,
    email: eq(users.email, given('email')),
    provider: eq(users.userId, owner('provider', 'subject')),
    otherProvider: eq(users.userId, owner('otherProvider', 'otherSubject'))
  }
  return db
    .select({
      ...LOADED_COLUMNS,
      links: links.mapWith(listIn<AccountLink>),
      factors: ofFactors.mapWith(listIn<Factor>),
      version: VERSION
    })
    .from(users)
    .leftJoin(credentials, eq(credentials.userId, users.userId))
    .where(or(...asked.map(name => conditions[name])))
}

/** Few users have factors: the server looks for those of no other user. */
const FACTORS_OF_USER = sql`case when ${users.extras} -> 'factors' is null then '[]' else (
  select coalesce(jsonb_agg(jsonb_build_object(
    'id', ${factors.factorId}, 'kind', ${factors.kind}, 'name', ${factors.name}, 'secret', ${factors.secret},
    'data', ${factors.data}, 'counter', ${factors.counter}, 'createdAt', ${factors.createdAt},
    'usedAt', ${factors.usedAt}
  ) order by ${factors.createdAt}, ${byCodePoints(factors.factorId)}), '[]')
  from ${factors} where ${factors.userId} = ${users.userId}) end`

function addition (database: PostgresDatabase, withFactors: PostgresDatabase) {
  const added = (db: PostgresDrizzle, { hasFactors }: { hasFactors: boolean }) => {
    const user = db.$with('new_user').as(db.insert(users)
      .values({ userId: given('userId'), ...USER_COLUMNS })
      .returning({ userId: users.userId }))
    const links = db.$with('new_links').as(db.insert(providerLinks).select(linksFor(sql`${user}`)))
    const password = db.$with('new_password').as(db.insert(credentials).select(passwordFor(sql`${user}`)))
    const more = hasFactors ? [writtenFactors(db, sql`${user}`)] : []
    return db.with(user, links, password, ...more).select().from(user)
  }
  const plain = lazily(() => added(database.db, { hasFactors: false }).prepare(UNNAMED))
  const whole = lazily(() => added(database.db, { hasFactors: true }).prepare(UNNAMED))

  return async <T>(
    account: Account | null,
    outcome: (statement: Promise<unknown[]>) => Promise<T>,
    how: RunOptions = {},
    hook?: CreateHook
  ) => {
    const hasFactors = Number(account?.factors.length) > 0
    const statement = hasFactors ? whole : plain
    const tables = hasFactors ? withFactors : database
    if (hook === undefined || account === null) {
      return tables.run(() => outcome(statement().execute({ ...account })), how)
    }
    const add = (db: PostgresDrizzle) => added(db, { hasFactors }).prepare(UNNAMED).execute({ ...account })
    return askingHook(tables, { write: add, ask: tx => hook(account, tx), outcome }, how)
  }
}

interface AskingWrite<T> {
  /** Writes the account; of no rows, nothing was written. */
  write: (db: PostgresDrizzle) => Promise<unknown[]>
  ask: (tx: unknown) => ReturnType<CreateHook>
  outcome: (statement: Promise<unknown[]>) => Promise<T>
}

/** Writes an account and asks a hook about it, in one transaction. */
async function askingHook<T> (
  tables: PostgresDatabase, { write, ask, outcome }: AskingWrite<T>, how: RunOptions
): Promise<T> {
  const { deadline = Date.now() + TIMEOUT_MS } = how
  const written = await tables.interactive(async begin => {
    const asked = askHook(begin, write, ask, deadline)
    const result = await outcome(asked.rows)
    return asked.refusal() ?? result
  }, { ...how, deadline })
  if (written instanceof AuthError) throw written
  return written
}

/**
 * Writes an account and asks a hook about it in one transaction. What the hook throws, or its
 * statements lead to, is never an answer to a statement of the store, nor a reason to give the
 * connection up: it is returned as the refusal. Only a conflict between transactions, and the loss
 * of the connection, are thrown.
 */
function askHook (
  begin: Begin, write: AskingWrite<unknown>['write'], ask: AskingWrite<unknown>['ask'], deadline: number
) {
  let step: 'write' | 'ask' | 'commit' = 'write'
  let refusal: AuthError | null = null
  const rows = begin(async (db, tx) => {
    const written = await write(db)
    if (written.length === 0) return written
    step = 'ask'
    const account = await ask(tx)
    step = 'commit'
    // The caller has been told that it failed.
    if (Date.now() >= deadline) throw new TimeoutError('onCreateUser took longer than the user was waited for')
    // Without claims too: after a failed statement of the hook a commit undoes all, in silence.
    await db.update(users).set(USER_COLUMNS).where(isUser).prepare(UNNAMED).execute({ ...account })
    return written
  }).catch((error: unknown) => {
    const isOfHook = step === 'ask' || (step === 'commit' && postgresFailures.isAnswer(error))
    const isOfDatabase = postgresFailures.isConflict(error) || postgresFailures.isConnectionLost(error)
    if (!isOfHook || isOfDatabase) throw error
    refusal = refusalBy(postgresFailures.isAnswer(error) ? postgresFailures.causeOf(error) : error)
    return []
  })
  return { rows, refusal: () => refusal }
}

type Written = 'done' | 'serialization-failure' | 'collided'

function writing (database: PostgresDatabase, withFactors: PostgresDatabase, revocations: PostgresRevocations) {
  const add = addition(database, withFactors)
  const statements = lazily(() => changeStatements(database.db))

  return async (
    { before, after }: AccountChange,
    { version, deadline, hook }: { version: string | undefined, deadline: number, hook: CreateHook | undefined }
  ): Promise<Written> => {
    const outcome = async (statement: Promise<unknown[]>): Promise<Written> => {
      try {
        return (await statement).length > 0 ? 'done' : 'serialization-failure'
      } catch (error) {
        if (postgresFailures.isUniqueViolation(error)) return 'collided'
        throw error
      }
    }
    const how = { deadline, failure: after === null ? postgresFailures.ofDeletion : postgresFailures.ofChange }
    // Then it is a new account: what is neither there before nor afterwards is no change.
    if (before === null || version === undefined) return add(after, outcome, how, hook)
    const { removed, written } = linkChanges(before, after ?? before)
    const ofFactors = factorChanges(before, after ?? before)
    const values = {
      ...(after ?? before),
      links: written,
      removed,
      factors: ofFactors.written,
      removedFactors: ofFactors.removed,
      version
    }
    const changesFactors = ofFactors.written.length + ofFactors.removed.length > 0
    const { plain, whole, saveUser, remove } = statements()
    const { save, end } = changesFactors ? whole() : plain
    const isRevocation = after === null || generationOf(after) > generationOf(before)
    if (!isRevocation) {
      const isOfUserAlone = removed.length + written.length === 0 && values.passwordHash === before.passwordHash
      const statement = isOfUserAlone && !changesFactors ? saveUser : save
      return (changesFactors ? withFactors : database).run(() => outcome(statement.execute(values)), how)
    }
    if (hook !== undefined && after !== null && makesUser({ before, after })) {
      const promote = async (db: PostgresDrizzle, revocation: object): Promise<unknown[]> => {
        const { plain, whole } = changeStatements(db)
        return (changesFactors ? whole() : plain).end.execute({ ...values, ...revocation })
      }
      const ask = (tx: unknown) => hook(after, tx)
      return revocations.run(async revocation =>
        askingHook(withFactors, { write: async db => promote(db, revocation), ask, outcome }, how))
    }
    const statement = after === null ? remove : end
    return revocations.run(revocation =>
      withFactors.run(() => outcome(statement.execute({ ...values, ...revocation })), how))
  }
}

function changeStatements (db: PostgresDrizzle) {
  const isAsLoaded = and(isUser, eq(VERSION, given('version')))
  const owner = db.$with('owner').as(db.select({ userId: users.userId }).from(users)
    .where(isAsLoaded)
    .for('no key update'))
  const ids = sql`(select user_id from ${owner})`

  const unlinked = db.$with('unlinked').as(db.delete(providerLinks).where(and(
    inArray(providerLinks.userId, ids),
    inArray(providerLinks.provider, sql`(select jsonb_array_elements_text(${json('removed')}))`)
  )))
  const linked = db.$with('linked').as(db.insert(providerLinks).select(linksFor(sql`${owner}`))
    .onConflictDoUpdate({
      target: [providerLinks.userId, providerLinks.provider],
      set: excluded({ subject: providerLinks.subject, claims: providerLinks.claims })
    }))
  const forgotten = db.$with('forgotten').as(db.delete(credentials)
    .where(and(inArray(credentials.userId, ids), sql`${PASSWORD_HASH} is null`)))
  const password = db.$with('password').as(db.insert(credentials).select(passwordFor(sql`${owner}`))
    .onConflictDoUpdate({ target: credentials.userId, set: { pwHash: sql`excluded.pw_hash` } }))
  const changed = db.$with('changed').as(db.update(users)
    .set(USER_COLUMNS)
    .where(inArray(users.userId, ids))
    .returning({ userId: users.userId }))
  const parts = [owner, unlinked, linked, forgotten, password, changed] as const
  const saving = (...more: WithSubquery[]) => ({
    save: db.with(...parts, ...more).select().from(changed).prepare(UNNAMED),
    end: db.with(...parts, ...more, recordedRevocation(db, sql`${changed}`)).select().from(changed).prepare(UNNAMED)
  })
  const plain = saving()
  const whole = lazily(() => saving(
    db.$with('removed_factors').as(db.delete(factors).where(and(
      inArray(factors.userId, ids),
      inArray(factors.factorId, sql`(select jsonb_array_elements_text(${json('removedFactors')}))`)
    ))),
    writtenFactors(db, sql`${owner}`)
  ))

  // What changes the user's row alone needs no parts, which the server would plan anew each time.
  // For a row that another statement has written meanwhile the condition is asked again, and fails.
  const saveUser = db.update(users).set(USER_COLUMNS).where(isAsLoaded).returning({ userId: users.userId })
    .prepare(UNNAMED)

  const deleted = db.$with('deleted').as(db.delete(users).where(inArray(users.userId, ids))
    .returning({ userId: users.userId }))
  const remove = db.with(owner, deleted, recordedRevocation(db, sql`${deleted}`)).select().from(deleted)
    .prepare(UNNAMED)

  return { plain, whole, saveUser, remove }
}

/** Some drivers read JSON as text, others as what it says. */
function listIn<T> (value: unknown): T[] {
  return Object(typeof value === 'string' ? JSON.parse(value) : value)
}

const PASSWORD_HASH = sql`${given('passwordHash')}::text`

/** The given links as rows of a user in another part of the statement. */
function linksFor (user: SQL): SQL {
  return sql`select link ->> 'provider', link ->> 'subject', user_id, link -> 'claims'
    from ${user}, jsonb_array_elements(${json('links')}) link`
}

/** The given password as a row of a user in another part of the statement. */
function passwordFor (user: SQL): SQL {
  return sql`select user_id, ${PASSWORD_HASH} from ${user} where ${PASSWORD_HASH} is not null`
}

function writtenFactors (db: PostgresDrizzle, user: SQL) {
  const { factorId, userId, ...others } = getTableColumns(factors)
  return db.$with('written_factors').as(db.insert(factors)
    .select(sql`select factor ->> 'id', user_id, factor ->> 'kind', factor ->> 'name', factor ->> 'secret',
      factor -> 'data', (factor ->> 'counter')::bigint, (factor ->> 'createdAt')::bigint,
      (factor ->> 'usedAt')::bigint
      from ${user}, jsonb_array_elements(${json('factors')}) factor`)
    .onConflictDoUpdate({
      target: factorId,
      set: {
        // Without a value for the factor of another user: the server refuses the statement.
        userId: sql`case when ${userId} = excluded.user_id then excluded.user_id end`,
        ...excluded(others)
      }
    }))
}
