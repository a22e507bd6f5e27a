import { randomUUID } from 'node:crypto'
import t from 'tap'
import { Accounts } from '../../../lib/accounts/accounts.js'
import { AuthError } from '../../../lib/errors.js'
import type { SqlAuthStore } from '../../../lib/store/sql.js'
import type { AuthStore } from '../../../lib/accounts/auth-store.js'
import type { MailTokenClaims } from '../../../lib/accounts/credentials.js'
import type { NewUser } from '../../../lib/accounts/identities.js'
import { isSoon } from '../../helpers/soon.js'
import { isThorough } from '../../helpers/thorough.js'
import { identity, localUser, newUser } from '../users.js'
import { connections, database, hold, open, waiting } from './database.js'

const ROUNDS = isThorough ? 20 : 4

t.setTimeout(300_000)

for (const level of ['repeatable read', 'serializable']) {
  t.test(`a store works where transactions are ${level} by default`, async t => {
    const { url, run } = await database(t)
    await run(`alter database ${new URL(url).pathname.slice(1)} set default_transaction_isolation = '${level}'`)
    const first = open(t, url)
    const stores = [first, ...Array.from({ length: 4 }, () => open(t, url))]

    t.test('stores that start at once make the tables', async t => {
      await t.resolves(Promise.all(stores.map(store => store.links(randomUUID()))))
    })

    // Each that fails was overtaken by another one: the last of five has had four failures at most.
    t.test('five changes of one user at once all count', async t => {
      const ada = newUser()
      await new Accounts(first).createUser(ada)

      for (let round = 0; round < 10; round++) {
        await t.resolves(Promise.all(stores.map(async (store, index) => {
          if (index < 3) await new Accounts(store).grant(ada.userId, { [`claim ${index} of ${round}`]: true })
          else {
            const claims = { sub: ada.link.subject, name: `name ${index} of ${round}` }
            await new Accounts(store).refreshIdentity({ ...ada.link, claims, verifiedEmail: null })
          }
        })))
      }

      const user = await first.findUser({ userId: ada.userId })
      t.equal(Object.keys(user?.claims ?? {}).length, 30)
      t.match(user?.name, /^name [34] of 9$/)
    })
  })
}

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

t.test('of two removals that wait for the same user, one is done and the other one, of the last link, is refused', async t => {
  const { url, client, run } = await database(t)
  const stores = [open(t, url), open(t, url)] as const

  for (let round = 0; round < 20; round++) {
    const ada = localUser(`ada-${round}@example.com`)
    await new Accounts(stores[0]).createUser(ada)
    await new Accounts(stores[1]).addLink(ada.userId, identity('other', ada.userId))

    const release = await hold(client, 'select from svc_auth_users for update; select from svc_auth_provider_links for update')
    const removed = Promise.allSettled([new Accounts(stores[0]).removeLink(ada.userId, 'local'), new Accounts(stores[1]).removeLink(ada.userId, 'other')])
    t.ok(await isSoon(async () => await waiting(run) === 2), 'both wait')
    await release()

    const outcomes = await removed
    const links = await stores[0].links(ada.userId)
    t.equal(links.length, 1)
    t.strictSame(outcomes.flatMap(outcome => outcome.status === 'fulfilled' ? [outcome.value] : []), [links])
    t.match(outcomes.flatMap(outcome => outcome.status === 'rejected' ? [outcome.reason] : []), [{ name: 'AuthError', code: 'last_link', statusCode: 409 }])
  }
})

t.test('of two first passwords that wait for the same user, one is set', async t => {
  const { url, client, run } = await database(t)
  const [store, twin] = [open(t, url), open(t, url)]
  const user = newUser({ email: 'ada@example.com' })
  await new Accounts(store).createUser(user)

  const release = await hold(client, 'select from svc_auth_users for update')
  const set = [store, twin].map((store, index) =>
    new Accounts(store).setPassword(user.userId, { passwordHash: `hash ${index}`, current: null }))
  t.ok(await isSoon(async () => await waiting(run) === 2), 'both wait')
  await release()

  const winners = (await Promise.all(set)).flatMap((user, index) => user === null ? [] : [`hash ${index}`])
  t.equal(winners.length, 1)
  t.hasStrict(await store.findCredential('ada@example.com'), { passwordHash: winners[0], user: { generation: 1 } })
})

t.test('a link that an unverified user gets before a use that waits is seen by it', async t => {
  const { url, client, run } = await database(t)
  const [store, twin] = [open(t, url), open(t, url)]
  const redemptions: Record<string, (proof: MailTokenClaims) => Promise<unknown>> = {
    resetPassword: proof => new Accounts(store).resetPassword(proof, 'another hash'),
    releaseEmail: proof => new Accounts(store).releaseEmail(proof)
  }
  const expected: Record<string, unknown> = {
    resetPassword: { outcome: { wasVerified: false, removed: ['other'] }, left: ['local'] },
    releaseEmail: { outcome: 'freed', left: ['other'] }
  }

  for (const [name, redeem] of Object.entries(redemptions)) {
    t.test(`by ${name}`, async t => {
      const bob = localUser(`${name.toLowerCase()}@example.com`)
      await new Accounts(store).createUser(bob)

      const release = await hold(client, 'select from svc_auth_users for update')
      const added = new Accounts(twin).addLink(bob.userId, identity('other', bob.userId))
      t.ok(await isSoon(async () => await waiting(run) === 1), 'the new link waits')
      const redeemed = redeem({ userId: bob.userId, email: String(bob.email), generation: 0 })
      t.ok(await isSoon(async () => await waiting(run) === 2), 'the use waits')
      await release()

      t.ok(await added)
      const outcome = await redeemed
      const left = (await store.links(bob.userId)).map(({ provider }) => provider)
      t.match({ outcome, left }, expected[name])
      t.equal(left.length, 1)
    })
  }
})

t.test('a sign-in that reports what the store has waits for no lock', async t => {
  const { url, client, run } = await database(t)
  const store = open(t, url)
  const ada = newUser()
  const reported = identity('dev', ada.userId, 'ada@example.com')
  await new Accounts(store).createUser(ada)
  const first = await new Accounts(store).refreshIdentity(reported)

  const release = await hold(client, 'select from svc_auth_users for update; select from svc_auth_provider_links for update')
  t.strictSame(await new Accounts(store).refreshIdentity(reported), first)
  const changed = new Accounts(store).refreshIdentity({ ...reported, verifiedEmail: null })
  t.ok(await isSoon(async () => await waiting(run) === 1), 'one that reports another thing waits')
  await release()

  t.hasStrict(await changed, { emailVerified: false })
})
