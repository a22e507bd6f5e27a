import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { Accounts } from '../../accounts/accounts.js'
import type { MailTokenClaims } from '../../accounts/credentials.js'
import type { NewUser } from '../../accounts/identities.js'
import { assertGone, assertHas } from './assertions.js'
import {
  ADA, HASH, INVALID_EMAIL, NO_LONGER_VOUCHED, NO_USER_IDS, identity, link, localUser, newUser, reasonsOf, valuesOf,
  verified
} from './fixtures.js'
import { type AccountsRule, type Rule, onAccounts } from './rule.js'

const EXISTS = { name: 'AuthError', code: 'exists', statusCode: 409 }

/** So many calls at once with one link. */
const AT_ONCE = 10

/** What the tokens of mails do. */
export function mailTokensContract (rule: Rule): void {
  const linked = onAccounts(rule)
  linksContract(linked)
  verificationContract(linked)
  resetContract(linked)
  changeContract(linked)
  releaseContract(linked)
  confirmedContract(linked)
}

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

function linksContract (linked: AccountsRule): void {
  for (const [method, use] of Object.entries(USES)) {
    linked(`${method} writes nothing for a link that does not hold`, async (store, twin) => {
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
        assert.equal(await use(store, linkFor(BOB, link)), null, JSON.stringify(link))
      }

      assert.deepEqual(await allOf(twin, BOB), before)
      assertHas(await twin.findUser({ userId: ADA.userId }), { email: 'ada@example.com' })
    })

    linked(`${method} takes a link from after the sessions were ended, and none from before`, async (store, twin) => {
      await store.createUser(BOB)
      await store.changeUser(BOB.userId, { endSessions: true })

      assert.equal(await use(twin, linkFor(BOB)), null)
      assert.notEqual(await use(twin, linkFor(BOB, { generation: 1 })), null)
    })
  }

  for (const method of ['resetPassword', 'changeEmail', 'releaseEmail'] as const) {
    linked(`of ten calls of ${method} at once with one link, one succeeds`, async (store, twin) => {
      await store.createUser(BOB)
      await store.addLink(BOB.userId, identity('dev', 'bob-1'))

      const results = await Promise.all(Array.from({ length: AT_ONCE }, (_, index) =>
        USES[method]?.(index % 2 === 0 ? store : twin, linkFor(BOB))))

      assert.equal(results.filter(result => result !== null).length, 1)
      assertHas(await twin.status(BOB.userId), { generation: 1 })
    })
  }

  linked('of ten different redemptions at once, what one has ended holds for the others', async (store, twin) => {
    for (let round = 0; round < 5; round++) {
      const user = localUser(`user-${round}@example.com`)
      await store.createUser(user)
      const calls = Array.from({ length: AT_ONCE }, (_, index) =>
        index % 2 === 0
          ? store.resetPassword(linkFor(user), `hash ${index}`)
          : twin.changeEmail(linkFor(user), `new-${round}-${index}@example.com`))

      const [first, ...others] = (await Promise.all(calls)).filter(result => result !== null)

      assert.ok(first)
      assert.deepEqual(others, [])
      const present = await twin.findUser({ userId: user.userId })
      assert.deepEqual('user' in first ? first.user : first, present)
      const [local] = await store.links(user.userId)
      assertHas(local, { subject: present?.email, claims: { email: present?.email, email_verified: true } })
    }
  })
}

function verificationContract (linked: AccountsRule): void {
  linked('an e-mail is verified for the user and for the link at local, and all sessions end', async (store, twin) => {
    await store.createUser(BOB)
    await store.addLink(BOB.userId, identity('dev', 'bob-1'))
    const { credential } = await allOf(store, BOB)

    const proof = await store.verifyEmail(linkFor(BOB))

    const after = await allOf(twin, BOB)
    assert.deepEqual(proof, { user: after.user, wasProven: false, removed: [] })
    assertHas(after.status, { generation: 1, verifiedEmail: BOB.email })
    assertHas(after.user, { email: 'bob@example.com', emailVerified: true })
    const [dev, local] = after.links
    assert.deepEqual(dev?.claims, { sub: 'bob-1' })
    assert.deepEqual(local?.claims, { ...BOB.link.claims, email_verified: true })
    assertHas(after.credential, { passwordHash: credential?.passwordHash, link: { subject: 'bob@example.com' } })
  })

  linked('an e-mail that was verified by its user is not verified again', async (store, twin) => {
    await store.createUser(BOB)

    const results = await Promise.all(Array.from({ length: AT_ONCE }, (_, index) =>
      (index % 2 === 0 ? store : twin).verifyEmail(linkFor(BOB))))

    assert.equal(results.filter(result => result !== null).length, 1)
    assert.equal(await twin.verifyEmail(linkFor(BOB, { generation: 1 })), 'unchanged')
    assertHas(await twin.status(BOB.userId), { generation: 1, verifiedEmail: BOB.email })
  })

  linked('an e-mail that a provider vouches for is verified by its user too', async (store, twin) => {
    await store.createUser(ADA)

    assertHas(await store.verifyEmail(linkFor(ADA)), { wasProven: true })
    assert.equal(await twin.verifyEmail(linkFor(ADA)), 'unchanged')
    assertHas(await twin.status(ADA.userId), { generation: 0 })
    assert.deepEqual(await twin.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
  })
}

function resetContract (linked: AccountsRule): void {
  linked('a reset replaces the password, verifies the e-mail and ends the sessions', async (store, twin) => {
    await store.createUser({ ...BOB, claims: { role: 'member' } })

    const reset = await store.resetPassword(linkFor(BOB), 'the new hash')

    const after = await allOf(twin, BOB)
    assert.deepEqual(reset, { user: after.user, wasProven: false, removed: [] })
    assertHas(after.user, { emailVerified: true, generation: 1, claims: { role: 'member' } })
    assert.ok(Number(after.status?.signedOutAt) > 0)
    const claims = { ...BOB.link.claims, email_verified: true }
    assert.deepEqual(after.links, [{ ...BOB.link, userId: BOB.userId, claims }])
    assertHas(after.credential, { passwordHash: 'the new hash' })
  })

  linked('a reset of an e-mail that was not verified removes all other links', async (store, twin) => {
    const carol = localUser('carol@example.com')
    for (const user of [BOB, carol]) {
      await store.createUser(user)
      for (const provider of ['github', 'dev', 'Zed']) await store.addLink(user.userId, identity(provider, user.userId))
    }

    const reset = await store.resetPassword(linkFor(BOB), 'the new hash')

    assert.deepEqual([reset?.wasProven, reset?.removed], [false, ['Zed', 'dev', 'github']])
    assert.deepEqual(await providersOf(twin, BOB), ['local'])
    for (const provider of ['github', 'dev']) {
      assert.equal(await twin.findUser({ provider, subject: BOB.userId }), null)
      assert.ok(await twin.refreshIdentity(identity(provider, carol.userId)), 'those of another user stay')
    }
  })

  linked('the first proof of an e-mail keeps what was listed, and removes all of it otherwise', async (store, twin) => {
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
      const { methods, keep = '' } = await twin.unprovenMethods({ ...kept, generation: 0 }, isReset) ?? {}
      assert.deepEqual(methods?.map(({ kind }) => kind), isReset ? ['provider'] : ['provider', 'password'])
      await assert.rejects(prove(stripped, keep), { code: 'choice_required' })

      await prove(kept, keep)
      await prove(stripped, 'remove')

      assert.deepEqual(await providersOf(twin, kept), ['dev', 'local'])
      assert.deepEqual(await providersOf(twin, stripped), isReset ? ['local'] : ['application'])
      assert.equal((await twin.findCredential(String(stripped.email)) === null), !isReset)
      for (const { userId } of [kept, stripped]) {
        assertHas(await twin.findUser({ userId }), { emailVerified: true, generation: 1 })
        assert.equal(await twin.unprovenMethods({ userId, generation: 1 }), null)
      }
    }
  })

  linked('a reset of a verified e-mail keeps the other links', async (store, twin) => {
    const carol = localUser('carol@example.com')
    await store.createUser(ADA)
    await store.createUser({ ...carol, emailVerified: true })
    await store.addLink(carol.userId, identity('dev', 'carol-1'))

    for (const user of [ADA, carol]) {
      const reset = await store.resetPassword(linkFor(user), 'the new hash')
      assertHas(reset, { user: { userId: user.userId, emailVerified: true }, wasProven: true, removed: [] })
      assert.deepEqual(await providersOf(twin, user), ['dev', 'local'])
    }
    assert.deepEqual((await twin.findCredential('ada@example.com'))?.link.claims, {
      sub: ADA.userId, email: 'ada@example.com', email_verified: true, name: 'Ada'
    })
  })

  linked('a link that is added while an unverified address is reset does not outlive it', async (store, twin) => {
    for (let round = 0; round < 10; round++) {
      const user = localUser(`user-${round}@example.com`)
      await store.createUser(user)

      const [reset, added] = await Promise.all([
        store.resetPassword(linkFor(user), 'the new hash'),
        twin.addLink(user.userId, identity('dev', user.userId))
      ])

      // A link that was added afterwards reports the user as they are then.
      const isLater = added?.generation === 1
      assert.deepEqual(await providersOf(twin, user), isLater ? ['dev', 'local'] : ['local'])
      assert.deepEqual(reset?.removed, isLater ? [] : ['dev'])
    }
  })

  linked('a blocked user resets no password until the block is over', async (store, twin) => {
    await store.createUser(BOB)
    const at = new Date()
    for (const blocked of [{ at }, { at, until: new Date(Date.now() + 60_000) }]) {
      await store.changeUser(BOB.userId, { blocked })
      assert.equal(await store.resetPassword(linkFor(BOB), 'the new hash'), null)
    }
    assertHas(await twin.findCredential('bob@example.com'), { passwordHash: HASH, user: { emailVerified: false } })

    await store.changeUser(BOB.userId, { blocked: { at, until: new Date(Date.now() - 60_000) } })

    assert.ok(await twin.resetPassword(linkFor(BOB), 'the new hash'))
  })
}

function changeContract (linked: AccountsRule): void {
  linked('a changed e-mail is that of the user and of the link at local', async (store, twin) => {
    await store.createUser(BOB)
    await store.addLink(BOB.userId, identity('dev', 'bob-1', verified('bob@example.com')))

    const { user } = await store.changeEmail(linkFor(BOB), 'new@example.com') ?? {}

    assertHas(user, { userId: BOB.userId, email: 'new@example.com', emailVerified: true, generation: 1 })
    assert.deepEqual(await twin.findUser({ email: 'new@example.com' }), user)
    assert.equal(await twin.findUser({ email: 'bob@example.com' }), null)
    assert.equal(await twin.findCredential('bob@example.com'), null)
    assert.deepEqual(await twin.findCredential('new@example.com'), {
      user,
      passwordHash: HASH,
      link: {
        provider: 'local',
        subject: 'new@example.com',
        userId: BOB.userId,
        claims: { ...BOB.link.claims, email: 'new@example.com', email_verified: true }
      }
    })
    assert.ok(Number((await twin.status(BOB.userId))?.signedOutAt) > 0)
    assertHas((await twin.links(BOB.userId))[0], { subject: 'bob-1', claims: { email: 'bob@example.com' } })
    assert.ok(await twin.createUser(localUser('bob@example.com')), 'the old one is free')
  })

  linked('a user without a password changes their e-mail', async (store, twin) => {
    await store.createUser(ADA)

    const { user } = await store.changeEmail(linkFor(ADA), 'new@example.com') ?? {}

    assertHas(user, { email: 'new@example.com', emailVerified: true })
    assert.deepEqual(await twin.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
    assertHas(await twin.refreshIdentity(identity('dev', 'ada-1', verified('ada@example.com'))), {
      email: 'new@example.com', emailVerified: true
    })
  })

  linked('an e-mail is changed to itself', async (store, twin) => {
    await store.createUser(BOB)

    const user = { emailVerified: true, generation: 1 }
    assertHas(await store.changeEmail(linkFor(BOB), 'bob@example.com'), { user })

    assertHas(await twin.findCredential('bob@example.com'), { passwordHash: HASH, user: { userId: BOB.userId } })
  })

  for (const other of [newUser({ email: 'taken@example.com' }), localUser('taken@example.com')]) {
    const name = `an e-mail is not changed to one that another user with the link ${other.link.provider} has`
    linked(name, async (store, twin) => {
      await store.createUser(BOB)
      await store.createUser(other)
      const before = [await allOf(store, BOB), await allOf(store, other)]

      await assert.rejects(store.changeEmail(linkFor(BOB), 'taken@example.com'), EXISTS)
      assert.equal(await store.changeEmail(linkFor(BOB, { generation: 1 }), 'taken@example.com'), null)

      assert.deepEqual([await allOf(twin, BOB), await allOf(twin, other)], before)
    })
  }

  linked('an e-mail is not changed to one that is not canonical', async (store, twin) => {
    await store.createUser(BOB)
    const before = await allOf(store, BOB)

    for (const email of ['New@example.com', ' new@example.com', 'new', '']) {
      await assert.rejects(store.changeEmail(linkFor(BOB), email), INVALID_EMAIL, email)
    }

    assert.deepEqual(await allOf(twin, BOB), before)
  })

  linked('of users who change to one e-mail at once, one gets it', async (store, twin) => {
    for (let round = 0; round < 5; round++) {
      const all = Array.from({ length: 4 }, (_, index) => localUser(`user-${round}-${index}@example.com`))
      for (const user of all) await store.createUser(user)
      const email = `shared-${round}@example.com`

      const results = await Promise.allSettled(all.map((user, index) =>
        (index % 2 === 0 ? store : twin).changeEmail(linkFor(user), email)))

      const [changed, ...others] = valuesOf(results)
      const winner = changed?.user
      assert.deepEqual(others, [])
      assert.deepEqual(await twin.findUser({ email }), winner)
      for (const reason of reasonsOf(results)) assertHas(reason, EXISTS)
      assertHas(await store.findCredential(email), { link: { userId: winner?.userId } })
      for (const user of all.filter(({ userId }) => userId !== winner?.userId)) {
        assertHas(await store.findCredential(String(user.email)), { user: { email: user.email } })
      }
    }
  })
}

function releaseContract (linked: AccountsRule): void {
  linked('a user with a password alone is deleted when the address is released', async (store, twin) => {
    await store.createUser(BOB)
    await store.createUser(ADA)

    assert.equal(await store.releaseEmail(linkFor(BOB)), 'deleted')

    await assertGone(twin, BOB)
    assertHas(await twin.findUser({ userId: ADA.userId }), { email: 'ada@example.com' })
    assert.ok(await twin.createUser(localUser('bob@example.com')), 'the address is free')
  })

  linked('a user with another link loses the address and the password when it is released', async (store, twin) => {
    await store.createUser({ ...BOB, claims: { role: 'member' } })
    await store.addLink(BOB.userId, identity('dev', 'bob-1'))

    assert.equal(await store.releaseEmail(linkFor(BOB)), 'freed')

    assertHas(await twin.findUser({ userId: BOB.userId }), {
      email: null, emailVerified: false, generation: 1, claims: { role: 'member' }
    })
    assert.ok(Number((await twin.status(BOB.userId))?.signedOutAt) > 0)
    assert.deepEqual(await providersOf(twin, BOB), ['dev'])
    assert.equal(await twin.findCredential('bob@example.com'), null)
    assert.equal(await twin.findUser({ email: 'bob@example.com' }), null)
    assert.ok(await twin.createUser(localUser('bob@example.com')), 'the address is free')
    assert.equal(await store.setPassword(BOB.userId, { passwordHash: 'new' }), null)
    await store.refreshIdentity(identity('dev', 'bob-1', verified('bob@new.example')))
    assertHas(await store.setPassword(BOB.userId, { passwordHash: 'new', current: null }), { userId: BOB.userId })
  })

  linked('a user without a password loses the address when it is released', async (store, twin) => {
    const carol = newUser({ email: 'carol@example.com' })
    await store.createUser(carol)

    assert.equal(await store.releaseEmail(linkFor(carol)), 'freed')

    assertHas(await twin.findUser({ userId: carol.userId }), { email: null, generation: 1 })
    assert.deepEqual(await providersOf(twin, carol), ['dev'])
  })

  linked('a verified address is not released', async (store, twin) => {
    await store.createUser(ADA)
    await store.createUser(BOB)
    await store.verifyEmail(linkFor(BOB))

    for (const user of [ADA, BOB]) {
      const before = await allOf(store, user)
      assert.equal(await store.releaseEmail(linkFor(user, { generation: before.status?.generation ?? 0 })), null)
      assert.deepEqual(await allOf(twin, user), before)
    }
  })

  linked('a user who gets another link while the address is released is whole or gone', async (store, twin) => {
    for (let round = 0; round < 10; round++) {
      const user = localUser(`user-${round}@example.com`)
      await store.createUser(user)

      const [released, added] = await Promise.all([
        store.releaseEmail(linkFor(user)),
        twin.addLink(user.userId, identity('dev', user.userId))
      ])

      assert.deepEqual([released, added === null], added === null ? ['deleted', true] : ['freed', false])
      assert.deepEqual(await providersOf(twin, user), added === null ? [] : ['dev'])
    }
  })
}

/** What holds of an e-mail that the user has confirmed, by each method that confirms it. */
function confirmedContract (linked: AccountsRule): void {
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
      linked(name, async (store, twin) => {
        const { userId } = await makeUser(store)
        await store.createUser(newUser({ email: 'taken@example.com' }))
        await store.addLink(userId, identity('dev', 'subject', verified(EMAIL)))

        const noted = await store.refreshIdentity(identity('dev', 'subject', news))

        assertHas(noted, { email: EMAIL, emailVerified: true })
        assert.deepEqual(await twin.findUser({ email: EMAIL }), noted)
      })
    }

    linked(`an e-mail that was confirmed ${way} stays when a provider reports another one`, async (store, twin) => {
      const { userId } = await makeUser(store)
      await store.addLink(userId, identity('dev', 'subject', verified(EMAIL)))

      const changed = await store.refreshIdentity(identity('dev', 'subject', verified('new@example.com')))

      assertHas(changed, { email: EMAIL, emailVerified: true })
      assert.equal(await twin.findUser({ email: 'new@example.com' }), null)
      assert.deepEqual(await twin.findUser({ email: EMAIL }), changed)
    })

    linked(`an e-mail that was confirmed ${way} stays verified when links are removed`, async (store, twin) => {
      const { userId } = await makeUser(store)
      await store.addLink(userId, identity('dev', 'subject', verified(EMAIL)))
      await store.addLink(userId, identity('other', 'subject'))

      await store.removeLink(userId, '@user')
      for (const { provider } of (await store.links(userId)).slice(1)) await store.removeLink(userId, provider)
      const left = await twin.findUser({ email: EMAIL })
      assertHas(left, { userId, emailVerified: true })
      const link = { userId, email: EMAIL, generation: Number(left?.generation) }
      assert.equal(await twin.verifyEmail(link), 'unchanged')
    })
  }

  linked('a first password at an e-mail that the user has confirmed says so in its claims', async (store, twin) => {
    await store.createUser(ADA)
    await store.verifyEmail(linkFor(ADA))

    await store.setPassword(ADA.userId, { passwordHash: HASH })

    assertHas(await twin.findCredential('ada@example.com'), { link: { claims: { email_verified: true } } })
  })
}
