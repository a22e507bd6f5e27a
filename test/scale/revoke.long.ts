/** What ends in one process is announced in each, once, whatever happens to the connections, the server and the processes. */
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Authorization } from '../../lib/index.js'
import { endListening, openStore, whenListening } from '../helpers/revocations.js'
import { startPostgres } from '../helpers/postgres.js'
import { postgresDatabase } from '../store/database.js'
import { type Engine, RevokeProcess } from './revoke-process.js'

/** Two listen on connections of their own, one with a client of the application, and one only reads the table. */
const ENGINES: readonly Engine[] = ['url', 'url', 'client', 'drizzle']
const LISTENING = 3
const BURST = 100

t.setTimeout(300_000)

t.test('attack 80: each process hears each ending once', async t => {
  const server = await startPostgres(t)
  const url = await server.createDatabase()
  const { query } = postgresDatabase(url)
  const accounts = new Authorization(openStore(t, url))
  const createUsers = async (): Promise<string[]> =>
    Promise.all(Array.from({ length: BURST }, async () => (await accounts.createUser({})).userId))
  await createUsers()
  const processes = await Promise.all(ENGINES.map(async engine => RevokeProcess.start(t, engine, url)))
  await whenListening(url, LISTENING)

  /** Each process ends the sessions of users of its own. */
  const burst = async (by = processes): Promise<() => Promise<unknown>> => {
    const users = await Promise.all(by.map(createUsers))
    return () => Promise.all(by.map((process, index) => process.signOut(users[index] ?? [])))
  }
  /** The endings that are recorded, which are those of the users with another generation. */
  const recorded = async (): Promise<string[]> => {
    const [{ recorded, ended } = {}] = await query(`select
      (select array_agg(user_id::text order by user_id) from svc_auth_revocations) as recorded,
      (select array_agg(user_id::text order by user_id) from svc_auth_users where extras -> 'generation' is not null) as ended`)
    t.strictSame(recorded, ended)
    return Array.isArray(recorded) ? recorded : []
  }
  const assertHeard = async (t: Test): Promise<void> => {
    for (const process of processes) {
      let expected = await recorded()
      // An engine of the application may run a statement long after it was reported as failed.
      while (new Set(process.revoked).size !== expected.length) {
        if (process.revoked.length < expected.length) await once(process, 'revoked')
        expected = await recorded()
      }
      t.strictSame(process.revoked.toSorted(), expected)
    }
  }

  await t.test('in a burst', async t => {
    const end = await burst()

    await end()

    t.equal((await recorded()).length, BURST * processes.length)
    await assertHeard(t)
  })

  await t.test('when the connections that listen are ended in a burst', async t => {
    let ended = 0
    for (let round = 0; round < 3; round++) {
      const end = await burst()
      const ending = end()
      ended += await endListening(url)
      await ending
      ended += await endListening(url)
    }

    t.ok(ended >= LISTENING, `${ended} connections were ended`)
    await assertHeard(t)
  })

  await t.test('when a process was frozen for 15 seconds', async t => {
    const [frozen, ...others] = processes
    if (frozen === undefined) throw new Error('there is no process')
    const end = await burst(others)
    frozen.signal('SIGSTOP')
    const before = frozen.revoked.length

    await end()
    await wait(15_000)

    t.equal(frozen.revoked.length, before)
    frozen.signal('SIGCONT')
    await assertHeard(t)
  })

  for (const [how, strike] of [['stopped', server.stop], ['killed', async () => { server.signal('SIGKILL') }]] as const) {
    await t.test(`when Postgres is ${how} in a burst`, async t => {
      const end = await burst()
      const first = once(processes[0] ?? t, 'revoked')

      const ending = end()
      await first
      await strike()
      await ending
      await server.start()

      await assertHeard(t)
    })
  }

  await t.test('when Postgres was frozen for 15 seconds', async t => {
    const end = await burst()
    server.signal('SIGSTOP')
    const ending = end()
    await wait(15_000)
    server.signal('SIGCONT')
    await ending

    await assertHeard(t)
  })

  await t.test('and none twice, when the table was read again', async t => {
    await whenListening(url, LISTENING)
    // Longer than two rounds; that nothing happens in them shows in nothing.
    await wait(25_000)

    await assertHeard(t)
  })

  await t.test('and ends by itself while Postgres is away', async t => {
    await server.stop()

    t.strictSame(await Promise.all(processes.map(process => process.end())), [0, 0, 0, 0])

    await server.start()
  })
})
