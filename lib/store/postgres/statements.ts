import type { AuthorizationClaims } from '../../claims.js'
import { AuthError } from '../../errors.js'
import { PATIENCE_MS, inTime } from '../../base/in-time.js'
import { Once } from '../../base/once.js'
import type { users } from '../../schema/postgres.js'
import { type AuthStore, type Credential, type Link, type LinkedIdentity, type NewUser, type User, type UserQuery, linksWithout } from '../store.js'
import { isUserId } from '../../base/uuid.js'
import { causeOf, sqlState, storeFailure } from './failures.js'
import { type PostgresDatabase, type Prepared, prepare } from './prepare.js'
import { createPostgresTables } from './tables.js'

const UNIQUE_VIOLATION = '23505'
const SERIALIZATION_FAILURE = '40001'
const DEADLOCK = '40P01'
const DUPLICATE_TABLE = '42P07'

/** A reference with `on delete restrict` has a code of its own since Postgres 18. */
const FOREIGN_KEY_VIOLATIONS = new Set<unknown>(['23503', '23001'])

/** By these a statement learns that another one got ahead of it. */
const DISTURBANCES = new Set<unknown>([UNIQUE_VIOLATION, SERIALIZATION_FAILURE, DEADLOCK, DUPLICATE_TABLE])
const MAX_ATTEMPTS = 5

type Row = typeof users.$inferSelect

type Statement<T> = (prepared: Prepared) => Promise<T>

/**
 * SqlAuthStore on Postgres. Each operation is one statement, so that it is atomic on every driver and takes one round trip.
 *
 * Whatever changes a user or his links locks the user's row first: concurrent operations then wait for each other instead of deadlocking.
 */
export class PostgresStatements implements AuthStore {
  readonly #prepared: Prepared
  readonly #tables: Once<void>
  readonly #close: () => Promise<void>

  constructor (db: PostgresDatabase, { createTables, close = async () => {} }: { createTables: boolean, close?: () => Promise<void> }) {
    this.#prepared = prepare(db)
    this.#tables = new Once(async () => { if (createTables) await inTime(PATIENCE_MS, undisturbed(() => createPostgresTables(db)), 'Postgres') })
    this.#close = close
  }

  async findUser (query: UserQuery): Promise<User | null> {
    if ('userId' in query && !isUserId(query.userId)) return null
    return this.#user(({ userById, userByEmail, userByLink }) => {
      if ('userId' in query) return userById.execute(query)
      return 'email' in query ? userByEmail.execute(query) : userByLink.execute(query)
    })
  }

  async links (userId: string): Promise<Link[]> {
    if (!isUserId(userId)) return []
    return this.#run(({ links }) => links.execute({ userId }))
  }

  async findCredential (email: string): Promise<Credential | null> {
    const [row] = await this.#run(({ credential }) => credential.execute({ provider: 'local', subject: email }))
    const user = userOf(row?.user)
    return row === undefined || user === null ? null : { ...row, user }
  }

  async refreshIdentity (identity: LinkedIdentity): Promise<User | null> {
    return this.#user(({ refreshIdentity }) => refreshIdentity.execute(newsOf(identity)))
  }

  async createUser ({ userId, email, emailVerified, name, claims, isNew, link: { provider, subject, claims: linkClaims }, passwordHash }: NewUser): Promise<User | null> {
    const extras = { email_verified: emailVerified, email_verified_by: emailVerified ? [provider] : [], is_new: isNew }
    return this.#run(async ({ createUser }) => {
      try {
        const [row] = await createUser.execute({ userId, email, name, claims, extras, provider, subject, linkClaims, passwordHash: passwordHash ?? null })
        return userOf(row)
      } catch (error) {
        if (sqlState(error) === UNIQUE_VIOLATION) return null
        throw error
      }
    })
  }

  async addLink (userId: string, identity: LinkedIdentity): Promise<User | null> {
    if (!isUserId(userId)) return null
    return this.#user(({ addLink }) => addLink.execute({ userId, ...newsOf(identity) }))
  }

  async removeLink (userId: string, provider: string): Promise<Link[]> {
    if (!isUserId(userId)) throw new AuthError('unknown_user')
    return linksWithout(await this.#run(({ removeLink }) => removeLink.execute({ userId, provider })), provider)
  }

  async deleteUser (userId: string): Promise<void> {
    const isDeleted = isUserId(userId) && await this.#delete(({ deleteUser }) => deleteUser.execute({ userId }))
    if (!isDeleted) throw new AuthError('unknown_user')
  }

  async admitUser (userId: string): Promise<boolean> {
    if (!isUserId(userId)) return false
    const admitted = await this.#run(({ admitUser }) => admitUser.execute({ userId }))
    return admitted.length > 0
  }

  async deleteNewUser (userId: string): Promise<void> {
    if (isUserId(userId)) await this.#delete(({ deleteNewUser }) => deleteNewUser.execute({ userId }))
  }

  async replacePasswordHash (userId: string, current: string, next: string): Promise<void> {
    if (isUserId(userId)) await this.#run(({ replacePasswordHash }) => replacePasswordHash.execute({ userId, current, next }))
  }

  async grant (userId: string, claims: AuthorizationClaims): Promise<AuthorizationClaims> {
    return this.#changeClaims(userId, ({ grant }) => grant.execute({ userId, claims }))
  }

  async withdraw (userId: string, names: readonly string[]): Promise<AuthorizationClaims> {
    return this.#changeClaims(userId, ({ withdraw }) => withdraw.execute({ userId, names }))
  }

  async close (): Promise<void> {
    await this.#close()
  }

  async #user (statement: Statement<Row[]>): Promise<User | null> {
    const [row] = await this.#run(statement)
    return userOf(row)
  }

  async #changeClaims (userId: string, statement: Statement<Array<Pick<Row, 'claims'>>>): Promise<AuthorizationClaims> {
    const [row] = isUserId(userId) ? await this.#run(statement) : []
    if (row === undefined) throw new AuthError('unknown_user')
    return row.claims
  }

  /** @returns whether there was such a user */
  async #delete (statement: Statement<unknown[]>): Promise<boolean> {
    return this.#run(async prepared => {
      try {
        const deleted = await statement(prepared)
        return deleted.length > 0
      } catch (error) {
        if (FOREIGN_KEY_VIOLATIONS.has(sqlState(error))) throw new AuthError('user_in_use', { cause: causeOf(error) })
        throw error
      }
    })
  }

  /** Makes the tables before the first statement. */
  async #run<T> (statement: Statement<T>): Promise<T> {
    try {
      return await inTime(PATIENCE_MS, this.#tables.done().then(() => undisturbed(() => statement(this.#prepared))), 'Postgres')
    } catch (error) {
      throw error instanceof AuthError ? error : storeFailure(error)
    }
  }
}

function newsOf ({ provider, subject, claims, verifiedEmail }: LinkedIdentity) {
  return { provider, subject, claims, name: claims.name ?? null, email: claims.email ?? null, verifiedEmail }
}

function userOf (row: Row | undefined): User | null {
  if (row === undefined) return null
  const { userId, email, name, claims, extras } = row
  return { userId, email, emailVerified: extras.email_verified === true, name, claims, ...(extras.is_new && { isNew: true }) }
}

/** Runs a statement again that another one got in the way of; nothing of it was written. */
async function undisturbed<T> (run: () => Promise<T>, attempts = MAX_ATTEMPTS): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (attempts === 1 || !DISTURBANCES.has(sqlState(error))) throw error
    return undisturbed(run, attempts - 1)
  }
}
