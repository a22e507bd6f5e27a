import { randomUUID } from 'node:crypto'
import t from 'tap'
import { Accounts } from '../../../lib/accounts/accounts.js'
import type { MailTokenClaims } from '../../../lib/accounts/credentials.js'
import { isSoon } from '../../helpers/soon.js'
import { isThorough } from '../../helpers/thorough.js'
import { identity, localUser, newUser } from '../users.js'
import { database, hold, open, waiting } from './database.js'

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

t.test('of two removals that wait for the same user, one is done and the other one, of the last link, is refused', async t => {
  const { url, client, run } = await database(t)
  const stores = [open(t, url), open(t, url)] as const

  for (let round = 0; round < (isThorough ? 20 : 3); round++) {
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
    resetPassword: { outcome: { wasProven: false, removed: ['other'] }, left: ['local'] },
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
