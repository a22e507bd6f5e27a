import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { GUEST } from '../../accounts/account.js'
import type { Accounts, OnCreate } from '../../accounts/accounts.js'
import { AuthError } from '../../errors.js'
import { type NewSession, type StoredSessions, capabilitiesOf } from '../../session/store.js'
import { assertHas } from './assertions.js'
import { asking } from './create-hooks.js'
import { identity, link, localUser, newUser } from './fixtures.js'
import type { Rule } from './rule.js'

/** Later than all that these tests create. */
const LATER = Date.now() + 3_600_000

const ALL = 100

/** Guests, whom the optional member `abandonedGuests` finds, and who become users. */
export function guestsContract (rule: Rule): void {
  type Check = (store: Accounts, twin: Accounts, sessions: StoredSessions) => Promise<void>
  const listed = (name: string, check: Check): void => {
    rule(name, async open => {
      const { store, twin, stores } = await open()
      const { sessions } = capabilitiesOf(stores.store)
      if (sessions !== null && stores.store.abandonedGuests !== undefined) await check(store, twin, sessions)
    })
  }

  listed('guests without an open session are abandoned', async (store, twin, sessions) => {
    const [none, ended, expired, open] = [
      await makeGuest(store), await makeGuest(store), await makeGuest(store), await makeGuest(store)
    ]
    for (const [userId, expiresAt] of [[ended, LATER + 1], [expired, LATER], [open, LATER + 1]] as const) {
      await sessions.insert(session(userId, { idHash: userId, expiresAt }), null)
    }
    await sessions.end(ended, { now: Date.now(), isSignOut: false })

    assert.deepEqual(await abandoned(twin), [none, ended, expired].sort())
  })

  listed('a guest is not abandoned before a time after their creation', async (store, twin) => {
    const userId = await makeGuest(store)
    const { createdAt } = await store.findUser({ userId }) ?? assert.fail()

    assert.deepEqual(await twin.abandonedGuests(createdAt.getTime(), LATER, ALL, ''), [])
    assert.deepEqual(await twin.abandonedGuests(createdAt.getTime() + 1, LATER, ALL, ''), [userId])
  })

  listed('a guest is abandoned where all open sessions are of a former generation', async (store, twin, sessions) => {
    const [former, present] = [await makeGuest(store), await makeGuest(store)]
    for (const userId of [former, present]) await store.changeUser(userId, { endSessions: true })
    await sessions.insert(session(former), null)
    await sessions.insert(session(present, {}, 1), null)

    assert.deepEqual(await abandoned(twin), [former])
  })

  listed('a user who is not a guest, or not any more, is not abandoned', async (store, twin) => {
    const [linked, addressed, promoted, guest] = [
      await makeGuest(store), await makeGuest(store), await makeGuest(store), await makeGuest(store)
    ]
    await store.createUser(newUser())
    await store.addLink(linked, identity('dev', 'ada-1'))
    await store.updateUser(addressed, { email: 'eve@example.com' })
    await promote(store, promoted)

    assert.deepEqual(await abandoned(twin), [guest])
  })

  listed('abandoned guests are listed part by part, each once', async (store, twin, sessions) => {
    const made: string[] = []
    for (let count = 0; count < 7; count++) made.push(await makeGuest(store))
    const [open = '', ...others] = made
    await sessions.insert(session(open), null)

    const parts: string[][] = []
    for (let turn = 0; turn < 3; turn++) {
      parts.push(await twin.abandonedGuests(LATER, LATER, 4, parts.at(-1)?.at(-1) ?? ''))
    }

    assert.deepEqual(parts.map(part => part.length), [4, 2, 0])
    assert.deepEqual(parts.flat().sort(), others.sort())
  })

  rule('a guest is closed and deleted as long as they are one', async open => {
    const { store, twin } = await open()
    const [guest, promoted] = [await makeGuest(store), await makeGuest(store)]
    await promote(store, promoted)
    const generation = async (userId: string) => (await store.status(userId))?.generation

    assert.deepEqual([await twin.closeGuest(guest), await twin.closeGuest(promoted)], [true, false])
    assert.deepEqual([await generation(guest), await generation(promoted)], [1, 1])
    assert.equal(await store.closeGuest(guest), true)
    assert.equal(await generation(guest), 1, 'nothing is left to end')
    assert.equal(await promote(store, guest, 'eve@example.com', 0), null, 'a sign-in that has found the guest before')
    assert.deepEqual([await twin.deleteGuest(guest), await twin.deleteGuest(promoted)], [true, false])
    assert.equal(await store.findUser({ userId: guest }), null)
    assert.deepEqual([await twin.closeGuest(guest), await twin.deleteGuest(guest)], [false, false])
    assertHas(await store.findUser({ userId: promoted }), { email: 'ada@example.com', guest: undefined })
  })

  rule('of a guest who is closed and becomes a user at once, one is true', async open => {
    const { store, twin } = await open()

    for (let round = 0; round < 20; round++) {
      const userId = await makeGuest(store)
      const both = [() => store.closeGuest(userId), () => promote(twin, userId, `ada-${round}@example.com`)]

      const [first, second] = round % 2 === 0 ? both : both.toReversed()
      const outcomes = await Promise.all([first?.(), second?.()])

      assert.equal(outcomes.filter(Boolean).length, 1, `round ${round}`)
      const { guest = false } = await twin.findUser({ userId }) ?? assert.fail()
      assert.equal(guest, outcomes.includes(true))
    }
  })

  asking(rule, 'the hook is asked once about a guest who becomes a user', async ({ store, twin }) => {
    const userId = await makeGuest(store)
    await store.grant(userId, { cart: 'full' })
    const asked: unknown[] = []

    const promoted = await promote(store, userId, 'ada@example.com', 0, user => {
      asked.push([user.userId, user.email, user.guest])
      return { member: true }
    })

    assert.deepEqual(asked, [[userId, 'ada@example.com', undefined]])
    const expected = { userId, claims: { cart: 'full', member: true }, generation: 1, guest: undefined }
    assertHas(promoted, { user: expected })
    assertHas(await twin.findUser({ email: 'ada@example.com' }), expected)
    assert.deepEqual((await twin.links(userId)).map(({ provider }) => provider), ['local'])
  })

  asking(rule, 'a guest whom the hook refuses as a user stays the guest', async ({ store, twin }) => {
    const userId = await makeGuest(store)
    const [before, links] = [await store.findUser({ userId }), await store.links(userId)]
    const refusals: Array<[Error, object]> = [
      [new AuthError('forbidden'), { code: 'forbidden' }],
      [new Error('a unique violation, no such table'), { code: 'internal_error' }]
    ]

    for (const [refusal, expected] of refusals) {
      let asked = 0
      const promoted = promote(store, userId, 'ada@example.com', 0, () => {
        asked++
        throw refusal
      })

      await assert.rejects(promoted, expected)
      assert.equal(asked, 1)
      assert.deepEqual(await twin.findUser({ userId }), before)
      assert.deepEqual(await twin.links(userId), links)
      assert.equal(await twin.findCredential('ada@example.com'), null)
    }
    assert.ok(await store.createUser(localUser('ada@example.com')), 'the address is free')
  })
}

async function makeGuest (store: Accounts): Promise<string> {
  const userId = randomUUID()
  await store.createUser(newUser({ userId, name: null, link: link(GUEST, userId) }))
  return userId
}

/** Makes a guest a user with a password. */
async function promote (
  store: Accounts, userId: string, email = 'ada@example.com', generation = 0, onCreate?: OnCreate
) {
  const user = { ...localUser(email), userId }
  const change = { identity: { ...user.link, verifiedEmail: null }, held: 'promotes', newUser: user } as const
  return store.signIn({ userId, generation, email: null, emailVerified: false }, change, { onCreate })
}

async function abandoned (store: Accounts): Promise<string[]> {
  return (await store.abandonedGuests(LATER, LATER, ALL, '')).sort()
}

function session (userId: string, more: Partial<NewSession> = {}, generation = 0): NewSession {
  const now = Date.now()
  const user = { userId, provider: GUEST, claims: { sub: userId }, generation, proofs: { at: now, methods: [] } }
  return { idHash: randomUUID(), user, data: null, userAgent: null, createdAt: now, expiresAt: LATER + 1, ...more }
}
