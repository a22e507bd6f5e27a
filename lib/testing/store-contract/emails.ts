import assert from 'node:assert/strict'
import { assertHas } from './assertions.js'
import {
  ADA, CHANGES_OF_EMAIL, HASH, NO_LONGER_VOUCHED, identity, link, localUser, newUser, verified
} from './fixtures.js'
import type { Rule } from './rule.js'

/** When an e-mail is verified, and whose it is. */
export function emailsContract (rule: Rule): void {
  for (const [reported, news] of NO_LONGER_VOUCHED) {
    rule(`an e-mail is verified until the one link that vouches for it reports ${reported}`, async open => {
      const { store, twin } = await open()
      await store.createUser(ADA)
      await store.createUser(newUser({ email: 'taken@example.com' }))

      const noted = await store.refreshIdentity(identity('dev', 'ada-1', news))

      assertHas(noted, { email: 'ada@example.com', emailVerified: false })
      assert.deepEqual(await twin.findUser({ email: 'ada@example.com' }), noted)
      assertHas(
        await store.refreshIdentity(identity('dev', 'ada-1', verified('ada@example.com'))),
        { email: 'ada@example.com', emailVerified: true },
        'until it vouches again'
      )
    })

    rule(
      `an e-mail that a second link vouches for stays verified when the first one reports ${reported}, and no longer`,
      async open => {
        const { store, twin } = await open()
        await store.createUser(ADA)
        await store.createUser(newUser({ email: 'taken@example.com' }))
        await store.addLink(ADA.userId, identity('other', 'ada-of-other', verified('ada@example.com')))

        assertHas(await store.refreshIdentity(identity('dev', 'ada-1', news)), {
          email: 'ada@example.com',
          emailVerified: true
        })
        assertHas(await twin.refreshIdentity(identity('other', 'ada-of-other', news)), {
          email: 'ada@example.com',
          emailVerified: false
        })
      }
    )

    rule(`a link that does not vouch for the e-mail changes nothing when it reports ${reported}`, async open => {
      const { store, twin } = await open()
      await store.createUser(ADA)
      await store.createUser(newUser({ email: 'taken@example.com' }))

      assertHas(await store.addLink(ADA.userId, identity('other', 'ada-of-other', news)), {
        email: 'ada@example.com',
        emailVerified: true
      })
      assertHas(await twin.refreshIdentity(identity('other', 'ada-of-other', news)), {
        email: 'ada@example.com',
        emailVerified: true
      })
    })
  }

  rule('an e-mail is verified until the last link that vouches for it is removed', async open => {
    const { store, twin } = await open()
    await store.createUser(ADA)
    await store.addLink(ADA.userId, identity('other', 'ada-of-other', verified('ada@example.com')))
    await store.addLink(ADA.userId, identity('third', 'ada-of-third', verified('ada@third.example')))
    const isVerified = async () => (await twin.findUser({ email: 'ada@example.com' }))?.emailVerified

    await store.removeLink(ADA.userId, 'dev')
    assert.equal(await isVerified(), true)
    await store.removeLink(ADA.userId, 'nothing')
    assert.equal(await isVerified(), true)
    await store.removeLink(ADA.userId, 'other')
    assert.equal(await isVerified(), false)
  })

  rule('a provider that vouched for an e-mail does not vouch for the next one', async open => {
    const { store } = await open()
    await store.createUser(ADA)
    await store.addLink(ADA.userId, identity('other', 'ada-of-other', verified('ada@example.com')))

    await store.refreshIdentity(identity('other', 'ada-of-other', verified('new@example.com')))
    await store.removeLink(ADA.userId, 'other')

    assertHas(await store.findUser({ email: 'new@example.com' }), { userId: ADA.userId, emailVerified: false })
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

  rule('a second link with another e-mail leaves the one that the user has, verified or not', async open => {
    for (const emailVerified of [true, false]) {
      const { store, twin } = await open()
      await store.createUser({ ...ADA, emailVerified })

      const linked = await store.addLink(ADA.userId, identity('other', 'ada-of-other', verified('ada@other.example')))

      assertHas(linked, { email: 'ada@example.com', emailVerified })
      assert.deepEqual(await twin.findUser({ email: 'ada@example.com' }), linked)
      assert.equal(await twin.findUser({ email: 'ada@other.example' }), null)
    }
  })

  rule('two links with different e-mails, used in turn, leave the one that the user has', async open => {
    const { store, twin } = await open()
    const atDev = identity('dev', 'ada-1', verified('ada@example.com'))
    const atOther = identity('other', 'ada-of-other', verified('ada@other.example'))
    await store.createUser(ADA)
    await store.addLink(ADA.userId, atOther)

    for (const signIn of [atOther, atDev, atOther, atDev]) {
      assertHas(await store.refreshIdentity(signIn), { email: 'ada@example.com', emailVerified: true })
    }

    assertHas(await twin.findUser({ email: 'ada@example.com' }), { userId: ADA.userId })
    assert.equal(await twin.findUser({ email: 'ada@other.example' }), null)
  })

  rule('an e-mail that changes at one of two providers is taken over, and the other one leaves it', async open => {
    const { store, twin } = await open()
    const atDev = identity('dev', 'ada-1', verified('ada@example.com'))
    const changed = identity('other', 'ada-of-other', verified('new@other.example'))
    await store.createUser(ADA)
    await store.addLink(ADA.userId, identity('other', 'ada-of-other', verified('ada@other.example')))

    for (const signIn of [changed, atDev, changed, atDev]) {
      assertHas(await store.refreshIdentity(signIn), { email: 'new@other.example', emailVerified: true })
    }

    assertHas(await twin.findUser({ email: 'new@other.example' }), { userId: ADA.userId })
  })

  for (const [change, before, now] of CHANGES_OF_EMAIL) {
    rule(
      `a sign-in with an e-mail that has changed, ${change}, takes it in place of the old one, which is then free`,
      async open => {
        const { store, twin } = await open()
        await store.createUser({ ...ADA, link: { ...ADA.link, claims: { sub: 'ada-1', ...before } } })

        const noted = await store.refreshIdentity({
          ...ADA.link,
          claims: { sub: 'ada-1', ...now },
          verifiedEmail: 'new@example.com'
        })

        assertHas(noted, { userId: ADA.userId, email: 'new@example.com', emailVerified: true })
        assert.deepEqual(await twin.findUser({ email: 'new@example.com' }), noted)
        assert.equal(await twin.findUser({ email: 'ada@example.com' }), null)
        assert.ok(await twin.createUser(newUser({ email: 'ada@example.com' })))
      }
    )
  }

  rule(
    'a sign-in with a verified e-mail that has not changed leaves the one that the user has, whatever else has',
    async open => {
      for (const email of [{ email: 'new@example.com' }, {}]) {
        const { store, twin } = await open()
        await store.createUser(ADA)
        const news = { claims: { sub: 'ada-1', email_verified: true, ...email }, verifiedEmail: 'new@example.com' }
        await store.addLink(ADA.userId, identity('other', 'ada-1', news))

        const noted = await store.refreshIdentity(identity('other', 'ada-1', {
          ...news, claims: { ...news.claims, locale: 'en' }
        }))

        assertHas(noted, { email: 'ada@example.com', emailVerified: true })
        assert.deepEqual(await twin.findUser({ email: 'ada@example.com' }), noted)
        assert.equal(await twin.findUser({ email: 'new@example.com' }), null)
      }
    }
  )

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

  rule('an e-mail that is not verified stays when another one changes at a provider', async open => {
    const { store, twin } = await open()
    const bob = localUser('bob@example.com')
    await store.createUser(bob)
    await store.addLink(bob.userId, identity('dev', 'bob-1', verified('first@example.com')))

    const noted = await store.refreshIdentity(identity('dev', 'bob-1', verified('second@example.com')))

    assertHas(noted, { email: 'bob@example.com', emailVerified: false })
    assertHas(await twin.findCredential('bob@example.com'), { user: noted, link: bob.link, passwordHash: HASH })
    assert.equal(await twin.findUser({ email: 'second@example.com' }), null)
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
