import { type User, userOf } from '../../accounts/account.js'
import { and, count, desc, eq, getTableColumns, gt, isNull, lte, sql } from '../../drizzle/sql.js'
import { AuthError } from '../../errors.js'
import type { RegisteredClient } from '../../schema/grants.js'
import type { FeatureTables } from '../../session/feature-tables.js'
import { type SqlDatabase, onceForEach } from '../../session/sql-database.js'
import type { Grant } from './grant.js'

/** A grant, and its user as they are now. */
export interface FoundGrant {
  readonly grant: Grant
  readonly user: User
}

export interface StoredClient {
  readonly clientId: string
  readonly content: RegisteredClient
  readonly createdAt: number
  readonly usedAt: number | null
}

/** Keeps the grants of users, and the clients that have registered themselves. */
export class Grants {
  readonly #tables: FeatureTables

  constructor (tables: FeatureTables) {
    this.#tables = tables
  }

  /** Finds a grant with what its user has now, by one statement. */
  async find (grantId: string): Promise<FoundGrant | null> {
    const [row] = await (await this.#statements()).find({ grantId })
    return row === undefined ? null : { grant: row.grant, user: userOf(row.user) }
  }

  /** Writes a new grant; false where there is one with its id. */
  async insert (grant: Grant): Promise<boolean> {
    const { insert, sweeper } = await this.#statements()
    sweeper.start(grant.createdAt)
    return (await insert({ ...grant })).length > 0
  }

  /**
   * Changes a grant by a rule, which is asked again when another request was ahead.
   *
   * @param rule returns the grant as it is to be written, null for nothing, and what is returned
   */
  async change<T> (grantId: string, rule: (found: FoundGrant | null) => readonly [Grant | null, T]): Promise<T> {
    const { update } = await this.#statements()
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const [changed, result] = rule(await this.find(grantId))
      if (changed === null || (await update({ ...changed })).length > 0) return result
    }
    throw new AuthError('busy', { retryAfter: 1 })
  }

  /** Notes that a grant was used. */
  async noteUse (grantId: string, usedAt: number): Promise<void> {
    await (await this.#statements()).noteUse({ grantId, usedAt })
  }

  /** Lists the grants of a user with this generation, the last used ones first. */
  async ofUser (userId: string, generation: number, now: number): Promise<Grant[]> {
    return (await this.#statements()).ofUser({ userId, generation, now })
  }

  /** Ends a grant; false where there is none of this user. */
  async end (grantId: string, userId: string): Promise<boolean> {
    return (await (await this.#statements()).end({ grantId, userId })).length > 0
  }

  async findClient (clientId: string): Promise<StoredClient | null> {
    return (await (await this.#statements()).client({ clientId }))[0] ?? null
  }

  async noteClientUse (clientId: string, usedAt: number): Promise<void> {
    await (await this.#statements()).noteClientUse({ clientId, usedAt })
  }

  /** Adds a client; of more than `most` that were not used, the oldest go, and those of a day. */
  async addClient (client: StoredClient, most: number, unusedSince: number): Promise<void> {
    const { insertClient, unusedClients, removeClient, removeUnused } = await this.#statements()
    await removeUnused({ unusedSince })
    const [{ clients } = { clients: 0 }] = await unusedClients.count({})
    const over = Number(clients) + 1 - most
    if (over > 0) for (const { clientId } of await unusedClients.oldest({ over })) await removeClient({ clientId })
    await insertClient({ ...client })
  }

  async #statements (): Promise<ReturnType<typeof statementsOn>> {
    return statements(await this.#tables('grants'))
  }
}

/** Each window of a client may be ahead of the others once. */
const MAX_ATTEMPTS = 50

const statements = onceForEach(statementsOn)

const given = sql.placeholder

function statementsOn (database: SqlDatabase) {
  const { grants, users, oauthClients } = database.tables
  const columns = { grant: getTableColumns(grants), user: getTableColumns(users) }
  const isGrant = eq(grants.grantId, given('grantId'))
  const isClient = eq(oauthClients.clientId, given('clientId'))
  const returned = { grantId: grants.grantId }
  const names = ['grantId', 'userId', 'generation', 'clientId', 'version', 'createdAt', 'usedAt', 'endsAt'] as const
  type Inserted = typeof grants.$inferInsert
  return {
    find: database.query<{ grant: Grant, user: Parameters<typeof userOf>[0] }>(
      db => db.select(columns).from(grants)
        .innerJoin(users, eq(users.userId, grants.userId))
        // With a plain parameter SQLite plans a join anew each time, which takes six times as long.
        .where(eq(grants.grantId, sql`cast(${given('grantId')} as text)`)),
      columns, 'reads'
    ),
    insert: database.change(db => db.insert(grants)
      .values({
        ...Object.fromEntries(names.map(name => [name, given(name)])), content: database.json('content')
      } as unknown as Inserted)
      .onConflictDoNothing()
      .returning(returned)),
    update: database.change(db => db.update(grants)
      .set({
        content: database.json('content'),
        version: sql`${grants.version} + 1`,
        usedAt: sql`${given('usedAt')}`,
        endsAt: sql`${given('endsAt')}`
      })
      .where(and(isGrant, eq(grants.version, given('version'))))
      .returning(returned)),
    noteUse: database.change(db => db.update(grants).set({ usedAt: sql`${given('usedAt')}` })
      .where(and(isGrant, lte(grants.usedAt, given('usedAt'))))
      .returning(returned)),
    ofUser: database.query<Grant>(db => db.select().from(grants)
      .where(and(
        eq(grants.userId, given('userId')), eq(grants.generation, given('generation')), gt(grants.endsAt, given('now'))
      ))
      .orderBy(desc(grants.usedAt), desc(grants.createdAt))),
    end: database.change(db => db.delete(grants).where(and(isGrant, eq(grants.userId, given('userId'))))
      .returning(returned)),
    sweeper: database.sweeper({ table: grants, hash: grants.grantId, end: sql`${grants.endsAt}` }),
    client: database.query<StoredClient>(db => db.select().from(oauthClients).where(isClient)),
    insertClient: database.change(db => db.insert(oauthClients)
      .values({
        clientId: given('clientId'),
        content: database.json('content'),
        createdAt: given('createdAt'),
        usedAt: given('usedAt')
      } as unknown as typeof oauthClients.$inferInsert)
      .returning({ clientId: oauthClients.clientId })),
    noteClientUse: database.change(db => db.update(oauthClients).set({ usedAt: sql`${given('usedAt')}` })
      .where(isClient)
      .returning({ clientId: oauthClients.clientId })),
    removeClient: database.change(db => db.delete(oauthClients).where(and(isClient, isNull(oauthClients.usedAt)))
      .returning({ clientId: oauthClients.clientId })),
    removeUnused: database.change(db => db.delete(oauthClients)
      .where(and(isNull(oauthClients.usedAt), lte(oauthClients.createdAt, given('unusedSince'))))
      .returning({ clientId: oauthClients.clientId })),
    unusedClients: {
      count: database.query(db => db.select({ clients: count() }).from(oauthClients)
        .where(isNull(oauthClients.usedAt))),
      oldest: database.query(db => db.select({ clientId: oauthClients.clientId }).from(oauthClients)
        .where(isNull(oauthClients.usedAt))
        .orderBy(oauthClients.createdAt)
        .limit(given('over')))
    }
  }
}
