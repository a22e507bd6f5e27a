import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import SqliteDatabase from 'better-sqlite3'
import { drizzle } from 'drizzle-orm/node-postgres'
import postgres from 'postgres'
import t, { type Test } from 'tap'
import { Accounts, AuthError, type NewUser, SqlAuthStore, type SqlAuthStoreOptions } from '../../lib/index.js'
import { SESSION_SECRET, localProvider, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { selfSigned } from '../helpers/certificate.js'
import { clientOf, emptyDatabase, startPostgres, poolOf } from '../helpers/postgres.js'
import { startProxy } from '../helpers/tcp-proxy.js'
import { type AppProcess, startAppProcess } from './app-process.js'
import { startProcess } from './start-process.js'

const ADA = { email: 'ada@example.com', password: 'correct horse', name: 'Ada' }
const BOB = newUser()
const UNAVAILABLE = { name: 'AuthError', code: 'unavailable', statusCode: 503 }
const SECRETS = /a%20password|a password|correct horse|argon2/

/** Above the limit of five seconds, for a machine that is busy. */
const AT_MOST_MS = 15_000

// Most of these tests wait; each has what it waits for to itself.
t.jobs = 5

t.test('an application survives the end of its Postgres', { buffered: true }, async t => {
  const server = await startPostgres(t)
  const url = await server.createDatabase()
  await server.stop()
  const app = await startAppProcess(t, url)
  let refused = 0
  const isRefused = async (t: Test, answer: ReturnType<AppProcess['post']>): Promise<void> => {
    refused++
    t.match(await answer, { status: 503, body: { code: 'unavailable' } })
  }

  await t.test('the application starts without Postgres, and answers requests that need none', async t => {
    await isRefused(t, app.post('/auth/local/register', ADA))
    await isRefused(t, app.post('/auth/local/login', ADA))

    t.match(await app.get('/public'), { status: 200 })
    t.match(await app.get('/private'), { status: 401 })
  })

  await t.test('the application works when Postgres starts, and makes its tables then', async t => {
    await server.start()

    t.match(await app.post('/auth/local/register', ADA), { status: 201 })
    t.match(await app.get('/private'), { status: 200 })
  })

  await t.test('when Postgres is stopped, sign-ins and guards are unavailable until it is back, visitors without a session go on', async t => {
    const { body: { token } } = await app.post('/auth/local/token', {}) as { body: { token: string } }
    await server.stop()

    await isRefused(t, app.post('/auth/local/login', ADA))
    await isRefused(t, app.post('/auth/local/register', { ...ADA, email: 'bob@example.com' }))
    await isRefused(t, app.post('/auth/local/token', {}))
    await isRefused(t, app.post('/auth/local/verify-token', { token }))
    t.match(await app.get('/private'), { status: 503, body: { code: 'unavailable' } })
    t.match(await app.get('/api', { authorization: `Bearer ${token}` }), { status: 503, body: { code: 'unavailable' } })
    t.match(await app.get('/public'), { status: 503, body: { code: 'unavailable' } }, 'the session cannot be read')
    t.match(await app.get('/public', { cookie: '' }), { status: 200 })

    await server.start()
    t.match(await app.get('/private'), { status: 200, body: { claims: { email: ADA.email } } })
    t.match(await app.get('/api', { authorization: `Bearer ${token}` }), { status: 200, body: { email: ADA.email } })
    t.match(await app.post('/auth/local/verify-token', { token }), { status: 200 })
    t.match(await app.post('/auth/local/token', {}), { status: 200 })
    t.match(await app.post('/auth/local/login', ADA), { status: 200 })
    t.match(await app.post('/auth/local/register', { ...ADA, email: 'bob@example.com' }), { status: 201 })
  })

  for (const [how, strike] of [['stopped', server.stop], ['killed', async () => { server.signal('SIGKILL') }]] as const) {
    await t.test(`when Postgres is ${how} with sign-ins under way, each has an answer, and the next ones work`, async t => {
      const statuses: number[] = []
      const signIn = async (): Promise<void> => { statuses.push((await app.post('/auth/local/login', ADA)).status) }
      const over = new AbortController()
      const visitors = Array.from({ length: 20 }, async () => { while (!over.signal.aborted) await signIn() })

      await strike()
      await isRefused(t, app.post('/auth/local/login', ADA))
      await server.start()
      over.abort()
      await Promise.all(visitors)
      refused += statuses.filter(status => status === 503).length
      t.strictSame(statuses.filter(status => status !== 200 && status !== 503), [])

      statuses.length = 0
      await Promise.all(Array.from({ length: 20 }, signIn))
      t.strictSame(statuses, Array(20).fill(200))
    })
  }

  await t.test('the application ends by itself, and has logged the failure once a request', async t => {
    t.equal(await app.end(), 0)

    // Those of guards are logged by the application.
    const errors = errorsOf(app.log).filter(({ code }) => code === 'unavailable')
    t.equal(errors.length, refused)
    t.match(errors[0], { err: { message: /ECONNREFUSED.*start the server/ } })
    t.notMatch(app.log, SECRETS)
  })
})

t.test('an application survives a Postgres that does not answer', { buffered: true }, async t => {
  t.jobs = 4
  const server = await startPostgres(t)
  const url = await server.createDatabase()
  const { app, logged } = await startLogged(t, url)
  const browser = new Browser(app)
  await browser.post('/auth/local/register', ADA)
  const { token } = (await browser.post('/auth/local/token')).json()

  const client = postgres(url, { onnotice: () => {} })
  const pool = poolOf(t, url)
  t.teardown(() => client.end())
  const engines = [new SqlAuthStore(client), new SqlAuthStore(drizzle(pool))]
  const closingStore = new SqlAuthStore(url)
  const closingApp = (await startLogged(t, url)).app
  const child = await startProcess(t, url)
  await Promise.all([...engines, closingStore].map(store => store.findUser(ADA)))
  await closingApp.auth.findUser({ email: ADA.email })
  await child(['findUser', { email: ADA.email }])

  server.signal('SIGSTOP')
  t.teardown(() => server.signal('SIGCONT'))
  const since = Date.now()
  await Promise.all([
    t.test('sign-ins are unavailable after seconds; other routes answer meanwhile', { buffered: true }, async t => {
      let isWaiting = true
      const answers = Promise.all([
        new Browser(app).post('/auth/local/login', ADA),
        new Browser(app).post('/auth/local/register', { ...ADA, email: 'bob@example.com' }),
        browser.post('/auth/local/token'),
        browser.post('/auth/local/verify-token', { token })
      ]).finally(() => { isWaiting = false })

      t.match((await browser.get('/me')).json(), { principal: { claims: { email: ADA.email } } })
      t.ok(isWaiting)

      for (const answer of await answers) t.strictSame([answer.statusCode, answer.json().code], [503, 'unavailable'])
      t.ok(Date.now() - since < AT_MOST_MS)
      // The store may look into the database meanwhile, and tell.
      const errors = errorsOf(logged.join('')).filter(({ code }) => code !== undefined)
      t.equal(errors.length, 4)
      t.match(errors[0], { code: 'unavailable', err: { message: /see whether the server is up and can be reached/ } })
      t.notMatch(logged.join(''), SECRETS)
    }),

    t.test("a store on an application's engine is unavailable too", { buffered: true }, async t => {
      await Promise.all(engines.map(store => t.rejects(store.findUser(ADA), UNAVAILABLE)))
      t.ok(Date.now() - since < AT_MOST_MS)
    }),

    t.test('a store and an application can be closed', { buffered: true }, async t => {
      await Promise.all([closingStore.close(), closingApp.close()])
      t.ok(Date.now() - since < AT_MOST_MS)
    }),

    t.test('a process ends by itself once its store is closed', { buffered: true }, async t => {
      await child.end()
      t.ok(Date.now() - since < AT_MOST_MS)
    })
  ])

  server.signal('SIGCONT')
  await t.test('everything works when Postgres answers again', async t => {
    t.equal((await new Browser(app).post('/auth/local/login', ADA)).statusCode, 200)
    t.equal((await browser.post('/auth/local/token')).statusCode, 200)
    for (const store of engines) t.match(await store.findUser({ email: ADA.email }), { name: 'Ada' })
  })
})

t.test('connections that have gone silent are replaced: what is in flight is unavailable, the next call works', { buffered: true }, async t => {
  const { proxy, store } = await startStore(t)
  await warmUp(store)
  proxy.silence()

  const { found = 0, unavailable = 0 } = await outcomesOf(300, () => store.findUser(ADA))

  t.equal(found + unavailable, 300)
  t.ok(unavailable >= 10, 'at least those that had a connection')
  t.equal(await store.findUser(ADA), null)
})

t.test('connections with TLS that have gone silent are replaced after one call, and do not keep a process from ending', { buffered: true }, async t => {
  const proxy = await startProxy(t, await emptyDatabase(t), await selfSigned('localhost'))
  const url = changed(proxy.url, { hostname: 'localhost', search: 'sslmode=require' })
  const store = open(t, url)
  await warmUp(store)
  const child = await startProcess(t, url)
  await child(['findUser', { email: ADA.email }])
  t.strictSame(new Set(proxy.serverNames), new Set(['localhost']))

  proxy.silence()
  const since = Date.now()
  const ended = child.end()
  await t.rejects(store.findUser(ADA), { ...UNAVAILABLE, cause: { message: /within 4\.5 seconds/ } }, 'once')

  t.equal(await store.findUser(ADA), null)
  await ended
  t.ok(Date.now() - since < AT_MOST_MS)
})

t.test('a certificate from an unknown authority is refused when the URL asks for verification', { buffered: true }, async t => {
  const proxy = await startProxy(t, await emptyDatabase(t), await selfSigned('localhost'))
  const store = open(t, changed(proxy.url, { hostname: 'localhost', search: 'sslmode=verify-full' }))

  await t.rejects(store.findUser(ADA), { ...UNAVAILABLE, cause: { message: /self-signed certificate/ } })
})

for (const fate of ['is silent', 'falls silent when ready'] as const) {
  t.test(`a new connection that ${fate} makes a call unavailable, and the next one works`, { buffered: true }, async t => {
    const { proxy, store } = await startStore(t)
    proxy.fate = fate
    await t.rejects(store.findUser(ADA), UNAVAILABLE)

    proxy.fate = 'works'
    t.equal(await store.findUser(ADA), null)
  })
}

t.test("a new connection of an application's engine that is silent makes a call unavailable, and the next one works", { buffered: true }, async t => {
  const proxy = await startProxy(t, await emptyDatabase(t))
  const pool = poolOf(t, proxy.url)
  const store = new SqlAuthStore(drizzle(pool))
  proxy.fate = 'is silent'
  await t.rejects(store.findUser(ADA), UNAVAILABLE)

  proxy.fate = 'works'
  t.equal(await store.findUser(ADA), null)
  pool.on('error', () => {})
  proxy.reset()
})

t.test('a server that closes connections at once is tried once a call', { buffered: true }, async t => {
  const { proxy, store } = await startStore(t)
  proxy.fate = 'is closed'

  for (let calls = 1; calls <= 5; calls++) {
    await t.rejects(store.findUser(ADA), UNAVAILABLE)
    t.equal(proxy.connections, calls)
  }

  proxy.fate = 'works'
  t.equal(await store.findUser(ADA), null)
})

t.test('a server that closes connections after the TLS handshake is tried once a call', { buffered: true }, async t => {
  const proxy = await startProxy(t, await emptyDatabase(t), await selfSigned('localhost'))
  const store = open(t, changed(proxy.url, { hostname: 'localhost', search: 'sslmode=require' }))
  proxy.fate = 'is closed'

  for (let calls = 1; calls <= 3; calls++) {
    await t.rejects(store.findUser(ADA), UNAVAILABLE)
    t.equal(proxy.connections, calls)
  }

  proxy.fate = 'works'
  t.equal(await store.findUser(ADA), null)
})

t.test('of several hosts, each is tried once a call', { buffered: true }, async t => {
  const url = await emptyDatabase(t)
  const proxies = [await startProxy(t, url), await startProxy(t, url)]
  const [one, two] = proxies.map(({ url }) => new URL(url).host)
  const store = open(t, url.replace(new URL(url).host, `${one},${two}`))
  for (const proxy of proxies) proxy.fate = 'is closed'
  const since = Date.now()

  await t.rejects(store.findUser(ADA), { ...UNAVAILABLE, cause: { message: 'Postgres closed the connection' } })
  t.strictSame(proxies.map(({ connections }) => connections), [1, 1])
  t.ok(Date.now() - since < 4000, 'the call does not wait for its time to be over')

  for (const proxy of proxies) proxy.fate = 'works'
  t.equal(await store.findUser(ADA), null)
})

t.test('a pooler that refuses a time limit gets connections without one', { buffered: true }, async t => {
  const { admin, proxy, store } = await startStore(t)
  proxy.fate = 'takes no time limit'

  await warmUp(store)
  t.strictSame(await outcomesOf(50, () => store.findUser(ADA)), { found: 50 })
  const { connections } = proxy
  t.ok(connections <= 21, 'a second connection for each that was refused, and one for the tables')
  await new Accounts(store).createUser(BOB)
  t.equal(proxy.connections, connections)
  t.ok((await activityOf(admin)).length > 0)
})

t.test('a pooler that refuses a time limit in the URL is told of in the cause', { buffered: true }, async t => {
  const proxy = await startProxy(t, await emptyDatabase(t))
  proxy.fate = 'takes no time limit'
  const store = open(t, changed(proxy.url, { search: 'statement_timeout=1000' }))

  await t.rejects(
    store.findUser(ADA),
    { ...UNAVAILABLE, cause: { message: /unsupported startup parameter: statement_timeout; remove the parameter that the pooler refuses from the URL/ } }
  )
})

t.test('an IPv6 address is the host of a URL, alone and among others', { buffered: true }, async t => {
  const url = await emptyDatabase(t)
  const { port } = new URL(url)
  const listener = createServer(client => {
    const server = connect(Number(port), '127.0.0.1')
    // Each end may be reset as the other one closes.
    for (const socket of [client, server]) socket.on('error', () => {})
    client.pipe(server).pipe(client)
  })
  const listens = await new Promise<boolean>(resolve => { listener.once('error', () => resolve(false)).listen(0, '::1', () => resolve(true)) })
  if (!listens) return t.pass('this machine has no IPv6')
  t.teardown(() => { listener.close() })
  const address = listener.address()
  const ipv6Port = typeof address === 'object' && address !== null ? address.port : 0
  const hosts = (hosts: string) => url.replace(new URL(url).host, hosts)

  t.equal(await open(t, hosts(`[::1]:${ipv6Port}`)).findUser(ADA), null)
  t.equal(await open(t, hosts(`127.0.0.1:1,[::1]:${ipv6Port}`)).findUser(ADA), null)
  await t.rejects(
    open(t, hosts('[::1]')).findUser(ADA),
    { ...UNAVAILABLE, cause: { message: /ECONNREFUSED ::1:5432/ } },
    'the port of Postgres, where the URL names none'
  )
})

t.test('connections that are reset fail what is in flight on them, and nothing else', { buffered: true }, async t => {
  const { proxy, store } = await startStore(t)
  await warmUp(store)

  for (let round = 0; round < 10; round++) {
    const inFlight = outcomesOf(50, () => store.findUser(ADA))
    proxy.reset()
    const { found = 0, unavailable = 0 } = await inFlight

    t.equal(found + unavailable, 50)
    t.ok(unavailable <= 10, 'no more than there were connections')
    t.strictSame(await outcomesOf(50, () => store.findUser(ADA)), { found: 50 })
  }
})

t.test('connections that an administrator ends fail what writes on them, and nothing else', { buffered: true }, async t => {
  const { admin, store } = await startStore(t)
  await warmUp(store)
  const release = await hold(admin, 'lock table svc_auth_users')
  const inFlight = Promise.all([
    outcomesOf(5, () => store.findUser(ADA)),
    outcomesOf(5, () => new Accounts(store).createUser(newUser()))
  ])
  await until(async () => (await activityOf(admin)).filter(({ waits }) => waits === 'Lock').length === 10)

  await admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'fastify-svc-auth'`
  await release()

  t.strictSame(await inFlight, [{ found: 5 }, { unavailable: 5 }])
  t.strictSame(await outcomesOf(10, () => store.findUser(ADA)), { found: 10 })
  t.strictSame([...await admin`select from svc_auth_users`], [])
})

t.test('a call that is out of time takes none with it that has some left', { buffered: true }, async t => {
  const { admin, proxy, store } = await startStore(t)
  await new Accounts(store).createUser(BOB)
  const release = await hold(admin, 'select from svc_auth_users for update')
  proxy.silence()

  const lost = store.findUser(ADA)
  await wait(2500)
  const late = new Accounts(store).grant(BOB.userId, { role: 'admin' })
  await t.rejects(lost, UNAVAILABLE)
  await release()

  t.strictSame(await late, { role: 'admin' })
})

t.test('a row that is locked for too long makes what waits for it unavailable, and nothing else', { buffered: true }, async t => {
  const { admin, store } = await startStore(t)
  await new Accounts(store).createUser(BOB)
  await outcomesOf(50, () => new Accounts(store).grant(BOB.userId, { role: 'admin' }))
  await warmUp(store)
  const release = await hold(admin, 'select from svc_auth_users for update')

  let isWaiting = true
  const blocked = outcomesOf(5, () => new Accounts(store).grant(BOB.userId, { role: 'member' })).finally(() => { isWaiting = false })
  t.strictSame(await outcomesOf(100, () => store.findUser({ userId: BOB.userId })), { found: 100 })
  t.ok(isWaiting)

  t.strictSame(await blocked, { unavailable: 5 })
  await until(async () => (await activityOf(admin)).every(({ state }) => state === 'idle'))
  await release()
  t.strictSame(await new Accounts(store).grant(BOB.userId, {}), { role: 'admin' })
})

t.test('tables that are locked for too long make a sign-in unavailable', { buffered: true }, async t => {
  const url = await emptyDatabase(t)
  const admin = clientOf(t, url)
  const { app, logged } = await startLogged(t, url)
  await new Browser(app).post('/auth/local/register', ADA)
  const release = await hold(admin, 'lock table svc_auth_users, svc_auth_provider_links, svc_auth_credentials')

  const refused = await new Browser(app).post('/auth/local/login', ADA)

  t.strictSame([refused.statusCode, refused.json().code], [503, 'unavailable'])
  t.match(errorsOf(logged.join('')), [{ err: { message: /statement timeout; see what holds a lock|did not answer/ } }])
  await release()
  t.equal((await new Browser(app).post('/auth/local/login', ADA)).statusCode, 200)
})

t.test('a statement that the server refuses leaves the connection as it is', { buffered: true }, async t => {
  const { proxy, store } = await startStore(t)

  await store.findUser(ADA) // The tables are made on a connection of their own.
  const { connections } = proxy

  for (let attempt = 0; attempt < 3; attempt++) await new Accounts(store).createUser(BOB)

  t.equal(proxy.connections, connections)
})

t.test('of several hosts, one that answers is enough', { buffered: true }, async t => {
  const url = await emptyDatabase(t)
  const { host } = new URL(url)
  const store = open(t, url.replace(host, `127.0.0.1:1,${host}`))

  t.strictSame(await outcomesOf(50, () => store.findUser(ADA)), { found: 50 })
})

t.test('hosts of which none answers are given up', { buffered: true }, async t => {
  const store = open(t, 'postgres://postgres@127.0.0.1:1,127.0.0.1:2/postgres', { createTables: false })

  t.strictSame(await outcomesOf(10, () => store.findUser(ADA)), { unavailable: 10 })
})

t.test('calls whose turn comes too late are not made any more, and do not keep later ones waiting', { buffered: true }, async t => {
  const url = await emptyDatabase(t)
  await open(t, url).findUser(ADA)
  const proxy = await startProxy(t, url)
  const store = open(t, proxy.url, { createTables: false })
  // Otherwise all of them wait for the first connection, and fail with it.
  await store.findUser(ADA)
  proxy.fate = 'is silent'
  proxy.silence()

  t.strictSame(await outcomesOf(30, () => new Accounts(store).createUser(newUser())), { unavailable: 30 })
  proxy.fate = 'works'

  t.equal(await store.findUser(ADA), null)
  await warmUp(store)
  t.strictSame([...await clientOf(t, url)`select * from svc_auth_users`], [])
})

t.test('when a store is closed, calls that have a connection end well, and calls that wait for one are unavailable', { buffered: true }, async t => {
  const { admin, store } = await startStore(t)
  await warmUp(store)
  const release = await hold(admin, 'lock table svc_auth_users')
  const outcomes = outcomesOf(30, () => store.findUser(ADA))
  await until(async () => (await activityOf(admin)).filter(({ waits }) => waits === 'Lock').length === 10)

  const closed = store.close()
  await release()
  await closed

  t.strictSame(await outcomes, { found: 10, unavailable: 20 })
})

t.test('a Unix socket is another way to a server', async t => {
  const { hostname, port, pathname } = new URL(await emptyDatabase(t))
  const folder = mkdtempSync(join(tmpdir(), 'svc-auth-'))
  const listener = createServer(client => { client.pipe(connect(Number(port), hostname)).pipe(client) }).listen(join(folder, '.s.PGSQL.5432'))
  t.teardown(() => { listener.close(); rmSync(folder, { recursive: true, force: true }) })
  const before = { ...process.env }
  t.teardown(() => { process.env = before })
  Object.assign(process.env, { PGHOST: folder, PGPORT: '5432', PGUSER: 'postgres', PGPASSWORD: 'a password' })

  t.equal(await open(t, `postgres://${pathname}`).findUser(ADA), null)
})

t.test('an SQLite file that another process has to itself makes a sign-in unavailable; other routes answer meanwhile', async t => {
  const file = join(t.testdir(), 'users.db')
  const { app, logged } = await startLogged(t, file)
  const other = new SqliteDatabase(file)
  t.teardown(() => other.close())
  other.exec('begin exclusive')

  let isWaiting = true
  const registration = new Browser(app).post('/auth/local/register', ADA).finally(() => { isWaiting = false })
  t.equal((await new Browser(app).get('/me')).statusCode, 200)
  t.ok(isWaiting)
  const refused = await registration

  t.strictSame([refused.statusCode, refused.json().code], [503, 'unavailable'])
  t.match(errorsOf(logged.join('')), [{ err: { message: /database is locked; another process has held the lock/ } }])
  other.exec('rollback')
  t.equal((await new Browser(app).post('/auth/local/register', ADA)).statusCode, 201)

  other.exec('begin exclusive')
  t.equal((await new Browser(app).post('/auth/local/login', ADA)).statusCode, 200, 'what only reads need not wait')
})

function newUser (): NewUser {
  const userId = randomUUID()
  return { userId, email: null, emailVerified: false, name: null, claims: {}, link: { provider: 'dev', subject: userId, claims: { sub: userId } } }
}

/** An application with a store on `target`, and the lines of its log. */
async function startLogged (t: Test, target: string) {
  const logged: string[] = []
  const store = new SqlAuthStore(target)
  // Without the users alone: test/security/failures.test.ts has what fails where the database keeps the sessions too.
  const session = { secret: SESSION_SECRET, store: 'memory' as const }
  const app = await startApp(t, { local: localProvider(), store, session }, { logger: { stream: { write: (line: string) => { logged.push(line) } } } })
  return { app, logged }
}

/** A store whose connections go through a network that can fail, and another way to its database. */
async function startStore (t: Test) {
  const url = await emptyDatabase(t)
  const proxy = await startProxy(t, url)
  return { admin: clientOf(t, url), proxy, store: open(t, proxy.url) }
}

function open (t: Test, target: string, options: SqlAuthStoreOptions = {}): SqlAuthStore {
  const store = new SqlAuthStore(target, options)
  t.teardown(() => store.close())
  return store
}

function changed (url: string, parts: { hostname?: string, port?: string, search?: string }): string {
  return Object.assign(new URL(url), parts).href
}

/** Makes the store open all its connections. */
async function warmUp (store: SqlAuthStore): Promise<void> {
  await outcomesOf(50, () => store.findUser(ADA))
}

/** Makes many calls at once and counts how they end. */
async function outcomesOf (count: number, call: () => Promise<unknown>): Promise<Record<string, number>> {
  const outcomes: Record<string, number> = {}
  await Promise.all(Array.from({ length: count }, async () => {
    const outcome = await call().then(() => 'found', error => error instanceof AuthError ? error.code : String(error))
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
  }))
  return outcomes
}

/** Takes locks in a transaction; resolves to what releases them. */
async function hold (admin: postgres.Sql, statement: string): Promise<() => Promise<void>> {
  const connection = await admin.reserve()
  await connection.unsafe('begin')
  await connection.unsafe(statement)
  return async () => {
    await connection.unsafe('rollback')
    connection.release()
  }
}

/** What the connections of stores on the database of `admin` do. */
async function activityOf (admin: postgres.Sql): Promise<Array<{ state: string, waits: string | null }>> {
  return admin`select state, wait_event_type as waits from pg_stat_activity where datname = current_database() and application_name = 'fastify-svc-auth'`
}

/** Asks for what no event tells. */
async function until (holds: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + AT_MOST_MS
  while (!await holds()) {
    if (Date.now() > deadline) throw new Error('that should have been so by now')
    await wait(50)
  }
}

/** The errors in a log. */
function errorsOf (log: string): Array<Record<string, unknown>> {
  return log.trim().split('\n').map(line => JSON.parse(line)).filter(({ level }) => level >= 50)
}
