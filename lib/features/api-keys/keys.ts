import { type Account, type User, keyGenerationOf, userOf } from '../../accounts/account.js'
import { and, desc, eq, getTableColumns, gt, isNull, lt, lte, or, sql } from '../../drizzle/sql.js'
import type { FeatureTables } from '../../session/feature-tables.js'
import { type SqlDatabase, onceForEach } from '../../session/sql-database.js'

/** A key as the table has it; times are in milliseconds since the epoch. */
export interface Key {
  readonly keyId: string
  /** The SHA-256 of its secret, as base64url. */
  readonly hash: string
  readonly userId: string | null
  readonly owner: string | null
  readonly name: string
  readonly scopes: readonly string[]
  /** As of when it was made: see {@link keyGenerationOf}; 0 for a key of an owner. */
  readonly generation: number
  readonly createdAt: number
  readonly usedAt: number | null
  readonly expiresAt: number | null
}

/** A user, and the generation that their keys must have. */
export interface KeyUser {
  readonly user: User
  readonly keyGeneration: number
}

/** The user or the owner of keys. */
export type KeyHolder = { readonly userId: string } | { readonly owner: string }

/** Keeps the keys of users and of other owners. */
export class Keys {
  readonly #tables: FeatureTables

  constructor (tables: FeatureTables) {
    this.#tables = tables
  }

  /** Finds a key with its user, by one statement. */
  async find (keyId: string): Promise<{ key: Key, of: KeyUser | null } | null> {
    const [row] = await (await this.#statements()).find({ keyId })
    return row === undefined ? null : { key: row.key, of: keyUserOf(row.user) }
  }

  async userOf (userId: string): Promise<KeyUser | null> {
    const [row] = await (await this.#statements()).user({ userId })
    return keyUserOf(row ?? null)
  }

  /** Writes a new key; the rows of keys that were ended with their user's older ones go. */
  async insert (key: Key): Promise<void> {
    const { insert, removeEnded, sweeper } = await this.#statements()
    sweeper.start(key.createdAt)
    await insert({ ...key })
    if (key.userId !== null) await removeEnded({ userId: key.userId, generation: key.generation })
  }

  /** Lists the living keys of a user, with this generation, or of an owner, the newest first. */
  async list (holder: KeyHolder, generation: number, now: number): Promise<Key[]> {
    const { ofUser, ofOwner } = await this.#statements()
    return 'userId' in holder ? ofUser({ ...holder, generation, now }) : ofOwner({ ...holder, generation, now })
  }

  /** Notes that a key was used. */
  async noteUse (keyId: string, usedAt: number): Promise<void> {
    await (await this.#statements()).noteUse({ keyId, usedAt })
  }

  /** Ends a key, and returns it; null where there is none. */
  async end (keyId: string): Promise<Key | null> {
    return (await (await this.#statements()).end({ keyId }))[0] ?? null
  }

  async #statements (): Promise<ReturnType<typeof statementsOn>> {
    return statements(await this.#tables('keys'))
  }
}

type UserRow = Pick<Account, 'userId' | 'email' | 'name' | 'claims' | 'extras'>

/** A row without a user is null, or has nulls: the engines differ. */
function keyUserOf (row: UserRow | null): KeyUser | null {
  return row?.userId == null ? null : { user: userOf(row), keyGeneration: keyGenerationOf(row) }
}

const statements = onceForEach(statementsOn)

const given = sql.placeholder

function statementsOn (database: SqlDatabase) {
  const { keys, users } = database.tables
  const { userId, email, name, claims, extras } = users
  const user = { userId, email, name, claims, extras }
  const columns = { key: getTableColumns(keys), user }
  const isKey = eq(keys.keyId, given('keyId'))
  const isAlive = and(
    eq(keys.generation, given('generation')), or(isNull(keys.expiresAt), gt(keys.expiresAt, given('now'))))
  const newest = desc(keys.createdAt)
  const names = [
    'keyId', 'hash', 'userId', 'owner', 'name', 'generation', 'createdAt', 'usedAt', 'expiresAt'
  ] as const
  return {
    find: database.query<{ key: Key, user: UserRow | null }>(
      db => db.select(columns).from(keys)
        .leftJoin(users, eq(users.userId, keys.userId))
        // With a plain parameter SQLite plans a join anew each time, which takes six times as long.
        .where(eq(keys.keyId, sql`cast(${given('keyId')} as text)`)),
      columns, 'reads'
    ),
    user: database.query<UserRow>(db => db.select(user).from(users).where(eq(userId, given('userId')))),
    insert: database.change(db => db.insert(keys)
      .values({
        ...Object.fromEntries(names.map(name => [name, given(name)])), scopes: database.json('scopes')
      } as unknown as typeof keys.$inferInsert)
      .returning({ keyId: keys.keyId })),
    removeEnded: database.change(db => db.delete(keys)
      .where(and(eq(keys.userId, given('userId')), lt(keys.generation, given('generation'))))
      .returning({ keyId: keys.keyId })),
    ofUser: database.query<Key>(db => db.select().from(keys)
      .where(and(eq(keys.userId, given('userId')), isAlive)).orderBy(newest)),
    ofOwner: database.query<Key>(db => db.select().from(keys)
      .where(and(eq(keys.owner, given('owner')), isAlive)).orderBy(newest)),
    noteUse: database.change(db => db.update(keys).set({ usedAt: sql`${given('usedAt')}` })
      .where(and(isKey, or(isNull(keys.usedAt), lte(keys.usedAt, given('usedAt')))))
      .returning({ keyId: keys.keyId })),
    end: database.change<Key>(db => db.delete(keys).where(isKey).returning()),
    sweeper: database.sweeper({ table: keys, hash: keys.keyId, end: sql`${keys.expiresAt}` })
  }
}
