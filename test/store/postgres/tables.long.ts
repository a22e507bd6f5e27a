import t from 'tap'
import { Accounts } from '../../../lib/accounts/accounts.js'
import { isSoon } from '../../helpers/soon.js'
import { startProcess } from '../start-process.js'
import { newUser } from '../users.js'
import { THE_TABLES, database, hold, open, tables, waiting } from './database.js'

const PROCESSES = 20
/** What a process with a store needs only when it is called: loaded before, many processes get to the tables at the same moment. */
const LOADED_BEFORE = ['--import', new URL('../../../lib/engines/postgres/open.ts', import.meta.url).href]

t.setTimeout(300_000)

t.test('the tables are made by one of many processes that start at the same moment, and all go on', async t => {
  const { url, run } = await database(t)
  const processes = await Promise.all(Array.from({ length: PROCESSES }, () => startProcess(t, url, LOADED_BEFORE)))
  t.strictSame(await tables(run), [])
  const users = processes.map((_, index) => newUser({ email: `user-${index}@example.com` }))

  const answers = await Promise.all(processes.map(async (call, index) => call(['createUser', users[index] ?? newUser()])))

  t.hasStrict(answers, users.map(({ link, ...user }) => ({ result: user })))
  t.strictSame(await tables(run), THE_TABLES)
  t.strictSame(await run('select count(*)::int from svc_auth_users'), [{ count: PROCESSES }])
  t.strictSame(await run('select count(*)::int from svc_auth_migrations'), [{ count: 1 }])
})

t.test('the tables are made by one of ten stores that are about to make them, and all go on', async t => {
  const { url, client, run } = await database(t)
  const stores = Array.from({ length: 10 }, () => open(t, url))

  const release = await hold(
    client,
    ['migrations', 'users', 'credentials', 'provider_links'].map(name => `create table svc_auth_${name} ()`).join('; ')
  )
  const created = Promise.allSettled(stores.map(store => new Accounts(store).createUser(newUser())))
  t.ok(await isSoon(async () => await waiting(run) === stores.length), 'all wait')
  await release()

  t.strictSame((await created).filter(({ status }) => status === 'rejected'), [])
  t.strictSame(await tables(run), THE_TABLES)
  t.strictSame(await run('select count(*)::int from svc_auth_users'), [{ count: 10 }])
})
