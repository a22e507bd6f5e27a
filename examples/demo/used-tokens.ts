import type { Database, Statement } from 'better-sqlite3'
import { AuthError, type TokenClaims } from 'fastify-svc-auth'

/**
 * The tokens that were used, each until it expires: so that a link works once. Processes that share the file share
 * them; several machines need a table that they share, with the same statements.
 */
export class UsedTokens {
  readonly #insert: Statement<[string, number]>
  readonly #forget: Statement<[number]>

  constructor (database: Database) {
    database.exec('CREATE TABLE IF NOT EXISTS used_tokens (jti TEXT PRIMARY KEY, expires_at INTEGER NOT NULL)')
    this.#insert = database.prepare('INSERT OR IGNORE INTO used_tokens (jti, expires_at) VALUES (?, ?)')
    this.#forget = database.prepare('DELETE FROM used_tokens WHERE expires_at <= ?')
  }

  /**
   * Marks a verified token as used. Call it before the action: of two requests at the same time one succeeds.
   *
   * @throws AuthError `invalid_token` when the token was used before
   */
  use ({ jti, exp }: TokenClaims): void {
    // A minute after it expired, for a process whose clock is behind.
    this.#forget.run(Math.floor(Date.now() / 1000) - 60)
    if (jti === undefined || this.#insert.run(jti, exp).changes === 0) {
      throw new AuthError('invalid_token', { message: 'This link was used already.' })
    }
  }
}
