import { existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import t, { type Test } from 'tap'
import { Accounts, SqlAuthStore } from '../../lib/index.js'
import { localProvider, startApp, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { ADA } from '../helpers/mail-app.js'
import { localUser } from './users.js'

const BOB = { ...ADA, email: 'bob@example.com' }

t.test('a backup that is moved to the path of an open file is used within a second, and one error line says so', async t => {
  const { app, file, errors, browser, pass } = await start(t)
  const backUp = new SqliteDatabase(file)
  backUp.exec(`vacuum into '${file}.backup'`)
  backUp.close()
  await new Browser(app).post('/auth/local/register', BOB)

  renameSync(`${file}.backup`, file)
  pass(1000)

  t.type(await userIdIn(browser), 'string', 'the session is in the backup')
  t.equal((await new Browser(app).post('/auth/local/login', BOB)).statusCode, 401, 'the user is not')
  t.equal((await new Browser(app).post('/auth/local/register', BOB)).statusCode, 201)
  t.match(errors, [{ msg: /was deleted or replaced while it was open; the next call opens it anew$/, err: { message: file } }])
  t.equal(errors.length, 1)
  t.match(contentOf(file), { emails: [ADA.email, BOB.email], check: 'ok' })
})

t.test('a file that was deleted is made again, empty', async t => {
  const { app, file, errors, browser, pass } = await start(t)
  for (const end of ['', '-wal', '-shm']) rmSync(file + end)
  pass(1000)

  t.equal(await userIdIn(browser), null)
  t.equal((await new Browser(app).post('/auth/local/register', BOB)).statusCode, 201)
  t.strictSame(contentOf(file).emails, [BOB.email])
  t.equal(errors.length, 1)
})

t.test('what is written to a file that is no longer there is not acknowledged', async t => {
  const { app, file, pass } = await start(t)
  renameSync(file, `${file}.former`)

  t.equal((await new Browser(app).post('/auth/local/register', BOB)).statusCode, 503)
  t.equal((await new Browser(app).post('/auth/local/register', BOB)).statusCode, 201)

  t.strictSame(contentOf(file).emails, [BOB.email])
  pass(1000)
  t.equal((await new Browser(app).post('/auth/local/login', BOB)).statusCode, 200)
})

t.test('a file that was moved away has all that was acknowledged, and its log does not reach the next one', async t => {
  const { app, file, browser, pass } = await start(t)
  t.ok(statSync(`${file}-wal`).size > 0)
  renameSync(file, `${file}.former`)
  pass(1000)

  t.equal(await userIdIn(browser), null)
  t.equal((await new Browser(app).post('/auth/local/register', BOB)).statusCode, 201)

  t.strictSame(contentOf(`${file}.former`).emails, [ADA.email])
  t.match(contentOf(file), { emails: [BOB.email], check: 'ok' })
})

t.test('a store that is closed before it has noticed leaves no log to the next file', async t => {
  const { app, file } = await start(t)
  renameSync(file, `${file}.former`)

  await app.close()

  t.notOk(existsSync(`${file}-wal`))
  t.strictSame(contentOf(`${file}.former`).emails, [ADA.email])
})

t.test('of many requests at once, each is answered from the new file', async t => {
  const { app, file, errors, pass } = await start(t)
  rmSync(file)
  pass(1000)

  const answers = await Promise.all(Array.from({ length: 10 }, async (_, index) =>
    new Browser(app).post('/auth/local/register', { ...BOB, email: `bob${index}@example.com` })))

  t.strictSame(answers.map(({ statusCode }) => statusCode), answers.map(() => 201))
  t.equal(contentOf(file).emails.length, 10)
  t.equal(errors.length, 1)
})

t.test('calls at once share the new connection, and the former one is closed', async t => {
  const { file, pass } = await start(t)
  const pragmas = t.capture(SqliteDatabase.prototype, 'pragma', SqliteDatabase.prototype.pragma)
  const store = openStore(t, file)
  await store.findUser({ email: ADA.email })
  rmSync(file)
  pass(1000)

  t.strictSame(await Promise.all(Array.from({ length: 10 }, async () => store.findUser({ email: ADA.email }))), Array.from({ length: 10 }, () => null))

  const connections = [...new Set(pragmas().map(({ receiver }): unknown => receiver))]
  t.match(connections, [{ open: false }, { open: true }])
  t.equal(connections.length, 2)
})

t.test('two stores on a file go over to the new one, and neither touches the log of the other', async t => {
  const { file, pass } = await start(t)
  const stores = [openStore(t, file), openStore(t, file)]
  for (const store of stores) await store.findUser({ email: ADA.email })
  rmSync(file)
  pass(1000)

  for (const [index, store] of stores.entries()) {
    await new Accounts(store).createUser(localUser(`first${index}@example.com`))
    pass(1000)
  }
  for (const [index, store] of stores.entries()) await new Accounts(store).createUser(localUser(`second${index}@example.com`))

  t.match(contentOf(file), { emails: ['first0@example.com', 'first1@example.com', 'second0@example.com', 'second1@example.com'], check: 'ok' })
})

t.test('a file whose former readers are not done is opened when they are', async t => {
  const { app, file, pass } = await start(t)
  const reader = new SqliteDatabase(file)
  t.teardown(() => { reader.close() })
  reader.exec('begin; select * from svc_auth_users')
  await new Browser(app).post('/auth/local/register', BOB)
  renameSync(file, `${file}.former`)
  pass(1000)

  t.equal((await new Browser(app).post('/auth/local/register', BOB)).statusCode, 503)
  t.notOk(existsSync(file))
  reader.exec('commit')

  t.equal((await new Browser(app).post('/auth/local/register', BOB)).statusCode, 201)
})

t.test('the path is looked at once a second for reads', async t => {
  const { file, pass } = await start(t)
  const store = openStore(t, file)
  await store.findUser({ email: ADA.email })
  rmSync(file)

  t.match(await store.findUser({ email: ADA.email }), { email: ADA.email })
  pass(999)
  t.match(await store.findUser({ email: ADA.email }), { email: ADA.email })
  pass(1)
  t.equal(await store.findUser({ email: ADA.email }), null)
})

t.test('a connection of the application is left as it is', async t => {
  const file = join(t.testdir(), 'users.db')
  const connection = new SqliteDatabase(file)
  t.teardown(() => { connection.close() })
  const store = openStore(t, connection)
  await new Accounts(store).createUser(localUser(ADA.email))
  rmSync(file)
  clockOf(t)(2000)

  t.match(await store.findUser({ email: ADA.email }), { email: ADA.email })
  t.ok(connection.open)
})

/** An application with a user on a file of its own, and a clock that goes on when it is told to. */
async function start (t: Test) {
  const pass = clockOf(t)
  const file = join(t.testdir(), 'users.db')
  const errors: Array<Record<string, unknown>> = []
  const stream = { write: (line: string) => { if (line.includes('opens it anew"')) errors.push(JSON.parse(line)) } }
  const app = await startApp(t, { local: localProvider(), store: new SqlAuthStore(file) }, { logger: { level: 'error', stream } })
  const browser = new Browser(app)
  await browser.post('/auth/local/register', ADA)
  return { app, file, errors, browser, pass }
}

/** Stops `performance.now`; returns a function that lets some milliseconds pass. */
function clockOf (t: Test): (milliseconds: number) => void {
  let now = Math.ceil(performance.now())
  t.intercept(performance, 'now', { value: () => now })
  return milliseconds => { now += milliseconds }
}

function openStore (t: Test, target: ConstructorParameters<typeof SqlAuthStore>[0]): SqlAuthStore {
  const store = new SqlAuthStore(target)
  t.teardown(() => store.close())
  return store
}

/** What another process finds in a file. */
function contentOf (file: string): { emails: unknown[], check: unknown } {
  const connection = new SqliteDatabase(file, { fileMustExist: true })
  try {
    return {
      emails: connection.prepare('select email from svc_auth_users order by email').pluck().all(),
      check: connection.pragma('integrity_check', { simple: true })
    }
  } finally {
    connection.close()
  }
}
