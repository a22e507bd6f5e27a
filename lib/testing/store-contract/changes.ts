import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { Accounts } from '../../accounts/accounts.js'
import type { Block } from '../../accounts/account.js'
import type { MailTokenClaims } from '../../accounts/credentials.js'
import type { NewUser } from '../../accounts/identities.js'
import { assertHas } from './assertions.js'
import {
  ADA, HASH, NO_USER_IDS, ODD_TEXTS, identity, localUser, reasonsOf, valuesOf, vandalize, verified
} from './fixtures.js'
import { type AccountsRule, type Rule, onAccounts } from './rule.js'

const SIGN_OUTS = 40

/** So many calls at once with one link. */
const AT_ONCE = 10

const EXISTS = { name: 'AuthError', code: 'exists', statusCode: 409 }

/** The status of a user whose e-mail is not verified. */
const NEVER_ENDED = { generation: 0, signedOutAt: 0, verifiedEmail: null }

/** Changes of users: their sessions, claims, passwords and e-mails, also at once. */
export function changesOfUsersContract (rule: Rule): void {
  const managed = onAccounts(rule)
  usersContract(managed)
  passwordsContract(managed)
  mailTokensContract(managed)
}

function usersContract (managed: AccountsRule): void {
  managed('a new user was created now, and their sessions were never ended', async (store, twin) => {
    const before = Date.now()
    const created = await store.createUser(ADA)

    const createdAt = Number(created?.createdAt)
    assert.ok(createdAt >= before - 1000 && createdAt <= Date.now() + 1000, `created at ${createdAt}`)
    assert.equal(created?.generation, 0)
    assert.equal(created?.blocked, undefined)
    assert.deepEqual(await twin.findUser({ userId: ADA.userId }), created)
    assert.deepEqual(await twin.status(ADA.userId), { ...NEVER_ENDED, verifiedEmail: ADA.email })
  })

  managed('ending the sessions of a user counts and notes the time, for no other user', async (store, twin) => {
    const bob = localUser('bob@example.com')
    await store.createUser(ADA)
    await store.createUser(bob)
    const before = Math.floor(Date.now() / 1000)

    const first = await store.changeUser(ADA.userId, { endSessions: true })
    const second = await twin.changeUser(ADA.userId, { endSessions: true })

    assert.equal(first.generation, 1)
    assert.equal(second.generation, 2)
    assert.deepEqual(await store.findUser({ userId: ADA.userId }), second)
    const status = await twin.status(ADA.userId)
    assert.equal(status?.generation, 2)
    assert.ok(Number.isInteger(status?.signedOutAt))
    assert.ok(Math.abs(Number(status?.signedOutAt) - before) <= 2, `signed out at ${status?.signedOutAt}`)
    assert.deepEqual(await store.status(bob.userId), NEVER_ENDED)
  })

  managed('sessions that are ended many times at once are counted exactly', async (store, twin) => {
    await store.createUser(ADA)

    const changed = await Promise.all(Array.from({ length: SIGN_OUTS }, (_, index) =>
      (index % 2 === 0 ? store : twin).changeUser(ADA.userId, { endSessions: true })))

    const generations = changed.map(({ generation }) => Number(generation)).sort((a, b) => a - b)
    assert.deepEqual(generations, Array.from({ length: SIGN_OUTS }, (_, index) => index + 1))
    assertHas(await store.status(ADA.userId), { generation: SIGN_OUTS })
  })

  managed('an unknown user has no status', async store => {
    await store.createUser(ADA)

    for (const id of [randomUUID(), ...NO_USER_IDS]) assert.equal(await store.status(id), null, JSON.stringify(id))
  })

  managed('a user is blocked and unblocked', async (store, twin) => {
    const created = await store.createUser(ADA)
    const blocks: Block[] = [
      { at: new Date('2026-01-02T03:04:05.678Z') },
      { at: new Date('2026-01-02T03:04:05.678Z'), until: new Date('2027-01-02T03:04:05.678Z'), reason: 'spam' },
      ...ODD_TEXTS.map(reason => ({ at: new Date(0), reason }))
    ]
    for (const blocked of blocks) {
      const changed = await store.changeUser(ADA.userId, { blocked })

      assert.deepEqual(changed, { ...created, blocked })
      assert.deepEqual(await twin.findUser({ userId: ADA.userId }), changed)
      vandalize(changed)
    }
    assert.deepEqual(await twin.changeUser(ADA.userId, { blocked: null }), created)
    assert.deepEqual(await store.findUser({ userId: ADA.userId }), created)
  })

  managed('grants and withdrawals made at once all count', async (store, twin) => {
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
}

function passwordsContract (managed: AccountsRule): void {
  managed('a password hash is replaced if it is still the one that was read', async (store, twin) => {
    const bob = localUser('bob@example.com')
    await store.createUser(bob)

    await store.replacePasswordHash(bob.userId, HASH, 'the second hash')
    assertHas(await twin.findCredential('bob@example.com'), { passwordHash: 'the second hash' })

    await store.replacePasswordHash(bob.userId, HASH, 'the third hash')
    assertHas(await twin.findCredential('bob@example.com'), { passwordHash: 'the second hash' })
  })

  managed('of many first passwords at once, one link is made and one password stays', async (store, twin) => {
    await store.createUser(ADA)
    const hashes = Array.from({ length: 20 }, (_, index) => `hash ${index}`)

    const users = await Promise.all(hashes.map((passwordHash, index) =>
      (index % 2 === 0 ? store : twin).setPassword(ADA.userId, { passwordHash })))

    assert.ok(users.every(user => user !== null))
    assertHas(await twin.status(ADA.userId), { generation: 20 })
    const credential = await store.findCredential('ada@example.com')
    assert.ok(hashes.includes(String(credential?.passwordHash)))
    assert.equal((await twin.links(ADA.userId)).length, 2)
  })

  managed('of many passwords at once for a user who must have none, one is set', async (store, twin) => {
    await store.createUser(ADA)
    const hashes = Array.from({ length: 20 }, (_, index) => `hash ${index}`)

    const users = await Promise.all(hashes.map((passwordHash, index) =>
      (index % 2 === 0 ? store : twin).setPassword(ADA.userId, { passwordHash, current: null })))

    const winner = users.findIndex(user => user !== null)
    assert.equal(users.filter(user => user !== null).length, 1)
    const credential = await twin.findCredential('ada@example.com')
    assertHas(credential, { passwordHash: hashes[winner], user: { generation: 1 } })
  })

  managed('the status of a user has their e-mail as long as it is verified', async (store, twin) => {
    await store.createUser(ADA)

    await store.refreshIdentity(identity('dev', 'ada-1'))

    assertHas(await twin.status(ADA.userId), { verifiedEmail: null })
  })

  managed('of many replacements of one password at once, one succeeds', async (store, twin) => {
    const bob = localUser('bob@example.com')
    await store.createUser(bob)
    const hashes = Array.from({ length: 20 }, (_, index) => `hash ${index}`)

    const users = await Promise.all(hashes.map((passwordHash, index) =>
      (index % 2 === 0 ? store : twin).setPassword(bob.userId, { passwordHash, current: HASH })))

    const winner = users.findIndex(user => user !== null)
    assert.equal(users.filter(user => user !== null).length, 1)
    assertHas(await twin.findCredential('bob@example.com'), { passwordHash: hashes[winner], user: { generation: 1 } })
  })

  managed('a first password and the removal of another link at once leave a whole account', async (store, twin) => {
    for (let round = 0; round < 10; round++) {
      const user = localUser(`user-${round}@example.com`)
      await store.createUser(user)
      await store.addLink(user.userId, identity('dev', user.userId))

      await Promise.all([
        store.setPassword(user.userId, { passwordHash: 'new' }),
        twin.removeLink(user.userId, 'local')
      ])

      const links = (await store.links(user.userId)).map(({ provider }) => provider)
      const credential = await store.findCredential(`user-${round}@example.com`)
      assert.equal(links.includes('local'), credential !== null)
    }
  })
}

/** What the tokens of mails do at once. */
function mailTokensContract (managed: AccountsRule): void {
  for (const [method, use] of Object.entries(USES)) {
    managed(`of ten calls of ${method} at once with one link, one succeeds`, async (store, twin) => {
      await store.createUser(BOB)
      await store.addLink(BOB.userId, identity('dev', 'bob-1'))

      const results = await Promise.all(Array.from({ length: AT_ONCE }, (_, index) =>
        use(index % 2 === 0 ? store : twin, linkFor(BOB))))

      assert.equal(results.filter(result => result !== null).length, 1)
      assertHas(await twin.status(BOB.userId), { generation: 1 })
    })
  }

  managed('of ten different redemptions at once, what one has ended holds for the others', async (store, twin) => {
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

  managed('a link that is added while an unverified address is reset does not outlive it', async (store, twin) => {
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

  managed('of users who change to one e-mail at once, one gets it', async (store, twin) => {
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

  managed('a user who gets another link while the address is released is whole or gone', async (store, twin) => {
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

const BOB = localUser('bob@example.com')

/** The link of an address of a user whose sessions were never ended. */
function linkFor ({ userId, email }: Pick<NewUser, 'userId' | 'email'>): MailTokenClaims {
  return { userId, email: String(email), generation: 0 }
}

/** The uses of a link of which one counts. */
const USES: Record<string, (store: Accounts, link: MailTokenClaims) => Promise<unknown>> = {
  verifyEmail: (store, link) => store.verifyEmail(link),
  resetPassword: (store, link) => store.resetPassword(link, 'the new hash'),
  changeEmail: (store, link) => store.changeEmail(link, 'new@example.com'),
  releaseEmail: (store, link) => store.releaseEmail(link)
}

async function providersOf (store: Accounts, { userId }: Pick<NewUser, 'userId'>): Promise<string[]> {
  const links = await store.links(userId)
  return links.map(({ provider }) => provider)
}
