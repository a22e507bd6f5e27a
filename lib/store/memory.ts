import {
  type Account, type AccountStatus, type Credential, type Factor, type Link, type User, isBlocked, linkAt, linksOf,
  statusOf, userOf
} from '../accounts/account.js'
import type {
  AccountQuery, AuthStore, Rule, UserQuery, UsersFilter, UsersQuery, UniqueKeys
} from '../accounts/auth-store.js'
import { MemoryEntries } from './memory/entries.js'
import { MemorySessions } from './memory/sessions.js'
import { type SessionRows, capabilitiesOf } from './capabilities.js'
import type { OneTimeEntries } from './one-time-entries.js'
import { factorExists, applyRule } from './apply-rule.js'
import type { StoredSessions } from './sessions.js'

type Listed = Pick<User, 'userId' | 'createdAt'>

/**
 * Keeps users in memory: they are lost when the process ends, and no other process sees them. For
 * tests and first steps.
 *
 * Each method runs without a pause, so that no call sees another's half-done work. Values are
 * copied when they are stored and when they are returned.
 */
export class MemoryAuthStore implements AuthStore {
  /** Keeps what may be used once, such as the sign-ins that were started at a provider. */
  readonly entries: OneTimeEntries
  /** Keeps the sessions of the plugin. */
  readonly sessions: StoredSessions
  readonly #accounts = new Map<string, Account>()
  /** The ids of users by what only one of them has. */
  readonly #owners = new Map<string, string>()

  /** Starts without users. */
  constructor () {
    const entries = new MemoryEntries()
    this.entries = entries
    this.sessions = new MemorySessions(entries)
  }

  async findUser (query: UserQuery): Promise<User | null> {
    const account = this.#find(query)
    return account && copyOf(userOf(account))
  }

  async links (userId: string): Promise<Link[]> {
    const account = this.#find({ userId })
    return account === null ? [] : copyOf(linksOf(account))
  }

  async factors (userId: string): Promise<Factor[]> {
    return copyOf([...this.#find({ userId })?.factors ?? []])
  }

  async findCredential (email: string): Promise<Credential | null> {
    const account = this.#find({ provider: 'local', subject: email })
    const link = account && linkAt(account, 'local')
    if (account?.passwordHash == null || link == null) return null
    const { userId, passwordHash } = account
    return copyOf({ user: userOf(account), link: { ...link, userId }, passwordHash })
  }

  async status (userId: string): Promise<AccountStatus | null> {
    const account = this.#find({ userId })
    return account && statusOf(account)
  }

  async users ({ after, limit, order, ...filter }: UsersQuery): Promise<User[]> {
    const isNewest = order === 'newest'
    const isAfter = (user: Listed, last: Listed): boolean => isNewest && +user.createdAt !== +last.createdAt
      ? user.createdAt < last.createdAt
      : isNewest ? user.userId < last.userId : user.userId > last.userId
    const found = this.#matching(filter).filter(user => after === null || isAfter(user, after))
    return copyOf(found.sort((a, b) => isAfter(a, b) ? 1 : -1).slice(0, limit))
  }

  async countUsers (filter: UsersFilter): Promise<number> {
    return this.#matching(filter).length
  }

  #matching ({ search, blocked }: UsersFilter): User[] {
    const now = Date.now()
    return [...this.#accounts.values()]
      .filter(({ email, extras: { name_key: name, email_domain: domain } }) =>
        search === null || [email, domain, name].some(text => text?.startsWith(search)))
      .map(userOf)
      .filter(user => blocked === null || isBlocked(user, now) === blocked)
  }

  async insert (account: Account): Promise<boolean> {
    if (this.#accounts.has(account.userId) || keysOf(account).some(key => this.#owners.has(key))) return false
    this.#write(account)
    return true
  }

  async change<T> (find: AccountQuery, keys: UniqueKeys, rule: Rule<T>): Promise<T> {
    const { email, link } = keys
    const asked = [find, email != null && { email }, link].filter(query => typeof query === 'object' && query !== null)
    const accounts = asked.flatMap(query => copyOf(this.#find(query)) ?? [])
    const { result, change } = applyRule(rule, { find, keys }, accounts)
    const { before = null, after = null } = change ?? {}
    const owners = after?.factors.map(({ id }) => this.#owners.get(keyOf({ factor: id })) ?? after.userId) ?? []
    if (owners.some(owner => owner !== after?.userId)) throw factorExists()
    if (before !== null) this.#remove(before)
    if (after !== null) this.#write(after)
    return result
  }

  async close (): Promise<void> {
    // Nothing is open, and a closed application may still read its users.
  }

  #find (query: UserQuery): Account | null {
    const userId = 'userId' in query ? query.userId : this.#owners.get(keyOf(query))
    return this.#accounts.get(userId ?? '') ?? null
  }

  #write (account: Account): void {
    this.#accounts.set(account.userId, copyOf(account))
    for (const key of keysOf(account)) this.#owners.set(key, account.userId)
  }

  #remove (account: Account): void {
    this.#accounts.delete(account.userId)
    for (const key of keysOf(account)) this.#owners.delete(key)
  }
}

function keysOf ({ email, links, factors }: Account): string[] {
  return [
    ...email === null ? [] : [keyOf({ email })], ...links.map(keyOf), ...factors.map(({ id }) => keyOf({ factor: id }))
  ]
}

function keyOf (query: { email: string } | { factor: string } | { provider: string, subject: string }): string {
  if ('email' in query) return JSON.stringify([query.email])
  return JSON.stringify('factor' in query ? [null, query.factor] : [query.provider, query.subject])
}

/** Many times faster than a structured clone, for plain JSON data and dates. */
function copyOf<T> (value: T): T
function copyOf (value: unknown): unknown {
  if (value instanceof Date) return new Date(value)
  if (Array.isArray(value)) return value.map(item => copyOf(item))
  if (typeof value !== 'object' || value === null) return value
  const copy: Record<string, unknown> = { ...value }
  for (const name of Object.keys(copy)) copy[name] = copyOf(copy[name])
  return copy
}

/** Returns the sessions of a store; in memory when it has none. */
export function sessionRowsOf (store: AuthStore): SessionRows {
  const { sessions, entries } = capabilitiesOf(store)
  return sessions === null || entries === null ? new MemoryAuthStore() : { sessions, entries }
}
