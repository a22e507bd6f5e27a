import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { Block, User } from '../../accounts/account.js'
import type { UsersQuery } from '../../accounts/auth-store.js'
import type { NewUser } from '../../accounts/identities.js'
import { assertHas } from './assertions.js'
import {
  ADA, HASH, NO_USER_IDS, ODD_TEXTS, UNKNOWN_USER, identity, link, localUser, newUser, vandalize, verified
} from './fixtures.js'
import { type AccountsRule, type Rule, onAccounts } from './rule.js'

const SIGN_OUTS = 40

/** The status of a user whose e-mail is not verified. */
const NEVER_ENDED = { generation: 0, signedOutAt: 0, verifiedEmail: null }

/** Changes of users, their sessions and passwords, and the list of users. */
export function changesOfUsersContract (rule: Rule): void {
  const managed = onAccounts(rule)
  sessionsContract(managed)
  changesContract(managed)
  passwordsContract(managed)
  listContract(managed)
}

function sessionsContract (managed: AccountsRule): void {
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

  managed('a sign-in, a grant and a new link end no session and keep the count', async (store, twin) => {
    await store.createUser({ ...ADA, isNew: true })
    await store.changeUser(ADA.userId, { endSessions: true })
    const before = await store.status(ADA.userId)

    await store.refreshIdentity(identity('dev', 'ada-1', verified('new@example.com', { name: 'Ada Lovelace' })))
    await store.addLink(ADA.userId, identity('other', 'ada-2'))
    await store.admitUser(ADA.userId)
    await store.grant(ADA.userId, { role: 'member' })
    await store.withdraw(ADA.userId, ['role'])

    assert.deepEqual(await twin.status(ADA.userId), { ...before, verifiedEmail: 'new@example.com' })
  })

  managed('a link for a generation that the user no longer has is not added', async (store, twin) => {
    const bob = localUser('bob@example.com')
    await store.createUser(ADA)
    await store.createUser(bob)
    await store.changeUser(ADA.userId, { endSessions: true })

    assert.equal(await store.addLink(ADA.userId, identity('other', 'ada-2'), 0), null)
    assert.equal(await store.addLink(bob.userId, identity('other', 'bob-2'), 1), null)
    for (const { userId } of [ADA, bob]) assert.equal((await twin.links(userId)).length, 1)

    assertHas(await store.addLink(ADA.userId, identity('other', 'ada-2'), 1), { userId: ADA.userId })
    assertHas(await store.addLink(bob.userId, identity('other', 'bob-2'), 0), { userId: bob.userId })
  })

  managed('a removed link ends the sessions, one that the user does not have does not', async (store, twin) => {
    await store.createUser(ADA)
    await store.addLink(ADA.userId, identity('other', '1'))

    await store.removeLink(ADA.userId, 'unknown')
    assert.deepEqual(await twin.status(ADA.userId), { ...NEVER_ENDED, verifiedEmail: ADA.email })
    await store.removeLink(ADA.userId, 'other')

    const status = await twin.status(ADA.userId)
    assert.equal(status?.generation, 1)
    assert.ok(status.signedOutAt > 0)
  })

  managed('an unknown user has no status', async store => {
    await store.createUser(ADA)

    for (const id of [randomUUID(), ...NO_USER_IDS]) assert.equal(await store.status(id), null, JSON.stringify(id))
  })
}

function changesContract (managed: AccountsRule): void {
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

  managed('what is not changed stays, and an empty change changes nothing', async (store, twin) => {
    const blocked = { at: new Date(1000) }
    await store.createUser({ ...ADA, isNew: true })
    const all = await store.changeUser(ADA.userId, { name: 'Countess', blocked, endSessions: true })
    assertHas(all, { name: 'Countess', blocked, generation: 1, isNew: true, email: 'ada@example.com' })

    assert.deepEqual(await store.changeUser(ADA.userId, {}), all)
    assert.deepEqual(await store.changeUser(ADA.userId, { name: 'Ada' }), { ...all, name: 'Ada' })
    const { blocked: _, ...free } = { ...all, name: 'Ada' }
    assert.deepEqual(await twin.changeUser(ADA.userId, { blocked: null }), free)
  })

  managed('a name that was set stays at sign-ins and with a new link', async (store, twin) => {
    await store.createUser(ADA)
    const bob = newUser({ name: 'Bob' })
    await store.createUser(bob)
    for (const name of ['Countess', null]) {
      const changed = await store.changeUser(ADA.userId, { name })
      assert.equal(changed.name, name)

      const claims = { sub: 'ada-1', name: `Not ${name}` }
      assertHas(await twin.refreshIdentity(identity('dev', 'ada-1', { claims })), { name })
      assertHas(await twin.addLink(ADA.userId, identity(`other ${name}`, '1', { claims })), { name })

      assertHas(await store.findUser({ userId: ADA.userId }), { name })
      assertHas((await store.links(ADA.userId)).find(({ provider }) => provider === 'dev'), { claims })
    }
    assertHas(await store.findUser({ userId: bob.userId }), { name: 'Bob' })
  })

  managed('a name is set in the claims of the links local and application, and of no other', async (store, twin) => {
    const bob = localUser('bob@example.com')
    const carol = newUser({ link: link('application', 'carol', { email: 'carol@example.com', name: 'Carol' }) })
    for (const user of [bob, carol]) await store.createUser(user)
    await store.addLink(bob.userId, identity('dev', 'bob-1', { claims: { sub: 'bob-1', name: 'Bob of dev' } }))

    await store.changeUser(bob.userId, { name: 'Robert' })
    await store.changeUser(carol.userId, { name: 'Caroline' })

    const claimsOf = async ({ userId }: NewUser) => (await twin.links(userId)).map(({ claims }) => claims)
    const robert = { ...bob.link.claims, name: 'Robert' }
    assert.deepEqual(await claimsOf(bob), [{ sub: 'bob-1', name: 'Bob of dev' }, robert])
    assert.deepEqual(await claimsOf(carol), [{ ...carol.link.claims, name: 'Caroline' }])

    await store.changeUser(carol.userId, { name: null })
    assert.deepEqual(await claimsOf(carol), [{ sub: 'carol', email: 'carol@example.com' }])
    await store.changeUser(bob.userId, { endSessions: true })
    assert.deepEqual((await claimsOf(bob))[1], robert)
  })

  managed('an unknown user is not changed', async store => {
    await store.createUser(ADA)
    for (const id of [randomUUID(), ...NO_USER_IDS]) {
      await assert.rejects(store.changeUser(id, { name: 'Eve' }), UNKNOWN_USER, JSON.stringify(id))
    }
    assertHas(await store.findUser({ userId: ADA.userId }), { name: 'Ada' })
  })
}

function passwordsContract (managed: AccountsRule): void {
  managed('a first password makes a local account and ends the sessions', async (store, twin) => {
    const created = await store.createUser(ADA)

    const user = await store.setPassword(ADA.userId, { passwordHash: HASH })

    assert.deepEqual(user, { ...created, generation: 1 })
    assert.ok(((await twin.status(ADA.userId))?.signedOutAt ?? 0) > 0)
    assert.deepEqual(await twin.findCredential('ada@example.com'), {
      user,
      link: {
        provider: 'local',
        subject: 'ada@example.com',
        userId: ADA.userId,
        claims: { sub: ADA.userId, email: 'ada@example.com', name: 'Ada' }
      },
      passwordHash: HASH
    })
    assertHas((await twin.links(ADA.userId)).map(({ provider }) => provider), ['dev', 'local'])
  })

  managed('a first password of a user without a name makes a link without one', async (store, twin) => {
    await store.createUser({ ...ADA, name: null })

    await store.setPassword(ADA.userId, { passwordHash: HASH })

    const { link } = await twin.findCredential('ada@example.com') ?? {}
    assert.deepEqual(link?.claims, { sub: ADA.userId, email: 'ada@example.com' })
  })

  managed('a password is replaced, and the link stays as it is', async (store, twin) => {
    const bob = localUser('bob@example.com')
    await store.createUser(bob)

    assertHas(await store.setPassword(bob.userId, { passwordHash: 'the second' }), { generation: 1 })
    const third = { passwordHash: 'the third', current: 'the second' }
    assertHas(await twin.setPassword(bob.userId, third), { generation: 2 })

    assertHas(await store.findCredential('bob@example.com'), { passwordHash: 'the third', user: { generation: 2 } })
    assert.deepEqual(await store.links(bob.userId), [{ ...bob.link, userId: bob.userId }])
  })

  managed('a password that is not the current one any more is not replaced', async (store, twin) => {
    const bob = localUser('bob@example.com')
    await store.createUser(bob)
    await store.createUser(ADA)

    assert.equal(await store.setPassword(bob.userId, { passwordHash: 'new', current: 'another' }), null)
    assert.equal(await store.setPassword(bob.userId, { passwordHash: 'new', current: null }), null, 'there is one')
    assert.equal(await store.setPassword(ADA.userId, { passwordHash: 'new', current: HASH }), null, 'there is none')

    assertHas(await twin.findCredential('bob@example.com'), { passwordHash: HASH })
    assert.deepEqual(await twin.status(bob.userId), NEVER_ENDED)
    assert.deepEqual(await twin.status(ADA.userId), { ...NEVER_ENDED, verifiedEmail: ADA.email })
    assert.equal((await twin.links(ADA.userId)).length, 1)
  })

  managed('a user without an e-mail gets no password', async (store, twin) => {
    const bob = newUser({ email: null })
    await store.createUser(bob)

    assert.equal(await store.setPassword(bob.userId, { passwordHash: HASH }), null)

    assert.deepEqual(await twin.links(bob.userId), [{ ...bob.link, userId: bob.userId }])
    assert.deepEqual(await twin.status(bob.userId), NEVER_ENDED)
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

  managed('an unknown user gets no password', async store => {
    for (const id of [randomUUID(), ...NO_USER_IDS]) {
      await assert.rejects(store.setPassword(id, { passwordHash: HASH }), UNKNOWN_USER, JSON.stringify(id))
    }
  })
}

function listContract (managed: AccountsRule): void {
  const ALL: UsersQuery = { after: null, limit: 100, order: 'id', search: null, blocked: null }
  const at = (userId = '') => ({ userId, createdAt: new Date(0) })
  const idsOf = (users: Array<Pick<User, 'userId'>>): string[] => users.map(({ userId }) => userId)

  managed('users are listed by id, page by page', async (store, twin) => {
    const made: string[] = []
    for (let count = 0; count < 7; count++) {
      const user = newUser()
      await store.createUser(user)
      made.push(user.userId)
    }
    const sorted = made.sort((a, b) => a < b ? -1 : 1)

    const all = await twin.users(ALL)
    assert.deepEqual(idsOf(all), sorted)
    assert.deepEqual(await store.findUser({ userId: String(sorted[3]) }), all[3])
    assert.deepEqual(idsOf(await twin.users({ ...ALL, limit: 3 })), sorted.slice(0, 3))
    assert.deepEqual(idsOf(await twin.users({ ...ALL, limit: 3, after: at(sorted[2]) })), sorted.slice(3, 6))
    assert.deepEqual(idsOf(await twin.users({ ...ALL, limit: 3, after: at(sorted[6]) })), [])
    assert.deepEqual(idsOf(await twin.users({ ...ALL, after: at('00000000-0000-0000-0000-000000000000') })), sorted)
    assert.equal(await twin.countUsers(ALL), 7)
  })

  managed('users are listed newest first, page by page', async (store, twin) => {
    const made: User[] = []
    for (let count = 0; count < 5; count++) {
      const user = newUser()
      await store.createUser(user)
      made.push(await store.findUser({ userId: user.userId }) ?? assert.fail())
    }
    const sorted = idsOf(made.sort((a, b) =>
      b.createdAt.getTime() - a.createdAt.getTime() || (a.userId < b.userId ? 1 : -1)))
    const newest: UsersQuery = { ...ALL, order: 'newest' }

    assert.deepEqual(idsOf(await twin.users(newest)), sorted)
    const [, second] = await twin.users({ ...newest, limit: 2 })
    assert.deepEqual(idsOf(await twin.users({ ...newest, limit: 2, after: second ?? null })), sorted.slice(2, 4))
    assert.deepEqual(idsOf(await twin.users({ ...newest, search: 'nobody' })), [])
    const [last] = (await twin.users(newest)).slice(-1)
    assert.deepEqual(idsOf(await twin.users({ ...newest, after: last ?? null })), [])
    // One in the same millisecond, with a lower id, comes later.
    const same = { createdAt: new Date(made[2]?.createdAt ?? 0), userId: 'ffffffff-ffff-4fff-bfff-ffffffffffff' }
    const rest = await twin.users({ ...newest, after: same })
    assert.deepEqual(idsOf(rest), idsOf(made.filter(({ createdAt }) => createdAt <= same.createdAt)))
  })

  managed('users are found by the domain of their e-mail, and by their name in any case', async (store, twin) => {
    const found = async (search: string): Promise<Array<string | null>> => {
      const filter = { search, blocked: null }
      const users = await twin.users({ ...ALL, ...filter })
      assert.equal(await twin.countUsers(filter), users.length)
      return users.map(({ name }) => name).sort()
    }
    const [ada, eva, nobody] = [
      newUser({ email: 'countess@lovelace.example', name: 'Ada' }),
      newUser({ email: 'eva@example.com', name: 'Éva Ångström' }),
      newUser({ email: null, name: null })
    ]
    for (const user of [ada, eva, nobody]) await store.createUser(user)

    assert.deepEqual(await found('love'), ['Ada'])
    assert.deepEqual(await found('lovelace.example'), ['Ada'])
    assert.deepEqual(await found('ada'), ['Ada'])
    assert.deepEqual(await found('éva ång'), ['Éva Ångström'])
    assert.deepEqual(await found('e'), ['Éva Ångström'], 'by the domain and by the e-mail, once')
    assert.deepEqual(await found('da'), [])

    await store.changeUser(ada.userId, { name: 'Augusta' })
    assert.deepEqual([await found('ada'), await found('aug')], [[], ['Augusta']])
    await store.updateUser(ada.userId, { name: null, email: 'ada@byron.example' })
    assert.deepEqual([await found('aug'), await found('love'), await found('byron')], [[], [], [null]])
    await store.changeUser(nobody.userId, { name: 'x'.repeat(3000) })
    assert.equal((await found('x'.repeat(256))).length, 1)
  })

  managed('the operator changes an e-mail as the user would', async (store, twin) => {
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
    await assert.rejects(taken, { code: 'exists' })
    await assert.rejects(store.updateUser(userId, { email: 'Ada@Example.com' }), { code: 'invalid_email' })
    await assert.rejects(store.updateUser(randomUUID(), { email: 'new@example.com' }), UNKNOWN_USER)
    assert.equal((await twin.findUser({ userId }))?.name, ada.name)

    const { before, user } = await store.updateUser(userId, { email: 'new@example.com' })
    assert.deepEqual([before.email, before.emailVerified], ['ada@example.com', true])
    assert.deepEqual([user.email, user.emailVerified], ['new@example.com', false])
    assert.equal(user.generation, before.generation + 1)
    assert.deepEqual(await twin.findUser({ email: 'new@example.com' }), user)
    assert.equal(await twin.findCredential('ada@example.com'), null)
    const credential = await twin.findCredential('new@example.com')
    assert.deepEqual(credential?.link.claims, { sub: userId, email: 'new@example.com' })
    assert.equal((await store.createUser({ ...newUser({ email: 'ada@example.com' }) }))?.email, 'ada@example.com')

    const verified = await store.updateUser(userId, { emailVerified: true })
    assert.deepEqual([verified.user.emailVerified, verified.user.generation], [true, user.generation + 1])
    assert.equal((await twin.findCredential('new@example.com'))?.link.claims.email_verified, true)
    const same = await store.updateUser(userId, { email: 'new@example.com', emailVerified: true })
    assert.deepEqual([same.before, same.user], [verified.user, verified.user], 'what does not change ends nothing')
    const unverified = await store.updateUser(userId, { emailVerified: false })
    assert.deepEqual([unverified.user.emailVerified, unverified.user.generation], [false, user.generation + 2])
  })

  managed('users are listed by the beginning of their e-mail, which is not a pattern', async (store, twin) => {
    const emails = [
      'ada@example.com', 'ada.b@example.com', 'adb@example.com', 'a_a@example.com', 'a*a@example.com',
      'éva@example.com', 'zoe@example.com'
    ]
    for (const email of emails) await store.createUser(newUser({ email, name: null }))
    await store.createUser(newUser({ email: null, name: null }))

    const withPrefix = async (prefix: string) => {
      const found = await twin.users({ ...ALL, search: prefix })
      return found.map(({ email }) => email).sort()
    }
    for (const prefix of ['a', 'ad', 'ada', 'ada@', 'a_', 'a%', '%', '_', 'a*', 'é', 'z', 'zz', "' or ''='"]) {
      assert.deepEqual(await withPrefix(prefix), emails.filter(email => email.startsWith(prefix)).sort(), `"${prefix}"`)
    }
    const [first, ...others] = idsOf(await twin.users({ ...ALL, search: 'a' }))
    const next = await twin.users({ ...ALL, search: 'a', after: at(first), limit: 2 })
    assert.deepEqual(idsOf(next), others.slice(0, 2))
  })

  managed('users are listed by whether they are blocked now', async (store, twin) => {
    const [free, blocked, later, over] = [newUser(), newUser(), newUser(), newUser()]
    for (const user of [free, blocked, later, over]) await store.createUser(user)
    const at = new Date()
    await store.changeUser(blocked.userId, { blocked: { at } })
    await store.changeUser(later.userId, { blocked: { at, until: new Date(Date.now() + 60_000) } })
    await store.changeUser(over.userId, { blocked: { at, until: new Date(Date.now() - 60_000) } })

    assert.deepEqual(idsOf(await twin.users({ ...ALL, blocked: true })), idsOf([blocked, later]).sort())
    assert.deepEqual(idsOf(await twin.users({ ...ALL, blocked: false })), idsOf([free, over]).sort())
    assert.equal((await twin.users(ALL)).length, 4)
    assert.equal(await twin.countUsers({ ...ALL, blocked: true }), 2)
    await store.changeUser(blocked.userId, { blocked: null })
    assert.deepEqual(idsOf(await twin.users({ ...ALL, blocked: true })), [later.userId])
  })
}
