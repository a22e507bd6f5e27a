import { join } from 'node:path'
import { Browser, Direct, type Visit, visits } from './external-sign-in/visits.js'
import { machine } from './parts/machine.js'
import { type Trial, latencies, throughputs } from './parts/measure.js'
import { benchOptions } from './parts/options.js'
import { postgresServer } from './parts/postgres-server.js'
import { type Question, ask, startServer } from './parts/server.js'
import { figure, ratio, table } from './parts/table.js'
import { temporaryFolder } from './parts/temporary-folder.js'

/**
 * Shows what the first sign-in of somebody at an OpenID provider takes besides the provider's own time, beside a straight script, in
 * memory and with the same rows by hand, and beside other libraries.
 */

const { dialects, isShort } = benchOptions()
const ONE_BY_ONE = isShort ? { rounds: 2, calls: 4 } : { rounds: 30, calls: 20 }
const BROWSERS = 8
const AT_ONCE = { ...isShort ? { rounds: 2, calls: 32 } : { rounds: 12, calls: 160 }, inFlight: BROWSERS }

const login: Question = { method: 'GET', path: '/login' }
const postgres = dialects.includes('postgres') ? await postgresServer() : null
const ours = { start: { ...login, path: '/auth/bench/login' }, asksUserinfo: false }
const [OURS, SCRIPT] = ['fastify-svc-auth', 'oauth4webapi']
/** Each is compared with the script that keeps the same where it does. */
const CONTESTANTS: Array<{ name: string, start: Question, asksUserinfo: boolean, script?: string, database?: string }> = [
  { name: OURS, ...ours },
  { name: SCRIPT, start: login, asksUserinfo: false },
  ...dialects.includes('sqlite') ? await withRows('SQLite', newFile) : [],
  ...postgres !== null ? await withRows('Postgres', () => postgres.createDatabase()) : [],
  { name: '@fastify/oauth2', start: login, asksUserinfo: true },
  // Its adapter in memory looks at all users each time.
  ...dialects.includes('sqlite') ? [{ name: 'better-auth, SQLite', start: byItsClient({ provider: 'bench', callbackURL: '/' }), asksUserinfo: false, script: `${SCRIPT} with rows, SQLite`, database: await newFile() }] : []
]

const provider = await startServer(new URL('external-sign-in/provider.ts', import.meta.url), 'provider')
const applications = await Promise.all(CONTESTANTS.map(async ({ start, database, ...contestant }) => {
  // To each application the provider is another issuer, by a segment of the path.
  const segment = contestant.name.replace(/\W+/g, '-')
  const [maker = ''] = contestant.name.split(', ')
  const server = await startServer(new URL('external-sign-in/applications.ts', import.meta.url), maker, `${provider.origin}/${segment}`, ...database === undefined ? [] : [database])
  return { ...contestant, segment, server, trial: visits(() => new Browser(server, start)) }
}))
const trials = applications.map(({ trial }) => trial)
const direct = visits(() => new Direct(provider, false))
const directWithUserinfo = visits(() => new Direct(provider, true))

for (const trial of trials) await allAtOnce(trial)
const fetched: Record<string, Record<'discovery' | 'jwks', number>> = JSON.parse((await ask(provider, { method: 'GET', path: '/fetched' })).text)
// By then everybody's code is compiled.
const pace = await throughputs(trials, AT_ONCE)
const times = await latencies([...trials, direct, directWithUserinfo], ONE_BY_ONE)

const figures = applications.map(({ name, segment, trial, asksUserinfo, script = SCRIPT }) => {
  const total = times.get(trial) ?? NaN
  const own = times.get(asksUserinfo ? directWithUserinfo : direct) ?? NaN
  const { discovery = NaN, jwks = 0 } = fetched[segment] ?? {}
  return { name, script, total, own, added: total - own, atOnce: pace.get(trial) ?? NaN, discovery, jwks }
})
const named = (wanted: string) => figures.find(({ name }) => name === wanted)
const inMemory = named(OURS)

console.log(machine('fastify', '@fastify/session', 'oauth4webapi', '@fastify/oauth2', 'better-auth'))
console.log(`\nSign-ins one after the other, medians of ${ONE_BY_ONE.rounds * ONE_BY_ONE.calls}, and ${BROWSERS} at once\n`)
console.log(table(
  ['application', 'sign-in ms', "provider's ms", 'added ms', 'to the script', 'at once, sign-ins/s', 'to the script', 'discovery', 'JWKS'],
  figures.map(({ name, script, total, own, added, atOnce, discovery, jwks }) => [
    name, figure(total / 1000), figure(own / 1000), figure(added / 1000), ratio(added, named(script)?.added ?? NaN),
    figure(1e6 / atOnce), ratio(atOnce, named(script)?.atOnce ?? NaN), String(discovery), String(jwks)
  ])
))
if (inMemory?.discovery !== 1 || inMemory.jwks !== 1) throw new Error(`expected one discovery and one JWKS fetch, got ${inMemory?.discovery} and ${inMemory?.jwks}`)
console.log(`\n${OURS} fetched discovery once and the JWKS once; its first ${BROWSERS} sign-ins came at once.`)

for (const { end } of [provider, ...applications.map(({ server }) => server)]) await end()
await postgres?.stop()

/** The plugin and the script, each with a database of its own. */
async function withRows (dialect: string, createDatabase: () => Promise<string>): Promise<typeof CONTESTANTS> {
  const script = `${SCRIPT} with rows, ${dialect}`
  return [
    { name: `${OURS}, ${dialect}`, ...ours, script, database: await createDatabase() },
    { name: script, start: login, asksUserinfo: false, script, database: await createDatabase() }
  ]
}

async function newFile (): Promise<string> {
  return join(temporaryFolder(), 'users.db')
}

/** The first sign-ins of a process: nothing has been fetched yet. */
async function allAtOnce (trial: Trial<Visit>): Promise<void> {
  const made = Array.from({ length: BROWSERS }, () => trial.choose())
  await Promise.all(made.map(visit => visit.make()))
  await trial.undo(made)
}

/** How better-auth's client starts a sign-in, on a page that is there already. */
function byItsClient (body: object): Question {
  return { method: 'POST', path: '/api/auth/sign-in/social', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
}
