import { randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import type { IdentityClaims, JsonValue } from '../../lib/claims.js'
import type { AuthStore, LinkedIdentity, NewUser } from '../../lib/store/store.js'

/** Two stores over the same, at first empty, data: through connections of their own, where there are any. */
export interface Stores {
  store: AuthStore
  twin: AuthStore
}

/** What every AuthStore must do. `open` also sees to it that the stores are closed at the end of the test. */
export function testAuthStore (t: Test, open: (t: Test) => Stores | Promise<Stores>): void {
  t.test('a new user is found by id, by e-mail and by link', async t => {
    const { store, twin } = await open(t)

    const created = await store.createUser(ADA)

    const expected = { userId: ADA.userId, email: 'ada@example.com', emailVerified: true, name: 'Ada', claims: { role: 'admin' } }
    t.strictSame(created, expected)
    t.strictSame(await twin.findUser({ userId: ADA.userId }), expected)
    t.strictSame(await twin.findUser({ email: 'ada@example.com' }), expected)
    t.strictSame(await twin.findUser({ provider: 'dev', subject: 'ada-1' }), expected)
    t.strictSame(await twin.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
  })

  t.test('a new user need not have an e-mail, a name or claims, and many have none', async t => {
    const { store } = await open(t)

    const first = await store.createUser(newUser({ email: null, emailVerified: false, name: null, claims: {} }))
    const second = await store.createUser(newUser({ email: null, emailVerified: false, name: null, claims: {} }))

    t.hasStrict(first, { email: null, emailVerified: false, name: null, claims: {} })
    t.hasStrict(second, { email: null, emailVerified: false, name: null, claims: {} })
    t.not(first?.userId, second?.userId)
  })

  t.test('whoever is not there is not found', async t => {
    const { store } = await open(t)
    await store.createUser(ADA)

    t.equal(await store.findUser({ userId: randomUUID() }), null)
    t.equal(await store.findUser({ userId: '' }), null)
    t.equal(await store.findUser({ email: 'bob@example.com' }), null)
    t.equal(await store.findUser({ email: 'ADA@example.com' }), null, 'e-mails are compared as they are')
    t.equal(await store.findUser({ email: '%' }), null)
    t.equal(await store.findUser({ provider: 'dev', subject: 'ada-2' }), null)
    t.equal(await store.findUser({ provider: 'other', subject: 'ada-1' }), null)
    t.strictSame(await store.links(randomUUID()), [])
    t.equal(await store.findCredential('ada@example.com'), null)
  })

  t.test('a user with a password has a credential', async t => {
    const { store, twin } = await open(t)
    const bob = localUser('bob@example.com')

    await store.createUser(bob)

    const { link, passwordHash, ...user } = bob
    t.strictSame(await twin.findCredential('bob@example.com'), { user, link: { ...link, userId: bob.userId }, passwordHash })
  })

  t.test('only a local account has a credential', async t => {
    const { store } = await open(t)
    await store.createUser(newUser({ link: link('dev', 'not-local@example.com'), passwordHash: HASH }))

    t.equal(await store.findCredential('not-local@example.com'), null)
  })

  t.test('a local account without a password is refused, and nothing of it is written', async t => {
    const { store, twin } = await open(t)
    const bob = newUser({ email: 'bob@example.com', link: link('local', 'bob@example.com') })
    await store.createUser(ADA)

    await t.rejects(store.createUser(bob), INVALID_REQUEST)
    await t.rejects(store.addLink(ADA.userId, identity('local', 'ada@example.com')), INVALID_REQUEST)

    t.equal(await twin.findUser({ userId: bob.userId }), null)
    t.strictSame(await twin.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
  })

  t.test('an e-mail that is not canonical is refused, and nothing of the user or the link is written', async t => {
    const { store, twin } = await open(t)
    await store.createUser(ADA)

    for (const email of ['Bob@example.com', ' bob@example.com', 'bob@exämple.com', 'bob', '']) {
      const local = localUser(email)
      const user = newUser({ email })
      await t.rejects(store.createUser(local), INVALID_EMAIL, `"${email}"`)
      await t.rejects(store.createUser({ ...local, email: 'bob@example.com' }), INVALID_EMAIL, 'in the link alone')
      await t.rejects(store.createUser(user), INVALID_EMAIL)
      await t.rejects(store.addLink(ADA.userId, identity('other', '1', verified(email))), INVALID_EMAIL)

      for (const { userId } of [local, user]) t.equal(await twin.findUser({ userId }), null)
    }
    t.strictSame(await twin.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
  })

  t.test('the credential is that of the local link, whatever the other links say', async t => {
    const { store } = await open(t)
    const bob = localUser('bob@example.com')
    const carol = { ...localUser('carol@example.com'), passwordHash: 'the hash of Carol' }
    for (const user of [bob, carol]) {
      await store.createUser(user)
      for (const provider of ['aaa', 'zzz']) await store.addLink(user.userId, identity(provider, user.link.subject))
    }

    const ofBob = await store.findCredential('bob@example.com')
    const ofCarol = await store.findCredential('carol@example.com')

    t.hasStrict(ofBob, { user: { userId: bob.userId }, link: { provider: 'local', subject: 'bob@example.com' }, passwordHash: HASH })
    t.hasStrict(ofCarol, { user: { userId: carol.userId }, link: { provider: 'local', subject: 'carol@example.com' }, passwordHash: 'the hash of Carol' })
  })

  t.test('a second user with an e-mail is refused, and nothing of him is written', async t => {
    const { store, twin } = await open(t)
    await store.createUser(ADA)
    const second = newUser({ email: 'ada@example.com', link: link('local', 'second@example.com'), passwordHash: HASH })

    t.equal(await twin.createUser(second), null)

    t.equal(await store.findUser({ userId: second.userId }), null)
    t.equal(await store.findUser({ provider: 'local', subject: 'second@example.com' }), null)
    t.equal(await store.findCredential('second@example.com'), null)
    t.strictSame(await store.links(second.userId), [])
    t.hasStrict(await store.findUser({ email: 'ada@example.com' }), { userId: ADA.userId, name: 'Ada' })
  })

  t.test('a second user with a link is refused, and nothing of him is written', async t => {
    const { store, twin } = await open(t)
    const first = localUser('bob@example.com')
    await store.createUser(first)
    const second = newUser({ email: 'free@example.com', link: { ...first.link, claims: { sub: 'second' } }, passwordHash: 'another hash' })

    t.equal(await twin.createUser(second), null)

    t.equal(await store.findUser({ userId: second.userId }), null)
    t.equal(await store.findUser({ email: 'free@example.com' }), null)
    t.strictSame(await store.links(second.userId), [])
    t.hasStrict(await store.findCredential('bob@example.com'), { user: { userId: first.userId }, link: first.link, passwordHash: HASH })
    t.ok(await store.createUser(newUser({ email: 'free@example.com' })), 'the e-mail is still free')
  })

  t.test('of many users made at once with one e-mail, one is made', async t => {
    const { store, twin } = await open(t)
    const rivals = Array.from({ length: 20 }, () => newUser({ email: 'ada@example.com' }))

    const made = await Promise.all(rivals.map((user, index) => (index % 2 === 0 ? store : twin).createUser(user)))

    const [winner, ...others] = made.filter(user => user !== null)
    t.strictSame(others, [])
    t.strictSame(await store.findUser({ email: 'ada@example.com' }), winner)
    const found = await Promise.all(rivals.map(({ link }) => store.findUser(link)))
    t.strictSame(found.filter(user => user !== null), [winner])
  })

  t.test('of many users made at once with one link, one is made', async t => {
    const { store, twin } = await open(t)
    const rivals = Array.from({ length: 20 }, () => newUser({ link: link('dev', 'ada-1') }))

    const made = await Promise.all(rivals.map((user, index) => (index % 2 === 0 ? store : twin).createUser(user)))

    const [winner, ...others] = made.filter(user => user !== null)
    t.strictSame(others, [])
    t.strictSame(await store.findUser({ provider: 'dev', subject: 'ada-1' }), winner)
    const found = await Promise.all(rivals.map(({ userId }) => store.findUser({ userId })))
    t.strictSame(found.filter(user => user !== null), [winner])
  })

  t.test('a sign-in replaces the identity claims of its link, and of no other', async t => {
    const { store, twin } = await open(t)
    const bob = newUser({ link: link('dev', 'bob-1') })
    await store.createUser(ADA)
    await store.createUser(bob)
    await store.addLink(ADA.userId, identity('other', 'ada-1'))
    const claimsOfLinks = async () => (await twin.links(ADA.userId)).map(({ claims }) => claims)

    await store.refreshIdentity(identity('dev', 'ada-1', { claims: { sub: 'ada-1', picture: 'https://id.example/ada.png' } }))
    t.strictSame(await claimsOfLinks(), [{ sub: 'ada-1', picture: 'https://id.example/ada.png' }, { sub: 'ada-1' }])

    await store.refreshIdentity(identity('other', 'ada-1', { claims: { sub: 'ada-1', locale: 'en' } }))
    t.strictSame(await claimsOfLinks(), [{ sub: 'ada-1', picture: 'https://id.example/ada.png' }, { sub: 'ada-1', locale: 'en' }])
    t.strictSame(await twin.links(bob.userId), [{ ...bob.link, userId: bob.userId }])
  })

  t.test('a sign-in of somebody unknown changes and makes nothing', async t => {
    const { store } = await open(t)
    await store.createUser(ADA)

    t.equal(await store.refreshIdentity(identity('dev', 'bob-1', { verifiedEmail: 'bob@example.com' })), null)
    t.equal(await store.refreshIdentity(identity('other', 'ada-1', { verifiedEmail: 'bob@example.com' })), null)

    t.equal(await store.findUser({ provider: 'dev', subject: 'bob-1' }), null)
    t.equal(await store.findUser({ email: 'bob@example.com' }), null)
    t.strictSame(await store.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
  })

  for (const { way, note } of WAYS_TO_NOTE) {
    t.test(`${way} takes the name that the provider gives now`, async t => {
      const { store, twin } = await open(t)
      await store.createUser(ADA)
      const bystander = newUser({ name: 'Bob' })
      await store.createUser(bystander)

      const noted = await note(store, { claims: { sub: 'x', name: 'Ada Lovelace' }, verifiedEmail: null })

      t.hasStrict(noted, { userId: ADA.userId, name: 'Ada Lovelace' })
      t.hasStrict(await twin.findUser({ userId: ADA.userId }), { name: 'Ada Lovelace' })
      t.hasStrict(await twin.findUser({ userId: bystander.userId }), { name: 'Bob' })
    })

    t.test(`${way} keeps the name when the provider gives none`, async t => {
      const { store, twin } = await open(t)
      await store.createUser(ADA)

      const noted = await note(store, { claims: { sub: 'x' }, verifiedEmail: null })

      t.hasStrict(noted, { name: 'Ada' })
      t.hasStrict(await twin.findUser({ userId: ADA.userId }), { name: 'Ada' })
    })

    t.test(`${way} keeps the authorization claims`, async t => {
      const { store, twin } = await open(t)
      await store.createUser(ADA)

      const noted = await note(store, { claims: { sub: 'x', role: 'guest' }, verifiedEmail: 'new@example.com' })

      t.strictSame(noted?.claims, { role: 'admin' })
      t.strictSame((await twin.findUser({ userId: ADA.userId }))?.claims, { role: 'admin' })
    })

    t.test(`${way} gives a verified e-mail to a user who has none, whether or not it was verified before`, async t => {
      for (const email of ['ada@example.com', 'new@example.com']) {
        const { store, twin } = await open(t)
        await store.createUser({ ...ADA, email: null, emailVerified: false })

        const noted = await note(store, verified(email))

        t.hasStrict(noted, { userId: ADA.userId, email, emailVerified: true })
        t.strictSame(await twin.findUser({ email }), noted)
      }
    })

    t.test(`${way} makes the user's own unverified e-mail a verified one`, async t => {
      const { store, twin } = await open(t)
      await store.createUser({ ...ADA, emailVerified: false })

      const noted = await note(store, verified('ada@example.com'))

      t.hasStrict(noted, { email: 'ada@example.com', emailVerified: true })
      t.strictSame(await twin.findUser({ email: 'ada@example.com' }), noted)
    })

    t.test(`${way} leaves the e-mail as it is when the provider verified none`, async t => {
      const { store, twin } = await open(t)
      await store.createUser({ ...ADA, emailVerified: false })

      const noted = await note(store, { claims: { sub: 'x', email: 'new@example.com', email_verified: true }, verifiedEmail: null })

      t.hasStrict(noted, { email: 'ada@example.com', emailVerified: false })
      t.hasStrict(await twin.findUser({ email: 'ada@example.com' }), { userId: ADA.userId, emailVerified: false })
      t.equal(await twin.findUser({ email: 'new@example.com' }), null)
    })

    t.test(`${way} does not take another user's e-mail, and is noted all the same`, async t => {
      for (const email of ['ada@example.com', null]) {
        const { store, twin } = await open(t)
        await store.createUser({ ...ADA, email, emailVerified: false })
        const bob = newUser({ email: 'bob@example.com', emailVerified: false })
        await store.createUser(bob)

        const noted = await note(store, verified('bob@example.com', { name: 'Ada Lovelace' }))

        t.hasStrict(noted, { email, emailVerified: false, name: 'Ada Lovelace' })
        t.hasStrict(await twin.findUser({ email: 'bob@example.com' }), { userId: bob.userId, emailVerified: false, name: bob.name })
        t.ok((await twin.links(ADA.userId)).some(({ claims }) => claims.email === 'bob@example.com'), 'what the provider says is on the link')
      }
    })
  }

  for (const [reported, news] of NO_LONGER_VOUCHED) {
    t.test(`an e-mail is verified until the one link that vouches for it reports ${reported}`, async t => {
      const { store, twin } = await open(t)
      await store.createUser(ADA)
      await store.createUser(newUser({ email: 'taken@example.com' }))

      const noted = await store.refreshIdentity(identity('dev', 'ada-1', news))

      t.hasStrict(noted, { email: 'ada@example.com', emailVerified: false })
      t.strictSame(await twin.findUser({ email: 'ada@example.com' }), noted)
      t.hasStrict(await store.refreshIdentity(identity('dev', 'ada-1', verified('ada@example.com'))), { email: 'ada@example.com', emailVerified: true }, 'until it vouches again')
    })

    t.test(`an e-mail that a second link vouches for stays verified when the first one reports ${reported}, and no longer`, async t => {
      const { store, twin } = await open(t)
      await store.createUser(ADA)
      await store.createUser(newUser({ email: 'taken@example.com' }))
      await store.addLink(ADA.userId, identity('other', 'ada-of-other', verified('ada@example.com')))

      t.hasStrict(await store.refreshIdentity(identity('dev', 'ada-1', news)), { email: 'ada@example.com', emailVerified: true })
      t.hasStrict(await twin.refreshIdentity(identity('other', 'ada-of-other', news)), { email: 'ada@example.com', emailVerified: false })
    })

    t.test(`a link that does not vouch for the e-mail changes nothing when it reports ${reported}`, async t => {
      const { store, twin } = await open(t)
      await store.createUser(ADA)
      await store.createUser(newUser({ email: 'taken@example.com' }))

      t.hasStrict(await store.addLink(ADA.userId, identity('other', 'ada-of-other', news)), { email: 'ada@example.com', emailVerified: true })
      t.hasStrict(await twin.refreshIdentity(identity('other', 'ada-of-other', news)), { email: 'ada@example.com', emailVerified: true })
    })
  }

  t.test('an e-mail is verified until the last link that vouches for it is removed', async t => {
    const { store, twin } = await open(t)
    await store.createUser(ADA)
    await store.addLink(ADA.userId, identity('other', 'ada-of-other', verified('ada@example.com')))
    await store.addLink(ADA.userId, identity('third', 'ada-of-third', verified('ada@third.example')))
    const isVerified = async () => (await twin.findUser({ email: 'ada@example.com' }))?.emailVerified

    await store.removeLink(ADA.userId, 'dev')
    t.equal(await isVerified(), true)
    await store.removeLink(ADA.userId, 'nothing')
    t.equal(await isVerified(), true)
    await store.removeLink(ADA.userId, 'other')
    t.equal(await isVerified(), false)
  })

  t.test('who vouched for an e-mail does not vouch for the next one', async t => {
    const { store } = await open(t)
    await store.createUser(ADA)
    await store.addLink(ADA.userId, identity('other', 'ada-of-other', verified('ada@example.com')))

    await store.refreshIdentity(identity('other', 'ada-of-other', verified('new@example.com')))
    await store.removeLink(ADA.userId, 'other')

    t.hasStrict(await store.findUser({ email: 'new@example.com' }), { userId: ADA.userId, emailVerified: false })
  })

  t.test('of links that stop to vouch at once, the last one ends the verification', async t => {
    const { store, twin } = await open(t)
    await store.createUser(ADA)
    const providers = ['dev', 'a', 'b', 'c']
    for (const provider of providers) await store.addLink(ADA.userId, identity(provider, 'ada-1', verified('ada@example.com')))

    await Promise.all(providers.map((provider, index) => (index % 2 === 0 ? store : twin).refreshIdentity(identity(provider, 'ada-1'))))

    t.hasStrict(await store.findUser({ userId: ADA.userId }), { email: 'ada@example.com', emailVerified: false })
  })

  t.test('a second way in with another e-mail leaves the one that the user has, verified or not', async t => {
    for (const emailVerified of [true, false]) {
      const { store, twin } = await open(t)
      await store.createUser({ ...ADA, emailVerified })

      const linked = await store.addLink(ADA.userId, identity('other', 'ada-of-other', verified('ada@other.example')))

      t.hasStrict(linked, { email: 'ada@example.com', emailVerified })
      t.strictSame(await twin.findUser({ email: 'ada@example.com' }), linked)
      t.equal(await twin.findUser({ email: 'ada@other.example' }), null)
    }
  })

  t.test('two ways in with e-mails of their own, used in turn, leave the one that the user has', async t => {
    const { store, twin } = await open(t)
    const atDev = identity('dev', 'ada-1', verified('ada@example.com'))
    const atOther = identity('other', 'ada-of-other', verified('ada@other.example'))
    await store.createUser(ADA)
    await store.addLink(ADA.userId, atOther)

    for (const signIn of [atOther, atDev, atOther, atDev]) t.hasStrict(await store.refreshIdentity(signIn), { email: 'ada@example.com', emailVerified: true })

    t.hasStrict(await twin.findUser({ email: 'ada@example.com' }), { userId: ADA.userId })
    t.equal(await twin.findUser({ email: 'ada@other.example' }), null)
  })

  t.test('an e-mail that changes at one of two providers is taken over, and the other one leaves it', async t => {
    const { store, twin } = await open(t)
    const atDev = identity('dev', 'ada-1', verified('ada@example.com'))
    const changed = identity('other', 'ada-of-other', verified('new@other.example'))
    await store.createUser(ADA)
    await store.addLink(ADA.userId, identity('other', 'ada-of-other', verified('ada@other.example')))

    for (const signIn of [changed, atDev, changed, atDev]) t.hasStrict(await store.refreshIdentity(signIn), { email: 'new@other.example', emailVerified: true })

    t.hasStrict(await twin.findUser({ email: 'new@other.example' }), { userId: ADA.userId })
  })

  for (const [change, before, now] of CHANGES_OF_EMAIL) {
    t.test(`a sign-in with an e-mail that has changed, ${change}, takes it in place of the old one, which is then free`, async t => {
      const { store, twin } = await open(t)
      await store.createUser({ ...ADA, link: { ...ADA.link, claims: { sub: 'ada-1', ...before } } })

      const noted = await store.refreshIdentity({ ...ADA.link, claims: { sub: 'ada-1', ...now }, verifiedEmail: 'new@example.com' })

      t.hasStrict(noted, { userId: ADA.userId, email: 'new@example.com', emailVerified: true })
      t.strictSame(await twin.findUser({ email: 'new@example.com' }), noted)
      t.equal(await twin.findUser({ email: 'ada@example.com' }), null)
      t.ok(await twin.createUser(newUser({ email: 'ada@example.com' })))
    })
  }

  t.test('a sign-in with a verified e-mail that has not changed leaves the one that the user has, whatever else has', async t => {
    for (const email of [{ email: 'new@example.com' }, {}]) {
      const { store, twin } = await open(t)
      await store.createUser({ ...ADA, link: { ...ADA.link, claims: { sub: 'ada-1', email_verified: false, ...email } } })

      const noted = await store.refreshIdentity({ ...ADA.link, claims: { sub: 'x', email_verified: true, ...email }, verifiedEmail: 'new@example.com' })

      t.hasStrict(noted, { email: 'ada@example.com', emailVerified: false })
      t.strictSame(await twin.findUser({ email: 'ada@example.com' }), noted)
      t.equal(await twin.findUser({ email: 'new@example.com' }), null)
    }
  })

  t.test('of changes of an e-mail that are noted at once, the last one counts', async t => {
    const { store, twin } = await open(t)
    await store.createUser(ADA)

    for (let round = 0; round < 20; round++) {
      const changes = Array.from({ length: 10 }, (_, index) => identity('dev', 'ada-1', verified(`ada-${index % 2}@example.com`)))

      await Promise.all(changes.map((change, index) => (index % 3 === 0 ? store : twin).refreshIdentity(change)))

      const [link] = await store.links(ADA.userId)
      t.equal((await store.findUser({ userId: ADA.userId }))?.email, link?.claims.email)
    }
  })

  t.test('of two users who come by one verified e-mail at once, one gets it', async t => {
    const { store, twin } = await open(t)
    await store.createUser(ADA)
    await store.createUser(newUser({ email: 'bob@example.com', link: link('dev', 'bob-1') }))

    const noted = await Promise.all([
      store.refreshIdentity(identity('dev', 'ada-1', verified('shared@example.com'))),
      twin.refreshIdentity(identity('dev', 'bob-1', verified('shared@example.com')))
    ])

    const owners = noted.filter(user => user?.email === 'shared@example.com')
    t.equal(owners.length, 1)
    t.strictSame(await store.findUser({ email: 'shared@example.com' }), owners[0])
  })

  t.test('a second way in leads to the same user', async t => {
    const { store, twin } = await open(t)
    await store.createUser(ADA)

    const linked = await store.addLink(ADA.userId, identity('other', 'ada-of-other'))

    t.strictSame(linked, await twin.findUser({ userId: ADA.userId }))
    t.strictSame(await twin.findUser({ provider: 'other', subject: 'ada-of-other' }), linked)
    t.strictSame(await twin.findUser({ provider: 'dev', subject: 'ada-1' }), linked)
    t.strictSame(await twin.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }, { ...link('other', 'ada-of-other'), userId: ADA.userId }])
  })

  t.test('an unknown user gets no link', async t => {
    const { store } = await open(t)
    const nobody = randomUUID()

    t.equal(await store.addLink(nobody, identity('dev', 'ada-1')), null)

    t.equal(await store.findUser({ provider: 'dev', subject: 'ada-1' }), null)
    t.strictSame(await store.links(nobody), [])
    t.ok(await store.createUser(ADA), 'the link is still free')
  })

  t.test("somebody's link, another's or one's own, is not added, and nothing is noted", async t => {
    const { store, twin } = await open(t)
    const bob = newUser({ link: link('other', 'bob-1') })
    await store.createUser(ADA)
    await store.createUser(bob)
    const news = { claims: { sub: 'x', name: 'Mallory' }, verifiedEmail: 'mallory@example.com' }

    t.equal(await store.addLink(ADA.userId, identity('other', 'bob-1', news)), null)
    t.equal(await store.addLink(ADA.userId, identity('dev', 'ada-1', news)), null)

    t.hasStrict(await twin.findUser({ userId: ADA.userId }), { name: 'Ada', email: 'ada@example.com' })
    t.strictSame(await twin.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
    t.strictSame(await twin.links(bob.userId), [{ ...bob.link, userId: bob.userId }])
  })

  t.test('a second subject at one provider is not added, and nothing is noted', async t => {
    const { store, twin } = await open(t)
    await store.createUser(ADA)

    t.equal(await store.addLink(ADA.userId, identity('dev', 'ada-2', { claims: { sub: 'x', name: 'Mallory' }, verifiedEmail: 'mallory@example.com' })), null)

    t.hasStrict(await twin.findUser({ userId: ADA.userId }), { name: 'Ada', email: 'ada@example.com' })
    t.strictSame(await twin.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
    t.equal(await twin.findUser({ provider: 'dev', subject: 'ada-2' }), null)
  })

  t.test('of many users who add one link at once, one gets it', async t => {
    const { store, twin } = await open(t)
    const rivals = Array.from({ length: 10 }, () => newUser())
    await Promise.all(rivals.map(user => store.createUser(user)))

    const linked = await Promise.all(rivals.map(({ userId }, index) => (index % 2 === 0 ? store : twin).addLink(userId, identity('other', 'shared'))))

    const [winner, ...others] = linked.filter(user => user !== null)
    t.strictSame(others, [])
    t.strictSame(await store.findUser({ provider: 'other', subject: 'shared' }), winner)
  })

  t.test('of many subjects at one provider added to one user at once, one is added', async t => {
    const { store, twin } = await open(t)
    await store.createUser(ADA)
    const subjects = Array.from({ length: 10 }, (_, index) => `subject-${index}`)

    const linked = await Promise.all(subjects.map((subject, index) => (index % 2 === 0 ? store : twin).addLink(ADA.userId, identity('other', subject))))

    t.equal(linked.filter(user => user !== null).length, 1)
    t.strictSame((await store.links(ADA.userId)).map(({ provider }) => provider), ['dev', 'other'])
  })

  t.test('links are ordered by the code points of the provider', async t => {
    const { store } = await open(t)
    await store.createUser(ADA)
    await store.createUser(newUser({ link: link('somebody-else', '1') }))

    for (const provider of ['b', 'ab', 'later', 'a1', 'a-b', 'a']) await store.addLink(ADA.userId, identity(provider, '1'))

    t.strictSame((await store.links(ADA.userId)).map(({ provider }) => provider), ['a', 'a-b', 'a1', 'ab', 'b', 'dev', 'later'])
  })

  t.test('a way in can be taken away: the others are left, in order, and its subject signs nobody in', async t => {
    const { store, twin } = await open(t)
    await store.createUser(ADA)
    for (const provider of ['other', 'a', 'third']) await store.addLink(ADA.userId, identity(provider, `ada of ${provider}`))

    const left = await store.removeLink(ADA.userId, 'other')

    t.strictSame(left, [
      { ...link('a', 'ada of a'), userId: ADA.userId },
      { ...ADA.link, userId: ADA.userId },
      { ...link('third', 'ada of third'), userId: ADA.userId }
    ])
    t.strictSame(await twin.links(ADA.userId), left)
    t.equal(await twin.findUser({ provider: 'other', subject: 'ada of other' }), null)
    t.equal(await twin.refreshIdentity(identity('other', 'ada of other')), null)
    t.hasStrict(await twin.findUser({ provider: 'dev', subject: 'ada-1' }), { userId: ADA.userId })
  })

  t.test('a subject that was taken away is free, for another user and for the same one', async t => {
    const { store, twin } = await open(t)
    const bob = newUser()
    await store.createUser(ADA)
    await store.createUser(bob)
    await store.addLink(ADA.userId, identity('other', '1'))

    await store.removeLink(ADA.userId, 'other')
    t.hasStrict(await twin.addLink(bob.userId, identity('other', '1')), { userId: bob.userId })
    await store.removeLink(bob.userId, 'other')
    t.hasStrict(await twin.addLink(ADA.userId, identity('other', '1')), { userId: ADA.userId })
    await store.removeLink(ADA.userId, 'other')

    t.ok(await twin.createUser(newUser({ link: link('other', '1') })))
  })

  t.test('with the local way in the password goes, and only that of this user', async t => {
    const { store, twin } = await open(t)
    const bob = localUser('bob@example.com')
    const carol = localUser('carol@example.com')
    for (const user of [bob, carol]) {
      await store.createUser(user)
      await store.addLink(user.userId, identity('dev', user.link.subject))
    }

    await store.removeLink(bob.userId, 'local')

    t.equal(await twin.findCredential('bob@example.com'), null)
    t.hasStrict(await twin.findCredential('carol@example.com'), { user: { userId: carol.userId }, passwordHash: HASH })
  })

  t.test('without another way in the password stays', async t => {
    const { store, twin } = await open(t)
    const bob = localUser('bob@example.com')
    await store.createUser(bob)
    await store.addLink(bob.userId, identity('dev', 'bob-1'))

    await store.removeLink(bob.userId, 'dev')

    t.hasStrict(await twin.findCredential('bob@example.com'), { user: { userId: bob.userId }, passwordHash: HASH })
  })

  t.test('who the user is and what he may do stays when a way in is taken away', async t => {
    const { store, twin } = await open(t)
    await store.createUser({ ...ADA, email: null, emailVerified: false })
    await store.addLink(ADA.userId, identity('other', 'ada-of-other', verified('ada@other.example', { name: 'Ada Lovelace' })))
    const before = await twin.findUser({ userId: ADA.userId })

    await store.removeLink(ADA.userId, 'other')

    t.strictSame(before, { userId: ADA.userId, email: 'ada@other.example', emailVerified: true, name: 'Ada Lovelace', claims: { role: 'admin' } })
    const after = { ...before, emailVerified: false }
    t.strictSame(await twin.findUser({ userId: ADA.userId }), after)
    t.strictSame(await twin.findUser({ email: 'ada@other.example' }), after)
  })

  t.test('a way in that the user does not have is passed over', async t => {
    const { store, twin } = await open(t)
    const bob = localUser('bob@example.com')
    await store.createUser(ADA)
    await store.createUser(bob)
    await store.addLink(bob.userId, identity('other', '1'))
    await store.addLink(bob.userId, identity('third', '1'))
    const links = await store.links(bob.userId)

    for (const provider of ['dev', 'LOCAL', 'oth', 'other ', '%', '']) t.strictSame(await store.removeLink(bob.userId, provider), links, `"${provider}"`)
    t.strictSame(await store.removeLink(ADA.userId, 'local'), [{ ...ADA.link, userId: ADA.userId }], 'even of a user who has one way in only')

    t.strictSame(await twin.links(bob.userId), links)
    t.strictSame(await twin.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
    t.hasStrict(await twin.findCredential('bob@example.com'), { passwordHash: HASH })
  })

  t.test('the last way in is never taken away', async t => {
    const { store, twin } = await open(t)
    const bob = localUser('bob@example.com')
    await store.createUser(ADA)
    await store.createUser(bob)

    await t.rejects(store.removeLink(ADA.userId, 'dev'), LAST_LINK)
    await t.rejects(store.removeLink(bob.userId, 'local'), LAST_LINK)

    t.strictSame(await twin.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
    t.hasStrict(await twin.findUser(ADA.link), { userId: ADA.userId })
    t.hasStrict(await twin.findCredential('bob@example.com'), { user: { userId: bob.userId }, link: bob.link, passwordHash: HASH })
  })

  t.test('of several ways in that are taken away at once, one stays', async t => {
    const { store, twin } = await open(t)
    const rounds = Array.from({ length: 20 }, (_, round) => `bob-${round}@example.com`)

    for (const email of rounds) {
      const bob = localUser(email)
      await store.createUser(bob)
      await store.addLink(bob.userId, identity('dev', email))

      const removed = await Promise.allSettled([store.removeLink(bob.userId, 'dev'), twin.removeLink(bob.userId, 'local')])

      const left = await twin.links(bob.userId)
      t.equal(left.length, 1, email)
      t.strictSame(valuesOf(removed), [left])
      t.match(reasonsOf(removed), [LAST_LINK])
      t.equal((await twin.findCredential(email))?.passwordHash, left[0]?.provider === 'local' ? HASH : undefined)
    }
  })

  t.test('of many ways in that are taken away at once, one stays', async t => {
    const { store, twin } = await open(t)
    const providers = ['a', 'b', 'c', 'dev', 'e', 'f']
    await store.createUser(ADA)
    for (const provider of providers) await store.addLink(ADA.userId, identity(provider, '1'))

    const removed = await Promise.allSettled([...providers, ...providers].map((provider, index) => (index % 2 === 0 ? store : twin).removeLink(ADA.userId, provider)))

    t.equal((await store.links(ADA.userId)).length, 1)
    for (const reason of reasonsOf(removed)) t.match(reason, LAST_LINK)
  })

  t.test("another user's way in is left alone, at the same provider too", async t => {
    const { store, twin } = await open(t)
    const bob = newUser({ link: link('dev', 'bob-1') })
    await store.createUser(ADA)
    await store.createUser(bob)
    await store.addLink(ADA.userId, identity('other', 'ada-1'))
    await store.addLink(bob.userId, identity('other', 'bob-1'))

    await store.removeLink(ADA.userId, 'other')

    t.strictSame((await twin.links(bob.userId)).map(({ provider, subject }) => [provider, subject]), [['dev', 'bob-1'], ['other', 'bob-1']])
    t.hasStrict(await twin.findUser({ provider: 'other', subject: 'bob-1' }), { userId: bob.userId })
  })

  t.test('a deleted user is gone with his ways in and his password', async t => {
    const { store, twin } = await open(t)
    const bob = localUser('bob@example.com')
    await store.createUser(bob)
    await store.addLink(bob.userId, identity('dev', 'bob-1'))

    t.equal(await store.deleteUser(bob.userId), undefined)

    await isGone(t, twin, bob)
    t.equal(await twin.findUser({ provider: 'dev', subject: 'bob-1' }), null)
    t.equal(await twin.refreshIdentity(identity('dev', 'bob-1')), null)
    t.equal(await twin.addLink(bob.userId, identity('other', 'bob-1')), null)
    await t.rejects(twin.grant(bob.userId, { role: 'admin' }), UNKNOWN_USER)
    await t.rejects(twin.removeLink(bob.userId, 'dev'), UNKNOWN_USER)
  })

  t.test('id, e-mail and ways in of a deleted user are free, and nothing of him comes back', async t => {
    const { store, twin } = await open(t)
    const bob = { ...localUser('bob@example.com'), claims: { role: 'admin' } }
    await store.createUser(bob)
    await store.addLink(bob.userId, identity('dev', 'bob-1'))

    await store.deleteUser(bob.userId)
    const again = await twin.createUser({ ...bob, name: null, claims: {}, passwordHash: 'the second hash' })

    t.strictSame(again, { userId: bob.userId, email: 'bob@example.com', emailVerified: false, name: null, claims: {} })
    t.strictSame(await store.links(bob.userId), [{ ...bob.link, userId: bob.userId }])
    t.hasStrict(await store.findCredential('bob@example.com'), { passwordHash: 'the second hash' })
    t.ok(await store.createUser(newUser({ link: link('dev', 'bob-1') })), 'by another user too')
  })

  t.test('an e-mail that a deleted user had is free, also the one that he came by later', async t => {
    const { store, twin } = await open(t)
    await store.createUser(ADA)
    await store.refreshIdentity(identity('dev', 'ada-1', verified('new@example.com')))

    await store.deleteUser(ADA.userId)

    t.equal(await twin.findUser({ email: 'new@example.com' }), null)
    for (const email of ['new@example.com', 'ada@example.com']) t.ok(await twin.createUser(newUser({ email })), email)
  })

  t.test('a user is deleted, the others are not', async t => {
    const { store, twin } = await open(t)
    const bob = localUser('bob@example.com')
    const nameless = newUser({ email: null, name: null })
    await store.createUser(ADA)
    for (const user of [bob, nameless]) {
      await store.createUser(user)
      await store.addLink(user.userId, identity('other', user.userId))
    }

    await store.deleteUser(ADA.userId)
    await store.deleteUser(nameless.userId)

    t.hasStrict(await twin.findCredential('bob@example.com'), { user: { userId: bob.userId, name: bob.name }, passwordHash: HASH })
    t.strictSame((await twin.links(bob.userId)).map(({ provider }) => provider), ['local', 'other'])
  })

  t.test('nobody is deleted twice', async t => {
    const { store, twin } = await open(t)
    await store.createUser(ADA)

    await store.deleteUser(ADA.userId)

    await t.rejects(store.deleteUser(ADA.userId), UNKNOWN_USER)
    await t.rejects(twin.deleteUser(ADA.userId), UNKNOWN_USER)
  })

  t.test('of many who delete a user at once, one does', async t => {
    const { store, twin } = await open(t)
    await store.createUser(ADA)

    const deleted = await Promise.allSettled(Array.from({ length: 10 }, (_, index) => (index % 2 === 0 ? store : twin).deleteUser(ADA.userId)))

    t.equal(valuesOf(deleted).length, 1)
    for (const reason of reasonsOf(deleted)) t.match(reason, UNKNOWN_USER)
  })

  t.test('nothing is left of a user, whatever was done with him while he was deleted', async t => {
    const { store, twin } = await open(t)

    for (let round = 0; round < 21; round++) {
      const bob = localUser(`bob-${round}@example.com`)
      const work: Array<(store: AuthStore) => Promise<unknown>> = [
        store => store.deleteUser(bob.userId),
        store => store.grant(bob.userId, { tier: 1 }),
        store => store.refreshIdentity({ ...bob.link, ...verified(`new-${round}@example.com`, { name: 'Bob' }) }),
        store => store.addLink(bob.userId, identity('other', `bob-${round}`)),
        store => store.removeLink(bob.userId, 'dev'),
        store => store.replacePasswordHash(bob.userId, HASH, 'another hash'),
        store => store.withdraw(bob.userId, ['role'])
      ]
      const first = round % work.length
      await store.createUser(bob)
      await store.addLink(bob.userId, identity('dev', `bob-${round}`))

      const done = await Promise.allSettled([...work.slice(first), ...work.slice(0, first)].map((call, index) => call(index % 2 === 0 ? store : twin)))

      for (const reason of reasonsOf(done)) t.match(reason, UNKNOWN_USER)
      await isGone(t, store, bob)
      t.equal(await store.findUser({ email: `new-${round}@example.com` }), null)
      t.ok(await store.createUser(bob), 'his id, e-mail, subject and password are not in the way')
      for (const provider of ['dev', 'other']) t.ok(await store.addLink(bob.userId, identity(provider, `bob-${round}`)), `nor is his subject at ${provider}`)
    }
  })

  t.test('a user may be new, and is so until he is admitted, once', async t => {
    const { store, twin } = await open(t)
    const { link: _link, ...ada } = ADA
    const bob = localUser('bob@example.com')
    t.strictSame(await store.createUser({ ...ADA, isNew: true }), { ...ada, isNew: true })
    await store.createUser({ ...bob, isNew: true })
    for (const user of [await twin.findUser({ userId: ADA.userId }), await twin.refreshIdentity(identity('dev', 'ada-1', verified('ada@example.com', { name: 'Ada' }))), await twin.addLink(ADA.userId, identity('other', 'ada-2'))]) t.hasStrict(user, { isNew: true })
    t.hasStrict((await twin.findCredential('bob@example.com'))?.user, { isNew: true })

    t.equal(await store.admitUser(ADA.userId), true)

    t.strictSame(await twin.findUser({ userId: ADA.userId }), ada)
    t.equal(await twin.admitUser(ADA.userId), false)
    t.hasStrict(await twin.findUser({ userId: bob.userId }), { isNew: true }, 'another one still is')
  })

  t.test('of many who admit a user at once, one does', async t => {
    const { store, twin } = await open(t)
    await store.createUser({ ...ADA, isNew: true })

    const admitted = await Promise.all(Array.from({ length: 10 }, (_, index) => (index % 2 === 0 ? store : twin).admitUser(ADA.userId)))

    t.equal(admitted.filter(isFirst => isFirst).length, 1)
  })

  t.test('who is new can be deleted as such, with all that is his; who is not new stays', async t => {
    const { store, twin } = await open(t)
    const bob = localUser('bob@example.com')
    await store.createUser(ADA)
    await store.createUser({ ...bob, isNew: true })
    await store.addLink(bob.userId, identity('other', 'bob-1'))

    for (const id of [ADA.userId, bob.userId, randomUUID(), ...NO_USER_IDS]) t.equal(await store.deleteNewUser(id), undefined)

    t.hasStrict(await twin.findUser({ userId: ADA.userId }), { name: 'Ada' })
    t.equal((await twin.links(ADA.userId)).length, 1)
    await isGone(t, twin, bob)
    t.equal(await twin.findUser({ provider: 'other', subject: 'bob-1' }), null)
  })

  t.test('a new user is admitted or deleted, not both', async t => {
    const { store, twin } = await open(t)

    for (let round = 0; round < 20; round++) {
      const bob = localUser(`bob-${round}@example.com`)
      await store.createUser({ ...bob, isNew: true })
      const both = [() => store.admitUser(bob.userId), () => twin.deleteNewUser(bob.userId)]

      const [admitted, deleted] = round % 2 === 0 ? both : both.toReversed()
      const outcomes = await Promise.all([admitted?.(), deleted?.()])

      const { isNew = false } = await twin.findUser({ userId: bob.userId }) ?? {}
      t.equal(isNew, false)
      t.equal(await twin.findUser({ userId: bob.userId }) !== null, outcomes.includes(true), 'he is there if he was admitted')
    }
  })

  t.test('who is unknown is not admitted', async t => {
    const { store } = await open(t)

    for (const nobody of [randomUUID(), ...NO_USER_IDS]) t.equal(await store.admitUser(nobody), false, JSON.stringify(nobody))
  })

  t.test('who is unknown loses no way in and is not deleted', async t => {
    const { store, twin } = await open(t)
    await store.createUser(ADA)
    await store.addLink(ADA.userId, identity('other', '1'))

    for (const nobody of [randomUUID(), ...NO_USER_IDS]) {
      await t.rejects(store.removeLink(nobody, 'dev'), UNKNOWN_USER, JSON.stringify(nobody))
      await t.rejects(store.deleteUser(nobody), UNKNOWN_USER, JSON.stringify(nobody))
    }

    t.hasStrict(await twin.findUser({ userId: ADA.userId }), { name: 'Ada' })
    t.equal((await twin.links(ADA.userId)).length, 2)
  })

  t.test('what cannot be the id of a user is the id of nobody', async t => {
    const { store, twin } = await open(t)
    const ada = { ...ADA, link: link('local', 'ada@example.com'), passwordHash: HASH }
    await store.createUser(ada)

    for (const id of NO_USER_IDS) {
      t.equal(await store.findUser({ userId: id }), null, JSON.stringify(id))
      t.strictSame(await store.links(id), [])
      t.equal(await store.addLink(id, identity('other', '1')), null)
      await t.rejects(store.grant(id, { role: 'member' }), UNKNOWN_USER)
      await t.rejects(store.withdraw(id, ['role']), UNKNOWN_USER)
      t.equal(await store.replacePasswordHash(id, HASH, 'another hash'), undefined)
    }

    const { link: _link, passwordHash, ...user } = ada
    t.strictSame(await twin.findCredential('ada@example.com'), { user, link: { ...ada.link, userId: ADA.userId }, passwordHash })
    t.equal(await twin.findUser({ provider: 'other', subject: '1' }), null)
  })

  t.test('a password hash is replaced if it is still the one that was read', async t => {
    const { store, twin } = await open(t)
    const bob = localUser('bob@example.com')
    await store.createUser(bob)

    await store.replacePasswordHash(bob.userId, HASH, 'the second hash')
    t.hasStrict(await twin.findCredential('bob@example.com'), { passwordHash: 'the second hash' })

    await store.replacePasswordHash(bob.userId, HASH, 'the third hash')
    t.hasStrict(await twin.findCredential('bob@example.com'), { passwordHash: 'the second hash' })
  })

  t.test("another user's equal password hash is not replaced, and an unknown user has none", async t => {
    const { store } = await open(t)
    const bob = localUser('bob@example.com')
    await store.createUser(bob)
    await store.createUser(localUser('carol@example.com'))

    await store.replacePasswordHash(bob.userId, HASH, 'another hash')
    await store.replacePasswordHash(randomUUID(), HASH, 'another hash')

    t.hasStrict(await store.findCredential('bob@example.com'), { passwordHash: 'another hash' })
    t.hasStrict(await store.findCredential('carol@example.com'), { passwordHash: HASH })
  })

  t.test('no password hash is made for a user who has none any more', async t => {
    const { store } = await open(t)
    const bob = localUser('bob@example.com')
    await store.createUser(bob)
    await store.addLink(bob.userId, identity('dev', 'bob-1'))
    await store.removeLink(bob.userId, 'local')

    await store.replacePasswordHash(bob.userId, HASH, 'another hash')

    t.equal(await store.findCredential('bob@example.com'), null)
  })

  t.test('a grant is merged in name by name: what it names is replaced whole, the rest is kept', async t => {
    const { store, twin } = await open(t)
    await store.createUser({ ...ADA, claims: { role: 'member', limits: { a: 1, b: 2 } } })

    const all = await store.grant(ADA.userId, { limits: { c: 3 }, tier: null })

    t.strictSame(all, { role: 'member', limits: { c: 3 }, tier: null })
    t.strictSame((await twin.findUser({ userId: ADA.userId }))?.claims, all)
  })

  t.test('a grant is for one user', async t => {
    const { store } = await open(t)
    const bob = newUser({ claims: { role: 'member' } })
    await store.createUser(ADA)
    await store.createUser(bob)

    await store.grant(bob.userId, { role: 'editor', tier: 1 })
    await store.withdraw(bob.userId, ['role'])

    t.strictSame((await store.findUser({ userId: ADA.userId }))?.claims, { role: 'admin' })
    t.strictSame((await store.findUser({ userId: bob.userId }))?.claims, { tier: 1 })
  })

  t.test('withdrawing takes claims away by name and passes over names that are not there', async t => {
    const { store, twin } = await open(t)
    await store.createUser({ ...ADA, claims: { role: 'member', tier: 1, flags: { role: true } } })

    const left = await store.withdraw(ADA.userId, ['tier', 'role', 'role', 'nothing'])

    t.strictSame(left, { flags: { role: true } })
    t.strictSame((await twin.findUser({ userId: ADA.userId }))?.claims, left)
    t.strictSame(await store.withdraw(ADA.userId, []), left)
  })

  t.test('claims can have odd names', async t => {
    const { store } = await open(t)
    await store.createUser({ ...ADA, claims: {} })
    const names = ['', ' ', 'a.b', '$.role', "it's", '"quoted"', '{a,b}', '[0]', '0', 'a\\b', 'naïve', 'nai\u0308ve', '😀', 'https://app.example/role', 'toString']
    const claims = Object.fromEntries(names.map((name, index) => [name, index]))

    t.strictSame(await store.grant(ADA.userId, claims), claims)
    t.strictSame((await store.findUser({ userId: ADA.userId }))?.claims, claims)
    for (const name of names) t.notOk(Object.hasOwn(await store.withdraw(ADA.userId, [name]), name), name)
    t.strictSame((await store.findUser({ userId: ADA.userId }))?.claims, {})
  })

  t.test('grants and withdrawals made at once all count', async t => {
    const { store, twin } = await open(t)
    const names = Array.from({ length: 20 }, (_, index) => `claim-${index}`)
    await store.createUser({ ...ADA, claims: { old: 1, older: 2 } })

    await Promise.all([
      ...names.map((name, index) => (index % 2 === 0 ? store : twin).grant(ADA.userId, { [name]: index })),
      store.withdraw(ADA.userId, ['old']),
      twin.withdraw(ADA.userId, ['older']),
      store.refreshIdentity(identity('dev', 'ada-1', verified('new@example.com', { name: 'Ada Lovelace' })))
    ])

    t.strictSame(await store.findUser({ userId: ADA.userId }), {
      userId: ADA.userId,
      email: 'new@example.com',
      emailVerified: true,
      name: 'Ada Lovelace',
      claims: Object.fromEntries(names.map((name, index) => [name, index]))
    })
  })

  t.test('claims of an unknown user are neither granted nor withdrawn', async t => {
    const { store } = await open(t)
    const nobody = randomUUID()

    await t.rejects(store.grant(nobody, { role: 'admin' }), UNKNOWN_USER)
    await t.rejects(store.withdraw(nobody, ['role']), UNKNOWN_USER)

    t.equal(await store.findUser({ userId: nobody }), null)
  })

  t.test('what is handed in can be changed afterwards and changes nothing', async t => {
    const { store } = await open(t)
    const user = { ...localUser('bob@example.com'), claims: { list: ['a', { deep: ['b'] }] } }
    const sameUser = structuredClone(user)
    const refreshed = identity('local', 'bob@example.com', { claims: { sub: 'bob', list: ['b'] } })
    const added = identity('other', 'bob', { claims: { sub: 'bob', list: ['c'] } })
    const granted = { more: ['d'] }
    const withdrawn = ['nothing']

    await store.createUser(user)
    vandalize(user)
    t.strictSame((await store.links(sameUser.userId)).map(({ claims }) => claims), [sameUser.link.claims])
    await store.refreshIdentity(refreshed)
    await store.addLink(sameUser.userId, added)
    await store.grant(sameUser.userId, granted)
    await store.withdraw(sameUser.userId, withdrawn)
    for (const argument of [refreshed, added, granted, withdrawn]) vandalize(argument)

    t.hasStrict(await store.findUser({ userId: sameUser.userId }), { email: 'bob@example.com', name: 'Somebody' })
    t.strictSame((await store.findUser({ userId: sameUser.userId }))?.claims, { list: ['a', { deep: ['b'] }], more: ['d'] })
    t.strictSame((await store.links(sameUser.userId)).map(({ claims }) => claims), [{ sub: 'bob', list: ['b'] }, { sub: 'bob', list: ['c'] }])
  })

  t.test('what was handed out can be changed and changes nothing', async t => {
    const { store } = await open(t)
    const bob = { ...localUser('bob@example.com'), claims: { list: ['a', { deep: ['b'] }] } }
    const { link: bobsLink, passwordHash, ...user } = structuredClone(bob)

    const handedOut = [
      await store.createUser(bob),
      await store.findUser({ userId: bob.userId }),
      await store.findUser({ email: 'bob@example.com' }),
      await store.findUser({ provider: 'local', subject: 'bob@example.com' }),
      await store.findCredential('bob@example.com'),
      await store.refreshIdentity({ ...bobsLink, verifiedEmail: null }),
      await store.addLink(bob.userId, identity('other', '1')),
      await store.addLink(bob.userId, identity('third', '1')),
      await store.removeLink(bob.userId, 'third'),
      await store.links(bob.userId),
      await store.grant(bob.userId, {}),
      await store.withdraw(bob.userId, [])
    ]
    for (const value of handedOut) vandalize(value)

    t.strictSame(await store.findUser({ userId: bob.userId }), user)
    t.strictSame(await store.findCredential('bob@example.com'), { user, link: { ...bobsLink, userId: bob.userId }, passwordHash })
    t.strictSame(await store.links(bob.userId), [{ ...bobsLink, userId: bob.userId }, { ...link('other', '1'), userId: bob.userId }])
    t.equal(await store.findUser({ email: 'changed@example.com' }), null)
  })

  t.test('claims are JSON of every kind', async t => {
    const { store, twin } = await open(t)
    await store.createUser({ ...ADA, claims: {} })
    const identityClaims: IdentityClaims = { ...JSON_OF_EVERY_KIND, sub: 'ada-1' }

    await store.grant(ADA.userId, JSON_OF_EVERY_KIND)
    await store.refreshIdentity(identity('dev', 'ada-1', { claims: identityClaims }))
    await store.addLink(ADA.userId, identity('other', 'ada-1', { claims: identityClaims }))

    t.strictSame((await twin.findUser({ userId: ADA.userId }))?.claims, JSON_OF_EVERY_KIND)
    t.strictSame((await twin.links(ADA.userId)).map(({ claims }) => claims), [identityClaims, identityClaims])
  })

  t.test('any text is kept as it is', async t => {
    for (const text of ODD_TEXTS) {
      const { store, twin } = await open(t)
      const user = newUser({ name: text, claims: { text }, link: link('dev', text, { text }) })

      await store.createUser(user)
      const noted = await store.refreshIdentity({ ...user.link, claims: { ...user.link.claims, name: text }, verifiedEmail: null })
      await store.addLink(user.userId, identity('other', text))

      t.hasStrict(noted, { name: text, claims: { text } })
      t.strictSame(await twin.findUser({ provider: 'dev', subject: text }), noted)
      t.strictSame((await twin.links(user.userId)).map(({ subject }) => subject), [text, text])
    }
  })

  t.test('names and claims can be long', async t => {
    const { store, twin } = await open(t)
    const long = 'long 😀'.repeat(2_000)
    const user = newUser({ name: long, claims: { long }, link: link('dev', '1', { long }) })

    await store.createUser(user)
    const noted = await store.refreshIdentity({ ...user.link, claims: { ...user.link.claims, name: `${long}!` }, verifiedEmail: null })

    t.strictSame(noted, await twin.findUser({ userId: user.userId }))
    t.hasStrict(noted, { name: `${long}!`, claims: { long } })
    t.hasStrict(await twin.links(user.userId), [{ claims: { long } }])
  })

  t.test('a NUL character is kept in a new user, or he is refused', async t => {
    const variants: Array<Partial<NewUser>> = [
      { name: WITH_NUL },
      { claims: { text: WITH_NUL } },
      { claims: { [WITH_NUL]: true } },
      { link: link('dev', WITH_NUL) },
      { link: link('dev', '1', { text: WITH_NUL }) }
    ]
    for (const variant of variants) {
      const { store, twin } = await open(t)
      const bob = { ...localUser('bob@example.com'), ...variant }
      const { link: bobsLink, passwordHash, ...user } = bob

      if (await isKept(t, store.createUser(bob))) {
        t.strictSame(await twin.findUser({ userId: bob.userId }), user)
        t.strictSame(await twin.findUser({ provider: bobsLink.provider, subject: bobsLink.subject }), user)
        t.strictSame(await twin.links(bob.userId), [{ ...bobsLink, userId: bob.userId }])
      } else {
        t.equal(await twin.findUser({ userId: bob.userId }), null)
        t.equal(await twin.findUser({ email: 'bob@example.com' }), null)
        t.strictSame(await twin.links(bob.userId), [])
      }
      t.equal(await twin.findUser({ provider: 'dev', subject: BEFORE_NUL }), null, 'nothing is cut off')
    }
  })

  for (const { way, note } of WAYS_TO_NOTE) {
    t.test(`a NUL character in what a provider says is kept by ${way}, or nothing is noted`, async t => {
      for (const claims of [{ name: WITH_NUL }, { name: 'Ada', text: WITH_NUL }, { name: 'Ada', [WITH_NUL]: true }]) {
        const { store, twin } = await open(t)
        await store.createUser({ ...ADA, email: null, emailVerified: false })
        const before = [await twin.findUser({ userId: ADA.userId }), await twin.links(ADA.userId)]

        const noting = note(store, { claims: { sub: 'x', ...claims }, verifiedEmail: 'new@example.com' })

        if (await isKept(t, noting)) {
          t.hasStrict(await twin.findUser({ email: 'new@example.com' }), { userId: ADA.userId, name: claims.name })
          t.strictSame((await twin.links(ADA.userId)).at(-1)?.claims, { sub: 'x', ...claims })
        } else {
          t.strictSame([await twin.findUser({ userId: ADA.userId }), await twin.links(ADA.userId)], before)
          t.equal(await twin.findUser({ email: 'new@example.com' }), null)
        }
      }
    })
  }

  t.test('a subject with a NUL character is kept as a second way in, or refused', async t => {
    const { store, twin } = await open(t)
    await store.createUser(ADA)
    await store.createUser(newUser({ link: link('other', BEFORE_NUL), claims: { another: true } }))

    if (await isKept(t, store.addLink(ADA.userId, identity('other', WITH_NUL)))) {
      t.hasStrict(await twin.refreshIdentity(identity('other', WITH_NUL)), { userId: ADA.userId })
      t.equal((await twin.links(ADA.userId))[1]?.subject, WITH_NUL)
    } else {
      await t.rejects(twin.refreshIdentity(identity('other', WITH_NUL)), INVALID_REQUEST)
      t.strictSame(await twin.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
    }
    t.strictSame((await twin.findUser({ provider: 'other', subject: BEFORE_NUL }))?.claims, { another: true }, 'it is not that of another user')
  })

  t.test('a NUL character is kept in a grant, or nothing is granted', async t => {
    for (const claims of [{ text: WITH_NUL }, { list: ['a', { deep: WITH_NUL }] }, { [WITH_NUL]: true }]) {
      const { store, twin } = await open(t)
      await store.createUser(ADA)

      const kept = await isKept(t, store.grant(ADA.userId, { tier: 1, ...claims }))

      t.strictSame((await twin.findUser({ userId: ADA.userId }))?.claims, kept ? { role: 'admin', tier: 1, ...claims } : { role: 'admin' })
    }
  })

  t.test('subjects that look alike are different people', async t => {
    const { store } = await open(t)
    const subjects = ['ada', 'ADA', 'Ada', ' ada', 'ada ', 'é', 'e\u0301', 'ﬁ', 'fi', 'ß', 'ss', 'i', 'ı', '1', '01', '1.0', '1e0', '+1', 'a:b', 'a/b', 'a%', 'a_', 'null', '']

    for (const subject of subjects) await store.createUser(newUser({ link: link('dev', subject), claims: { subject } }))

    for (const subject of subjects) t.hasStrict(await store.findUser({ provider: 'dev', subject }), { claims: { subject } }, `"${subject}"`)
  })

  t.test('equal subjects at different providers are different people, wherever the one ends and the other begins', async t => {
    const { store } = await open(t)
    const pairs = [['a', 'b c'], ['a b', 'c'], ['a b c', ''], ['a:b', 'c'], ['a', 'b:c'], ['a', '"b"'], ['a"', 'b"'], ['dev', '1'], ['Dev', '1'], ['other', '1']] as const

    for (const [provider, subject] of pairs) await store.createUser(newUser({ link: link(provider, subject), claims: { provider, subject } }))

    for (const [provider, subject] of pairs) t.hasStrict(await store.findUser({ provider, subject }), { claims: { provider, subject } }, `${provider} | ${subject}`)
  })

  t.test('a store can be closed twice', async t => {
    const { store } = await open(t)
    await store.createUser(ADA)

    await store.close()
    await t.resolves(store.close())
  })
}

const HASH = '$argon2id$v=19$m=8,t=1,p=1$c29tZSBzYWx0IG9mIDE2$K5mS0pLqjFHdLB4wXH2zqmG6Gg6o7pRrPDd2IG5rHHQ'

const ADA = {
  userId: '6b1e1c9e-0c51-4c3a-9f44-2f0e8a2f5d11',
  email: 'ada@example.com',
  emailVerified: true,
  name: 'Ada',
  claims: { role: 'admin' },
  link: { provider: 'dev', subject: 'ada-1', claims: { sub: 'ada-1', email: 'ada@example.com', email_verified: true, name: 'Ada' } }
} as const satisfies NewUser

const UNKNOWN_USER = { name: 'AuthError', code: 'unknown_user', statusCode: 404 }
const LAST_LINK = { name: 'AuthError', code: 'last_link', statusCode: 409 }
const INVALID_EMAIL = { name: 'AuthError', code: 'invalid_email', statusCode: 400 }
const INVALID_REQUEST = { name: 'AuthError', code: 'invalid_request', statusCode: 400 }

const BEFORE_NUL = 'before'
const WITH_NUL = `${BEFORE_NUL}\0after`

/** Ids that no user has; Postgres would take some of them for Ada's. */
const NO_USER_IDS = [
  '',
  ' ',
  '1',
  'nobody',
  "' or ''='",
  '%',
  'null',
  ADA.userId.toUpperCase(),
  ADA.userId.replaceAll('-', ''),
  `{${ADA.userId}}`,
  ` ${ADA.userId}`,
  `${ADA.userId}\n`,
  `${ADA.userId}\0`,
  ADA.userId.slice(0, -1),
  `${ADA.userId}0`
]

/** Both note what a provider says about a user: tests that go for both run with each. ADA has her link at `dev`. */
const WAYS_TO_NOTE = [
  {
    way: 'a sign-in',
    note: (store: AuthStore, news: Pick<LinkedIdentity, 'claims' | 'verifiedEmail'>) => store.refreshIdentity({ provider: 'dev', subject: 'ada-1', ...news })
  },
  {
    way: 'a second way in',
    note: async (store: AuthStore, news: Pick<LinkedIdentity, 'claims' | 'verifiedEmail'>) => store.addLink(ADA.userId, { provider: 'other', subject: 'ada-of-other', ...news })
  }
]

/** What a link held and what the provider says now: the claims are compared as they are, and one that is absent is another one. */
const CHANGES_OF_EMAIL = [
  ['from one to another', { email: 'ada@example.com' }, { email: 'new@example.com' }],
  ['from none to one', {}, { email: 'new@example.com' }],
  ['from one to none', { email: 'new@example.com' }, {}],
  ['from one spelling to another', { email: 'new@example.com' }, { email: 'New@example.com' }]
] as const

/** What a link reports that does not vouch for ada@example.com; another user has taken@example.com. */
const NO_LONGER_VOUCHED: ReadonlyArray<readonly [string, Pick<LinkedIdentity, 'claims' | 'verifiedEmail'>]> = [
  ['it as unverified', { claims: { sub: 'x', email: 'ada@example.com', email_verified: false }, verifiedEmail: null }],
  ['it in the claims alone', { claims: { sub: 'x', email: 'ada@example.com', email_verified: true }, verifiedEmail: null }],
  ['no e-mail', { claims: { sub: 'x' }, verifiedEmail: null }],
  ['the e-mail of another user', verified('taken@example.com')]
]

const JSON_OF_EVERY_KIND: Record<string, JsonValue> = {
  string: 'text',
  empty_string: '',
  unicode: 'ünïcödé 日本語 \u202eright to left\u202c 👩‍💻 e\u0301 \u007f \ufffd',
  escapes: 'quote " backslash \\ newline \n tab \t control \u0001 separator \u2028',
  looks_like_json: '{"a":1}',
  looks_like_a_number: '1',
  true: true,
  false: false,
  null: null,
  zero: 0,
  negative: -1,
  fraction: 0.1,
  large: 1e21,
  small: 1e-7,
  safe: Number.MAX_SAFE_INTEGER,
  unsafe: 2 ** 63,
  largest: Number.MAX_VALUE,
  smallest: Number.MIN_VALUE,
  empty_list: [],
  empty_object: {},
  list: [1, 'two', [3, [null]], { four: 4 }],
  nested: { a: { b: { c: [{ d: 'e' }] } } },
  deep: Array.from({ length: 30 }).reduce<JsonValue>(inner => [inner], 'bottom')
}

const ODD_TEXTS = [
  "'; drop table svc_auth_users; --",
  '" or ""="',
  '%',
  '\\',
  '$1 ? :name @name #{x} ${x}', // eslint-disable-line no-template-curly-in-string
  ' spaces around ',
  'line\r\nbreak\ttab\u0001',
  'e\u0301 é ﬁ \u202eabc 日本語 👩‍💻',
  'n'.repeat(254)
]

function newUser (user: Partial<NewUser> = {}): NewUser {
  const userId = randomUUID()
  return { userId, email: null, emailVerified: false, name: 'Somebody', claims: {}, link: link('dev', `subject of ${userId}`), ...user }
}

function localUser (email: string): NewUser & { passwordHash: string } {
  return { ...newUser({ email, link: link('local', email, { email }) }), passwordHash: HASH }
}

function link (provider: string, subject: string, claims: Omit<IdentityClaims, 'sub'> = {}): NewUser['link'] {
  return { provider, subject, claims: { sub: subject, ...claims } }
}

function identity (provider: string, subject: string, news: Partial<LinkedIdentity> = {}): LinkedIdentity {
  return { ...link(provider, subject), verifiedEmail: null, ...news }
}

/** What a provider says who vouches for an e-mail. */
function verified (email: string, claims: Omit<IdentityClaims, 'sub'> = {}): Pick<LinkedIdentity, 'claims' | 'verifiedEmail'> {
  return { claims: { sub: 'x', email, email_verified: true, ...claims }, verifiedEmail: email }
}

/** Whether something with a NUL character was written; if not, that is said with a code. */
async function isKept (t: Test, writing: Promise<unknown>): Promise<boolean> {
  try {
    t.ok(await writing)
    return true
  } catch (error) {
    t.match(error, INVALID_REQUEST)
    return false
  }
}

async function isGone (t: Test, store: AuthStore, { userId, email, link }: NewUser): Promise<void> {
  t.equal(await store.findUser({ userId }), null)
  if (email !== null) t.equal(await store.findUser({ email }), null)
  t.equal(await store.findUser({ provider: link.provider, subject: link.subject }), null)
  t.equal(await store.findCredential(link.subject), null)
  t.strictSame(await store.links(userId), [])
}

function valuesOf<T> (results: Array<PromiseSettledResult<T>>): T[] {
  return results.flatMap(result => result.status === 'fulfilled' ? [result.value] : [])
}

function reasonsOf (results: Array<PromiseSettledResult<unknown>>): unknown[] {
  return results.flatMap(result => result.status === 'rejected' ? [result.reason] : [])
}

/** Changes whatever can be changed in it. */
function vandalize (value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  for (const member of Object.values(value)) vandalize(member)
  if (Array.isArray(value)) value.push('changed')
  else Object.assign(value, { name: 'changed', email: 'changed@example.com', userId: 'changed' })
}
