import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import type { User } from '../../accounts/account.js'
import type { Accounts, OnCreate } from '../../accounts/accounts.js'
import { AuthError } from '../../errors.js'
import { assertGone, assertHas } from './assertions.js'
import { identity, link, localUser, newUser } from './fixtures.js'
import type { Opened, Rule } from './rule.js'

/** Longer than another store takes to find a user who is committed. */
const LOOK_MS = 200

const MEMBER = { claims: { member: true } }

/** The calls that create a user: in a store, `insert` and `change`. */
const WAYS_TO_CREATE: Array<[way: string, create: (store: Accounts, onCreate: OnCreate) => Promise<unknown>]> = [
  ['by createUser', (store, onCreate) => store.createUser(localUser('ada@example.com'), onCreate)],
  ['by enterIdentity', (store, onCreate) => {
    const user = newUser({ link: link('dev', 'ada-1'), email: 'ada@example.com' })
    return store.enterIdentity(identity('dev', 'ada-1'), 'ada@example.com', user, () => false, onCreate)
  }],
  ['by signInByMail', (store, onCreate) => {
    const how = { newId: newUser().userId, holds: () => false, onCreate }
    return store.signInByMail({ user: null, email: 'ada@example.com' }, how)
  }]
]

/** What the application does for a user who is created; nothing for a store that asks no hooks. */
export function createHooksContract (rule: Rule): void {
  for (const [way, create] of WAYS_TO_CREATE) {
    asking(rule, `the hook is asked once and its claims are written with the user, ${way}`, async ({ store, twin }) => {
      const asked: unknown[] = []

      await create(store, ({ email }) => {
        asked.push(email)
        return MEMBER.claims
      })

      assert.deepEqual(asked, ['ada@example.com'])
      assertHas(await twin.findUser({ email: 'ada@example.com' }), MEMBER)
    })

    asking(rule, `a user whom the hook refuses is not written, ${way}`, async ({ store, twin }) => {
      const refusals: Array<[Error, object]> = [
        [new AuthError('forbidden'), { code: 'forbidden' }],
        [new Error('a unique violation, no such table'), { code: 'internal_error' }]
      ]
      for (const [refusal, expected] of refusals) {
        let asked = 0
        const creating = create(store, () => {
          asked++
          throw refusal
        })

        await assert.rejects(creating, expected)
        assert.equal(asked, 1, 'asked once')
        assert.equal(await twin.findUser({ email: 'ada@example.com' }), null)
        await assertGone(twin, localUser('ada@example.com'))
      }
      await create(store, () => MEMBER.claims)
      assertHas(await twin.findUser({ email: 'ada@example.com' }), MEMBER, 'the address is free')
    })

    asking(rule, `a user is not seen before the hook is done, ${way}`, async ({ store, twin, stores }) => {
      if (await stores.store.hookProblem?.(true) !== null) return
      let seen: unknown = 'not asked'

      await create(store, async ({ userId }) => {
        // A store with one connection finds the user afterwards.
        seen = await Promise.race([twin.findUser({ userId }), wait(LOOK_MS, null)])
        return null
      })

      assert.equal(seen, null)
    })
  }

  asking(rule, 'of many who are created at once with one e-mail, one is, with the claims of the hook', async opened => {
    const { store, twin } = opened
    const ofUser = ({ userId }: User) => ({ asked_about: userId })

    for (let round = 0; round < 10; round++) {
      const email = `ada-${round}@example.com`
      const made = await Promise.all(Array.from({ length: 6 }, (_, index) =>
        (index % 2 === 0 ? store : twin).createUser(localUser(email), ofUser)))

      const [created, ...others] = made.filter(user => user !== null)
      assert.deepEqual(others, [])
      assertHas(await store.findUser({ email }), { userId: created?.userId, claims: { asked_about: created?.userId } })
    }
  })

  asking(rule, 'the hook is not asked about a user who is not created', async ({ store, twin }) => {
    const ada = localUser('ada@example.com')
    await store.createUser(ada)
    await store.addLink(ada.userId, identity('dev', 'ada-1'))
    let asked = 0
    const count = () => {
      asked++
      return null
    }

    assert.equal(await twin.createUser(newUser({ link: link('dev', 'ada-1') }), count), null)
    for (const [, create] of WAYS_TO_CREATE) await create(twin, count)

    assert.equal(asked, 0)
  })
}

/** Adds a test about hooks, which does nothing for a store that asks none. */
export function asking (rule: Rule, name: string, check: (opened: Opened) => Promise<void>): void {
  rule(name, async open => {
    const opened = await open()
    if (await opened.stores.store.hookProblem?.(false) === null) await check(opened)
  })
}
