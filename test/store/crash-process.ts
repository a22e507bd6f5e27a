import { randomUUID } from 'node:crypto'
import { writeSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Accounts } from '../../lib/accounts/accounts.js'
import { AuthError } from '../../lib/errors.js'
import { SqlAuthStore } from '../../lib/engines/sql.js'
import type { AuthStore } from '../../lib/accounts/auth-store.js'
import type { LinkedIdentity, NewUser } from '../../lib/accounts/identities.js'

/** How many write at once. */
export const WRITERS = 8

/** The user that a writer makes: all their data follows from the id. */
export function newUser (userId: string): NewUser & { email: string } {
  const email = `${userId}@example.com`
  return {
    userId,
    email,
    emailVerified: false,
    name: 'Registered',
    claims: {},
    link: { provider: 'local', subject: email, claims: { sub: userId } },
    passwordHash: `the hash of ${userId}`
  }
}

/** The second link, which some of the users get; it brings another name. */
export function secondIdentity (userId: string): LinkedIdentity {
  return { provider: 'dev', subject: userId, claims: { sub: userId, name: 'Linked' }, verifiedEmail: newUser(userId).email }
}

// As a program: writes to the database of its first argument until it is killed or refused. Each write that the store has
// acknowledged is a line, which is out before the next write begins.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const store = new SqlAuthStore(process.argv[2])
  await Promise.all(Array.from({ length: WRITERS }, () => write(store)))
}

async function write (store: AuthStore): Promise<void> {
  try {
    for (let count = 0; ; count++) {
      const userId = randomUUID()
      await new Accounts(store).createUser(newUser(userId))
      print('created', userId)
      await new Accounts(store).grant(userId, { first: count })
      print('granted', userId, 'first')
      if (count % 2 === 1) continue
      await new Accounts(store).addLink(userId, secondIdentity(userId))
      print('linked', userId)
      await new Accounts(store).grant(userId, { second: count })
      print('granted', userId, 'second')
    }
  } catch (error) {
    print('refused', error instanceof AuthError ? error.code : String(error))
  }
}

function print (...words: string[]): void {
  writeSync(1, `${words.join(' ')}\n`)
}
