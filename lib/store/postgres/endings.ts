import { randomUUID } from 'node:crypto'
import { type SQL, inArray, lt, sql } from 'drizzle-orm'
import { Sweeper } from '../../base/sweeper.js'
import { endings } from '../../schema/postgres.js'
import type { Endings, EndingsListener } from '../endings.js'
import type { PostgresDrizzle } from '../sql-target.js'
import type { PostgresDatabase } from './database.js'
import { EndingsFollower } from './endings-follower.js'
import { CHANNEL, type OpenNotifications } from './notifications.js'
import { NOW, UNNAMED, given } from './statements.js'

/** A process that was away for longer misses endings. */
const KEPT_MS = 3_600_000
const BATCH = 1000

/**
 * Builds the part of a statement that records an ending for the users in another part, and tells
 * the other processes when the statement is committed. The notification has the id alone: every
 * role of the database may notify and listen, but not read and write the table.
 *
 * @param ended what follows `from`, with a column `user_id`
 */
export function recordedEnding (db: PostgresDrizzle, ended: SQL) {
  return db.$with('ending').as(insertion(db, ended))
}

function insertion (db: PostgresDrizzle, ended: SQL) {
  return db.insert(endings)
    .select(sql`select ${given('endingId')}::uuid, user_id, ${NOW} from ${ended}`)
    .returning({ notified: sql`pg_notify('${sql.raw(CHANNEL)}', ${endings.id}::text)`.as('notified') })
}

/** Keeps the endings on Postgres: each is one row, written by the statement that ends sessions. */
export class PostgresEndings implements Endings {
  readonly #database: PostgresDatabase
  readonly #follower: EndingsFollower
  readonly #sweeper: Sweeper
  readonly #record

  constructor (users: PostgresDatabase, notifications: OpenNotifications | null) {
    this.#database = users.with('endings')
    this.#follower = new EndingsFollower(this.#database, notifications)
    const { db } = this.#database
    this.#record = insertion(db, sql`(select ${given('userId')}::uuid as user_id) signed_out`).prepare(UNNAMED)
    const old = db.select({ id: endings.id }).from(endings)
      .where(lt(endings.endedAt, sql`${NOW} - ${KEPT_MS}`))
      .limit(BATCH)
      .for('update', { skipLocked: true })
    const removal = db.delete(endings).where(inArray(endings.id, old)).returning({ id: endings.id }).prepare(UNNAMED)
    const sweep = async (): Promise<void> => {
      const removed = await this.#database.run(() => removal.execute())
      if (removed.length === BATCH) await sweep()
    }
    this.#sweeper = new Sweeper(sweep, Date.now())
  }

  /**
   * Runs a statement that has a part {@link recordedEnding}. The caller announces the ending in
   * this process. A statement that fails may have been committed all the same: then the ending is
   * followed like those of other processes.
   */
  async run<T> (statement: (ending: { endingId: string }) => Promise<T>): Promise<T> {
    const endingId = randomUUID()
    try {
      return await this.#run(endingId, () => statement({ endingId }))
    } catch (error) {
      this.#follower.expect(endingId)
      throw error
    }
  }

  async record (userId: string): Promise<void> {
    const endingId = randomUUID()
    await this.#run(endingId, () => this.#record.execute({ endingId, userId }))
  }

  /** Runs a statement whose ending is not followed here. */
  async #run<T> (endingId: string, statement: () => Promise<T>): Promise<T> {
    this.#follower.ignore(endingId)
    try {
      return await this.#database.run(statement)
    } finally {
      this.#sweeper.start(Date.now())
    }
  }

  async follow (listener: EndingsListener): Promise<void> {
    this.#follower.follow(listener)
  }

  /** Stops following at once. */
  close (): void {
    this.#follower.close()
  }
}
