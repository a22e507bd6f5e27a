/** Rules of links: added, removed, and what a sign-in and a new link note about the user. */
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { NO_LONGER_VOUCHED, newAccounts } from '../../test/helpers/accounts.js'
import {
  ADA, HASH, LAST_LINK, WAYS_TO_NOTE, identity, link, localUser, newUser, verified
} from '../testing/store-contract/fixtures.js'

/** The status of a user whose e-mail is not verified. */
const NEVER_ENDED = { generation: 0, signedOutAt: 0, verifiedEmail: null }

/**
 * The claims of a link and those that the provider reports now. They are compared as they are: an
 * absent e-mail differs from any other.
 */
const CHANGES_OF_EMAIL = [
  ['from one to another', { email: 'ada@example.com' }, { email: 'new@example.com' }],
  ['from none to one', {}, { email: 'new@example.com' }],
  ['from one to none', { email: 'new@example.com' }, {}],
  ['from one spelling to another', { email: 'new@example.com' }, { email: 'New@example.com' }]
] as const

t.test('an unknown user gets no link', async t => {
  const store = newAccounts()
  const unknown = randomUUID()

  t.equal(await store.addLink(unknown, identity('dev', 'ada-1')), null)

  t.equal(await store.findUser({ provider: 'dev', subject: 'ada-1' }), null)
  t.strictSame(await store.links(unknown), [])
  t.ok(await store.createUser(ADA), 'the link is still free')
})

t.test('a second subject at one provider is not added, and nothing is noted', async t => {
  const store = newAccounts()
  await store.createUser(ADA)

  t.equal(
    await store.addLink(
      ADA.userId,
      identity('dev', 'ada-2', { claims: { sub: 'x', name: 'Mallory' }, verifiedEmail: 'mallory@example.com' })
    ),
    null
  )

  t.hasStrict(await store.findUser({ userId: ADA.userId }), { name: 'Ada', email: 'ada@example.com' })
  t.strictSame(await store.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
  t.equal(await store.findUser({ provider: 'dev', subject: 'ada-2' }), null)
})

t.test('removing another link keeps the password', async t => {
  const store = newAccounts()
  const bob = localUser('bob@example.com')
  await store.createUser(bob)
  await store.addLink(bob.userId, identity('dev', 'bob-1'))

  await store.removeLink(bob.userId, 'dev')

  t.hasStrict(await store.findCredential('bob@example.com'), { user: { userId: bob.userId }, passwordHash: HASH })
})

t.test('a user keeps their e-mail, name and claims when a link is removed', async t => {
  const store = newAccounts()
  await store.createUser({ ...ADA, email: null, emailVerified: false })
  await store.addLink(
    ADA.userId,
    identity('other', 'ada-of-other', verified('ada@other.example', { name: 'Ada Lovelace' }))
  )
  const before = await store.findUser({ userId: ADA.userId })

  await store.removeLink(ADA.userId, 'other')

  t.hasStrict(before, {
    userId: ADA.userId,
    email: 'ada@other.example',
    emailVerified: true,
    name: 'Ada Lovelace',
    claims: { role: 'admin' }
  })
  const { generation, ...after } = { ...before, emailVerified: false }
  t.hasStrict(await store.findUser({ userId: ADA.userId }), after)
  t.hasStrict(await store.findUser({ email: 'ada@other.example' }), after)
})

t.test('removing a link that the user does not have changes nothing', async t => {
  const store = newAccounts()
  const bob = localUser('bob@example.com')
  await store.createUser(ADA)
  await store.createUser(bob)
  await store.addLink(bob.userId, identity('other', '1'))
  await store.addLink(bob.userId, identity('third', '1'))
  const links = await store.links(bob.userId)

  for (const provider of ['dev', 'LOCAL', 'oth', 'other ', '%', '']) {
    t.strictSame(await store.removeLink(bob.userId, provider), links, `"${provider}"`)
  }
  t.strictSame(
    await store.removeLink(ADA.userId, 'local'),
    [{ ...ADA.link, userId: ADA.userId }],
    'even of a user with a single link'
  )

  t.strictSame(await store.links(bob.userId), links)
  t.strictSame(await store.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
  t.hasStrict(await store.findCredential('bob@example.com'), { passwordHash: HASH })
})

t.test('the last link is never removed', async t => {
  const store = newAccounts()
  const bob = localUser('bob@example.com')
  await store.createUser(ADA)
  await store.createUser(bob)

  await t.rejects(store.removeLink(ADA.userId, 'dev'), LAST_LINK)
  await t.rejects(store.removeLink(bob.userId, 'local'), LAST_LINK)

  t.strictSame(await store.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
  t.hasStrict(await store.findUser(ADA.link), { userId: ADA.userId })
  t.hasStrict(await store.findCredential('bob@example.com'), {
    user: { userId: bob.userId },
    link: bob.link,
    passwordHash: HASH
  })
})

t.test('a sign-in with an unknown link changes nothing and makes no user', async t => {
  const store = newAccounts()
  await store.createUser(ADA)

  t.equal(await store.refreshIdentity(identity('dev', 'bob-1', { verifiedEmail: 'bob@example.com' })), null)
  t.equal(await store.refreshIdentity(identity('other', 'ada-1', { verifiedEmail: 'bob@example.com' })), null)

  t.equal(await store.findUser({ provider: 'dev', subject: 'bob-1' }), null)
  t.equal(await store.findUser({ email: 'bob@example.com' }), null)
  t.strictSame(await store.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
})

t.test('a sign-in with an unknown link makes a user unless one has the e-mail', async t => {
  const store = newAccounts()
  const bob = newUser({ link: link('dev', 'bob-1'), email: 'bob@example.com', emailVerified: true, isNew: true })
  const ofBob = identity('dev', 'bob-1', { claims: { sub: 'bob-1' }, verifiedEmail: bob.email })
  await store.createUser(ADA)

  const taken = await store.enterIdentity({ ...ofBob, verifiedEmail: null }, ADA.email, { ...bob, email: null })
  t.hasStrict(taken, { as: 'owner-of-email', user: { userId: ADA.userId, email: ADA.email } })
  t.equal(await store.findUser({ provider: 'dev', subject: 'bob-1' }), null)
  t.strictSame(await store.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])

  const present = { userId: bob.userId, emailVerified: true, isNew: true }
  t.hasStrict(await store.enterIdentity(ofBob, bob.email, bob), { as: 'new', user: present })
  t.hasStrict(await store.findUser({ email: 'bob@example.com' }), present)

  const again = { ...ofBob, claims: { sub: 'bob-1', locale: 'en' } }
  const other = newUser({ link: bob.link, email: bob.email, emailVerified: true })
  t.hasStrict(await store.enterIdentity(again, bob.email, other), { as: 'known', user: { userId: bob.userId } })
  t.hasStrict((await store.links(bob.userId))[0], { claims: { sub: 'bob-1', locale: 'en' } })
  t.equal(await store.findUser({ userId: other.userId }), null)
})

for (const { way, note } of WAYS_TO_NOTE) {
  t.test(`${way} takes the name that the provider gives now`, async t => {
    const store = newAccounts()
    await store.createUser(ADA)
    const bystander = newUser({ name: 'Bob' })
    await store.createUser(bystander)

    const noted = await note(store, { claims: { sub: 'x', name: 'Ada Lovelace' }, verifiedEmail: null })

    t.hasStrict(noted, { userId: ADA.userId, name: 'Ada Lovelace' })
    t.hasStrict(await store.findUser({ userId: ADA.userId }), { name: 'Ada Lovelace' })
    t.hasStrict(await store.findUser({ userId: bystander.userId }), { name: 'Bob' })
  })

  t.test(`${way} keeps the name when the provider gives none`, async t => {
    const store = newAccounts()
    await store.createUser(ADA)

    const noted = await note(store, { claims: { sub: 'x' }, verifiedEmail: null })

    t.hasStrict(noted, { name: 'Ada' })
    t.hasStrict(await store.findUser({ userId: ADA.userId }), { name: 'Ada' })
  })

  t.test(`${way} keeps the authorization claims`, async t => {
    const store = newAccounts()
    await store.createUser(ADA)

    const noted = await note(store, { claims: { sub: 'x', role: 'guest' }, verifiedEmail: 'new@example.com' })

    t.strictSame(noted?.claims, { role: 'admin' })
    t.strictSame((await store.findUser({ userId: ADA.userId }))?.claims, { role: 'admin' })
  })

  t.test(`${way} gives a verified e-mail to a user who has none, whether or not it was verified before`, async t => {
    for (const email of ['ada@example.com', 'new@example.com']) {
      const store = newAccounts()
      await store.createUser({ ...ADA, email: null, emailVerified: false })

      const noted = await note(store, verified(email))

      t.hasStrict(noted, { userId: ADA.userId, email, emailVerified: true })
      t.strictSame(await store.findUser({ email }), noted)
    }
  })

  t.test(`${way} makes the user's own unverified e-mail a verified one`, async t => {
    const store = newAccounts()
    await store.createUser({ ...ADA, emailVerified: false })

    const noted = await note(store, verified('ada@example.com'))

    t.hasStrict(noted, { email: 'ada@example.com', emailVerified: true })
    t.strictSame(await store.findUser({ email: 'ada@example.com' }), noted)
  })

  t.test(`${way} leaves the e-mail as it is when the provider verified none`, async t => {
    const store = newAccounts()
    await store.createUser({ ...ADA, emailVerified: false })

    const noted = await note(store, {
      claims: { sub: 'x', email: 'new@example.com', email_verified: true },
      verifiedEmail: null
    })

    t.hasStrict(noted, { email: 'ada@example.com', emailVerified: false })
    t.hasStrict(await store.findUser({ email: 'ada@example.com' }), { userId: ADA.userId, emailVerified: false })
    t.equal(await store.findUser({ email: 'new@example.com' }), null)
  })

  t.test(`${way} does not take another user's e-mail, and is noted all the same`, async t => {
    for (const email of ['ada@example.com', null]) {
      const store = newAccounts()
      await store.createUser({ ...ADA, email, emailVerified: false })
      const bob = newUser({ email: 'bob@example.com', emailVerified: false })
      await store.createUser(bob)

      const noted = await note(store, verified('bob@example.com', { name: 'Ada Lovelace' }))

      t.hasStrict(noted, { email, emailVerified: false, name: 'Ada Lovelace' })
      t.hasStrict(await store.findUser({ email: 'bob@example.com' }), {
        userId: bob.userId,
        emailVerified: false,
        name: bob.name
      })
      t.ok(
        (await store.links(ADA.userId)).some(({ claims }) => claims.email === 'bob@example.com'),
        'what the provider says is on the link'
      )
    }
  })
}

for (const [reported, news] of NO_LONGER_VOUCHED) {
  t.test(`an e-mail is verified until the one link that vouches for it reports ${reported}`, async t => {
    const store = newAccounts()
    await store.createUser(ADA)
    await store.createUser(newUser({ email: 'taken@example.com' }))

    const noted = await store.refreshIdentity(identity('dev', 'ada-1', news))

    t.hasStrict(noted, { email: 'ada@example.com', emailVerified: false })
    t.strictSame(await store.findUser({ email: 'ada@example.com' }), noted)
    t.hasStrict(
      await store.refreshIdentity(identity('dev', 'ada-1', verified('ada@example.com'))),
      { email: 'ada@example.com', emailVerified: true },
      'until it vouches again'
    )
  })

  t.test(
    `an e-mail that a second link vouches for stays verified when the first one reports ${reported}, and no longer`,
    async t => {
      const store = newAccounts()
      await store.createUser(ADA)
      await store.createUser(newUser({ email: 'taken@example.com' }))
      await store.addLink(ADA.userId, identity('other', 'ada-of-other', verified('ada@example.com')))

      t.hasStrict(await store.refreshIdentity(identity('dev', 'ada-1', news)), {
        email: 'ada@example.com',
        emailVerified: true
      })
      t.hasStrict(await store.refreshIdentity(identity('other', 'ada-of-other', news)), {
        email: 'ada@example.com',
        emailVerified: false
      })
    }
  )

  t.test(`a link that does not vouch for the e-mail changes nothing when it reports ${reported}`, async t => {
    const store = newAccounts()
    await store.createUser(ADA)
    await store.createUser(newUser({ email: 'taken@example.com' }))

    t.hasStrict(await store.addLink(ADA.userId, identity('other', 'ada-of-other', news)), {
      email: 'ada@example.com',
      emailVerified: true
    })
    t.hasStrict(await store.refreshIdentity(identity('other', 'ada-of-other', news)), {
      email: 'ada@example.com',
      emailVerified: true
    })
  })
}

t.test('an e-mail is verified until the last link that vouches for it is removed', async t => {
  const store = newAccounts()
  await store.createUser(ADA)
  await store.addLink(ADA.userId, identity('other', 'ada-of-other', verified('ada@example.com')))
  await store.addLink(ADA.userId, identity('third', 'ada-of-third', verified('ada@third.example')))
  const isVerified = async () => (await store.findUser({ email: 'ada@example.com' }))?.emailVerified

  await store.removeLink(ADA.userId, 'dev')
  t.equal(await isVerified(), true)
  await store.removeLink(ADA.userId, 'nothing')
  t.equal(await isVerified(), true)
  await store.removeLink(ADA.userId, 'other')
  t.equal(await isVerified(), false)
})

t.test('a provider that vouched for an e-mail does not vouch for the next one', async t => {
  const store = newAccounts()
  await store.createUser(ADA)
  await store.addLink(ADA.userId, identity('other', 'ada-of-other', verified('ada@example.com')))

  await store.refreshIdentity(identity('other', 'ada-of-other', verified('new@example.com')))
  await store.removeLink(ADA.userId, 'other')

  t.hasStrict(await store.findUser({ email: 'new@example.com' }), { userId: ADA.userId, emailVerified: false })
})

t.test('a second link with another e-mail leaves the one that the user has, verified or not', async t => {
  for (const emailVerified of [true, false]) {
    const store = newAccounts()
    await store.createUser({ ...ADA, emailVerified })

    const linked = await store.addLink(ADA.userId, identity('other', 'ada-of-other', verified('ada@other.example')))

    t.hasStrict(linked, { email: 'ada@example.com', emailVerified })
    t.strictSame(await store.findUser({ email: 'ada@example.com' }), linked)
    t.equal(await store.findUser({ email: 'ada@other.example' }), null)
  }
})

t.test('two links with different e-mails, used in turn, leave the one that the user has', async t => {
  const store = newAccounts()
  const atDev = identity('dev', 'ada-1', verified('ada@example.com'))
  const atOther = identity('other', 'ada-of-other', verified('ada@other.example'))
  await store.createUser(ADA)
  await store.addLink(ADA.userId, atOther)

  for (const signIn of [atOther, atDev, atOther, atDev]) {
    t.hasStrict(await store.refreshIdentity(signIn), { email: 'ada@example.com', emailVerified: true })
  }

  t.hasStrict(await store.findUser({ email: 'ada@example.com' }), { userId: ADA.userId })
  t.equal(await store.findUser({ email: 'ada@other.example' }), null)
})

t.test('an e-mail that changes at one of two providers is taken over, and the other one leaves it', async t => {
  const store = newAccounts()
  const atDev = identity('dev', 'ada-1', verified('ada@example.com'))
  const changed = identity('other', 'ada-of-other', verified('new@other.example'))
  await store.createUser(ADA)
  await store.addLink(ADA.userId, identity('other', 'ada-of-other', verified('ada@other.example')))

  for (const signIn of [changed, atDev, changed, atDev]) {
    t.hasStrict(await store.refreshIdentity(signIn), { email: 'new@other.example', emailVerified: true })
  }

  t.hasStrict(await store.findUser({ email: 'new@other.example' }), { userId: ADA.userId })
})

for (const [change, before, now] of CHANGES_OF_EMAIL) {
  t.test(
    `a sign-in with an e-mail that has changed, ${change}, takes it in place of the old one, which is then free`,
    async t => {
      const store = newAccounts()
      await store.createUser({ ...ADA, link: { ...ADA.link, claims: { sub: 'ada-1', ...before } } })

      const noted = await store.refreshIdentity({
        ...ADA.link,
        claims: { sub: 'ada-1', ...now },
        verifiedEmail: 'new@example.com'
      })

      t.hasStrict(noted, { userId: ADA.userId, email: 'new@example.com', emailVerified: true })
      t.strictSame(await store.findUser({ email: 'new@example.com' }), noted)
      t.equal(await store.findUser({ email: 'ada@example.com' }), null)
      t.ok(await store.createUser(newUser({ email: 'ada@example.com' })))
    }
  )
}

t.test(
  'a sign-in with a verified e-mail that has not changed leaves the one that the user has, whatever else has',
  async t => {
    for (const email of [{ email: 'new@example.com' }, {}]) {
      const store = newAccounts()
      await store.createUser(ADA)
      const news = { claims: { sub: 'ada-1', email_verified: true, ...email }, verifiedEmail: 'new@example.com' }
      await store.addLink(ADA.userId, identity('other', 'ada-1', news))

      const noted = await store.refreshIdentity(identity('other', 'ada-1', {
        ...news, claims: { ...news.claims, locale: 'en' }
      }))

      t.hasStrict(noted, { email: 'ada@example.com', emailVerified: true })
      t.strictSame(await store.findUser({ email: 'ada@example.com' }), noted)
      t.equal(await store.findUser({ email: 'new@example.com' }), null)
    }
  }
)

t.test('an e-mail that is not verified stays when another one changes at a provider', async t => {
  const store = newAccounts()
  const bob = localUser('bob@example.com')
  await store.createUser(bob)
  await store.addLink(bob.userId, identity('dev', 'bob-1', verified('first@example.com')))

  const noted = await store.refreshIdentity(identity('dev', 'bob-1', verified('second@example.com')))

  t.hasStrict(noted, { email: 'bob@example.com', emailVerified: false })
  t.hasStrict(await store.findCredential('bob@example.com'), { user: noted, link: bob.link, passwordHash: HASH })
  t.equal(await store.findUser({ email: 'second@example.com' }), null)
})

t.test('a link for a generation that the user no longer has is not added', async t => {
  const store = newAccounts()
  const bob = localUser('bob@example.com')
  await store.createUser(ADA)
  await store.createUser(bob)
  await store.changeUser(ADA.userId, { endSessions: true })

  t.equal(await store.addLink(ADA.userId, identity('other', 'ada-2'), 0), null)
  t.equal(await store.addLink(bob.userId, identity('other', 'bob-2'), 1), null)
  for (const { userId } of [ADA, bob]) t.equal((await store.links(userId)).length, 1)

  t.hasStrict(await store.addLink(ADA.userId, identity('other', 'ada-2'), 1), { userId: ADA.userId })
  t.hasStrict(await store.addLink(bob.userId, identity('other', 'bob-2'), 0), { userId: bob.userId })
})

t.test('a removed link ends the sessions, one that the user does not have does not', async t => {
  const store = newAccounts()
  await store.createUser(ADA)
  await store.addLink(ADA.userId, identity('other', '1'))

  await store.removeLink(ADA.userId, 'unknown')
  t.strictSame(await store.status(ADA.userId), { ...NEVER_ENDED, verifiedEmail: ADA.email })
  await store.removeLink(ADA.userId, 'other')

  const status = await store.status(ADA.userId)
  t.equal(status?.generation, 1)
  t.ok(Number(status?.signedOutAt) > 0)
})
