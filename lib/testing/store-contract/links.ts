import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { assertHas } from './assertions.js'
import { ADA, HASH, LAST_LINK, identity, link, localUser, newUser, reasonsOf, valuesOf, verified } from './fixtures.js'
import type { Rule } from './rule.js'

/** Links: added, in order, removed, never the last one. */
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

  rule('an unknown user gets no link', async open => {
    const { store } = await open()
    const unknown = randomUUID()

    assert.equal(await store.addLink(unknown, identity('dev', 'ada-1')), null)

    assert.equal(await store.findUser({ provider: 'dev', subject: 'ada-1' }), null)
    assert.deepEqual(await store.links(unknown), [])
    assert.ok(await store.createUser(ADA), 'the link is still free')
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

  rule('a second subject at one provider is not added, and nothing is noted', async open => {
    const { store, twin } = await open()
    await store.createUser(ADA)

    assert.equal(
      await store.addLink(
        ADA.userId,
        identity('dev', 'ada-2', { claims: { sub: 'x', name: 'Mallory' }, verifiedEmail: 'mallory@example.com' })
      ),
      null
    )

    assertHas(await twin.findUser({ userId: ADA.userId }), { name: 'Ada', email: 'ada@example.com' })
    assert.deepEqual(await twin.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
    assert.equal(await twin.findUser({ provider: 'dev', subject: 'ada-2' }), null)
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

  rule('removing another link keeps the password', async open => {
    const { store, twin } = await open()
    const bob = localUser('bob@example.com')
    await store.createUser(bob)
    await store.addLink(bob.userId, identity('dev', 'bob-1'))

    await store.removeLink(bob.userId, 'dev')

    assertHas(await twin.findCredential('bob@example.com'), { user: { userId: bob.userId }, passwordHash: HASH })
  })

  rule('a user keeps their e-mail, name and claims when a link is removed', async open => {
    const { store, twin } = await open()
    await store.createUser({ ...ADA, email: null, emailVerified: false })
    await store.addLink(
      ADA.userId,
      identity('other', 'ada-of-other', verified('ada@other.example', { name: 'Ada Lovelace' }))
    )
    const before = await twin.findUser({ userId: ADA.userId })

    await store.removeLink(ADA.userId, 'other')

    assertHas(before, {
      userId: ADA.userId,
      email: 'ada@other.example',
      emailVerified: true,
      name: 'Ada Lovelace',
      claims: { role: 'admin' }
    })
    const { generation, ...after } = { ...before, emailVerified: false }
    assertHas(await twin.findUser({ userId: ADA.userId }), after)
    assertHas(await twin.findUser({ email: 'ada@other.example' }), after)
  })

  rule('removing a link that the user does not have changes nothing', async open => {
    const { store, twin } = await open()
    const bob = localUser('bob@example.com')
    await store.createUser(ADA)
    await store.createUser(bob)
    await store.addLink(bob.userId, identity('other', '1'))
    await store.addLink(bob.userId, identity('third', '1'))
    const links = await store.links(bob.userId)

    for (const provider of ['dev', 'LOCAL', 'oth', 'other ', '%', '']) {
      assert.deepEqual(await store.removeLink(bob.userId, provider), links, `"${provider}"`)
    }
    assert.deepEqual(
      await store.removeLink(ADA.userId, 'local'),
      [{ ...ADA.link, userId: ADA.userId }],
      'even of a user with a single link'
    )

    assert.deepEqual(await twin.links(bob.userId), links)
    assert.deepEqual(await twin.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
    assertHas(await twin.findCredential('bob@example.com'), { passwordHash: HASH })
  })

  rule('the last link is never removed', async open => {
    const { store, twin } = await open()
    const bob = localUser('bob@example.com')
    await store.createUser(ADA)
    await store.createUser(bob)

    await assert.rejects(store.removeLink(ADA.userId, 'dev'), LAST_LINK)
    await assert.rejects(store.removeLink(bob.userId, 'local'), LAST_LINK)

    assert.deepEqual(await twin.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
    assertHas(await twin.findUser(ADA.link), { userId: ADA.userId })
    assertHas(await twin.findCredential('bob@example.com'), {
      user: { userId: bob.userId },
      link: bob.link,
      passwordHash: HASH
    })
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
