import { randomUUID } from 'node:crypto'
import t from 'tap'
import { Accounts } from '../../../lib/accounts/accounts.js'
import { AuthError } from '../../../lib/errors.js'
import type { SqlAuthStore } from '../../../lib/engines/sql.js'
import type { AuthStore } from '../../../lib/accounts/auth-store.js'
import type { MailTokenClaims } from '../../../lib/accounts/credentials.js'
import type { NewUser } from '../../../lib/accounts/identities.js'
import { isSoon } from '../../helpers/soon.js'
import { isThorough } from '../../helpers/thorough.js'
import { identity, localUser } from '../users.js'
import { connections, database, hold, open, waiting } from './database.js'

const ROUNDS = isThorough ? 20 : 4

t.setTimeout(300_000)

t.test('operations on the same user do not deadlock', async t => {
  const { url, client, run } = await database(t)
  const proof = async (store: AuthStore, { userId, email }: NewUser): Promise<MailTokenClaims> => {
    const user = await store.findUser({ userId })
    return { userId, email: user?.email ?? String(email), generation: user?.generation ?? 0 }
  }
  const operations: Array<(store: SqlAuthStore, user: NewUser, turn: number) => Promise<unknown>> = [
    (store, { userId }) => new Accounts(store).removeLink(userId, 'local'),
    (store, { link }, turn) => {
      const email = `${turn % 2}-${link.subject}`
      return new Accounts(store).refreshIdentity({ ...link, claims: { ...link.claims, email }, verifiedEmail: email })
    },
    (store, { userId }, turn) => new Accounts(store).grant(userId, { [`claim-${turn % 3}`]: turn }),
    (store, { userId }) => new Accounts(store).deleteUser(userId),
    (store, { userId, link }, turn) => new Accounts(store).addLink(userId, identity('other', userId, `${turn % 2}-${link.subject}`)),
    (store, { userId }) => new Accounts(store).removeLink(userId, 'other'),
    (store, { userId }) => new Accounts(store).addLink(userId, identity('third', userId)),
    (store, { userId, link }, turn) => new Accounts(store).refreshIdentity(identity('other', userId, `${turn % 2}-${link.subject}`)),
    async (store, user) => new Accounts(store).verifyEmail(await proof(store, user)),
    async (store, user) => new Accounts(store).resetPassword(await proof(store, user), 'another hash'),
    async (store, user, turn) => new Accounts(store).changeEmail(await proof(store, user), `new-${turn % 2}-${user.link.subject}`),
    async (store, user) => new Accounts(store).releaseEmail(await proof(store, user))
  ]
  const isRefusal = (outcome: unknown) => outcome instanceof AuthError && (outcome.code === 'unknown_user' || outcome.code === 'last_link')
  const failures = (outcomes: unknown[]) => outcomes.filter(outcome => outcome instanceof Error && !isRefusal(outcome))

  for (const rows of ['svc_auth_credentials', "svc_auth_provider_links where provider = 'local'", "svc_auth_provider_links where provider = 'other'"]) {
    t.test(`any two operations succeed after both had to wait for ${rows}`, async t => {
      // Each operation that waits holds a connection.
      const [store, twin] = [open(t, `${url}?max=20`), open(t, `${url}?max=20`)]

      for (const operation of operations) {
        const users = await Promise.all(operations.map(async () => {
          const user = localUser(`${randomUUID()}@example.com`)
          await new Accounts(store).createUser(user)
          await new Accounts(store).addLink(user.userId, identity('other', user.userId))
          return user
        }))
        const outcomes: unknown[] = []
        const note = (outcome: unknown) => { outcomes.push(outcome) }

        const release = await hold(client, `select from ${rows} for update`)
        const first = users.map(user => operation(store, user, 0).then(note, note))
        t.ok(await isSoon(async () => outcomes.length + await waiting(run) === users.length), 'each is done or waits')
        const second = users.map((user, index) => operations[index]?.(twin, user, 1).then(note, note))
        t.ok(await isSoon(async () => outcomes.length + await waiting(run) === 2 * users.length), 'each is done or waits')
        await release()

        await Promise.all([...first, ...second])
        t.strictSame(failures(outcomes), [])
      }
    })
  }

  // Each user has different e-mails here: of two users that swap theirs one statement can be run again.
  t.test('many operations at once all succeed', async t => {
    const stores = Array.from({ length: 4 }, () => open(t, url))
    const users = ['ada', 'bob', 'carol'].map(name => localUser(`${name}@example.com`))
    const all = [(store: SqlAuthStore, user: NewUser) => new Accounts(store).createUser(user), ...operations]
    await Promise.all(users.map(user => new Accounts(open(t, url)).createUser(user)))

    const outcomes: unknown[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const turns = stores.flatMap((store, lane) => users.flatMap((user, whose) => {
        return all.map((_, turn) => ({ store, user, turn: turn * (lane + 2) + whose + round }))
      }))
      outcomes.push(...await Promise.all(turns.map(async ({ store, user, turn }) => {
        return all[turn % all.length]?.(store, user, turn).catch((error: unknown) => error)
      })))
    }

    t.strictSame(failures(outcomes), [])
    t.ok(outcomes.some(outcome => !(outcome instanceof Error)))
    t.strictSame(await run('select user_id from svc_auth_users where user_id not in (select user_id from svc_auth_provider_links)'), [])
  })

  t.test('the server has ended none of the operations for a deadlock', async t => {
    t.ok(await isSoon(async () => (await connections(run)).length === 0), 'the connections that were closed have reported what they met')
    t.strictSame(await run('select deadlocks::int from pg_stat_database where datname = current_database()'), [{ deadlocks: 0 }])
  })
})
