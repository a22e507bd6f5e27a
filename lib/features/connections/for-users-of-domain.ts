import type { User } from '../../accounts/account.js'
import type { Accounts } from '../../accounts/accounts.js'

const PAGE = 500

/** Does work for each user whose address, verified or not, is of a domain. */
export async function forUsersOfDomain (
  accounts: Accounts, domain: string, work: (user: User) => Promise<unknown>
): Promise<void> {
  let after: User | null = null
  do {
    const users: User[] = await accounts.users({ search: domain, blocked: null, order: 'id', after, limit: PAGE })
    // The search finds addresses of other domains, too, and names.
    for (const user of users) if (user.email?.endsWith(`@${domain}`)) await work(user)
    after = users.at(-1) ?? null
  } while (after !== null)
}
