import { join } from 'node:path'
import { machine } from './parts/machine.js'
import { benchOptions } from './parts/options.js'
import { postgresServer } from './parts/postgres-server.js'
import { type Rival, application, rivalry } from './parts/rivals.js'
import { type Server, ask, startServer } from './parts/server.js'
import { temporaryFolder } from './parts/temporary-folder.js'

/** Shows what a guard costs, and what the plugin costs where nobody asks it anything, beside @fastify/session with the same store. */

const { dialects, isShort } = benchOptions()
const PROGRAM = new URL('requests/server.ts', import.meta.url)

const postgres = dialects.includes('postgres') ? await postgresServer() : null
const databases = {
  'users in memory': 'memory',
  ...dialects.includes('sqlite') && { 'users in SQLite': join(temporaryFolder(), 'users.db') },
  ...postgres !== null && { [`users in Postgres ${postgres.version}`]: await postgres.createDatabase() }
}
const bare = await startServer(PROGRAM, '@fastify/session alone')
console.log(`${machine('fastify', '@fastify/session', 'better-sqlite3', 'postgres')}\n`)
for (const [title, database] of Object.entries(databases)) {
  const ours = await startServer(PROGRAM, 'fastify-svc-auth', database, 'memory')
  const beside = await startServer(PROGRAM, 'fastify-svc-auth', database)
  const passport = await startServer(PROGRAM, '@fastify/passport and @fastify/session', database)
  console.log(`A page for those who are signed in, ${title}\n`)
  console.log(await rivalry([
    await member('guard and principal, sessions in memory', ours),
    await member('@fastify/passport, which reads the user', passport),
    await member('session alone', bare),
    ...database === 'memory'
      ? []
      : [
          await member('guard and principal, sessions beside the users', beside),
          await client('token of the authorization server', beside),
          await member('requireCaller: that session', beside, '/caller'),
          await script('requireCaller: an API key', beside)
        ]
  ], { isShort }))
  if (database === 'memory') {
    console.log('A page for everybody\n')
    console.log(await rivalry([visitor('with the plugin', ours), visitor('session alone', bare)], { isShort }))
  }
  await Promise.all([ours.end(), beside.end(), passport.end()])
}
await bare.end()
await postgres?.stop()

async function member (name: string, server: Server, path = '/me'): Promise<Rival> {
  const { headers: { 'set-cookie': cookies } } = await ask(server, { method: 'POST', path: '/sign-in' })
  const [cookie = ''] = String(cookies).split(';')
  return application(name, server.origin, () => ({ method: 'GET', path, headers: { cookie } }), 'ada@example.com')
}

/** A client of the authorization server, which Ada has connected. */
async function client (name: string, server: Server): Promise<Rival> {
  const { headers: { 'set-cookie': cookies } } = await ask(server, { method: 'POST', path: '/sign-in' })
  const [cookie = ''] = String(cookies).split(';')
  const { text } = await ask(server, { method: 'POST', path: '/connect', headers: { cookie } })
  const { access_token: token } = JSON.parse(text)
  return application(name, server.origin, () => ({ method: 'GET', path: '/mcp', headers: { authorization: `Bearer ${token}` } }), 'ada@example.com')
}

/** A script of Ada's. */
async function script (name: string, server: Server): Promise<Rival> {
  const { text } = await ask(server, { method: 'POST', path: '/key' })
  const { key } = JSON.parse(text)
  return application(name, server.origin, () => ({ method: 'GET', path: '/caller', headers: { authorization: `Bearer ${key}` } }), 'ada@example.com')
}

function visitor (name: string, server: Server): Rival {
  return application(name, server.origin, () => ({ method: 'GET', path: '/public' }), 'isOpen')
}
