import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { SqlAuthStore } from '../../lib/index.js'
import { capabilitiesOf } from '../../lib/store/capabilities.js'
import { DAY_MS, PENDING_MS, RECORD_MS, SIGN_IN, USED_REGISTRATION } from '../../lib/store/one-time-entries.js'
import { isSoon } from '../helpers/soon.js'
import { STORES } from '../helpers/stores.js'
import { sqliteDatabase } from './database.js'

const NOW = Date.now()
const visitor = { user: null, data: null, userAgent: null, createdAt: NOW, expiresAt: NOW + 60_000 }

t.test('processes that sweep a part of the sessions each come to the last ones too', async t => {
  const { target, query } = sqliteDatabase(t)
  const open = (): SqlAuthStore => {
    const store = new SqlAuthStore(target)
    t.teardown(() => store.close())
    return store
  }
  await open().sessions.insert({ ...visitor, idHash: 'A' }, null)
  await query(`with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 1500)
    insert into svc_auth_sessions (id_hash, generation, created_at, seen_at, expires_at, signed_out)
    select 'B' || n, 0, ${NOW}, ${NOW}, ${NOW + 60_000}, 0 from numbers`)
  await query(`insert into svc_auth_sessions (id_hash, generation, created_at, seen_at, expires_at, signed_out)
    values ('~', 0, ${NOW}, ${NOW}, ${NOW - 1}, 0)`)
  const isThere = async (): Promise<boolean> => (await query("select 1 from svc_auth_sessions where id_hash = '~'")).length > 0

  let processes = 0
  while (await isThere() && processes < 60) {
    processes++
    const { sessions } = open()
    await sessions.insert({ ...visitor, idHash: `A${processes}` }, null)
    for (let turn = 0; turn < 20 && await isThere(); turn++) await setImmediate()
  }

  t.notOk(await isThere())
})

for (const [kind, makeStore] of Object.entries(STORES)) {
  t.test(`one-time entries with ${kind} are kept for the lifetime of their kind`, async t => {
    const { entries } = capabilitiesOf(await makeStore(t))
    const isThere = async (kind: string): Promise<boolean> => await entries?.count('owner', kind, 0) === 1
    const isSweptFrom = async (kind: string, time: number): Promise<boolean> => isSoon(async () => {
      // Sweeps are a minute apart, and none starts while another one runs.
      const startedAt = time += 60_000
      await entries?.put({ hash: `${startedAt}`, kind: 'any', owner: 'other', content: {}, startedAt }, 8)
      return await isThere(kind) === false
    })
    const entry = { owner: 'owner', content: {}, startedAt: NOW }
    await entries?.put({ ...entry, hash: 'minutes', kind: SIGN_IN }, 8)
    await entries?.put({ ...entry, hash: 'record', kind: USED_REGISTRATION }, 8)

    t.ok(await isSweptFrom(SIGN_IN, NOW + PENDING_MS))
    await entries?.put({ ...entry, hash: 'minutes', kind: SIGN_IN, startedAt: NOW + DAY_MS }, 8)
    t.ok(await isSweptFrom(SIGN_IN, NOW + DAY_MS + PENDING_MS))
    t.ok(await isThere(USED_REGISTRATION), 'the record of a use outlives the link, which lives for a day')
    t.ok(await isSweptFrom(USED_REGISTRATION, NOW + RECORD_MS))
  })
}
