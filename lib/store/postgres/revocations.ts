import { randomUUID } from 'node:crypto'
import { Sweeper } from '../../base/sweeper.js'
import { type SQL, inArray, lt, revocations, sql } from '../../drizzle/postgres.js'
import { given } from '../drizzle.js'
import type { RevocationListener } from '../revocations.js'
import type { PostgresDrizzle } from '../sql-target.js'
import type { PostgresDatabase } from './database.js'
import { RevocationFollower } from './revocation-follower.js'
import { CHANNEL, type OpenNotifications } from './notifications.js'
import { NOW } from './statements.js'

/** A process that was away for longer misses revocations. */
const KEPT_MS = 3_600_000
const BATCH = 1000

/**
 * The part of a statement that records a revocation for the users in another part. At its commit
 * the other processes are told, of the id alone: every role of the database may notify and listen,
 * but not read and write the table.
 *
 * @param ended what follows `from`, with a column `user_id`
 */
export function recordedRevocation (db: PostgresDrizzle, ended: SQL) {
  return db.$with('revocation').as(insertion(db, ended))
}

function insertion (db: PostgresDrizzle, ended: SQL) {
  return db.insert(revocations)
    .select(sql`select ${given('revocationId')}::uuid, user_id, ${NOW} from ${ended}`)
    .returning({ notified: sql`pg_notify('${sql.raw(CHANNEL)}', ${revocations.id}::text)`.as('notified') })
}

function oldRemoved (db: PostgresDrizzle) {
  const old = db.select({ id: revocations.id }).from(revocations)
    .where(lt(revocations.revokedAt, sql`${NOW} - ${KEPT_MS}`))
    .limit(BATCH)
    .for('update', { skipLocked: true })
  return db.delete(revocations).where(inArray(revocations.id, old)).returning({ id: revocations.id })
}

export type PostgresRevocations = ReturnType<typeof postgresRevocations>

/** Each revocation is one row, written by the statement that ends sessions. */
export function postgresRevocations (database: PostgresDatabase, notifications: OpenNotifications | null) {
  const follower = new RevocationFollower(database, notifications)
  const insert = database.prepared(db => insertion(db, sql`(select ${given('userId')}::uuid as user_id) signed_out`))
  const removal = database.prepared(oldRemoved)
  const sweep = async (): Promise<void> => {
    if ((await removal({})).length === BATCH) await sweep()
  }
  const sweeper = new Sweeper(sweep, database.notSwept, Date.now())

  /**
   * Runs a statement with {@link recordedRevocation}, which the caller announces in this process.
   * One that fails may have been committed all the same: then its revocation is followed, unless
   * the caller has announced it before.
   */
  const run = async <T>(
    statement: (revocation: { revocationId: string }) => Promise<T>, { isAnnounced = false } = {}
  ): Promise<T> => {
    const revocationId = randomUUID()
    follower.ignore(revocationId)
    try {
      return await statement({ revocationId })
    } catch (error) {
      if (!isAnnounced) follower.expect(revocationId)
      throw error
    } finally {
      sweeper.start(Date.now())
    }
  }

  return {
    run,
    async record (userId: string) {
      await run(revocation => insert({ ...revocation, userId }), { isAnnounced: true })
    },
    follow: async (listener: RevocationListener) => { follower.follow(listener) },
    close: () => { follower.close() }
  }
}
