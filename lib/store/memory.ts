import type { AuthorizationClaims } from '../claims.js'
import { AuthError } from '../errors.js'
import {
  OWN_PROVIDERS, type Vouching, assertCanSignIn, linksWithout, localClaims, secondsNow, vouchersAfter
} from './accounts.js'
import {
  type AuthStore, type Credential, type Link, type LinkedIdentity, type ManagedAccounts, type NewPassword,
  type NewUser, type Standing, type User, type UserChange, type UserQuery, type UsersQuery, isBlocked
} from './store.js'

interface Account {
  user: User
  links: Link[]
  /** The providers that vouch for the e-mail. */
  vouchers: string[]
  passwordHash: string | undefined
  /** Whether the application has set the name. */
  isNameSet: boolean
  /** Seconds since the epoch; 0 when never. */
  signedOutAt: number
}

/**
 * Keeps users in memory: they are lost when the process ends, and no other process sees them. For
 * tests and first steps.
 *
 * Each method runs without a pause, so that no call sees another's half-done work. Values are
 * copied when they are stored and when they are returned.
 */
export class MemoryAuthStore implements AuthStore, ManagedAccounts {
  readonly #byUserId = new Map<string, Account>()
  readonly #byEmail = new Map<string, Account>()
  readonly #byLink = new Map<string, Account>()

  async findUser (query: UserQuery): Promise<User | null> {
    const account = this.#find(query)
    return account === undefined ? null : copyOf(account.user)
  }

  async links (userId: string): Promise<Link[]> {
    return this.#linksOf(userId)
  }

  async findCredential (email: string): Promise<Credential | null> {
    const account = this.#byLink.get(linkKey('local', email))
    const link = account?.links.find(link => link.provider === 'local')
    if (account?.passwordHash === undefined || link === undefined) return null
    return copyOf({ user: account.user, link, passwordHash: account.passwordHash })
  }

  async refreshIdentity (identity: LinkedIdentity): Promise<User | null> {
    const { provider, subject, claims } = identity
    const account = this.#byLink.get(linkKey(provider, subject))
    const link = account?.links.find(link => link.provider === provider)
    if (account === undefined || link === undefined) return null
    const earlier = link.claims
    link.claims = copyOf(claims)
    return this.#noteIdentity(account, identity, earlier)
  }

  async createUser (newUser: NewUser): Promise<User | null> {
    assertCanSignIn(newUser)
    const { link, passwordHash, ...given } = newUser
    const user: User = { ...copyOf(given), createdAt: new Date() }
    const emailIsTaken = user.email !== null && this.#byEmail.has(user.email)
    if (emailIsTaken || this.#byLink.has(linkKey(link.provider, link.subject))) return null

    const vouchers = user.emailVerified ? [link.provider] : []
    const account: Account = { user, links: [], vouchers, passwordHash, isNameSet: false, signedOutAt: 0 }
    this.#byUserId.set(user.userId, account)
    if (user.email !== null) this.#byEmail.set(user.email, account)
    this.#setLink(account, { ...link, userId: user.userId })
    return copyOf(user)
  }

  async addLink (userId: string, identity: LinkedIdentity): Promise<User | null> {
    const { provider, subject, claims, verifiedEmail } = identity
    assertCanSignIn({ email: verifiedEmail, link: identity })
    const account = this.#byUserId.get(userId)
    if (account === undefined || this.#byLink.has(linkKey(provider, subject))) return null
    if (account.links.some(link => link.provider === provider)) return null
    this.#setLink(account, { provider, subject, claims, userId })
    return this.#noteIdentity(account, identity)
  }

  async removeLink (userId: string, provider: string): Promise<Link[]> {
    const left = linksWithout(this.#linksOf(userId), provider)
    const account = this.#known(userId)
    const removed = account.links.filter(link => link.provider === provider)
    for (const { provider, subject } of removed) this.#byLink.delete(linkKey(provider, subject))
    account.links = copyOf(left)
    noteVouching(account, { provider, vouches: false, isNewEmail: false })
    if (provider === 'local') account.passwordHash = undefined
    if (removed.length > 0) endSessions(account)
    return left
  }

  async deleteUser (userId: string): Promise<void> {
    const { user, links } = this.#known(userId)
    for (const { provider, subject } of links) this.#byLink.delete(linkKey(provider, subject))
    if (user.email !== null) this.#byEmail.delete(user.email)
    this.#byUserId.delete(userId)
  }

  async admitUser (userId: string): Promise<boolean> {
    const user = this.#byUserId.get(userId)?.user
    if (user?.isNew === undefined) return false
    delete user.isNew
    return true
  }

  async deleteNewUser (userId: string): Promise<void> {
    if (this.#byUserId.get(userId)?.user.isNew === true) await this.deleteUser(userId)
  }

  async replacePasswordHash (userId: string, current: string, next: string): Promise<void> {
    const account = this.#byUserId.get(userId)
    if (account?.passwordHash === current) account.passwordHash = next
  }

  async grant (userId: string, claims: AuthorizationClaims): Promise<AuthorizationClaims> {
    const { user } = this.#known(userId)
    user.claims = { ...user.claims, ...copyOf(claims) }
    return copyOf(user.claims)
  }

  async withdraw (userId: string, names: readonly string[]): Promise<AuthorizationClaims> {
    const { user } = this.#known(userId)
    for (const name of names) delete user.claims[name]
    return copyOf(user.claims)
  }

  async standing (userId: string): Promise<Standing | null> {
    const account = this.#byUserId.get(userId)
    return account === undefined
      ? null
      : { generation: account.user.generation ?? 0, signedOutAt: account.signedOutAt }
  }

  async changeUser (userId: string, change: UserChange): Promise<User> {
    const account = this.#known(userId)
    const { name, blocked } = change
    if (name !== undefined) setName(account, name)
    if (blocked === null) delete account.user.blocked
    else if (blocked !== undefined) account.user.blocked = copyOf(blocked)
    if (change.endSessions) endSessions(account)
    return copyOf(account.user)
  }

  async setPassword (userId: string, { passwordHash, current }: NewPassword): Promise<User | null> {
    const account = this.#known(userId)
    const { email, name } = account.user
    if (email === null || (current !== undefined && account.passwordHash !== current)) return null
    if (!account.links.some(link => link.provider === 'local')) {
      if (this.#byLink.has(linkKey('local', email))) return null
      this.#setLink(account, { provider: 'local', subject: email, userId, claims: localClaims(userId, email, name) })
    }
    account.passwordHash = passwordHash
    endSessions(account)
    return copyOf(account.user)
  }

  async users ({ after, limit, email, blocked }: UsersQuery): Promise<User[]> {
    const now = Date.now()
    const found = Array.from(this.#byUserId.values(), ({ user }) => user)
      .filter(user => after === null || user.userId > after)
      .filter(user => email === null || user.email?.startsWith(email) === true)
      .filter(user => blocked === null || isBlocked(user, now) === blocked)
      .sort((a, b) => a.userId < b.userId ? -1 : 1)
    return copyOf(found.slice(0, limit))
  }

  async close (): Promise<void> {
    // Nothing is open, and a closed application may still read its users.
  }

  #find (query: UserQuery): Account | undefined {
    if ('userId' in query) return this.#byUserId.get(query.userId)
    if ('email' in query) return this.#byEmail.get(query.email)
    return this.#byLink.get(linkKey(query.provider, query.subject))
  }

  #linksOf (userId: string): Link[] {
    const links = this.#byUserId.get(userId)?.links ?? []
    return copyOf(links).sort((a, b) => a.provider < b.provider ? -1 : 1)
  }

  #setLink (account: Account, link: Link): void {
    account.links.push(copyOf(link))
    this.#byLink.set(linkKey(link.provider, link.subject), account)
  }

  /**
   * Notes what a sign-in reports. A new link has no earlier claims: nothing in them has changed.
   */
  #noteIdentity (account: Account, { provider, claims, verifiedEmail }: LinkedIdentity, earlier = claims): User {
    const { user } = account
    const { email } = user
    if (claims.name !== undefined && !account.isNameSet) user.name = claims.name
    const isDue = email === null || email === verifiedEmail || earlier.email !== claims.email
    const vouches = verifiedEmail !== null && isDue && (this.#byEmail.get(verifiedEmail) ?? account) === account
    if (vouches) {
      if (email !== null) this.#byEmail.delete(email)
      this.#byEmail.set(verifiedEmail, account)
      user.email = verifiedEmail
    }
    noteVouching(account, { provider, vouches, isNewEmail: email !== user.email })
    return copyOf(user)
  }

  #known (userId: string): Account {
    const account = this.#byUserId.get(userId)
    if (account === undefined) throw new AuthError('unknown_user')
    return account
  }
}

function noteVouching (account: Account, vouching: Vouching): void {
  account.vouchers = vouchersAfter(account.vouchers, vouching)
  account.user.emailVerified = account.vouchers.length > 0
}

function setName (account: Account, name: string | null): void {
  account.user.name = name
  account.isNameSet = true
  for (const { claims } of account.links.filter(({ provider }) => OWN_PROVIDERS.includes(provider))) {
    if (name === null) delete claims.name
    else claims.name = name
  }
}

function endSessions (account: Account): void {
  account.user.generation = (account.user.generation ?? 0) + 1
  // Never earlier than before, so that a clock that was set back revives no token.
  account.signedOutAt = Math.max(account.signedOutAt, secondsNow())
}

function linkKey (provider: string, subject: string): string {
  return JSON.stringify([provider, subject])
}

/** Copies plain JSON data and dates, many times faster than a structured clone. */
function copyOf<T> (value: T): T
function copyOf (value: unknown): unknown {
  if (value instanceof Date) return new Date(value)
  if (Array.isArray(value)) return value.map(item => copyOf(item))
  if (typeof value !== 'object' || value === null) return value
  const copy: Record<string, unknown> = { ...value }
  for (const name of Object.keys(copy)) copy[name] = copyOf(copy[name])
  return copy
}
