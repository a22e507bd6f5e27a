/** A process outlives the end of each of its connections, at whatever moment it comes. */
import t from 'tap'
import { Authorization } from '../../lib/index.js'
import { emptyDatabase, query } from '../helpers/postgres.js'
import { openStore } from '../helpers/revocations.js'
import { isSoon } from '../helpers/soon.js'
import { startProxy } from '../helpers/tcp-proxy.js'
import { type Engine, RevokeProcess } from './revoke-process.js'

const ENGINES: readonly Engine[] = ['url', 'client', 'drizzle-postgres-js', 'drizzle']

/** A new connection sends no more messages than this until its first statement is answered. */
const MOMENTS = 8

t.setTimeout(300_000)

for (const engine of ENGINES) {
  t.test(`a process with a store on the engine ${engine} outlives the end of its connections at each moment`, async t => {
    const url = await emptyDatabase(t)
    const accounts = new Authorization(openStore(t, url))
    const users = await Promise.all(Array.from({ length: 20 }, async () => (await accounts.createUser({})).userId))
    const signedOut = async (): Promise<unknown> => (await query(url, 'select from svc_auth_revocations')).length
    const proxy = await startProxy(t, url)
    const application = await RevokeProcess.start(t, engine, proxy.url)
    // A client of the package may wait for ever after its connection was lost, and then keeps its process.
    t.teardown(() => { application.signal('SIGKILL') })
    const ends = [
      () => { proxy.reset() },
      () => { proxy.end() },
      () => query(url, `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`)
    ]

    for (const end of ends) {
      for (let moment = 1; moment <= MOMENTS; moment++) {
        let sent = 0
        // Three times: connections that were lost are replaced, and the new ones are ended at this moment too.
        proxy.hear = () => { if (++sent % moment === 0 && sent <= 3 * moment) end() }
        // A client that still waits before it connects again sends less than that.
        t.ok(await isSoon(async () => {
          await application.signOut(users)
          return sent >= moment
        }))
      }
    }
    proxy.hear = () => {}

    const before = await signedOut()
    t.ok(await isSoon(async () => {
      await application.signOut(users)
      return await signedOut() !== before
    }))
  })
}
