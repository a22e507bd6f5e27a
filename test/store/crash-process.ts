import { randomUUID } from 'node:crypto'
import { writeSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import SqliteDatabase from 'better-sqlite3'
import type { TransactionSql } from 'postgres'
import type { User } from '../../lib/accounts/account.js'
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

/** A table of the application. The hook writes a row of it for each user, and a claim that says so. */
export const MEMBERS = 'create table members (user_id KEY primary key references svc_auth_users (user_id) on delete cascade)'

/** Users without the row of the application or without its claim, and rows without a user. */
export const HALF_CREATED = `
  select 'a user without a row or a claim' as what, user_id from svc_auth_users
    where user_id not in (select user_id from members) or cast(claims as text) not like '%member%'
  union all
  select 'a row without a user', user_id from members where user_id not in (select user_id from svc_auth_users)`

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
      await new Accounts(store).createUser(newUser(userId), writeMember)
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

/** The hook: `tx` is the connection of better-sqlite3, or a transaction of postgres. */
function writeMember ({ userId }: User, tx: unknown) {
  const statement = `insert into members values ('${userId}')`
  const claims = { member: true }
  if (tx instanceof SqliteDatabase) {
    tx.exec(statement)
    return claims
  }
  return (tx as TransactionSql).unsafe(statement).then(() => claims)
}

function print (...words: string[]): void {
  writeSync(1, `${words.join(' ')}\n`)
}
