import type { AuthorizationClaims } from '../claims.js'
import {
  OWN_PROVIDERS, assertCanSignIn, firstVouchers, isAtGeneration, isConfirmed, linksWithout, localClaims
} from './accounts.js'
import type { EmailProof, EmailProofs, PasswordReset } from './email-proofs.js'
import { type Account, MemoryAccounts, copyOf, endSessions, linkAt, noteVouching } from './memory/accounts.js'
import { memoryEmailProofs } from './memory/email-proofs.js'
import { MemorySessions } from './memory/sessions.js'
import type { StoredSessions } from './sessions.js'
import {
  type AuthStore, type Credential, type Link, type LinkedIdentity, type ManagedAccounts, type NewPassword,
  type NewUser, type Standing, type User, type UserChange, type UserQuery, type UsersQuery, isBlocked
} from './store.js'

/**
 * Keeps users in memory: they are lost when the process ends, and no other process sees them. For
 * tests and first steps.
 *
 * Each method runs without a pause, so that no call sees another's half-done work. Values are
 * copied when they are stored and when they are returned.
 */
export class MemoryAuthStore implements AuthStore, ManagedAccounts, EmailProofs {
  /** Keeps the sessions of the plugin. */
  readonly sessions: StoredSessions = new MemorySessions()
  readonly #accounts = new MemoryAccounts()
  readonly #emailProofs = memoryEmailProofs(this.#accounts)

  async findUser (query: UserQuery): Promise<User | null> {
    const account = this.#accounts.find(query)
    return account === undefined ? null : copyOf(account.user)
  }

  async links (userId: string): Promise<Link[]> {
    return this.#linksOf(userId)
  }

  async findCredential (email: string): Promise<Credential | null> {
    const account = this.#accounts.find({ provider: 'local', subject: email })
    const link = account && linkAt(account, 'local')
    if (account?.passwordHash === undefined || link === undefined) return null
    return copyOf({ user: account.user, link, passwordHash: account.passwordHash })
  }

  async refreshIdentity (identity: LinkedIdentity): Promise<User | null> {
    const { provider, subject, claims } = identity
    const account = this.#accounts.find({ provider, subject })
    const link = account && linkAt(account, provider)
    if (account === undefined || link === undefined) return null
    const earlier = link.claims
    link.claims = copyOf(claims)
    return this.#noteIdentity(account, identity, earlier)
  }

  async createUser (newUser: NewUser): Promise<User | null> {
    assertCanSignIn(newUser)
    const { link, passwordHash, ...given } = newUser
    const user: User = { ...copyOf(given), createdAt: new Date() }
    if (user.email !== null && this.#accounts.find({ email: user.email }) !== undefined) return null
    if (this.#accounts.find({ ...link }) !== undefined) return null

    const vouchers = firstVouchers(newUser)
    this.#accounts.add({ user, links: [], vouchers, passwordHash, isNameSet: false, signedOutAt: 0 }, link)
    return copyOf(user)
  }

  async addLink (userId: string, identity: LinkedIdentity, generation?: number): Promise<User | null> {
    const { provider, subject, claims, verifiedEmail } = identity
    assertCanSignIn({ email: verifiedEmail, link: identity })
    const account = this.#accounts.find({ userId })
    if (account === undefined || this.#accounts.find({ provider, subject }) !== undefined) return null
    if (linkAt(account, provider) !== undefined) return null
    if (!isAtGeneration(generation, account.user)) return null
    this.#accounts.setLink(account, { provider, subject, claims })
    return this.#noteIdentity(account, identity)
  }

  async removeLink (userId: string, provider: string): Promise<Link[]> {
    const left = linksWithout(this.#linksOf(userId), provider)
    const account = this.#accounts.known(userId)
    if (provider === 'local') account.passwordHash = undefined
    const removed = this.#accounts.removeLinks(account, link => link.provider === provider)
    if (removed.length > 0) {
      noteVouching(account, { provider, vouches: false, isNewEmail: false })
      endSessions(account)
    }
    return left
  }

  async deleteUser (userId: string): Promise<void> {
    this.#accounts.remove(this.#accounts.known(userId))
  }

  async admitUser (userId: string): Promise<boolean> {
    const user = this.#accounts.find({ userId })?.user
    if (user?.isNew === undefined) return false
    delete user.isNew
    return true
  }

  async deleteNewUser (userId: string): Promise<void> {
    if (this.#accounts.find({ userId })?.user.isNew === true) await this.deleteUser(userId)
  }

  async replacePasswordHash (userId: string, current: string, next: string): Promise<void> {
    const account = this.#accounts.find({ userId })
    if (account?.passwordHash === current) account.passwordHash = next
  }

  async grant (userId: string, claims: AuthorizationClaims): Promise<AuthorizationClaims> {
    const { user } = this.#accounts.known(userId)
    user.claims = { ...user.claims, ...copyOf(claims) }
    return copyOf(user.claims)
  }

  async withdraw (userId: string, names: readonly string[]): Promise<AuthorizationClaims> {
    const { user } = this.#accounts.known(userId)
    for (const name of names) delete user.claims[name]
    return copyOf(user.claims)
  }

  async standing (userId: string): Promise<Standing | null> {
    const account = this.#accounts.find({ userId })
    if (account === undefined) return null
    const { user: { generation = 0, emailVerified }, signedOutAt } = account
    return { generation, signedOutAt, emailVerified }
  }

  async changeUser (userId: string, change: UserChange): Promise<User> {
    const account = this.#accounts.known(userId)
    const { name, blocked } = change
    if (name !== undefined) setName(account, name)
    if (blocked === null) delete account.user.blocked
    else if (blocked !== undefined) account.user.blocked = copyOf(blocked)
    if (change.endSessions) endSessions(account)
    return copyOf(account.user)
  }

  async setPassword (userId: string, { passwordHash, current }: NewPassword): Promise<User | null> {
    const account = this.#accounts.known(userId)
    const { email, name } = account.user
    if (email === null || (current !== undefined && (account.passwordHash ?? null) !== current)) return null
    if (linkAt(account, 'local') === undefined) {
      if (this.#accounts.find({ provider: 'local', subject: email }) !== undefined) return null
      const claims = localClaims({ userId, email, name, isConfirmed: isConfirmed(account.vouchers) })
      this.#accounts.setLink(account, { provider: 'local', subject: email, claims })
    }
    account.passwordHash = passwordHash
    endSessions(account)
    return copyOf(account.user)
  }

  async users ({ after, limit, email, blocked }: UsersQuery): Promise<User[]> {
    const now = Date.now()
    const found = Array.from(this.#accounts.all(), ({ user }) => user)
      .filter(user => after === null || user.userId > after)
      .filter(user => email === null || user.email?.startsWith(email) === true)
      .filter(user => blocked === null || isBlocked(user, now) === blocked)
      .sort((a, b) => a.userId < b.userId ? -1 : 1)
    return copyOf(found.slice(0, limit))
  }

  async verifyEmail (proof: EmailProof): Promise<'verified' | 'unchanged' | null> {
    return this.#emailProofs.verifyEmail(proof)
  }

  async resetPassword (proof: EmailProof, passwordHash: string): Promise<PasswordReset | null> {
    return this.#emailProofs.resetPassword(proof, passwordHash)
  }

  async changeEmail (proof: EmailProof, to: string): Promise<User | null> {
    return this.#emailProofs.changeEmail(proof, to)
  }

  async disownEmail (proof: EmailProof): Promise<'deleted' | 'freed' | null> {
    return this.#emailProofs.disownEmail(proof)
  }

  async close (): Promise<void> {
    // Nothing is open, and a closed application may still read its users.
  }

  #linksOf (userId: string): Link[] {
    const links = this.#accounts.find({ userId })?.links ?? []
    return copyOf(links).sort((a, b) => a.provider < b.provider ? -1 : 1)
  }

  /**
   * Notes what a sign-in reports. A new link has no earlier claims: nothing in them has changed.
   */
  #noteIdentity (account: Account, { provider, claims, verifiedEmail }: LinkedIdentity, earlier = claims): User {
    const { user } = account
    const { email } = user
    if (claims.name !== undefined && !account.isNameSet) user.name = claims.name
    const hasChanged = earlier.email !== claims.email && !isConfirmed(account.vouchers)
    const isDue = email === null || email === verifiedEmail || hasChanged
    const vouches = verifiedEmail !== null && isDue &&
      (this.#accounts.find({ email: verifiedEmail }) ?? account) === account
    if (vouches) this.#accounts.setEmail(account, verifiedEmail)
    noteVouching(account, { provider, vouches, isNewEmail: email !== user.email })
    return copyOf(user)
  }
}

function setName (account: Account, name: string | null): void {
  account.user.name = name
  account.isNameSet = true
  for (const { claims } of account.links.filter(({ provider }) => OWN_PROVIDERS.includes(provider))) {
    if (name === null) delete claims.name
    else claims.name = name
  }
}
