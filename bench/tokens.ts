import { join } from 'node:path'
import { machine } from './parts/machine.js'
import { type Trial, latencies } from './parts/measure.js'
import { benchOptions } from './parts/options.js'
import { postgresServer } from './parts/postgres-server.js'
import { application, rivalry } from './parts/rivals.js'
import { type Question, ask, startServer } from './parts/server.js'
import { figure, ratio, table } from './parts/table.js'
import { temporaryFolder } from './parts/temporary-folder.js'
import { issuers } from './tokens/issuers.js'
import { SUBJECT, newToken } from './tokens/tokens.js'

/** Shows what it costs to verify and to issue tokens, beside jose alone and beside @fastify/jwt. */

const { dialects, isShort } = benchOptions()

const QUESTIONS = {
  requireBearer: (token: string): Question => ({ method: 'GET', path: '/bearer', headers: { authorization: `Bearer ${token}` } }),
  'verify-token': (token: string): Question => ({ method: 'POST', path: '/auth/local/verify-token', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ token }) })
}

/** Machines send theirs again and again. */
const KNOWN = Array.from({ length: 10 }, newToken)

const TOKENS = {
  'each token once': newToken,
  'ten tokens again and again': () => KNOWN[Math.floor(Math.random() * KNOWN.length)] ?? ''
}

const RIVALS = ['jose', '@fastify/jwt', '@fastify/jwt with its cache']

console.log(`${machine('fastify', 'jose', '@fastify/jwt', '@fastify/session')}\n`)
await benchVerification()
await benchIssuing()
await benchRoute()

async function benchVerification (): Promise<void> {
  const program = new URL('tokens/server.ts', import.meta.url)
  const started = [
    ['fastify-svc-auth', startServer(program, 'fastify-svc-auth')],
    ...RIVALS.map(name => [`${name}, with sessions`, startServer(program, name, 'with sessions')] as const),
    ...RIVALS.map(name => [name, startServer(program, name)] as const)
  ] as const
  const servers = await Promise.all(started.map(async ([name, starting]) => ({ name, server: await starting })))
  try {
    for (const [route, question] of Object.entries(QUESTIONS)) {
      for (const [kind, token] of Object.entries(TOKENS)) {
        console.log(`${route}, ${kind}\n`)
        console.log(await rivalry(servers.map(({ name, server }) => application(name, server.origin, () => question(token()), SUBJECT)), { isShort }))
      }
    }
  } finally {
    for (const { server } of servers) await server.end()
  }
}

async function benchIssuing (): Promise<void> {
  const trials = Object.entries(await issuers()).map(([name, issue]): [string, Trial<undefined>] => [name, {
    choose: () => undefined,
    call: issue,
    check (token) { if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(String(token))) throw new Error(`expected a token, got ${token}`) },
    undo () {}
  }])
  const times = await latencies(trials.map(([, trial]) => trial), isShort ? { rounds: 2, calls: 2 } : { rounds: 200, calls: 50 })
  const rows = trials.map(([name, trial]) => ({ name, time: times.get(trial) ?? NaN }))
  console.log('To issue a token\n')
  console.log(table(['', 'µs', 'ours to it'], rows.map(({ name, time }) => [name, figure(time), ratio(time, rows[0]?.time ?? NaN)])) + '\n')
}

/** A route that issues a token to the user of the session; @fastify/jwt has the session in memory, and no users. */
async function benchRoute (): Promise<void> {
  const postgres = dialects.includes('postgres') ? await postgresServer() : null
  const program = new URL('tokens/server.ts', import.meta.url)
  const databases = {
    'users and sessions in memory': 'memory',
    ...dialects.includes('sqlite') && { 'users and sessions in SQLite': join(temporaryFolder(), 'users.db') },
    ...postgres !== null && { 'users and sessions in Postgres': await postgres.createDatabase() }
  }
  const servers = await Promise.all([
    ...Object.entries(databases).map(async ([name, database]) => ({ name, server: await startServer(program, 'fastify-svc-auth', database) })),
    startServer(program, '@fastify/jwt', 'with sessions').then(server => ({ name: '@fastify/jwt, sessions in memory', server }))
  ])
  try {
    const rivals = await Promise.all(servers.map(async ({ name, server }) => {
      const { headers: { 'set-cookie': cookie } } = await ask(server, { method: 'POST', path: '/sign-in' })
      const headers = { cookie: String(cookie).replace(/;.*/, '') }
      return application(name, server.origin, () => ({ method: 'POST', path: '/auth/local/token', headers }), '"token"')
    }))
    console.log('The route that issues a token; each to it, so the last row is to read\n')
    for (const ours of rivals.slice(0, -1)) console.log(await rivalry([ours, ...rivals.slice(-1)], { isShort }))
  } finally {
    for (const { server } of servers) await server.end()
    await postgres?.stop()
  }
}
