import type { Account } from './account.js'

/** As many code points as a key has at most: an index of Postgres takes no more than 2704 bytes. */
const MAX_KEY = 256

/** Returns a text as users are searched by it: without case, in one spelling on every database. */
export function searchKey (text: string): string {
  return Array.from(text.trim().normalize('NFKC').toLowerCase()).slice(0, MAX_KEY).join('')
}

/** Returns an account with what it is searched by besides its e-mail. */
export function withSearchKeys (account: Account): Account {
  const { email, name, extras: { name_key: _, email_domain: __, ...extras } } = account
  return {
    ...account,
    extras: {
      ...extras,
      ...(name !== null && { name_key: searchKey(name) }),
      ...(email !== null && { email_domain: email.slice(email.indexOf('@') + 1) })
    }
  }
}
