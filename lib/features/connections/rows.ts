import { and, asc, eq, getTableColumns, gt, isNotNull, isNull, lte, or, sql } from '../../drizzle/sql.js'
import type { ConnectionContent } from '../../schema/connections.js'
import type { FeatureTables } from '../../session/feature-tables.js'
import { type SqlDatabase, onceForEach } from '../../session/sql-database.js'

/** The name of a connection as a provider begins with it; its id follows. */
export const CONNECTION = 'connection:'

/** A connection as the table has it; times are in milliseconds since the epoch. */
export interface ConnectionRow {
  readonly connectionId: string
  readonly issuer: string
  readonly clientId: string
  readonly content: ConnectionContent
  readonly version: number
  readonly createdAt: number
  readonly removedAt: number | null
}

/** A domain that a connection claims. */
export interface DomainRow {
  /** An A-label in lower case. */
  readonly domain: string
  readonly connectionId: string
  /** What its DNS record has. */
  readonly token: string
  readonly provenAt: number | null
  readonly checkedAt: number | null
  readonly missingSince: number | null
  readonly lapsedAt: number | null
}

/** A connection with its domains. */
export interface FoundConnection {
  readonly row: ConnectionRow
  readonly domains: readonly DomainRow[]
}

/** Keeps connections and their domains. */
export class ConnectionRows {
  readonly #tables: FeatureTables

  constructor (tables: FeatureTables) {
    this.#tables = tables
  }

  /** Finds a connection with its domains, by one statement; null for one whose removal began. */
  async find (connectionId: string): Promise<FoundConnection | null> {
    const [found] = grouped(await (await this.#statements()).find({ connectionId }))
    return found === undefined || found.row.removedAt !== null ? null : found
  }

  /** Whether there is a connection, also one whose removal began. */
  async exists (connectionId: string): Promise<boolean> {
    return (await (await this.#statements()).find({ connectionId })).length > 0
  }

  /** Finds the connection for which a domain is proven. */
  async ofDomain (domain: string): Promise<ConnectionRow | null> {
    return (await (await this.#statements()).ofDomain({ domain }))[0] ?? null
  }

  /** Whether a domain is proven for any connection. */
  async hasDomains (): Promise<boolean> {
    return (await (await this.#statements()).anyProven({})).length > 0
  }

  /** Lists connections by id, with their domains. */
  async list (after: string, limit: number): Promise<FoundConnection[]> {
    return grouped(await (await this.#statements()).list({ after, limit }))
  }

  async insert (row: ConnectionRow): Promise<void> {
    await (await this.#statements()).insert({ ...row })
  }

  /** Writes the content of a connection; false where another request was ahead. */
  async update ({ connectionId, version, content }: ConnectionRow): Promise<boolean> {
    return (await (await this.#statements()).update({ connectionId, version, content })).length > 0
  }

  /** Begins the removal of a connection, which signs nobody in from then on. */
  async close (connectionId: string, removedAt: number): Promise<void> {
    await (await this.#statements()).close({ connectionId, removedAt })
  }

  /** Removes a connection with its domains. */
  async remove (connectionId: string): Promise<void> {
    await (await this.#statements()).remove({ connectionId })
  }

  /** Claims a domain for a connection, unless it does so already. */
  async claim (connectionId: string, domain: string, token: string): Promise<void> {
    await (await this.#statements()).claim({ connectionId, domain, token })
  }

  async unclaim (connectionId: string, domain: string): Promise<void> {
    await (await this.#statements()).unclaim({ connectionId, domain })
  }

  /** Returns the claims of a domain, of all connections. */
  async claimsOf (domain: string): Promise<DomainRow[]> {
    return (await this.#statements()).claimsOf({ domain })
  }

  /** Notes that a domain is proven for a connection; throws where it is for another one. */
  async prove (connectionId: string, domain: string, now: number): Promise<void> {
    await (await this.#statements()).prove({ connectionId, domain, now })
  }

  /** Notes a check that found no record. */
  async noteMissing (connectionId: string, domain: string, now: number): Promise<void> {
    await (await this.#statements()).noteMissing({ connectionId, domain, now })
  }

  /**
   * Ends the proof of a domain whose record is missing since then; false where it is not, or
   * another process has done so.
   */
  async lapse (connectionId: string, domain: string, missingSince: number, now: number): Promise<boolean> {
    return (await (await this.#statements()).lapse({ connectionId, domain, missingSince, now })).length > 0
  }

  /** Takes the domain whose check is due the longest, for this process alone; null for none. */
  async takeDue (checkedUntil: number, now: number): Promise<DomainRow | null> {
    const { due, take } = await this.#statements()
    for (const { connectionId, domain } of await due({ checkedUntil })) {
      const [taken] = await take({ connectionId, domain, checkedUntil, now })
      if (taken !== undefined) return taken
    }
    return null
  }

  /** Lists the ids of users with a link at a provider. */
  async linkedUsers (provider: string, after: string, limit: number): Promise<string[]> {
    return (await (await this.#statements()).linked({ provider, after, limit })).map(({ userId }) => userId)
  }

  async #statements (): Promise<ReturnType<typeof statementsOn>> {
    return statements(await this.#tables('connections'))
  }
}

/** Groups what a join has returned. */
function grouped (rows: ReadonlyArray<{ row: ConnectionRow, domain: DomainRow | null }>): FoundConnection[] {
  const found = new Map<string, { row: ConnectionRow, domains: DomainRow[] }>()
  for (const { row, domain } of rows) {
    const connection = found.get(row.connectionId) ?? { row, domains: [] }
    // A row without a domain is null, or has nulls: the engines differ.
    if (domain?.domain != null) connection.domains.push(domain)
    found.set(row.connectionId, connection)
  }
  return [...found.values()]
}

const statements = onceForEach(statementsOn)

const given = sql.placeholder

function statementsOn (database: SqlDatabase) {
  const { connections, domains, providerLinks } = database.tables
  const columns = { row: getTableColumns(connections), domain: getTableColumns(domains) }
  const isConnection = eq(connections.connectionId, given('connectionId'))
  const isDomain = and(eq(domains.connectionId, given('connectionId')), eq(domains.domain, given('domain')))
  const isOfConnection = eq(domains.connectionId, connections.connectionId)
  const isOpen = isNull(connections.removedAt)
  const isDue = and(
    isNotNull(domains.provenAt), or(isNull(domains.checkedAt), lte(domains.checkedAt, given('checkedUntil'))))
  const byName = [asc(connections.connectionId), asc(domains.domain)] as const
  const returnedDomain = { domain: domains.domain }
  const returned = { connectionId: connections.connectionId }
  const now = sql`${given('now')}`
  const names = ['connectionId', 'issuer', 'clientId', 'version', 'createdAt', 'removedAt'] as const
  type Joined = { row: ConnectionRow, domain: DomainRow | null }
  return {
    find: database.query<Joined>(
      db => db.select(columns).from(connections).leftJoin(domains, isOfConnection)
        // With a plain parameter SQLite plans a join anew each time, which takes six times as long.
        .where(eq(connections.connectionId, sql`cast(${given('connectionId')} as text)`)).orderBy(...byName),
      columns, 'reads'
    ),
    ofDomain: database.query<ConnectionRow>(
      db => db.select(columns.row).from(domains).innerJoin(connections, isOfConnection)
        .where(and(eq(domains.domain, sql`cast(${given('domain')} as text)`), isNotNull(domains.provenAt), isOpen)),
      columns.row, 'reads'
    ),
    anyProven: database.query<{ domain: string }>(
      db => db.select(returnedDomain).from(domains).where(isNotNull(domains.provenAt)).limit(1)
    ),
    list: database.query<Joined>(db => {
      const page = db.select().from(connections)
        .where(and(gt(connections.connectionId, given('after')), isOpen))
        .orderBy(asc(connections.connectionId)).limit(given('limit')).as('page')
      const { connectionId, issuer, clientId, content, version, createdAt, removedAt } = page
      const row = { connectionId, issuer, clientId, content, version, createdAt, removedAt }
      return db.select({ row, domain: columns.domain }).from(page)
        .leftJoin(domains, eq(domains.connectionId, connectionId)).orderBy(asc(connectionId), asc(domains.domain))
    }),
    insert: database.change(db => db.insert(connections)
      .values({
        ...Object.fromEntries(names.map(name => [name, given(name)])), content: database.json('content')
      } as unknown as typeof connections.$inferInsert)
      .returning(returned)),
    update: database.change(db => db.update(connections)
      .set({ content: database.json('content'), version: sql`${connections.version} + 1` })
      .where(and(isConnection, isOpen, eq(connections.version, given('version'))))
      .returning(returned)),
    close: database.change(db => db.update(connections).set({ removedAt: sql`${given('removedAt')}` })
      .where(and(isConnection, isOpen)).returning(returned)),
    remove: database.change(db => db.delete(connections).where(isConnection).returning(returned)),
    claim: database.change(db => db.insert(domains)
      .values({
        connectionId: given('connectionId'), domain: given('domain'), token: given('token')
      } as unknown as typeof domains.$inferInsert)
      .onConflictDoNothing()
      .returning(returnedDomain)),
    unclaim: database.change(db => db.delete(domains).where(isDomain).returning(returnedDomain)),
    claimsOf: database.query<DomainRow>(db => db.select().from(domains).where(eq(domains.domain, given('domain')))),
    prove: database.change(db => db.update(domains)
      .set({ provenAt: sql`coalesce(${domains.provenAt}, ${now})`, checkedAt: now, missingSince: null, lapsedAt: null })
      .where(isDomain).returning(returnedDomain)),
    noteMissing: database.change(db => db.update(domains)
      .set({ checkedAt: now, missingSince: sql`coalesce(${domains.missingSince}, ${now})` })
      .where(and(isDomain, isNotNull(domains.provenAt))).returning(returnedDomain)),
    lapse: database.change(db => db.update(domains).set({ provenAt: null, lapsedAt: now })
      .where(and(isDomain, isNotNull(domains.provenAt), lte(domains.missingSince, given('missingSince'))))
      .returning(returnedDomain)),
    due: database.query<DomainRow>(db => db.select().from(domains).where(isDue)
      .orderBy(asc(domains.checkedAt)).limit(3)),
    take: database.change<DomainRow>(db => db.update(domains).set({ checkedAt: now })
      .where(and(isDomain, isDue)).returning()),
    linked: database.query<{ userId: string }>(db => db.select({ userId: providerLinks.userId }).from(providerLinks)
      .where(and(eq(providerLinks.provider, given('provider')), gt(providerLinks.userId, given('after'))))
      .orderBy(asc(providerLinks.userId)).limit(given('limit')))
  }
}
