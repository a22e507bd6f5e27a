import { PATIENCE_MS, inTime } from '../../base/in-time.js'
import { Once } from '../../base/once.js'
import { AuthError } from '../../errors.js'
import type { PostgresDrizzle } from '../sql-target.js'
import { isDisturbance, storeFailure } from './failures.js'
import { createPostgresTables } from './tables.js'

const MAX_ATTEMPTS = 5

/** A Postgres database with the tables of the store. */
export class PostgresDatabase {
  /** Builds statements. */
  readonly db: PostgresDrizzle
  /** Builds short statements that wait for no lock. */
  readonly reads: PostgresDrizzle
  readonly #tables: Once<void>

  constructor (db: PostgresDrizzle, reads: PostgresDrizzle, { createTables }: { createTables: boolean }) {
    this.db = db
    this.reads = reads
    this.#tables = new Once(async () => {
      if (createTables) await inTime(PATIENCE_MS, undisturbed(() => createPostgresTables(db)), 'Postgres')
    })
  }

  /**
   * Runs a statement within five seconds. The first call creates the tables; a statement that lost
   * a race against another one is run again.
   *
   * @throws AuthError `unavailable` with the failure as its cause, and AuthErrors of the statement
   *   as they are
   */
  async run<T> (statement: () => Promise<T>): Promise<T> {
    try {
      return await inTime(PATIENCE_MS, this.#tables.done().then(() => undisturbed(statement)), 'Postgres')
    } catch (error) {
      throw error instanceof AuthError ? error : storeFailure(error)
    }
  }
}

/**
 * Runs a statement again when another one disturbed it: a statement that failed has written
 * nothing.
 */
async function undisturbed<T> (run: () => Promise<T>, attempts = MAX_ATTEMPTS): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (attempts === 1 || !isDisturbance(error)) throw error
    return undisturbed(run, attempts - 1)
  }
}
