import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3'
import type { AuthorizationClaims } from '../../claims.js'
import { AuthError } from '../../errors.js'
import type { users } from '../../schema/sqlite.js'
import { isForeignKeyViolation, storeFailure } from './failures.js'
import { WriteLock, whileLocked } from './lock.js'
import { type Prepared, prepare } from './prepare.js'
import { createSqliteTables } from './tables.js'
import { type AuthStore, type Credential, type Link, type LinkedIdentity, type NewUser, type User, type UserQuery, linksWithout } from '../store.js'
import { type Vouching, vouchersAfter } from '../vouchers.js'

type Row = typeof users.$inferSelect

interface SqliteOptions {
  createTables: boolean
  /** Runs work on the connection, with no wait for a lock inside SQLite. */
  attempt?: <T>(work: () => T) => T
  close?: () => void
}

/**
 * SqlAuthStore on SQLite. better-sqlite3 runs statements without a pause; what must be atomic between processes too runs in
 * an immediate transaction, which takes the write lock before it reads.
 */
export class SqliteStatements implements AuthStore {
  readonly #db: BetterSQLite3Database
  readonly #createTables: boolean
  readonly #attempt: <T>(work: () => T) => T
  readonly #close: () => void
  readonly #writeLock = new WriteLock()
  #prepared: Prepared | undefined

  constructor (db: BetterSQLite3Database, { createTables, attempt = work => work(), close = () => {} }: SqliteOptions) {
    this.#db = db
    this.#createTables = createTables
    this.#attempt = attempt
    this.#close = close
  }

  async findUser (query: UserQuery): Promise<User | null> {
    return this.#read(({ userById, userByEmail, userByLink }) => {
      if ('userId' in query) return userOf(userById.get(query))
      return userOf('email' in query ? userByEmail.get(query) : userByLink.get(query))
    })
  }

  async links (userId: string): Promise<Link[]> {
    return this.#read(({ links }) => links.all({ userId }))
  }

  async findCredential (email: string): Promise<Credential | null> {
    return this.#read(({ credential }) => {
      const row = credential.get({ provider: 'local', subject: email })
      const user = userOf(row?.user)
      return row === undefined || user === null ? null : { ...row, user }
    })
  }

  async refreshIdentity (identity: LinkedIdentity): Promise<User | null> {
    const { provider, subject, claims } = identity
    return this.#transaction(prepared => {
      const known = prepared.known.get({ provider, subject })
      if (known === undefined) return null
      prepared.setLinkClaims.run({ provider, subject, claims })
      return noteIdentity(prepared, known.user, identity, known.claims)
    })
  }

  async createUser ({ userId, email, emailVerified, name, claims, isNew, link, passwordHash }: NewUser): Promise<User | null> {
    return this.#transaction(({ userByEmail, link: linked, insertUser, insertLink, insertCredential }) => {
      const isTaken = email !== null && userByEmail.get({ email }) !== undefined
      if (isTaken || linked.get({ ...link }) !== undefined) return null
      const extras = { email_verified: emailVerified, email_verified_by: emailVerified ? [link.provider] : [], is_new: isNew }
      const row = insertUser.get({ userId, email, name, claims, extras })
      insertLink.run({ ...link, userId })
      if (passwordHash !== undefined) insertCredential.run({ userId, passwordHash })
      return userOf(row)
    })
  }

  async addLink (userId: string, identity: LinkedIdentity): Promise<User | null> {
    const { provider, subject, claims } = identity
    return this.#transaction(prepared => {
      const user = prepared.userById.get({ userId })
      if (user === undefined || prepared.link.get({ provider, subject }) !== undefined) return null
      if (prepared.links.all({ userId }).some(link => link.provider === provider)) return null
      prepared.insertLink.run({ provider, subject, userId, claims })
      return noteIdentity(prepared, user, identity)
    })
  }

  async removeLink (userId: string, provider: string): Promise<Link[]> {
    return this.#transaction(({ userById, links, setExtras, deleteLink, deleteCredential }) => {
      const user = userById.get({ userId })
      if (user === undefined) throw new AuthError('unknown_user')
      const left = linksWithout(links.all({ userId }), provider)
      const { changes } = deleteLink.run({ userId, provider })
      if (changes > 0) setExtras.run({ userId, extras: extrasAfter(user, { provider, vouches: false, isNewEmail: false }) })
      if (provider === 'local') deleteCredential.run({ userId })
      return left
    })
  }

  async deleteUser (userId: string): Promise<void> {
    await this.#delete(userId, user => {
      if (user === null) throw new AuthError('unknown_user')
      return true
    })
  }

  async admitUser (userId: string): Promise<boolean> {
    return this.#write(({ admitUser }) => admitUser.run({ userId }).changes > 0)
  }

  async deleteNewUser (userId: string): Promise<void> {
    await this.#delete(userId, user => user?.isNew === true)
  }

  async replacePasswordHash (userId: string, current: string, next: string): Promise<void> {
    await this.#write(({ replacePasswordHash }) => replacePasswordHash.run({ userId, current, next }))
  }

  async grant (userId: string, claims: AuthorizationClaims): Promise<AuthorizationClaims> {
    return this.#changeClaims(userId, granted => ({ ...granted, ...claims }))
  }

  async withdraw (userId: string, names: readonly string[]): Promise<AuthorizationClaims> {
    return this.#changeClaims(userId, granted => Object.fromEntries(Object.entries(granted).filter(([name]) => !names.includes(name))))
  }

  async close (): Promise<void> {
    this.#close()
  }

  #changeClaims (userId: string, change: (granted: AuthorizationClaims) => AuthorizationClaims): Promise<AuthorizationClaims> {
    return this.#transaction(({ userById, setClaims }) => {
      const user = userById.get({ userId })
      if (user === undefined) throw new AuthError('unknown_user')
      const claims = change(user.claims)
      setClaims.run({ userId, claims })
      return claims
    })
  }

  #delete (userId: string, isDue: (user: User | null) => boolean): Promise<void> {
    return this.#transaction(({ userById, deleteLinks, deleteCredential, deleteUser }) => {
      if (!isDue(userOf(userById.get({ userId })))) return
      // An application's connection may have foreign keys switched off.
      deleteLinks.run({ userId })
      deleteCredential.run({ userId })
      deleteUser.run({ userId })
    }, error => isForeignKeyViolation(error) ? new AuthError('user_in_use', { cause: error }) : storeFailure(error))
  }

  #transaction<T> (work: (prepared: Prepared) => T, failure?: (error: unknown) => AuthError): Promise<T> {
    return this.#write(prepared => this.#db.transaction(() => work(prepared), { behavior: 'immediate' }), failure)
  }

  #write<T> (work: (prepared: Prepared) => T, failure?: (error: unknown) => AuthError): Promise<T> {
    return this.#run(attempt => this.#writeLock.run(attempt), work, failure)
  }

  #read<T> (work: (prepared: Prepared) => T): Promise<T> {
    return this.#run(attempt => whileLocked(attempt), work)
  }

  async #run<T> (inTurn: (attempt: () => T) => Promise<T>, work: (prepared: Prepared) => T, failure = storeFailure): Promise<T> {
    try {
      return await inTurn(() => this.#attempt(() => work(this.#prepared ??= this.#prepare())))
    } catch (error) {
      throw error instanceof AuthError ? error : failure(error)
    }
  }

  /** SQLite compiles a statement when its tables are there. */
  #prepare (): Prepared {
    if (this.#createTables) createSqliteTables(this.#db)
    return prepare(this.#db)
  }
}

/** A link that is new has no earlier claims: nothing in them has changed. */
function noteIdentity ({ userByEmail, setIdentity }: Prepared, user: Row, { provider, claims, verifiedEmail }: LinkedIdentity, earlier = claims): User | null {
  const { userId, email } = user
  const isDue = email === null || earlier.email !== claims.email
  const takesEmail = verifiedEmail !== null && (email === verifiedEmail || (isDue && userByEmail.get({ email: verifiedEmail }) === undefined))
  const extras = extrasAfter(user, { provider, vouches: takesEmail, isNewEmail: takesEmail && email !== verifiedEmail })
  return userOf(setIdentity.get({ userId, name: claims.name ?? null, newEmail: takesEmail ? verifiedEmail : null, extras }))
}

function extrasAfter ({ extras }: Row, vouching: Vouching): Row['extras'] {
  const vouchers = vouchersAfter(extras.email_verified_by, vouching)
  return { ...extras, email_verified: vouchers.length > 0, email_verified_by: vouchers }
}

function userOf (row: Row | undefined): User | null {
  if (row === undefined) return null
  const { userId, email, name, claims, extras } = row
  return { userId, email, emailVerified: extras.email_verified === true, name, claims, ...(extras.is_new && { isNew: true }) }
}
