import { machine } from './parts/machine.js'
import { type Trial, latencies } from './parts/measure.js'
import { benchOptions } from './parts/options.js'
import { application, rivalry } from './parts/rivals.js'
import { type Question, startServer } from './parts/server.js'
import { figure, ratio, table } from './parts/table.js'
import { issuers } from './tokens/issuers.js'
import { SUBJECT, newToken } from './tokens/tokens.js'

/** Shows what it costs to verify and to issue tokens, beside jose alone and beside @fastify/jwt. */

const { isShort } = benchOptions()

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
