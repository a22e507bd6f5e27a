import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { SqlAuthStore } from '../../lib/index.js'
import { USED_REGISTRATION } from '../../lib/session/store.js'
import { Browser } from '../helpers/browser.js'
import { ADA, startMailApp } from '../helpers/mail-app.js'
import { query, startPostgres } from '../helpers/postgres.js'
import { isSoon } from '../helpers/soon.js'

const REGISTER = '/auth/local/register'
const ROUNDS = 5

t.setTimeout(300_000)

/** Starts a Postgres server that writes what does not wait for the disk as late as it may. */
async function startLatePostgres (t: Test) {
  const server = await startPostgres(t)
  const url = await server.createDatabase()
  await query(url, 'alter system set wal_writer_delay = 10000')
  await query(url, 'select pg_reload_conf()')
  return { server, url }
}

t.test('attack 146: a used link to register stays used when Postgres is killed behind the answer', async t => {
  const { server, url } = await startLatePostgres(t)
  const { app, mails, browser } = await startMailApp(t, { store: new SqlAuthStore(url) }, { registration: { verify: 'first' } })

  for (let round = 0; round < ROUNDS; round++) {
    await new Browser(app).post(REGISTER, { email: ADA.email })
    const { token } = await mails.next('register')

    const { statusCode } = await browser.post(REGISTER, { token, password: ADA.password })
    server.signal('SIGKILL')
    t.equal(statusCode, 201)
    await server.start()
    t.ok(await isSoon(async () => app.auth.findUser({ email: ADA.email }).then(() => true, () => false)))
    const user = await app.auth.findUser({ email: ADA.email })
    t.ok(user, 'the account was acknowledged')
    await app.auth.deleteUser(user?.userId ?? '')

    const second = await new Browser(app).post(REGISTER, { token, password: ADA.password })
    t.equal(second.json().code, 'invalid_token', `round ${round}`)
    t.equal(await app.auth.findUser({ email: ADA.email }), null)
  }
})

t.test('attack 146: a record of a use that Postgres has acknowledged is there after it was killed', async t => {
  const { server, url } = await startLatePostgres(t)
  const store = new SqlAuthStore(url)
  t.teardown(() => store.close())
  const { entries } = store

  for (let round = 0; round < ROUNDS; round++) {
    const entry = { hash: randomUUID(), kind: USED_REGISTRATION, owner: randomUUID(), content: {}, startedAt: Date.now() }
    await entries.put(entry, 1)
    server.signal('SIGKILL')
    await server.start()
    const isThere = async (): Promise<boolean> => await entries.count(entry.owner, USED_REGISTRATION, 0) > 0
    t.ok(await isSoon(async () => isThere().then(() => true, () => false)))
    t.ok(await isThere(), `round ${round}`)
  }
})
