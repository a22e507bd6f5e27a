/** Rules of passwords and e-mails, and of the tokens of mails. */
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { INVALID_EMAIL, NO_LONGER_VOUCHED, newAccounts } from '../../test/helpers/accounts.js'
import type { Accounts } from './accounts.js'
import type { MailTokenClaims } from './credentials.js'
import type { NewUser } from './identities.js'
import { assertGone } from '../testing/store-contract/assertions.js'
import {
  ADA, HASH, NO_USER_IDS, UNKNOWN_USER, identity, link, localUser, newUser, verified
} from '../testing/store-contract/fixtures.js'

const EXISTS = { name: 'AuthError', code: 'exists', statusCode: 409 }

/** The status of a user whose e-mail is not verified. */
const NEVER_ENDED = { generation: 0, signedOutAt: 0, verifiedEmail: null }

const BOB = localUser('bob@example.com')

/** The link of an address of a user whose sessions were never ended. */
function linkFor (
  { userId, email }: Pick<NewUser, 'userId' | 'email'>,
  link: Partial<MailTokenClaims> = {}
): MailTokenClaims {
  return { userId, email: String(email), generation: 0, ...link }
}

/** The methods of the group, each with a call that would change BOB. */
const USES: Record<string, (store: Accounts, link: MailTokenClaims) => Promise<unknown>> = {
  verifyEmail: (store, link) => store.verifyEmail(link),
  resetPassword: (store, link) => store.resetPassword(link, 'the new hash'),
  changeEmail: (store, link) => store.changeEmail(link, 'new@example.com'),
  releaseEmail: (store, link) => store.releaseEmail(link)
}

/** All that a store has of a user, to be compared. */
async function allOf (store: Accounts, { userId, link }: NewUser) {
  return {
    user: await store.findUser({ userId }),
    links: await store.links(userId),
    status: await store.status(userId),
    credential: await store.findCredential(link.subject)
  }
}

async function providersOf (store: Accounts, { userId }: Pick<NewUser, 'userId'>): Promise<string[]> {
  const links = await store.links(userId)
  return links.map(({ provider }) => provider)
}

t.test('a first password makes a local account and ends the sessions', async t => {
  const store = newAccounts()
  const created = await store.createUser(ADA)

  const user = await store.setPassword(ADA.userId, { passwordHash: HASH })

  t.strictSame(user, { ...created, generation: 1 })
  t.ok(((await store.status(ADA.userId))?.signedOutAt ?? 0) > 0)
  t.strictSame(await store.findCredential('ada@example.com'), {
    user,
    link: {
      provider: 'local',
      subject: 'ada@example.com',
      userId: ADA.userId,
      claims: { sub: ADA.userId, email: 'ada@example.com', name: 'Ada' }
    },
    passwordHash: HASH
  })
  t.hasStrict((await store.links(ADA.userId)).map(({ provider }) => provider), ['dev', 'local'])
})

t.test('a first password of a user without a name makes a link without one', async t => {
  const store = newAccounts()
  await store.createUser({ ...ADA, name: null })

  await store.setPassword(ADA.userId, { passwordHash: HASH })

  const { link } = await store.findCredential('ada@example.com') ?? {}
  t.strictSame(link?.claims, { sub: ADA.userId, email: 'ada@example.com' })
})

t.test('a password is replaced, and the link stays as it is', async t => {
  const store = newAccounts()
  const bob = localUser('bob@example.com')
  await store.createUser(bob)

  t.hasStrict(await store.setPassword(bob.userId, { passwordHash: 'the second' }), { generation: 1 })
  const third = { passwordHash: 'the third', current: 'the second' }
  t.hasStrict(await store.setPassword(bob.userId, third), { generation: 2 })

  t.hasStrict(await store.findCredential('bob@example.com'), { passwordHash: 'the third', user: { generation: 2 } })
  t.strictSame(await store.links(bob.userId), [{ ...bob.link, userId: bob.userId }])
})

t.test('a password that is not the current one any more is not replaced', async t => {
  const store = newAccounts()
  const bob = localUser('bob@example.com')
  await store.createUser(bob)
  await store.createUser(ADA)

  t.equal(await store.setPassword(bob.userId, { passwordHash: 'new', current: 'another' }), null)
  t.equal(await store.setPassword(bob.userId, { passwordHash: 'new', current: null }), null, 'there is one')
  t.equal(await store.setPassword(ADA.userId, { passwordHash: 'new', current: HASH }), null, 'there is none')

  t.hasStrict(await store.findCredential('bob@example.com'), { passwordHash: HASH })
  t.strictSame(await store.status(bob.userId), NEVER_ENDED)
  t.strictSame(await store.status(ADA.userId), { ...NEVER_ENDED, verifiedEmail: ADA.email })
  t.equal((await store.links(ADA.userId)).length, 1)
})

t.test('a user without an e-mail gets no password', async t => {
  const store = newAccounts()
  const bob = newUser({ email: null })
  await store.createUser(bob)

  t.equal(await store.setPassword(bob.userId, { passwordHash: HASH }), null)

  t.strictSame(await store.links(bob.userId), [{ ...bob.link, userId: bob.userId }])
  t.strictSame(await store.status(bob.userId), NEVER_ENDED)
})

t.test('an unknown user gets no password', async t => {
  const store = newAccounts()
  for (const id of [randomUUID(), ...NO_USER_IDS]) {
    await t.rejects(store.setPassword(id, { passwordHash: HASH }), UNKNOWN_USER, JSON.stringify(id))
  }
})

for (const [method, use] of Object.entries(USES)) {
  t.test(`${method} writes nothing for a link that does not hold`, async t => {
    const store = newAccounts()
    await store.createUser(BOB)
    await store.addLink(BOB.userId, identity('dev', 'bob-1'))
    await store.createUser(ADA)
    const before = await allOf(store, BOB)
    const untrue: Array<Partial<MailTokenClaims>> = [
      { generation: 1 }, { generation: -1 }, { email: 'ada@example.com' }, { email: 'other@example.com' },
      { email: 'Bob@example.com' }, { email: '' }, { userId: ADA.userId },
      ...[randomUUID(), ...NO_USER_IDS].map(userId => ({ userId }))
    ]

    for (const link of untrue) {
      t.equal(await use(store, linkFor(BOB, link)), null, JSON.stringify(link))
    }

    t.strictSame(await allOf(store, BOB), before)
    t.hasStrict(await store.findUser({ userId: ADA.userId }), { email: 'ada@example.com' })
  })

  t.test(`${method} takes a link from after the sessions were ended, and none from before`, async t => {
    const store = newAccounts()
    await store.createUser(BOB)
    await store.changeUser(BOB.userId, { endSessions: true })

    t.equal(await use(store, linkFor(BOB)), null)
    t.not(await use(store, linkFor(BOB, { generation: 1 })), null)
  })
}

t.test('an e-mail is verified for the user and for the link at local, and all sessions end', async t => {
  const store = newAccounts()
  await store.createUser(BOB)
  await store.addLink(BOB.userId, identity('dev', 'bob-1'))
  const { credential } = await allOf(store, BOB)

  const proof = await store.verifyEmail(linkFor(BOB))

  const after = await allOf(store, BOB)
  t.strictSame(proof, { user: after.user, wasProven: false, removed: [] })
  t.hasStrict(after.status, { generation: 1, verifiedEmail: BOB.email })
  t.hasStrict(after.user, { email: 'bob@example.com', emailVerified: true })
  const [dev, local] = after.links
  t.strictSame(dev?.claims, { sub: 'bob-1' })
  t.strictSame(local?.claims, { ...BOB.link.claims, email_verified: true })
  t.hasStrict(after.credential, { passwordHash: credential?.passwordHash, link: { subject: 'bob@example.com' } })
})

t.test('an e-mail that was verified by its user is not verified again', async t => {
  const store = newAccounts()
  await store.createUser(BOB)

  t.hasStrict(await store.verifyEmail(linkFor(BOB)), { wasProven: false })
  t.equal(await store.verifyEmail(linkFor(BOB)), null)
  t.equal(await store.verifyEmail(linkFor(BOB, { generation: 1 })), 'unchanged')
  t.hasStrict(await store.status(BOB.userId), { generation: 1, verifiedEmail: BOB.email })
})

t.test('an e-mail that a provider vouches for is verified by its user too', async t => {
  const store = newAccounts()
  await store.createUser(ADA)

  t.hasStrict(await store.verifyEmail(linkFor(ADA)), { wasProven: true })
  t.equal(await store.verifyEmail(linkFor(ADA)), 'unchanged')
  t.hasStrict(await store.status(ADA.userId), { generation: 0 })
  t.strictSame(await store.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
})

t.test('a reset replaces the password, verifies the e-mail and ends the sessions', async t => {
  const store = newAccounts()
  await store.createUser({ ...BOB, claims: { role: 'member' } })

  const reset = await store.resetPassword(linkFor(BOB), 'the new hash')

  const after = await allOf(store, BOB)
  t.strictSame(reset, { user: after.user, wasProven: false, removed: [] })
  t.hasStrict(after.user, { emailVerified: true, generation: 1, claims: { role: 'member' } })
  t.ok(Number(after.status?.signedOutAt) > 0)
  const claims = { ...BOB.link.claims, email_verified: true }
  t.strictSame(after.links, [{ ...BOB.link, userId: BOB.userId, claims }])
  t.hasStrict(after.credential, { passwordHash: 'the new hash' })
})

t.test('a reset of an e-mail that was not verified removes all other links', async t => {
  const store = newAccounts()
  const carol = localUser('carol@example.com')
  for (const user of [BOB, carol]) {
    await store.createUser(user)
    for (const provider of ['github', 'dev', 'Zed']) await store.addLink(user.userId, identity(provider, user.userId))
  }

  const reset = await store.resetPassword(linkFor(BOB), 'the new hash')

  t.strictSame([reset?.wasProven, reset?.removed], [false, ['Zed', 'dev', 'github']])
  t.strictSame(await providersOf(store, BOB), ['local'])
  for (const provider of ['github', 'dev']) {
    t.equal(await store.findUser({ provider, subject: BOB.userId }), null)
    t.ok(await store.refreshIdentity(identity(provider, carol.userId)), 'those of another user stay')
  }
})

t.test('the first proof of an e-mail keeps what was listed, and removes all of it otherwise', async t => {
  const store = newAccounts()
  const ways: Array<(user: NewUser, existing: string) => Promise<unknown>> = [
    (user, existing) => store.verifyEmail(linkFor(user), existing),
    (user, existing) => store.resetPassword(linkFor(user), 'the new hash', existing),
    ({ userId, email }, existing) => store.signInByMail(
      { user: { userId, generation: 0 }, email: String(email) }, { newId: null, holds: () => false, existing })
  ]
  for (const [index, prove] of ways.entries()) {
    const isReset = index === 1
    const [kept, stripped] = [localUser(`kept-${index}@example.com`), localUser(`stripped-${index}@example.com`)]
    for (const user of [kept, stripped]) {
      await store.createUser(user)
      await store.addLink(user.userId, identity('dev', user.userId))
    }
    const { methods, keep = '' } = await store.unprovenMethods({ ...kept, generation: 0 }, isReset) ?? {}
    t.strictSame(methods?.map(({ kind }) => kind), isReset ? ['provider'] : ['provider', 'password'])
    await t.rejects(prove(stripped, keep), { code: 'choice_required' })

    await prove(kept, keep)
    await prove(stripped, 'remove')

    t.strictSame(await providersOf(store, kept), ['dev', 'local'])
    t.strictSame(await providersOf(store, stripped), isReset ? ['local'] : ['application'])
    t.equal((await store.findCredential(String(stripped.email)) === null), !isReset)
    for (const { userId } of [kept, stripped]) {
      t.hasStrict(await store.findUser({ userId }), { emailVerified: true, generation: 1 })
      t.equal(await store.unprovenMethods({ userId, generation: 1 }), null)
    }
  }
})

t.test('a reset of a verified e-mail keeps the other links', async t => {
  const store = newAccounts()
  const carol = localUser('carol@example.com')
  await store.createUser(ADA)
  await store.createUser({ ...carol, emailVerified: true })
  await store.addLink(carol.userId, identity('dev', 'carol-1'))

  for (const user of [ADA, carol]) {
    const reset = await store.resetPassword(linkFor(user), 'the new hash')
    t.hasStrict(reset, { user: { userId: user.userId, emailVerified: true }, wasProven: true, removed: [] })
    t.strictSame(await providersOf(store, user), ['dev', 'local'])
  }
  t.strictSame((await store.findCredential('ada@example.com'))?.link.claims, {
    sub: ADA.userId, email: 'ada@example.com', email_verified: true, name: 'Ada'
  })
})

t.test('a blocked user resets no password until the block is over', async t => {
  const store = newAccounts()
  await store.createUser(BOB)
  const at = new Date()
  for (const blocked of [{ at }, { at, until: new Date(Date.now() + 60_000) }]) {
    await store.changeUser(BOB.userId, { blocked })
    t.equal(await store.resetPassword(linkFor(BOB), 'the new hash'), null)
  }
  t.hasStrict(await store.findCredential('bob@example.com'), { passwordHash: HASH, user: { emailVerified: false } })

  await store.changeUser(BOB.userId, { blocked: { at, until: new Date(Date.now() - 60_000) } })

  t.ok(await store.resetPassword(linkFor(BOB), 'the new hash'))
})

t.test('a changed e-mail is that of the user and of the link at local', async t => {
  const store = newAccounts()
  await store.createUser(BOB)
  await store.addLink(BOB.userId, identity('dev', 'bob-1', verified('bob@example.com')))

  const { user } = await store.changeEmail(linkFor(BOB), 'new@example.com') ?? {}

  t.hasStrict(user, { userId: BOB.userId, email: 'new@example.com', emailVerified: true, generation: 1 })
  t.strictSame(await store.findUser({ email: 'new@example.com' }), user)
  t.equal(await store.findUser({ email: 'bob@example.com' }), null)
  t.equal(await store.findCredential('bob@example.com'), null)
  t.strictSame(await store.findCredential('new@example.com'), {
    user,
    passwordHash: HASH,
    link: {
      provider: 'local',
      subject: 'new@example.com',
      userId: BOB.userId,
      claims: { ...BOB.link.claims, email: 'new@example.com', email_verified: true }
    }
  })
  t.ok(Number((await store.status(BOB.userId))?.signedOutAt) > 0)
  t.hasStrict((await store.links(BOB.userId))[0], { subject: 'bob-1', claims: { email: 'bob@example.com' } })
  t.ok(await store.createUser(localUser('bob@example.com')), 'the old one is free')
})

t.test('a user without a password changes their e-mail', async t => {
  const store = newAccounts()
  await store.createUser(ADA)

  const { user } = await store.changeEmail(linkFor(ADA), 'new@example.com') ?? {}

  t.hasStrict(user, { email: 'new@example.com', emailVerified: true })
  t.strictSame(await store.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
  t.hasStrict(await store.refreshIdentity(identity('dev', 'ada-1', verified('ada@example.com'))), {
    email: 'new@example.com', emailVerified: true
  })
})

t.test('an e-mail is changed to itself', async t => {
  const store = newAccounts()
  await store.createUser(BOB)

  const user = { emailVerified: true, generation: 1 }
  t.hasStrict(await store.changeEmail(linkFor(BOB), 'bob@example.com'), { user })

  t.hasStrict(await store.findCredential('bob@example.com'), { passwordHash: HASH, user: { userId: BOB.userId } })
})

for (const other of [newUser({ email: 'taken@example.com' }), localUser('taken@example.com')]) {
  const name = `an e-mail is not changed to one that another user with the link ${other.link.provider} has`
  t.test(name, async t => {
    const store = newAccounts()
    await store.createUser(BOB)
    await store.createUser(other)
    const before = [await allOf(store, BOB), await allOf(store, other)]

    await t.rejects(store.changeEmail(linkFor(BOB), 'taken@example.com'), EXISTS)
    t.equal(await store.changeEmail(linkFor(BOB, { generation: 1 }), 'taken@example.com'), null)

    t.strictSame([await allOf(store, BOB), await allOf(store, other)], before)
  })
}

t.test('an e-mail is not changed to one that is not canonical', async t => {
  const store = newAccounts()
  await store.createUser(BOB)
  const before = await allOf(store, BOB)

  for (const email of ['New@example.com', ' new@example.com', 'new', '']) {
    await t.rejects(store.changeEmail(linkFor(BOB), email), INVALID_EMAIL, email)
  }

  t.strictSame(await allOf(store, BOB), before)
})

t.test('a user with a password alone is deleted when the address is released', async t => {
  const store = newAccounts()
  await store.createUser(BOB)
  await store.createUser(ADA)

  t.equal(await store.releaseEmail(linkFor(BOB)), 'deleted')

  await assertGone(store, BOB)
  t.hasStrict(await store.findUser({ userId: ADA.userId }), { email: 'ada@example.com' })
  t.ok(await store.createUser(localUser('bob@example.com')), 'the address is free')
})

t.test('a user with another link loses the address and the password when it is released', async t => {
  const store = newAccounts()
  await store.createUser({ ...BOB, claims: { role: 'member' } })
  await store.addLink(BOB.userId, identity('dev', 'bob-1'))

  t.equal(await store.releaseEmail(linkFor(BOB)), 'freed')

  t.hasStrict(await store.findUser({ userId: BOB.userId }), {
    email: null, emailVerified: false, generation: 1, claims: { role: 'member' }
  })
  t.ok(Number((await store.status(BOB.userId))?.signedOutAt) > 0)
  t.strictSame(await providersOf(store, BOB), ['dev'])
  t.equal(await store.findCredential('bob@example.com'), null)
  t.equal(await store.findUser({ email: 'bob@example.com' }), null)
  t.ok(await store.createUser(localUser('bob@example.com')), 'the address is free')
  t.equal(await store.setPassword(BOB.userId, { passwordHash: 'new' }), null)
  await store.refreshIdentity(identity('dev', 'bob-1', verified('bob@new.example')))
  t.hasStrict(await store.setPassword(BOB.userId, { passwordHash: 'new', current: null }), { userId: BOB.userId })
})

t.test('a user without a password loses the address when it is released', async t => {
  const store = newAccounts()
  const carol = newUser({ email: 'carol@example.com' })
  await store.createUser(carol)

  t.equal(await store.releaseEmail(linkFor(carol)), 'freed')

  t.hasStrict(await store.findUser({ userId: carol.userId }), { email: null, generation: 1 })
  t.strictSame(await providersOf(store, carol), ['dev'])
})

t.test('a verified address is not released', async t => {
  const store = newAccounts()
  await store.createUser(ADA)
  await store.createUser(BOB)
  await store.verifyEmail(linkFor(BOB))

  for (const user of [ADA, BOB]) {
    const before = await allOf(store, user)
    t.equal(await store.releaseEmail(linkFor(user, { generation: before.status?.generation ?? 0 })), null)
    t.strictSame(await allOf(store, user), before)
  }
})

// What holds of an e-mail that the user has confirmed, by each method that confirms it.
const EMAIL = 'confirmed@example.com'
const ways: Array<[string, (store: Accounts) => Promise<NewUser>]> = [
  ['by a link', async store => {
    const user = localUser(EMAIL)
    await store.createUser(user)
    await store.verifyEmail(linkFor(user))
    return user
  }],
  ['by a reset', async store => {
    const user = newUser({ email: EMAIL })
    await store.createUser(user)
    await store.resetPassword(linkFor(user), HASH)
    return user
  }],
  ['by a change', async store => {
    const user = localUser('before@example.com')
    await store.createUser(user)
    await store.changeEmail(linkFor(user), EMAIL)
    return { ...user, email: EMAIL }
  }],
  ['with a password of the application', async store => {
    const user = { ...localUser(EMAIL), emailVerified: true }
    await store.createUser(user)
    return user
  }],
  ['by the application', async store => {
    const user = newUser({ email: EMAIL, emailVerified: true, link: link('application', 'an id', { email: EMAIL }) })
    await store.createUser(user)
    return user
  }]
]
for (const [way, makeUser] of ways) {
  for (const [reported, news] of NO_LONGER_VOUCHED) {
    const name = `an e-mail that was confirmed ${way} stays verified when a provider reports ${reported}`
    t.test(name, async t => {
      const store = newAccounts()
      const { userId } = await makeUser(store)
      await store.createUser(newUser({ email: 'taken@example.com' }))
      await store.addLink(userId, identity('dev', 'subject', verified(EMAIL)))

      const noted = await store.refreshIdentity(identity('dev', 'subject', news))

      t.hasStrict(noted, { email: EMAIL, emailVerified: true })
      t.strictSame(await store.findUser({ email: EMAIL }), noted)
    })
  }

  t.test(`an e-mail that was confirmed ${way} stays when a provider reports another one`, async t => {
    const store = newAccounts()
    const { userId } = await makeUser(store)
    await store.addLink(userId, identity('dev', 'subject', verified(EMAIL)))

    const changed = await store.refreshIdentity(identity('dev', 'subject', verified('new@example.com')))

    t.hasStrict(changed, { email: EMAIL, emailVerified: true })
    t.equal(await store.findUser({ email: 'new@example.com' }), null)
    t.strictSame(await store.findUser({ email: EMAIL }), changed)
  })

  t.test(`an e-mail that was confirmed ${way} stays verified when links are removed`, async t => {
    const store = newAccounts()
    const { userId } = await makeUser(store)
    await store.addLink(userId, identity('dev', 'subject', verified(EMAIL)))
    await store.addLink(userId, identity('other', 'subject'))

    await store.removeLink(userId, '@user')
    for (const { provider } of (await store.links(userId)).slice(1)) await store.removeLink(userId, provider)
    const left = await store.findUser({ email: EMAIL })
    t.hasStrict(left, { userId, emailVerified: true })
    const link = { userId, email: EMAIL, generation: Number(left?.generation) }
    t.equal(await store.verifyEmail(link), 'unchanged')
  })
}

t.test('a first password at an e-mail that the user has confirmed says so in its claims', async t => {
  const store = newAccounts()
  await store.createUser(ADA)
  await store.verifyEmail(linkFor(ADA))

  await store.setPassword(ADA.userId, { passwordHash: HASH })

  t.hasStrict(await store.findCredential('ada@example.com'), { link: { claims: { email_verified: true } } })
})
