import type { User } from '../../accounts/account.js'
import type { Accounts } from '../../accounts/accounts.js'

const PAGE = 500

/** The users whose address, verified or not, is of a domain, a page at a time. */
export async function * usersOfDomain (accounts: Accounts, domain: string): AsyncGenerator<User> {
  for (let after: User | null = null; ;) {
    const users: User[] = await accounts.users({ search: domain, blocked: null, order: 'id', after, limit: PAGE })
    yield * users.filter(({ email }) => email?.endsWith(`@${domain}`))
    after = users.at(-1) ?? null
    if (users.length < PAGE) return
  }
}
