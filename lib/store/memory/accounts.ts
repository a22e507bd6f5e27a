import { AuthError } from '../../errors.js'
import { type Vouching, secondsNow, vouchersAfter } from '../accounts.js'
import type { Link, NewUser, User, UserQuery } from '../store.js'

/** A user in memory, with what belongs to them. */
export interface Account {
  user: User
  links: Link[]
  /** As in the column `extras`: the providers that vouch for the e-mail. */
  vouchers: string[]
  passwordHash: string | undefined
  /** Whether the application has set the name. */
  isNameSet: boolean
  /** Seconds since the epoch; 0 when never. */
  signedOutAt: number
}

/** The accounts in memory, found by id, by e-mail and by link. */
export class MemoryAccounts {
  readonly #byUserId = new Map<string, Account>()
  readonly #byEmail = new Map<string, Account>()
  readonly #byLink = new Map<string, Account>()

  /** All accounts, in no order. */
  all (): Iterable<Account> {
    return this.#byUserId.values()
  }

  find (query: UserQuery): Account | undefined {
    if ('userId' in query) return this.#byUserId.get(query.userId)
    if ('email' in query) return this.#byEmail.get(query.email)
    return this.#byLink.get(linkKey(query))
  }

  /** @throws AuthError `unknown_user` */
  known (userId: string): Account {
    const account = this.find({ userId })
    if (account === undefined) throw new AuthError('unknown_user')
    return account
  }

  add (account: Account, link: NewUser['link']): void {
    const { userId, email } = account.user
    this.#byUserId.set(userId, account)
    if (email !== null) this.#byEmail.set(email, account)
    this.setLink(account, link)
  }

  remove (account: Account): void {
    const { userId, email } = account.user
    this.removeLinks(account, () => true)
    if (email !== null) this.#byEmail.delete(email)
    this.#byUserId.delete(userId)
  }

  setEmail (account: Account, email: string | null): void {
    const { user } = account
    if (user.email !== null) this.#byEmail.delete(user.email)
    if (email !== null) this.#byEmail.set(email, account)
    user.email = email
  }

  /** Adds a link, in place of the one that the user has at this provider. */
  setLink (account: Account, link: NewUser['link']): void {
    this.removeLinks(account, ({ provider }) => provider === link.provider)
    account.links.push(copyOf({ ...link, userId: account.user.userId }))
    this.#byLink.set(linkKey(link), account)
  }

  /** Removes links, and returns them. */
  removeLinks (account: Account, isRemoved: (link: Link) => boolean): Link[] {
    const removed = account.links.filter(isRemoved)
    account.links = account.links.filter(link => !removed.includes(link))
    for (const link of removed) this.#byLink.delete(linkKey(link))
    return removed
  }
}

export function linkAt ({ links }: Account, provider: string): Link | undefined {
  return links.find(link => link.provider === provider)
}

export function noteVouching (account: Account, vouching: Vouching): void {
  account.vouchers = vouchersAfter(account.vouchers, vouching)
  account.user.emailVerified = account.vouchers.length > 0
}

export function endSessions (account: Account): void {
  account.user.generation = (account.user.generation ?? 0) + 1
  // Never earlier than before, so that a clock that was set back revives no token.
  account.signedOutAt = Math.max(account.signedOutAt, secondsNow())
}

function linkKey ({ provider, subject }: Pick<Link, 'provider' | 'subject'>): string {
  return JSON.stringify([provider, subject])
}

/** Copies plain JSON data and dates, many times faster than a structured clone. */
export function copyOf<T> (value: T): T
export function copyOf (value: unknown): unknown {
  if (value instanceof Date) return new Date(value)
  if (Array.isArray(value)) return value.map(item => copyOf(item))
  if (typeof value !== 'object' || value === null) return value
  const copy: Record<string, unknown> = { ...value }
  for (const name of Object.keys(copy)) copy[name] = copyOf(copy[name])
  return copy
}
