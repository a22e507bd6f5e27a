import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { assertHas } from './assertions.js'
import { ADA, HASH, identity, link, localUser, newUser } from './fixtures.js'
import type { Rule } from './rule.js'

/** What is kept about a user, and how the user is found. */
export function usersContract (rule: Rule): void {
  rule('a new user is found by id, by e-mail and by link', async open => {
    const { store, twin } = await open()

    const created = await store.createUser(ADA)

    const { link: _link, ...expected } = ADA
    assertHas(created, expected)
    assert.deepEqual(await twin.findUser({ userId: ADA.userId }), created)
    assert.deepEqual(await twin.findUser({ email: 'ada@example.com' }), created)
    assert.deepEqual(await twin.findUser({ provider: 'dev', subject: 'ada-1' }), created)
    assert.deepEqual(await twin.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
  })

  rule('a new user need not have an e-mail, a name or claims, and many have none', async open => {
    const { store } = await open()

    const first = await store.createUser(newUser({ email: null, emailVerified: false, name: null, claims: {} }))
    const second = await store.createUser(newUser({ email: null, emailVerified: false, name: null, claims: {} }))

    assertHas(first, { email: null, emailVerified: false, name: null, claims: {} })
    assertHas(second, { email: null, emailVerified: false, name: null, claims: {} })
    assert.notEqual(first?.userId, second?.userId)
  })

  rule('an unknown user is not found', async open => {
    const { store } = await open()
    await store.createUser(ADA)

    assert.equal(await store.findUser({ userId: randomUUID() }), null)
    assert.equal(await store.findUser({ userId: '' }), null)
    assert.equal(await store.findUser({ email: 'bob@example.com' }), null)
    assert.equal(await store.findUser({ email: 'ADA@example.com' }), null, 'e-mails are compared as they are')
    assert.equal(await store.findUser({ email: '%' }), null)
    assert.equal(await store.findUser({ provider: 'dev', subject: 'ada-2' }), null)
    assert.equal(await store.findUser({ provider: 'other', subject: 'ada-1' }), null)
    assert.deepEqual(await store.links(randomUUID()), [])
    assert.equal(await store.findCredential('ada@example.com'), null)
  })

  rule('a user with a password has a credential', async open => {
    const { store, twin } = await open()
    const bob = localUser('bob@example.com')

    await store.createUser(bob)

    const { link, passwordHash, ...user } = bob
    assertHas(await twin.findCredential('bob@example.com'), {
      user,
      link: { ...link, userId: bob.userId },
      passwordHash
    })
  })

  rule('the credential is that of the local link, whatever the other links say', async open => {
    const { store } = await open()
    const bob = localUser('bob@example.com')
    const carol = { ...localUser('carol@example.com'), passwordHash: 'the hash of Carol' }
    for (const user of [bob, carol]) {
      await store.createUser(user)
      for (const provider of ['aaa', 'zzz']) {
        await store.addLink(user.userId, identity(provider, user.link.subject))
      }
    }

    const ofBob = await store.findCredential('bob@example.com')
    const ofCarol = await store.findCredential('carol@example.com')

    assertHas(ofBob, {
      user: { userId: bob.userId },
      link: { provider: 'local', subject: 'bob@example.com' },
      passwordHash: HASH
    })
    assertHas(ofCarol, {
      user: { userId: carol.userId },
      link: { provider: 'local', subject: 'carol@example.com' },
      passwordHash: 'the hash of Carol'
    })
  })

  rule('a second user with an e-mail is refused, and nothing of that user is written', async open => {
    const { store, twin } = await open()
    await store.createUser(ADA)
    const second = newUser({ email: 'ada@example.com', link: link('other', 'second') })

    assert.equal(await twin.createUser(second), null)

    assert.equal(await store.findUser({ userId: second.userId }), null)
    assert.equal(await store.findUser({ provider: 'other', subject: 'second' }), null)
    assert.deepEqual(await store.links(second.userId), [])
    assertHas(await store.findUser({ email: 'ada@example.com' }), { userId: ADA.userId, name: 'Ada' })
  })

  rule('a second user with a link is refused, and nothing of that user is written', async open => {
    const { store, twin } = await open()
    const first = newUser()
    await store.createUser(first)
    const second = newUser({ email: 'free@example.com', link: { ...first.link, claims: { sub: 'second' } } })

    assert.equal(await twin.createUser(second), null)

    assert.equal(await store.findUser({ userId: second.userId }), null)
    assert.equal(await store.findUser({ email: 'free@example.com' }), null)
    assert.deepEqual(await store.links(second.userId), [])
    assert.deepEqual(await store.links(first.userId), [{ ...first.link, userId: first.userId }])
    assert.ok(await store.createUser(newUser({ email: 'free@example.com' })), 'the e-mail is still free')
  })

  rule('of many users made at once with one e-mail, one is made', async open => {
    const { store, twin } = await open()
    const rivals = Array.from({ length: 20 }, () => newUser({ email: 'ada@example.com' }))

    const made = await Promise.all(rivals.map((user, index) => (index % 2 === 0 ? store : twin).createUser(user)))

    const [winner, ...others] = made.filter(user => user !== null)
    assert.deepEqual(others, [])
    assert.deepEqual(await store.findUser({ email: 'ada@example.com' }), winner)
    const found = await Promise.all(rivals.map(({ link }) => store.findUser(link)))
    assert.deepEqual(found.filter(user => user !== null), [winner])
  })

  rule('of many users made at once with one link, one is made', async open => {
    const { store, twin } = await open()
    const rivals = Array.from({ length: 20 }, () => newUser({ link: link('dev', 'ada-1') }))

    const made = await Promise.all(rivals.map((user, index) => (index % 2 === 0 ? store : twin).createUser(user)))

    const [winner, ...others] = made.filter(user => user !== null)
    assert.deepEqual(others, [])
    assert.deepEqual(await store.findUser({ provider: 'dev', subject: 'ada-1' }), winner)
    const found = await Promise.all(rivals.map(({ userId }) => store.findUser({ userId })))
    assert.deepEqual(found.filter(user => user !== null), [winner])
  })
}
