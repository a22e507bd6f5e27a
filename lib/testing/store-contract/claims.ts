import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { assertHas } from './assertions.js'
import { ADA, HASH, UNKNOWN_USER, identity, localUser, newUser, verified } from './fixtures.js'
import type { Rule } from './rule.js'

/** Password hashes and authorization claims. */
export function claimsContract (rule: Rule): void {
  rule('a password hash is replaced if it is still the one that was read', async open => {
    const { store, twin } = await open()
    const bob = localUser('bob@example.com')
    await store.createUser(bob)

    await store.replacePasswordHash(bob.userId, HASH, 'the second hash')
    assertHas(await twin.findCredential('bob@example.com'), { passwordHash: 'the second hash' })

    await store.replacePasswordHash(bob.userId, HASH, 'the third hash')
    assertHas(await twin.findCredential('bob@example.com'), { passwordHash: 'the second hash' })
  })

  rule("another user's equal password hash is not replaced, and an unknown user has none", async open => {
    const { store } = await open()
    const bob = localUser('bob@example.com')
    await store.createUser(bob)
    await store.createUser(localUser('carol@example.com'))

    await store.replacePasswordHash(bob.userId, HASH, 'another hash')
    await store.replacePasswordHash(randomUUID(), HASH, 'another hash')

    assertHas(await store.findCredential('bob@example.com'), { passwordHash: 'another hash' })
    assertHas(await store.findCredential('carol@example.com'), { passwordHash: HASH })
  })

  rule('a password that was removed is not replaced', async open => {
    const { store } = await open()
    const bob = localUser('bob@example.com')
    await store.createUser(bob)
    await store.addLink(bob.userId, identity('dev', 'bob-1'))
    await store.removeLink(bob.userId, 'local')

    await store.replacePasswordHash(bob.userId, HASH, 'another hash')

    assert.equal(await store.findCredential('bob@example.com'), null)
  })

  rule('a grant is merged in name by name: what it names is replaced whole, the rest is kept', async open => {
    const { store, twin } = await open()
    await store.createUser({ ...ADA, claims: { role: 'member', limits: { a: 1, b: 2 } } })

    const all = await store.grant(ADA.userId, { limits: { c: 3 }, tier: null })

    assert.deepEqual(all, { role: 'member', limits: { c: 3 }, tier: null })
    assert.deepEqual((await twin.findUser({ userId: ADA.userId }))?.claims, all)
  })

  rule('a grant is for one user', async open => {
    const { store } = await open()
    const bob = newUser({ claims: { role: 'member' } })
    await store.createUser(ADA)
    await store.createUser(bob)

    await store.grant(bob.userId, { role: 'editor', tier: 1 })
    await store.withdraw(bob.userId, ['role'])

    assert.deepEqual((await store.findUser({ userId: ADA.userId }))?.claims, { role: 'admin' })
    assert.deepEqual((await store.findUser({ userId: bob.userId }))?.claims, { tier: 1 })
  })

  rule('withdrawing takes claims away by name and passes over names that are not there', async open => {
    const { store, twin } = await open()
    await store.createUser({ ...ADA, claims: { role: 'member', tier: 1, flags: { role: true } } })

    const left = await store.withdraw(ADA.userId, ['tier', 'role', 'role', 'nothing'])

    assert.deepEqual(left, { flags: { role: true } })
    assert.deepEqual((await twin.findUser({ userId: ADA.userId }))?.claims, left)
    assert.deepEqual(await store.withdraw(ADA.userId, []), left)
  })

  rule('claims can have odd names', async open => {
    const { store } = await open()
    await store.createUser({ ...ADA, claims: {} })
    const names = [
      '', ' ', 'a.b', '$.role', "it's", '"quoted"', '{a,b}', '[0]', '0', 'a\\b', 'naïve', 'nai\u0308ve', '😀',
      'https://app.example/role', 'toString'
    ]
    const claims = Object.fromEntries(names.map((name, index) => [name, index]))

    assert.deepEqual(await store.grant(ADA.userId, claims), claims)
    assert.deepEqual((await store.findUser({ userId: ADA.userId }))?.claims, claims)
    for (const name of names) assert.ok(!Object.hasOwn(await store.withdraw(ADA.userId, [name]), name), name)
    assert.deepEqual((await store.findUser({ userId: ADA.userId }))?.claims, {})
  })

  rule('grants and withdrawals made at once all count', async open => {
    const { store, twin } = await open()
    const names = Array.from({ length: 20 }, (_, index) => `claim-${index}`)
    await store.createUser({ ...ADA, claims: { old: 1, older: 2 } })

    await Promise.all([
      ...names.map((name, index) => (index % 2 === 0 ? store : twin).grant(ADA.userId, { [name]: index })),
      store.withdraw(ADA.userId, ['old']),
      twin.withdraw(ADA.userId, ['older']),
      store.refreshIdentity(identity('dev', 'ada-1', verified('new@example.com', { name: 'Ada Lovelace' })))
    ])

    assertHas(await store.findUser({ userId: ADA.userId }), {
      userId: ADA.userId,
      email: 'new@example.com',
      emailVerified: true,
      name: 'Ada Lovelace',
      claims: Object.fromEntries(names.map((name, index) => [name, index]))
    })
  })

  rule('claims of an unknown user are neither granted nor withdrawn', async open => {
    const { store } = await open()
    const unknown = randomUUID()

    await assert.rejects(store.grant(unknown, { role: 'admin' }), UNKNOWN_USER)
    await assert.rejects(store.withdraw(unknown, ['role']), UNKNOWN_USER)

    assert.equal(await store.findUser({ userId: unknown }), null)
  })
}
