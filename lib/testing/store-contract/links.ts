import assert from 'node:assert/strict'
import type { Accounts } from '../../accounts/accounts.js'
import { assertHas } from './assertions.js'
import { ADA, HASH, LAST_LINK, identity, link, localUser, newUser, reasonsOf, valuesOf, verified } from './fixtures.js'
import type { Rule } from './rule.js'

/** Links: added, in order, changed and removed. */
export function linksContract (rule: Rule): void {
  rule('a second link leads to the same user', async open => {
    const { store, twin } = await open()
    await store.createUser(ADA)

    const linked = await store.addLink(ADA.userId, identity('other', 'ada-of-other'))

    assert.deepEqual(linked, await twin.findUser({ userId: ADA.userId }))
    assert.deepEqual(await twin.findUser({ provider: 'other', subject: 'ada-of-other' }), linked)
    assert.deepEqual(await twin.findUser({ provider: 'dev', subject: 'ada-1' }), linked)
    assert.deepEqual(await twin.links(ADA.userId), [
      { ...ADA.link, userId: ADA.userId },
      { ...link('other', 'ada-of-other'), userId: ADA.userId }
    ])
  })

  rule('a link that a user has, this one or another, is not added, and nothing is noted', async open => {
    const { store, twin } = await open()
    const bob = newUser({ link: link('other', 'bob-1') })
    await store.createUser(ADA)
    await store.createUser(bob)
    const news = { claims: { sub: 'x', name: 'Mallory' }, verifiedEmail: 'mallory@example.com' }

    assert.equal(await store.addLink(ADA.userId, identity('other', 'bob-1', news)), null)
    assert.equal(await store.addLink(ADA.userId, identity('dev', 'ada-1', news)), null)

    assertHas(await twin.findUser({ userId: ADA.userId }), { name: 'Ada', email: 'ada@example.com' })
    assert.deepEqual(await twin.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
    assert.deepEqual(await twin.links(bob.userId), [{ ...bob.link, userId: bob.userId }])
  })

  rule('of many users who add one link at once, one gets it', async open => {
    const { store, twin } = await open()
    const rivals = Array.from({ length: 10 }, () => newUser())
    await Promise.all(rivals.map(user => store.createUser(user)))

    const linked = await Promise.all(
      rivals.map(({ userId }, index) => (index % 2 === 0 ? store : twin).addLink(userId, identity('other', 'shared')))
    )

    const [winner, ...others] = linked.filter(user => user !== null)
    assert.deepEqual(others, [])
    assert.deepEqual(await store.findUser({ provider: 'other', subject: 'shared' }), winner)
  })

  rule('of many subjects at one provider added to one user at once, one is added', async open => {
    const { store, twin } = await open()
    await store.createUser(ADA)
    const subjects = Array.from({ length: 10 }, (_, index) => `subject-${index}`)

    const linked = await Promise.all(
      subjects.map((subject, index) => (index % 2 === 0 ? store : twin).addLink(ADA.userId, identity('other', subject)))
    )

    assert.equal(linked.filter(user => user !== null).length, 1)
    assert.deepEqual((await store.links(ADA.userId)).map(({ provider }) => provider), ['dev', 'other'])
  })

  rule('links are ordered by the code points of the provider', async open => {
    const { store } = await open()
    await store.createUser(ADA)
    await store.createUser(newUser({ link: link('another-user', '1') }))

    for (const provider of ['b', 'ab', 'later', 'a1', 'a-b', 'a']) {
      await store.addLink(ADA.userId, identity(provider, '1'))
    }

    assert.deepEqual(
      (await store.links(ADA.userId)).map(({ provider }) => provider),
      ['a', 'a-b', 'a1', 'ab', 'b', 'dev', 'later']
    )
  })

  rule('a link can be removed: the others are left, in order, and its subject belongs to no user', async open => {
    const { store, twin } = await open()
    await store.createUser(ADA)
    for (const provider of ['other', 'a', 'third']) {
      await store.addLink(ADA.userId, identity(provider, `ada of ${provider}`))
    }

    const left = await store.removeLink(ADA.userId, 'other')

    assert.deepEqual(left, [
      { ...link('a', 'ada of a'), userId: ADA.userId },
      { ...ADA.link, userId: ADA.userId },
      { ...link('third', 'ada of third'), userId: ADA.userId }
    ])
    assert.deepEqual(await twin.links(ADA.userId), left)
    assert.equal(await twin.findUser({ provider: 'other', subject: 'ada of other' }), null)
    assert.equal(await twin.refreshIdentity(identity('other', 'ada of other')), null)
    assertHas(await twin.findUser({ provider: 'dev', subject: 'ada-1' }), { userId: ADA.userId })
  })

  rule('the subject of a removed link is free, for another user and for the same one', async open => {
    const { store, twin } = await open()
    const bob = newUser()
    await store.createUser(ADA)
    await store.createUser(bob)
    await store.addLink(ADA.userId, identity('other', '1'))

    await store.removeLink(ADA.userId, 'other')
    assertHas(await twin.addLink(bob.userId, identity('other', '1')), { userId: bob.userId })
    await store.removeLink(bob.userId, 'other')
    assertHas(await twin.addLink(ADA.userId, identity('other', '1')), { userId: ADA.userId })
    await store.removeLink(ADA.userId, 'other')

    assert.ok(await twin.createUser(newUser({ link: link('other', '1') })))
  })

  rule('removing the local link removes the password, and only that of this user', async open => {
    const { store, twin } = await open()
    const bob = localUser('bob@example.com')
    const carol = localUser('carol@example.com')
    for (const user of [bob, carol]) {
      await store.createUser(user)
      await store.addLink(user.userId, identity('dev', user.link.subject))
    }

    await store.removeLink(bob.userId, 'local')

    assert.equal(await twin.findCredential('bob@example.com'), null)
    assertHas(await twin.findCredential('carol@example.com'), { user: { userId: carol.userId }, passwordHash: HASH })
  })

  rule('of several links that are removed at once, one stays', async open => {
    const { store, twin } = await open()
    const rounds = Array.from({ length: 20 }, (_, round) => `bob-${round}@example.com`)

    for (const email of rounds) {
      const bob = localUser(email)
      await store.createUser(bob)
      await store.addLink(bob.userId, identity('dev', email))

      const removed = await Promise.allSettled([
        store.removeLink(bob.userId, 'dev'),
        twin.removeLink(bob.userId, 'local')
      ])

      const left = await twin.links(bob.userId)
      assert.equal(left.length, 1, email)
      assert.deepEqual(valuesOf(removed), [left])
      assertHas(reasonsOf(removed), [LAST_LINK])
      assert.equal((await twin.findCredential(email))?.passwordHash, left[0]?.provider === 'local' ? HASH : undefined)
    }
  })

  rule('of many links that are removed at once, one stays', async open => {
    const { store, twin } = await open()
    const providers = ['a', 'b', 'c', 'dev', 'e', 'f']
    await store.createUser(ADA)
    for (const provider of providers) await store.addLink(ADA.userId, identity(provider, '1'))

    const removed = await Promise.allSettled(
      [...providers, ...providers].map((provider, index) => {
        return (index % 2 === 0 ? store : twin).removeLink(ADA.userId, provider)
      })
    )

    assert.equal((await store.links(ADA.userId)).length, 1)
    for (const reason of reasonsOf(removed)) assertHas(reason, LAST_LINK)
  })

  rule('the links of another user are left alone, at the same provider too', async open => {
    const { store, twin } = await open()
    const bob = newUser({ link: link('dev', 'bob-1') })
    await store.createUser(ADA)
    await store.createUser(bob)
    await store.addLink(ADA.userId, identity('other', 'ada-1'))
    await store.addLink(bob.userId, identity('other', 'bob-1'))

    await store.removeLink(ADA.userId, 'other')

    assert.deepEqual(
      (await twin.links(bob.userId)).map(({ provider, subject }) => [provider, subject]),
      [['dev', 'bob-1'], ['other', 'bob-1']]
    )
    assertHas(await twin.findUser({ provider: 'other', subject: 'bob-1' }), { userId: bob.userId })
  })
}

/** What sign-ins change. */
export function signInsContract (rule: Rule): void {
  rule('a sign-in replaces the identity claims of its link, and of no other', async open => {
    const { store, twin } = await open()
    const bob = newUser({ link: link('dev', 'bob-1') })
    await store.createUser(ADA)
    await store.createUser(bob)
    await store.addLink(ADA.userId, identity('other', 'ada-1'))
    const claimsOfLinks = async () => (await twin.links(ADA.userId)).map(({ claims }) => claims)

    await store.refreshIdentity(
      identity('dev', 'ada-1', { claims: { sub: 'ada-1', picture: 'https://id.example/ada.png' } })
    )
    assert.deepEqual(await claimsOfLinks(), [{ sub: 'ada-1', picture: 'https://id.example/ada.png' }, { sub: 'ada-1' }])

    await store.refreshIdentity(identity('other', 'ada-1', { claims: { sub: 'ada-1', locale: 'en' } }))
    assert.deepEqual(await claimsOfLinks(), [
      { sub: 'ada-1', picture: 'https://id.example/ada.png' },
      { sub: 'ada-1', locale: 'en' }
    ])
    assert.deepEqual(await twin.links(bob.userId), [{ ...bob.link, userId: bob.userId }])
  })

  rule('simultaneous first sign-ins of one identity make one user', async open => {
    const { store, twin } = await open()
    const ofBob = identity('dev', 'bob-1', { claims: { sub: 'bob-1' }, verifiedEmail: 'bob@example.com' })
    const enter = async (accounts: Accounts) => accounts.enterIdentity(ofBob, 'bob@example.com', newUser({
      link: link('dev', 'bob-1'), email: 'bob@example.com', emailVerified: true
    }))

    const entered = await Promise.all([store, twin, store, twin].map(enter))

    assert.equal(entered.filter(({ as }) => as === 'new').length, 1)
    assert.equal(new Set(entered.map(({ user }) => user.userId)).size, 1)
  })

  rule('when several links stop vouching at once, the last one ends the verification', async open => {
    const { store, twin } = await open()
    await store.createUser(ADA)
    const providers = ['dev', 'a', 'b', 'c']
    for (const provider of providers) {
      await store.addLink(ADA.userId, identity(provider, 'ada-1', verified('ada@example.com')))
    }

    await Promise.all(
      providers.map((provider, index) => (index % 2 === 0 ? store : twin).refreshIdentity(identity(provider, 'ada-1')))
    )

    assertHas(await store.findUser({ userId: ADA.userId }), { email: 'ada@example.com', emailVerified: false })
  })

  rule('an e-mail that changes at a provider moves the link at local, with the password', async open => {
    const { store, twin } = await open()
    await store.createUser(ADA)
    await store.setPassword(ADA.userId, { passwordHash: HASH })

    const noted = await store.refreshIdentity(identity('dev', 'ada-1', verified('new@example.com')))

    assertHas(noted, { email: 'new@example.com', emailVerified: true })
    assert.equal(await twin.findCredential('ada@example.com'), null)
    assertHas(await twin.findCredential('new@example.com'), {
      user: noted,
      link: { claims: { sub: ADA.userId, email: 'new@example.com', name: 'Ada' } },
      passwordHash: HASH
    })
    assert.ok(await twin.createUser(localUser('ada@example.com')), 'the address before is free')
  })

  rule('of changes of an e-mail that are noted at once, the last one counts', async open => {
    const { store, twin } = await open()
    await store.createUser(ADA)

    for (let round = 0; round < 20; round++) {
      const changes = Array.from({ length: 10 }, (_, index) =>
        identity('dev', 'ada-1', verified(`ada-${index % 2}@example.com`))
      )

      await Promise.all(changes.map((change, index) => (index % 3 === 0 ? store : twin).refreshIdentity(change)))

      const [link] = await store.links(ADA.userId)
      assert.equal((await store.findUser({ userId: ADA.userId }))?.email, link?.claims.email)
    }
  })

  rule('of two users whose providers report one verified e-mail at once, one gets it', async open => {
    const { store, twin } = await open()
    await store.createUser(ADA)
    await store.createUser(newUser({ email: 'bob@example.com', link: link('dev', 'bob-1') }))

    const noted = await Promise.all([
      store.refreshIdentity(identity('dev', 'ada-1', verified('shared@example.com'))),
      twin.refreshIdentity(identity('dev', 'bob-1', verified('shared@example.com')))
    ])

    const owners = noted.filter(user => user?.email === 'shared@example.com')
    assert.equal(owners.length, 1)
    assert.deepEqual(await store.findUser({ email: 'shared@example.com' }), owners[0])
  })
}
