import type postgres from 'postgres'
import t from 'tap'
import { Accounts } from '../../../lib/accounts/accounts.js'
import { clientOf } from '../../helpers/postgres.js'
import { newUser } from '../users.js'
import { database, open, unusualClientOf } from './database.js'

for (const [what, client] of Object.entries({
  'a client of the package postgres': clientOf,
  'a client with types and transformations of its own': unusualClientOf
})) {
  t.test(`${what} works as before when a store uses it`, async t => {
    const { url } = await database(t)
    const sql: postgres.Sql = client(t, url)
    const behaviour = () => sql`
      select ${sql.typed({ aKey: 1 } as never, 3802)} as json_out,
        '{"a_key":{"b_key":1}}'::jsonb as jsonb_in, '{"a_key":1}'::json as json_in, ${'text'}::text as text_out,
        '2026-01-02'::date as date_in, '2026-01-02 03:04Z'::timestamptz as time_in,
        ${new Date(0)}::timestamptz as time_out, array[1, 2] as list`.then(rows => [...rows])
    const before = await behaviour()
    const store = open(t, sql)
    const ada = newUser({ claims: { some_key: { other_key: 1 } } })

    await new Accounts(store).createUser(ada)
    t.hasStrict(await store.findUser({ userId: ada.userId }), { claims: { some_key: { other_key: 1 } } })

    t.strictSame(await behaviour(), before)
  })
}
