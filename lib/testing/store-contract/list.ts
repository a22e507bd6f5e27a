import assert from 'node:assert/strict'
import type { User } from '../../accounts/account.js'
import type { UsersQuery } from '../../accounts/auth-store.js'
import { newUser } from './fixtures.js'
import { type Rule, onAccounts } from './rule.js'

const ALL: UsersQuery = { after: null, limit: 100, order: 'id', search: null, blocked: null }

/** The list of users, and how many there are. */
export function listContract (rule: Rule): void {
  const managed = onAccounts(rule)
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
