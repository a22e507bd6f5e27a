import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import SqliteDatabase from 'better-sqlite3'
import t, { type Test } from 'tap'
import { SqlAuthStore } from '../../lib/store/sql.js'

const ADA = { userId: '6b1e1c9e-0c51-4c3a-9f44-2f0e8a2f5d11', email: 'ada@example.com', emailVerified: true, name: 'Ada', claims: {}, link: { provider: 'dev', subject: '1', claims: { sub: '1' } } }

/** An empty folder that relative paths are in for the time of a test. */
function emptyFolder (t: Test): string {
  const before = process.cwd()
  const folder = t.testdir()
  process.chdir(folder)
  t.teardown(() => { process.chdir(before) })
  return folder
}

/** Whether a store with this target keeps its users in that file. */
async function keepsUsersIn (file: string, ...target: ConstructorParameters<typeof SqlAuthStore>): Promise<boolean> {
  const store = new SqlAuthStore(...target)
  const existedBefore = existsSync(file)
  await store.createUser(ADA)
  await store.close()
  if (existedBefore || !existsSync(file)) return false

  const connection = new SqliteDatabase(file, { readonly: true })
  const email = connection.prepare('select email from svc_auth_users').pluck().get()
  connection.close()
  return email === ADA.email
}

t.beforeEach(() => { delete process.env.LOCAL_AUTH_DB })
t.teardown(() => { delete process.env.LOCAL_AUTH_DB })

const FILES: Array<[target: (folder: string) => string, file: string]> = [
  [() => 'users.db', 'users.db'],
  [() => './users.db', 'users.db'],
  [() => 'data/users.db', 'data/users.db'],
  [() => './data/../users.db', 'users.db'],
  [folder => join(folder, 'users.db'), 'users.db'],
  [folder => join(folder, 'with space & ünïcode.db'), 'with space & ünïcode.db'],
  [() => 'sqlite:users.db', 'users.db'],
  [() => 'sqlite:./users.db', 'users.db'],
  [() => 'sqlite://users.db', 'users.db'],
  [() => 'SQLite:users.db', 'users.db'],
  [folder => `sqlite:${folder}/users.db`, 'users.db'],
  [folder => `sqlite://${folder}/users.db`, 'users.db'],
  [() => 'file:users.db', 'users.db'],
  [() => 'file:./data/users.db', 'data/users.db'],
  [folder => `file:${folder}/users.db`, 'users.db'],
  [folder => `file://${folder}/users.db`, 'users.db'],
  [folder => pathToFileURL(join(folder, 'with space & ünïcode.db')).href, 'with space & ünïcode.db']
]

for (const [target, file] of FILES) {
  t.test(`${target('/folder')} is the file ${file}`, async t => {
    const folder = emptyFolder(t)
    mkdirSync('data')

    t.ok(await keepsUsersIn(join(folder, file), target(folder)))
  })
}

t.test('the constructor opens and makes nothing', async t => {
  const folder = emptyFolder(t)

  for (const target of [undefined, './users.db', 'sqlite:users.db', join(folder, 'no', 'such', 'folder', 'users.db')]) await new SqlAuthStore(target).close()

  t.strictSame(readdirSync(folder), [])
})

for (const target of [':memory:', 'sqlite::memory:', 'file::memory:', 'sqlite://:memory:', 'file://:memory:']) {
  t.test(`${target} is memory of that store alone, and no file`, async t => {
    const folder = emptyFolder(t)
    const [store, other] = [new SqlAuthStore(target), new SqlAuthStore(target)]
    t.teardown(() => Promise.all([store.close(), other.close()]))

    await store.createUser(ADA)

    t.ok(await store.findUser({ userId: ADA.userId }))
    t.equal(await other.findUser({ userId: ADA.userId }), null)
    t.strictSame(readdirSync(folder), [])
  })
}

t.test('without a target it is the setting LOCAL_AUTH_DB', async t => {
  const folder = emptyFolder(t)
  process.env.LOCAL_AUTH_DB = 'sqlite:of-the-setting.db'

  t.ok(await keepsUsersIn(join(folder, 'of-the-setting.db')))
  t.ok(await keepsUsersIn(join(folder, 'of-the-option.db'), './of-the-option.db'), 'the option goes first')
})

t.test('without target and setting it is ./local-auth.db', async t => {
  const folder = emptyFolder(t)

  t.ok(await keepsUsersIn(join(folder, 'local-auth.db')))
})

t.test('another scheme is refused by name, and nothing else of the URL is printed', async t => {
  for (const scheme of ['mysql', 'mongodb+srv', 'https', 'libsql', 'MSSQL']) {
    const refused = t.throws(() => new SqlAuthStore(`${scheme}://root:hunter2@db.example/users`), { name: 'OptionsError', code: 'invalid_options', message: new RegExp(`^target has the scheme "${scheme.toLowerCase().replace('+', '\\+')}:", which is not known`) })
    t.notOk(String(refused).includes('hunter2'))
  }
})

t.test('a target that names no file is refused: users would be lost', async t => {
  for (const target of ['', ' ', 'sqlite:', 'sqlite://', 'sqlite: ', 'file:', 'file://', 'file:///']) {
    t.throws(() => new SqlAuthStore(target), { name: 'OptionsError', message: /^target must/ }, JSON.stringify(target))
  }
})

t.test('an empty setting is refused, and is named', async t => {
  process.env.LOCAL_AUTH_DB = ''

  t.throws(() => new SqlAuthStore(), { name: 'OptionsError', message: 'target must not be empty; set LOCAL_AUTH_DB to an SQLite file or leave it unset' })
})

t.test('a file URL that no file can have is refused', async t => {
  for (const target of ['file://another-host/users.db', 'file://users.db', 'file:///a%2Fb.db']) {
    t.throws(() => new SqlAuthStore(target), { name: 'OptionsError', message: /^target/ }, target)
  }
})

t.test('what is no engine is refused', async t => {
  const nonsense = [null, 0, 5, true, {}, [], () => {}, Symbol('a'), new Map(), new URL('file:///users.db'), Buffer.from('users.db'), SqliteDatabase, { prepare () {} }, { pragma () {} }, { $client: {} }, { $client: null }, { $client: () => {} }]

  for (const target of nonsense) {
    t.throws(() => new SqlAuthStore(target as never), { name: 'OptionsError', code: 'invalid_options', message: /^target must be an SQLite file or URL, / })
  }
})

t.test('createTables must be true or false, and an option of another name is refused', async t => {
  for (const createTables of [null, 0, 1, 'false', 'no', {}]) {
    t.throws(() => new SqlAuthStore(':memory:', { createTables } as object), { name: 'OptionsError', message: 'createTables must be true or false' })
  }
  t.throws(() => new SqlAuthStore(':memory:', { createTable: false } as object), { name: 'OptionsError', message: /createTable\b/ })
})
