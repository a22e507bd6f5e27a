/** Rules of users: made, changed, deleted; their claims and password hashes. */
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { INVALID_EMAIL, newAccounts } from '../../test/helpers/accounts.js'
import type { NewUser } from './identities.js'
import { assertGone } from '../testing/store-contract/assertions.js'
import {
  ADA, HASH, INVALID_REQUEST, NO_USER_IDS, UNKNOWN_USER, identity, link, localUser, newUser, verified
} from '../testing/store-contract/fixtures.js'

t.test('only a local account has a credential', async t => {
  const store = newAccounts()
  await store.createUser(newUser({ link: link('dev', 'not-local@example.com'), passwordHash: HASH }))

  t.equal(await store.findCredential('not-local@example.com'), null)
})

t.test('a local account without a password is refused, and nothing of it is written', async t => {
  const store = newAccounts()
  const bob = newUser({ email: 'bob@example.com', link: link('local', 'bob@example.com') })
  await store.createUser(ADA)

  await t.rejects(store.createUser(bob), INVALID_REQUEST)
  await t.rejects(store.addLink(ADA.userId, identity('local', 'ada@example.com')), INVALID_REQUEST)

  t.equal(await store.findUser({ userId: bob.userId }), null)
  t.strictSame(await store.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
})

t.test('a local account at another address than the e-mail of the user is refused', async t => {
  const store = newAccounts()
  for (const email of [null, 'ada@example.com']) {
    const bob = { ...localUser('bob@example.com'), email }

    await t.rejects(store.createUser(bob), INVALID_REQUEST)

    t.equal(await store.findUser({ userId: bob.userId }), null)
  }
})

t.test('an e-mail that is not canonical is refused, and nothing of the user or the link is written', async t => {
  const store = newAccounts()
  await store.createUser(ADA)

  for (const email of ['Bob@example.com', ' bob@example.com', 'bob@exämple.com', 'bob', '']) {
    const local = localUser(email)
    const user = newUser({ email })
    await t.rejects(store.createUser(local), INVALID_EMAIL, `"${email}"`)
    await t.rejects(store.createUser({ ...local, email: 'bob@example.com' }), INVALID_EMAIL, 'in the link alone')
    await t.rejects(store.createUser(user), INVALID_EMAIL)
    await t.rejects(store.addLink(ADA.userId, identity('other', '1', verified(email))), INVALID_EMAIL)

    for (const { userId } of [local, user]) t.equal(await store.findUser({ userId }), null)
  }
  t.strictSame(await store.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
})

t.test('a sign-in, a grant and a new link end no session and keep the count', async t => {
  const store = newAccounts()
  await store.createUser({ ...ADA, isNew: true })
  await store.changeUser(ADA.userId, { endSessions: true })
  const before = await store.status(ADA.userId)

  await store.refreshIdentity(identity('dev', 'ada-1', verified('new@example.com', { name: 'Ada Lovelace' })))
  await store.addLink(ADA.userId, identity('other', 'ada-2'))
  await store.admitUser(ADA.userId)
  await store.grant(ADA.userId, { role: 'member' })
  await store.withdraw(ADA.userId, ['role'])

  t.strictSame(await store.status(ADA.userId), { ...before, verifiedEmail: 'new@example.com' })
})

t.test('what is not changed stays, and an empty change changes nothing', async t => {
  const store = newAccounts()
  const blocked = { at: new Date(1000) }
  await store.createUser({ ...ADA, isNew: true })
  const all = await store.changeUser(ADA.userId, { name: 'Countess', blocked, endSessions: true })
  t.hasStrict(all, { name: 'Countess', blocked, generation: 1, isNew: true, email: 'ada@example.com' })

  t.strictSame(await store.changeUser(ADA.userId, {}), all)
  t.strictSame(await store.changeUser(ADA.userId, { name: 'Ada' }), { ...all, name: 'Ada' })
  const { blocked: _, ...free } = { ...all, name: 'Ada' }
  t.strictSame(await store.changeUser(ADA.userId, { blocked: null }), free)
})

t.test('a name that was set stays at sign-ins and with a new link', async t => {
  const store = newAccounts()
  await store.createUser(ADA)
  const bob = newUser({ name: 'Bob' })
  await store.createUser(bob)
  for (const name of ['Countess', null]) {
    const changed = await store.changeUser(ADA.userId, { name })
    t.equal(changed.name, name)

    const claims = { sub: 'ada-1', name: `Not ${name}` }
    t.hasStrict(await store.refreshIdentity(identity('dev', 'ada-1', { claims })), { name })
    t.hasStrict(await store.addLink(ADA.userId, identity(`other ${name}`, '1', { claims })), { name })

    t.hasStrict(await store.findUser({ userId: ADA.userId }), { name })
    t.hasStrict((await store.links(ADA.userId)).find(({ provider }) => provider === 'dev'), { claims })
  }
  t.hasStrict(await store.findUser({ userId: bob.userId }), { name: 'Bob' })
})

t.test('a name is set in the claims of the links local and application, and of no other', async t => {
  const store = newAccounts()
  const bob = localUser('bob@example.com')
  const carol = newUser({ link: link('application', 'carol', { email: 'carol@example.com', name: 'Carol' }) })
  for (const user of [bob, carol]) await store.createUser(user)
  await store.addLink(bob.userId, identity('dev', 'bob-1', { claims: { sub: 'bob-1', name: 'Bob of dev' } }))

  await store.changeUser(bob.userId, { name: 'Robert' })
  await store.changeUser(carol.userId, { name: 'Caroline' })

  const claimsOf = async ({ userId }: NewUser) => (await store.links(userId)).map(({ claims }) => claims)
  const robert = { ...bob.link.claims, name: 'Robert' }
  t.strictSame(await claimsOf(bob), [{ sub: 'bob-1', name: 'Bob of dev' }, robert])
  t.strictSame(await claimsOf(carol), [{ ...carol.link.claims, name: 'Caroline' }])

  await store.changeUser(carol.userId, { name: null })
  t.strictSame(await claimsOf(carol), [{ sub: 'carol', email: 'carol@example.com' }])
  await store.changeUser(bob.userId, { endSessions: true })
  t.strictSame((await claimsOf(bob))[1], robert)
})

t.test('an unknown user is not changed', async t => {
  const store = newAccounts()
  await store.createUser(ADA)
  for (const id of [randomUUID(), ...NO_USER_IDS]) {
    await t.rejects(store.changeUser(id, { name: 'Eve' }), UNKNOWN_USER, JSON.stringify(id))
  }
  t.hasStrict(await store.findUser({ userId: ADA.userId }), { name: 'Ada' })
})

t.test('the operator changes an e-mail as the user would', async t => {
  const store = newAccounts()
  const passwordHash = HASH
  const [ada, bob] = ['ada@example.com', 'bob@example.com'].map(email => {
    const userId = randomUUID()
    const link = { provider: 'local', subject: email, claims: { sub: userId, email } }
    return { ...newUser({ userId, email }), emailVerified: true, link, passwordHash }
  })
  if (ada === undefined || bob === undefined) return
  for (const user of [ada, bob]) await store.createUser(user)
  const { userId } = ada

  const taken = store.updateUser(userId, { email: 'bob@example.com', name: 'Bob' })
  await t.rejects(taken, { code: 'exists' })
  await t.rejects(store.updateUser(userId, { email: 'Ada@Example.com' }), { code: 'invalid_email' })
  await t.rejects(store.updateUser(randomUUID(), { email: 'new@example.com' }), UNKNOWN_USER)
  t.equal((await store.findUser({ userId }))?.name, ada.name)

  const { before, user } = await store.updateUser(userId, { email: 'new@example.com' })
  t.strictSame([before.email, before.emailVerified], ['ada@example.com', true])
  t.strictSame([user.email, user.emailVerified], ['new@example.com', false])
  t.equal(user.generation, before.generation + 1)
  t.strictSame(await store.findUser({ email: 'new@example.com' }), user)
  t.equal(await store.findCredential('ada@example.com'), null)
  const credential = await store.findCredential('new@example.com')
  t.strictSame(credential?.link.claims, { sub: userId, email: 'new@example.com' })
  t.equal((await store.createUser({ ...newUser({ email: 'ada@example.com' }) }))?.email, 'ada@example.com')

  const verified = await store.updateUser(userId, { emailVerified: true })
  t.strictSame([verified.user.emailVerified, verified.user.generation], [true, user.generation + 1])
  t.equal((await store.findCredential('new@example.com'))?.link.claims.email_verified, true)
  const same = await store.updateUser(userId, { email: 'new@example.com', emailVerified: true })
  t.strictSame([same.before, same.user], [verified.user, verified.user], 'what does not change ends nothing')
  const unverified = await store.updateUser(userId, { emailVerified: false })
  t.strictSame([unverified.user.emailVerified, unverified.user.generation], [false, user.generation + 2])
})

t.test("another user's equal password hash is not replaced, and an unknown user has none", async t => {
  const store = newAccounts()
  const bob = localUser('bob@example.com')
  await store.createUser(bob)
  await store.createUser(localUser('carol@example.com'))

  await store.replacePasswordHash(bob.userId, HASH, 'another hash')
  await store.replacePasswordHash(randomUUID(), HASH, 'another hash')

  t.hasStrict(await store.findCredential('bob@example.com'), { passwordHash: 'another hash' })
  t.hasStrict(await store.findCredential('carol@example.com'), { passwordHash: HASH })
})

t.test('a password that was removed is not replaced', async t => {
  const store = newAccounts()
  const bob = localUser('bob@example.com')
  await store.createUser(bob)
  await store.addLink(bob.userId, identity('dev', 'bob-1'))
  await store.removeLink(bob.userId, 'local')

  await store.replacePasswordHash(bob.userId, HASH, 'another hash')

  t.equal(await store.findCredential('bob@example.com'), null)
})

t.test('a grant is merged in name by name: what it names is replaced whole, the rest is kept', async t => {
  const store = newAccounts()
  await store.createUser({ ...ADA, claims: { role: 'member', limits: { a: 1, b: 2 } } })

  const all = await store.grant(ADA.userId, { limits: { c: 3 }, tier: null })

  t.strictSame(all, { role: 'member', limits: { c: 3 }, tier: null })
  t.strictSame((await store.findUser({ userId: ADA.userId }))?.claims, all)
})

t.test('a grant is for one user', async t => {
  const store = newAccounts()
  const bob = newUser({ claims: { role: 'member' } })
  await store.createUser(ADA)
  await store.createUser(bob)

  await store.grant(bob.userId, { role: 'editor', tier: 1 })
  await store.withdraw(bob.userId, ['role'])

  t.strictSame((await store.findUser({ userId: ADA.userId }))?.claims, { role: 'admin' })
  t.strictSame((await store.findUser({ userId: bob.userId }))?.claims, { tier: 1 })
})

t.test('withdrawing takes claims away by name and passes over names that are not there', async t => {
  const store = newAccounts()
  await store.createUser({ ...ADA, claims: { role: 'member', tier: 1, flags: { role: true } } })

  const left = await store.withdraw(ADA.userId, ['tier', 'role', 'role', 'nothing'])

  t.strictSame(left, { flags: { role: true } })
  t.strictSame((await store.findUser({ userId: ADA.userId }))?.claims, left)
  t.strictSame(await store.withdraw(ADA.userId, []), left)
})

t.test('claims of an unknown user are neither granted nor withdrawn', async t => {
  const store = newAccounts()
  const unknown = randomUUID()

  await t.rejects(store.grant(unknown, { role: 'admin' }), UNKNOWN_USER)
  await t.rejects(store.withdraw(unknown, ['role']), UNKNOWN_USER)

  t.equal(await store.findUser({ userId: unknown }), null)
})

t.test('a user who has another generation than the one that is given stays', async t => {
  const store = newAccounts()
  const bob = localUser('bob@example.com')
  await store.createUser(bob)
  await store.changeUser(bob.userId, { endSessions: true })

  t.equal(await store.deleteUser(bob.userId, 0), false)
  t.equal(await store.setPassword(bob.userId, { passwordHash: 'another hash', generation: 0 }), null)
  t.equal(await store.deleteUser(randomUUID(), 0), false)
  t.hasStrict(await store.findCredential('bob@example.com'), { passwordHash: HASH })
  t.equal(await store.deleteUser(bob.userId, 1), true)
})

t.test('a user cannot be deleted twice', async t => {
  const store = newAccounts()
  await store.createUser(ADA)

  await store.deleteUser(ADA.userId)

  await t.rejects(store.deleteUser(ADA.userId), UNKNOWN_USER)
  await t.rejects(store.deleteUser(ADA.userId), UNKNOWN_USER)
})

t.test('a new user stays new until they are admitted, once', async t => {
  const store = newAccounts()
  const { link: _link, ...ada } = ADA
  const bob = localUser('bob@example.com')
  t.hasStrict(await store.createUser({ ...ADA, isNew: true }), { ...ada, isNew: true })
  await store.createUser({ ...bob, isNew: true })
  t.hasStrict(await store.findUser({ userId: ADA.userId }), { isNew: true })
  const refreshed = identity('dev', 'ada-1', verified('ada@example.com', { name: 'Ada' }))
  t.hasStrict(await store.refreshIdentity(refreshed), { isNew: true })
  t.hasStrict(await store.addLink(ADA.userId, identity('other', 'ada-2')), { isNew: true })
  t.hasStrict((await store.findCredential('bob@example.com'))?.user, { isNew: true })

  t.equal(await store.admitUser(ADA.userId), true)

  t.hasStrict(await store.findUser({ userId: ADA.userId }), { ...ada, isNew: undefined })
  t.equal(await store.admitUser(ADA.userId), false)
  t.hasStrict(await store.findUser({ userId: bob.userId }), { isNew: true }, 'another one still is')
})

t.test('a new user can be deleted as such, with links and password; an admitted user stays', async t => {
  const store = newAccounts()
  const bob = localUser('bob@example.com')
  await store.createUser(ADA)
  await store.createUser({ ...bob, isNew: true })
  await store.addLink(bob.userId, identity('other', 'bob-1'))

  for (const id of [ADA.userId, bob.userId, randomUUID(), ...NO_USER_IDS]) {
    t.equal(await store.deleteNewUser(id), undefined)
  }

  t.hasStrict(await store.findUser({ userId: ADA.userId }), { name: 'Ada' })
  t.equal((await store.links(ADA.userId)).length, 1)
  await assertGone(store, bob)
  t.equal(await store.findUser({ provider: 'other', subject: 'bob-1' }), null)
})

t.test('an unknown user is not admitted', async t => {
  const store = newAccounts()

  for (const unknown of [randomUUID(), ...NO_USER_IDS]) {
    t.equal(await store.admitUser(unknown), false, JSON.stringify(unknown))
  }
})

t.test('an unknown user cannot lose a link or be deleted', async t => {
  const store = newAccounts()
  await store.createUser(ADA)
  await store.addLink(ADA.userId, identity('other', '1'))

  for (const unknown of [randomUUID(), ...NO_USER_IDS]) {
    await t.rejects(store.removeLink(unknown, 'dev'), UNKNOWN_USER, JSON.stringify(unknown))
    await t.rejects(store.deleteUser(unknown), UNKNOWN_USER, JSON.stringify(unknown))
  }

  t.hasStrict(await store.findUser({ userId: ADA.userId }), { name: 'Ada' })
  t.equal((await store.links(ADA.userId)).length, 2)
})
