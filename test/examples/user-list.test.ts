import { join } from 'node:path'
import t, { type Test } from 'tap'
import { userList } from '../../examples/app/user-list.js'
import { SqlAuthStore } from '../../lib/index.js'
import { emptyDatabase } from '../helpers/postgres.js'

const ADA = { userId: 'b4a1a6ce-3d3a-4f6e-9d5e-3c9f1a0b7f10', email: 'ada@example.com', emailVerified: false, name: 'Ada', claims: { role: 'admin' } }
const BOB = { userId: 'c1d2e3f4-3d3a-4f6e-9d5e-3c9f1a0b7f11', email: 'bob@example.com', emailVerified: true, name: null, claims: {} }

const TARGETS: Record<string, (t: Test) => Promise<string>> = {
  'an SQLite file': async t => join(t.testdir(), 'users.db'),
  'an SQLite URL': async t => `sqlite://${join(t.testdir(), 'users.db')}`,
  Postgres: emptyDatabase
}

for (const [name, targetOf] of Object.entries(TARGETS)) {
  t.test(`the users in ${name} are listed by e-mail, with what was granted`, async t => {
    const target = await targetOf(t)
    const store = new SqlAuthStore(target)
    const users = userList(target)
    t.teardown(async () => { await Promise.all([store.close(), users.close()]) })
    for (const user of [BOB, ADA]) await store.createUser({ ...user, link: { provider: 'dev', subject: user.userId, claims: { sub: user.userId } } })

    const expected = [ADA, BOB].map(({ userId, email, name, claims }) => ({ userId, email, name, claims }))
    t.strictSame(await users.first(), expected)

    await store.withdraw(ADA.userId, ['role'])
    t.strictSame(await users.first(), [{ ...expected[0], claims: {} }, expected[1]], 'as they are now')
  })
}
