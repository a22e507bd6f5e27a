/** What an application logs behind its start about a store that cannot be used. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import t, { type Test } from 'tap'
import { SqlAuthStore, type SqlAuthStoreOptions, type SqlEngine } from '../../lib/index.js'
import { hashing } from '../../lib/features/password/hashing.js'
import { sqliteFailures } from '../../lib/engines/sqlite/database.js'
import { localProvider } from '../helpers/app.js'
import { selfSigned } from '../helpers/certificate.js'
import { freePort } from '../helpers/loopback.js'
import { clientOf, emptyDatabase } from '../helpers/postgres.js'
import { startLogged, whenLogged } from '../helpers/start-log.js'
import { startProxy } from '../helpers/tcp-proxy.js'

const UNUSABLE = 'The store cannot use its database; until it can, requests that need it are answered 503'

/** Starts an application on a store, without a request. */
async function startOn (t: Test, target: string | SqlEngine, options?: SqlAuthStoreOptions) {
  const store = new SqlAuthStore(target, options)
  return { store, ...await startLogged(t, { store }) }
}

t.test('a store that cannot be used is one line at `error`, before a request, and the application starts', async t => {
  const url = await emptyDatabase(t)
  const changed = (parts: object): string => Object.assign(new URL(url), parts).href
  const folder = t.testdir()
  mkdirSync(join(folder, 'a-folder'))
  writeFileSync(join(folder, 'no-database'), 'this is no database, and long enough that SQLite reads it as one: '.repeat(20))
  const { url: secured } = await startProxy(t, url, await selfSigned('localhost'))
  const failures: Array<[what: string, target: string | SqlEngine, reason: RegExp, options?: SqlAuthStoreOptions]> = [
    ['a wrong password', changed({ password: 'hunter2' }), /; correct user and password/],
    ['a database that is not there', changed({ pathname: '/missing' }), /; create the database first: createdb/],
    ['a server that is not there', changed({ port: await freePort() }), /; start the server, or correct host and port/],
    ['a socket that is not there', 'postgres:///app?host=/missing', /; start the server, or correct the folder of its socket and the port/],
    ['a socket whose path is too long', `postgres:///app?host=/${'folder/'.repeat(20)}`, /EINVAL|ENOENT/],
    ['an address that cannot be reached', changed({ hostname: '255.255.255.255' }), /ENETUNREACH|EACCES/],
    ['a setting that Postgres refuses', `${url}?work_mem=hunter2much`, /; correct this setting in the URL/],
    ['a setting that Postgres does not know', `${url}?options=-c%20hunter=2`, /; correct this setting in the URL/],
    ['a server without TLS', `${url}?sslmode=require`, /; see whether the server is up, and with sslmode in the URL whether it offers TLS \(ssl = on\)/],
    ['a certificate of nobody', `${secured}?sslmode=verify-full`, /; name the file of the authority's certificate in the URL/],
    ['a certificate whose file is not there', `${secured}?sslmode=verify-full&sslrootcert=/missing/ca.pem`, /no such file or directory, open '.*\/ca\.pem'/],
    ['tables that are not there', url, /; run the migrations that make the tables, or leave createTables at true/, { createTables: false }],
    ['a client of the application', clientOf(t, changed({ password: 'hunter2' })), /; correct user and password/],
    ['a folder that is not there', join(folder, 'missing/users.db'), /; make the folder first/],
    ['a folder in place of a file', join(folder, 'a-folder'), /; name a file in a folder that exists and that this process may write to/],
    ['a file of another kind', join(folder, 'no-database'), /; name another file; this one is left as it is/]
  ]
  for (const [what, target, reason, options] of failures) {
    const { lines } = await startOn(t, target, options)
    const [line] = await whenLogged(lines, 1)
    t.match(line, { level: 50, msg: UNUSABLE, err: { message: reason } }, what)
    t.notMatch(inspect(line, { depth: null }).replaceAll('hunter2much', ''), 'hunter2', what)
    t.equal(lines.length, 1, what)
  }
})

t.test('a store that can be used is no line, and is open before a request', async t => {
  const file = join(t.testdir(), 'users.db')
  for (const target of [file, ':memory:', await emptyDatabase(t), clientOf(t, await emptyDatabase(t))]) {
    const { app, store, lines } = await startOn(t, target)
    await store.report(app.log)
    t.strictSame(lines, [])
  }
  t.ok(existsSync(file))
})

t.test('a store that was closed meanwhile opens nothing and says nothing', async t => {
  const folder = t.testdir()
  const { app, store, lines } = await startOn(t, join(folder, 'users.db'))
  await app.close()
  await store.report(app.log)
  t.strictSame(lines, [])

  const closed = new SqlAuthStore(join(folder, 'other.db'))
  await closed.close()
  await closed.report(app.log)
  t.strictSame(readdirSync(folder).filter(name => name.startsWith('other')), [])
})

t.test('a native module that is missing is a line at `error` too', async t => {
  t.intercept(hashing, 'preload', { value: async () => { throw new Error('Cannot find native binding.') } })
  const { lines } = await startLogged(t, { local: localProvider() })

  t.match(await whenLogged(lines, 1), [{ level: 50, msg: 'Requests that need this part will fail', err: { message: 'Cannot find native binding.' } }])
})

t.test('a native module of better-sqlite3 that was built for another Node.js is to be built again', async t => {
  for (const error of [
    Object.assign(new Error("The module 'better_sqlite3.node' was compiled against a different Node.js version"), { code: 'ERR_DLOPEN_FAILED' }),
    new Error('Could not locate the bindings file. Tried: …')
  ]) {
    const advice = /; build it for this version of Node\.js: npm rebuild better-sqlite3$/
    t.match(sqliteFailures.toAuthError(error), { code: 'unavailable', cause: { message: advice } })
  }
})

t.test('sslmode=no-verify is a warning, other modes are none', async t => {
  const { url } = await startProxy(t, await emptyDatabase(t), await selfSigned('localhost'))
  const { lines } = await startOn(t, `${url}?sslmode=no-verify`)
  t.match(await whenLogged(lines, 1), [{ level: 40, msg: /^sslmode=no-verify encrypts .* write sslmode=verify-full, with sslrootcert/ }])

  const { app, store, lines: others } = await startOn(t, `${url}?sslmode=require`)
  await store.report(app.log)
  t.strictSame(others, [])
})
