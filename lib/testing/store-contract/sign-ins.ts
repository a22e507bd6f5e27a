import assert from 'node:assert/strict'
import type { Accounts } from '../../accounts/accounts.js'
import { assertHas } from './assertions.js'
import { ADA, WAYS_TO_NOTE, identity, link, newUser, verified } from './fixtures.js'
import type { Rule } from './rule.js'

/** What a sign-in and a new link note about the user. */
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

  rule('a sign-in with an unknown link changes nothing and makes no user', async open => {
    const { store } = await open()
    await store.createUser(ADA)

    assert.equal(await store.refreshIdentity(identity('dev', 'bob-1', { verifiedEmail: 'bob@example.com' })), null)
    assert.equal(await store.refreshIdentity(identity('other', 'ada-1', { verifiedEmail: 'bob@example.com' })), null)

    assert.equal(await store.findUser({ provider: 'dev', subject: 'bob-1' }), null)
    assert.equal(await store.findUser({ email: 'bob@example.com' }), null)
    assert.deepEqual(await store.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
  })

  rule('a sign-in with an unknown link makes a user unless one has the e-mail', async open => {
    const { store, twin } = await open()
    const bob = newUser({ link: link('dev', 'bob-1'), email: 'bob@example.com', emailVerified: true, isNew: true })
    const ofBob = identity('dev', 'bob-1', { claims: { sub: 'bob-1' }, verifiedEmail: bob.email })
    await store.createUser(ADA)

    const taken = await store.enterIdentity({ ...ofBob, verifiedEmail: null }, ADA.email, { ...bob, email: null })
    assertHas(taken, { as: 'owner-of-email', user: { userId: ADA.userId, email: ADA.email } })
    assert.equal(await twin.findUser({ provider: 'dev', subject: 'bob-1' }), null)
    assert.deepEqual(await twin.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])

    const present = { userId: bob.userId, emailVerified: true, isNew: true }
    assertHas(await store.enterIdentity(ofBob, bob.email, bob), { as: 'new', user: present })
    assertHas(await twin.findUser({ email: 'bob@example.com' }), present)

    const again = { ...ofBob, claims: { sub: 'bob-1', locale: 'en' } }
    const other = newUser({ link: bob.link, email: bob.email, emailVerified: true })
    assertHas(await twin.enterIdentity(again, bob.email, other), { as: 'known', user: { userId: bob.userId } })
    assertHas((await store.links(bob.userId))[0], { claims: { sub: 'bob-1', locale: 'en' } })
    assert.equal(await store.findUser({ userId: other.userId }), null)
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

  for (const { way, note } of WAYS_TO_NOTE) {
    rule(`${way} takes the name that the provider gives now`, async open => {
      const { store, twin } = await open()
      await store.createUser(ADA)
      const bystander = newUser({ name: 'Bob' })
      await store.createUser(bystander)

      const noted = await note(store, { claims: { sub: 'x', name: 'Ada Lovelace' }, verifiedEmail: null })

      assertHas(noted, { userId: ADA.userId, name: 'Ada Lovelace' })
      assertHas(await twin.findUser({ userId: ADA.userId }), { name: 'Ada Lovelace' })
      assertHas(await twin.findUser({ userId: bystander.userId }), { name: 'Bob' })
    })

    rule(`${way} keeps the name when the provider gives none`, async open => {
      const { store, twin } = await open()
      await store.createUser(ADA)

      const noted = await note(store, { claims: { sub: 'x' }, verifiedEmail: null })

      assertHas(noted, { name: 'Ada' })
      assertHas(await twin.findUser({ userId: ADA.userId }), { name: 'Ada' })
    })

    rule(`${way} keeps the authorization claims`, async open => {
      const { store, twin } = await open()
      await store.createUser(ADA)

      const noted = await note(store, { claims: { sub: 'x', role: 'guest' }, verifiedEmail: 'new@example.com' })

      assert.deepEqual(noted?.claims, { role: 'admin' })
      assert.deepEqual((await twin.findUser({ userId: ADA.userId }))?.claims, { role: 'admin' })
    })

    rule(`${way} gives a verified e-mail to a user who has none, whether or not it was verified before`, async open => {
      for (const email of ['ada@example.com', 'new@example.com']) {
        const { store, twin } = await open()
        await store.createUser({ ...ADA, email: null, emailVerified: false })

        const noted = await note(store, verified(email))

        assertHas(noted, { userId: ADA.userId, email, emailVerified: true })
        assert.deepEqual(await twin.findUser({ email }), noted)
      }
    })

    rule(`${way} makes the user's own unverified e-mail a verified one`, async open => {
      const { store, twin } = await open()
      await store.createUser({ ...ADA, emailVerified: false })

      const noted = await note(store, verified('ada@example.com'))

      assertHas(noted, { email: 'ada@example.com', emailVerified: true })
      assert.deepEqual(await twin.findUser({ email: 'ada@example.com' }), noted)
    })

    rule(`${way} leaves the e-mail as it is when the provider verified none`, async open => {
      const { store, twin } = await open()
      await store.createUser({ ...ADA, emailVerified: false })

      const noted = await note(store, {
        claims: { sub: 'x', email: 'new@example.com', email_verified: true },
        verifiedEmail: null
      })

      assertHas(noted, { email: 'ada@example.com', emailVerified: false })
      assertHas(await twin.findUser({ email: 'ada@example.com' }), { userId: ADA.userId, emailVerified: false })
      assert.equal(await twin.findUser({ email: 'new@example.com' }), null)
    })

    rule(`${way} does not take another user's e-mail, and is noted all the same`, async open => {
      for (const email of ['ada@example.com', null]) {
        const { store, twin } = await open()
        await store.createUser({ ...ADA, email, emailVerified: false })
        const bob = newUser({ email: 'bob@example.com', emailVerified: false })
        await store.createUser(bob)

        const noted = await note(store, verified('bob@example.com', { name: 'Ada Lovelace' }))

        assertHas(noted, { email, emailVerified: false, name: 'Ada Lovelace' })
        assertHas(await twin.findUser({ email: 'bob@example.com' }), {
          userId: bob.userId,
          emailVerified: false,
          name: bob.name
        })
        assert.ok(
          (await twin.links(ADA.userId)).some(({ claims }) => claims.email === 'bob@example.com'),
          'what the provider says is on the link'
        )
      }
    })
  }
}
