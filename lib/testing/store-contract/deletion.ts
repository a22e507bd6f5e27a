import assert from 'node:assert/strict'
import type { Accounts } from '../../accounts/accounts.js'
import { assertHas, assertGone } from './assertions.js'
import {
  ADA, HASH, NO_USER_IDS, UNKNOWN_USER, identity, link, localUser, newUser, reasonsOf, valuesOf, verified
} from './fixtures.js'
import type { Rule } from './rule.js'

/** Users who are deleted, and users who are new. */
export function deletionContract (rule: Rule): void {
  rule('a user is deleted with their links and their password', async open => {
    const { store, twin } = await open()
    const bob = localUser('bob@example.com')
    await store.createUser(bob)
    await store.addLink(bob.userId, identity('dev', 'bob-1'))

    assert.equal(await store.deleteUser(bob.userId), true)

    await assertGone(twin, bob)
    assert.equal(await twin.findUser({ provider: 'dev', subject: 'bob-1' }), null)
    assert.equal(await twin.refreshIdentity(identity('dev', 'bob-1')), null)
    assert.equal(await twin.addLink(bob.userId, identity('other', 'bob-1')), null)
    await assert.rejects(twin.grant(bob.userId, { role: 'admin' }), UNKNOWN_USER)
    await assert.rejects(twin.removeLink(bob.userId, 'dev'), UNKNOWN_USER)
  })

  rule('id, e-mail and links of a deleted user are free, and no data of that user comes back', async open => {
    const { store, twin } = await open()
    const bob = { ...localUser('bob@example.com'), claims: { role: 'admin' } }
    await store.createUser(bob)
    await store.addLink(bob.userId, identity('dev', 'bob-1'))

    await store.deleteUser(bob.userId)
    const again = await twin.createUser({ ...bob, name: null, claims: {}, passwordHash: 'the second hash' })

    assertHas(again, {
      userId: bob.userId,
      email: 'bob@example.com',
      emailVerified: false,
      name: null,
      claims: {}
    })
    assert.deepEqual(await store.links(bob.userId), [{ ...bob.link, userId: bob.userId }])
    assertHas(await store.findCredential('bob@example.com'), { passwordHash: 'the second hash' })
    assert.ok(await store.createUser(newUser({ link: link('dev', 'bob-1') })), 'by another user too')
  })

  rule('each e-mail of a deleted user is free, also one that a later sign-in brought', async open => {
    const { store, twin } = await open()
    await store.createUser(ADA)
    await store.refreshIdentity(identity('dev', 'ada-1', verified('new@example.com')))

    await store.deleteUser(ADA.userId)

    assert.equal(await twin.findUser({ email: 'new@example.com' }), null)
    for (const email of ['new@example.com', 'ada@example.com']) {
      assert.ok(await twin.createUser(newUser({ email })), email)
    }
  })

  rule('deleting a user leaves the others alone', async open => {
    const { store, twin } = await open()
    const bob = localUser('bob@example.com')
    const nameless = newUser({ email: null, name: null })
    await store.createUser(ADA)
    for (const user of [bob, nameless]) {
      await store.createUser(user)
      await store.addLink(user.userId, identity('other', user.userId))
    }

    await store.deleteUser(ADA.userId)
    await store.deleteUser(nameless.userId)

    assertHas(await twin.findCredential('bob@example.com'), {
      user: { userId: bob.userId, name: bob.name },
      passwordHash: HASH
    })
    assert.deepEqual((await twin.links(bob.userId)).map(({ provider }) => provider), ['local', 'other'])
  })

  rule('of many deletions of a user at once, one succeeds', async open => {
    const { store, twin } = await open()
    await store.createUser(ADA)

    const deleted = await Promise.allSettled(
      Array.from({ length: 10 }, (_, index) => (index % 2 === 0 ? store : twin).deleteUser(ADA.userId))
    )

    assert.equal(valuesOf(deleted).length, 1)
    for (const reason of reasonsOf(deleted)) assertHas(reason, UNKNOWN_USER)
  })

  rule('nothing is left of a deleted user, whatever other call changed them meanwhile', async open => {
    const { store, twin } = await open()

    for (let round = 0; round < 21; round++) {
      const bob = localUser(`bob-${round}@example.com`)
      const work: Array<(store: Accounts) => Promise<unknown>> = [
        store => store.deleteUser(bob.userId),
        store => store.grant(bob.userId, { tier: 1 }),
        store =>
          store.refreshIdentity({ ...bob.link, ...verified(`new-${round}@example.com`, { name: 'Bob' }) }),
        store => store.addLink(bob.userId, identity('other', `bob-${round}`)),
        store => store.removeLink(bob.userId, 'dev'),
        store => store.replacePasswordHash(bob.userId, HASH, 'another hash'),
        store => store.withdraw(bob.userId, ['role'])
      ]
      const first = round % work.length
      await store.createUser(bob)
      await store.addLink(bob.userId, identity('dev', `bob-${round}`))

      const done = await Promise.allSettled(
        [...work.slice(first), ...work.slice(0, first)].map((call, index) => call(index % 2 === 0 ? store : twin))
      )

      for (const reason of reasonsOf(done)) assertHas(reason, UNKNOWN_USER)
      await assertGone(store, bob)
      assert.equal(await store.findUser({ email: `new-${round}@example.com` }), null)
      assert.ok(await store.createUser(bob), 'id, e-mail, subject and password of the deleted user are free')
      for (const provider of ['dev', 'other']) {
        assert.ok(
          await store.addLink(bob.userId, identity(provider, `bob-${round}`)),
          `nor is their subject at ${provider}`
        )
      }
    }
  })

  rule('of many admissions of a user at once, one succeeds', async open => {
    const { store, twin } = await open()
    await store.createUser({ ...ADA, isNew: true })

    const admitted = await Promise.all(
      Array.from({ length: 10 }, (_, index) => (index % 2 === 0 ? store : twin).admitUser(ADA.userId))
    )

    assert.equal(admitted.filter(isFirst => isFirst).length, 1)
  })

  rule('a new user is admitted or deleted, not both', async open => {
    const { store, twin } = await open()

    for (let round = 0; round < 20; round++) {
      const bob = localUser(`bob-${round}@example.com`)
      await store.createUser({ ...bob, isNew: true })
      const both = [() => store.admitUser(bob.userId), () => twin.deleteNewUser(bob.userId)]

      const [admitted, deleted] = round % 2 === 0 ? both : both.toReversed()
      const outcomes = await Promise.all([admitted?.(), deleted?.()])

      const { isNew = false } = (await twin.findUser({ userId: bob.userId })) ?? {}
      assert.equal(isNew, false)
      assert.equal(
        (await twin.findUser({ userId: bob.userId })) !== null,
        outcomes.includes(true),
        'the user exists if they were admitted'
      )
    }
  })

  rule('text that cannot be a user id matches no user', async open => {
    const { store, twin } = await open()
    const ada = { ...ADA, link: link('local', 'ada@example.com'), passwordHash: HASH }
    await store.createUser(ada)

    for (const id of NO_USER_IDS) {
      assert.equal(await store.findUser({ userId: id }), null, JSON.stringify(id))
      assert.deepEqual(await store.links(id), [])
      assert.equal(await store.addLink(id, identity('other', '1')), null)
      await assert.rejects(store.grant(id, { role: 'member' }), UNKNOWN_USER)
      await assert.rejects(store.withdraw(id, ['role']), UNKNOWN_USER)
      assert.equal(await store.replacePasswordHash(id, HASH, 'another hash'), undefined)
    }

    const { link: _link, passwordHash, ...user } = ada
    assertHas(await twin.findCredential('ada@example.com'), {
      user,
      link: { ...ada.link, userId: ADA.userId },
      passwordHash
    })
    assert.equal(await twin.findUser({ provider: 'other', subject: '1' }), null)
  })
}
