import t, { type Test } from 'tap'
import { Accounts, SqlAuthStore } from '../../lib/index.js'

import { emptyDatabase } from '../helpers/postgres.js'
import { postgresDatabase, sqliteDatabase } from './database.js'

const BOB = {
  userId: '6b1e1c9e-0c51-4c3a-9f44-2f0e8a2f5d12',
  email: 'bob@example.com',
  emailVerified: false,
  name: null,
  claims: {},
  link: { provider: 'local', subject: 'bob@example.com', claims: { sub: 'bob' } },
  passwordHash: 'a hash'
}
const PROOF = { userId: BOB.userId, email: BOB.email, generation: 0 }

for (const [name, open] of Object.entries({
  SQLite: async (t: Test) => sqliteDatabase(t),
  Postgres: async (t: Test) => postgresDatabase(await emptyDatabase(t))
})) {
  t.test(`${name} keeps a user whose deletion a table of the application forbids`, async t => {
    const { target, query } = await open(t)
    const store = new SqlAuthStore(target)
    t.teardown(() => store.close())
    await new Accounts(store).createUser(BOB)
    const type = name === 'SQLite' ? 'text' : 'uuid'
    await query(`create table orders (buyer ${type} not null references svc_auth_users(user_id) on delete restrict)`)
    await query(`insert into orders values ('${BOB.userId}')`)

    await t.rejects(new Accounts(store).releaseEmail(PROOF), { code: 'user_in_use', statusCode: 409 })

    t.hasStrict(await store.findCredential(BOB.email), { passwordHash: 'a hash', user: { email: BOB.email } })
    t.hasStrict(await store.status(BOB.userId), { generation: 0 })
  })
}
