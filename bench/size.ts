import { filledPostgres, filledSqlite } from './parts/databases.js'
import { machine } from './parts/machine.js'
import { type Trial, latencies } from './parts/measure.js'
import { benchOptions } from './parts/options.js'
import { PASSWORD, anyPerson, anyPersonWithPassword } from './parts/people.js'
import { postgresServer } from './parts/postgres-server.js'
import { type Question, type Server, ask, questions, startServer } from './parts/server.js'
import { figure, ratio, table } from './parts/table.js'

/** Shows whether an application gets slower as its users become more: a login, a page behind a guard, a grant, lists of users. */

const { sizes, dialects, isShort } = benchOptions()
const REPETITIONS = isShort ? { rounds: 2, calls: 2 } : { rounds: 100, calls: 10 }

/** So many people are signed in. */
const MEMBERS = isShort ? 10 : 1000

const JSON_CLIENT = { accept: 'application/json', 'content-type': 'application/json' }

if (dialects.includes('sqlite')) {
  console.log(`SQLite: ${machine('fastify', 'better-sqlite3')}\n`)
  await bench(filledSqlite)
}
if (dialects.includes('postgres')) {
  const server = await postgresServer()
  try {
    console.log(`Postgres ${server.version}: ${machine('fastify', 'postgres')}\n`)
    await bench(users => filledPostgres(server, users))
  } finally {
    await server.stop()
  }
}

/** All sizes are there at once, so that they are measured side by side. */
async function bench (filled: (users: number) => Promise<string>): Promise<void> {
  const servers: Server[] = []
  try {
    for (const users of sizes) servers.push(await startServer(new URL('size/server.ts', import.meta.url), 'application', await filled(users)))
    const compared: Compared[] = []
    for (const [index, server] of servers.entries()) compared.push(...await trialsOf(server, sizes[index] ?? NaN))
    compared.sort((a, b) => a.operation.localeCompare(b.operation))
    const times = await latencies(compared.map(({ trial }) => trial), REPETITIONS)
    const timeOf = (one: Compared | undefined): number => one === undefined ? NaN : times.get(one.trial) ?? NaN
    const rows = compared.map(one => {
      const smallest = compared.find(other => other.operation === one.operation && other.users === sizes[0])
      return [one.operation, String(one.users), figure(timeOf(one)), ratio(timeOf(one), timeOf(smallest))]
    })
    console.log(`One request after the other; medians of ${REPETITIONS.rounds * REPETITIONS.calls}\n`)
    console.log(table(['operation', 'users', 'µs', `to ${sizes[0]} users`], rows) + '\n')
  } finally {
    for (const server of servers) await server.end()
  }
}

interface Compared {
  operation: string
  users: number
  trial: Trial<Question>
}

async function trialsOf (server: Server, users: number): Promise<Compared[]> {
  const cookies = await signedIn(server, users)
  const anyCookie = (): string => cookies[Math.floor(Math.random() * cookies.length)] ?? ''
  return [
    { operation: 'login', users, trial: questions(server, () => login(anyPersonWithPassword(users)), '"userId"') },
    { operation: 'session read', users, trial: questions(server, () => ({ method: 'GET', path: '/me', headers: { cookie: anyCookie() } }), '"userId"') },
    { operation: 'grant', users, trial: questions(server, () => grant(anyPerson(users)), '"badge"') },
    { operation: 'users after one', users, trial: questions(server, () => list({ after: `0.${anyPerson(users).userId}` }), '"next"') },
    { operation: 'users by e-mail', users, trial: questions(server, () => list({ search: prefixOf(anyPerson(users).email) }), '@example.com') },
    { operation: 'users by name', users, trial: questions(server, () => list({ search: anyPerson(users).name.split(',', 1).join() }), '"next"') },
    { operation: 'users by domain', users, trial: questions(server, () => list({ search: 'nowhere.example' }), '"next"') },
    { operation: 'newest users', users, trial: questions(server, () => list({ order: 'newest' }), '"next"') },
    { operation: 'users counted by e-mail', users, trial: questions(server, () => ({ method: 'GET', path: `/count?search=${prefixOf(anyPerson(users).email)}` }), '"count"') }
  ]
}

async function signedIn (server: Server, users: number): Promise<string[]> {
  const cookies: string[] = []
  for (let member = 0; member < MEMBERS; member++) {
    const { userId } = anyPerson(users)
    const { headers } = await ask(server, { method: 'POST', path: '/sign-in', headers: JSON_CLIENT, body: JSON.stringify({ userId }) })
    cookies.push(String(headers['set-cookie']).split(';', 1).join())
  }
  return cookies
}

function login ({ email }: { email: string }): Question {
  return { method: 'POST', path: '/auth/local/login', headers: JSON_CLIENT, body: JSON.stringify({ email, password: PASSWORD }) }
}

/** A page of fifty. */
function list (query: Record<string, string>): Question {
  return { method: 'GET', path: `/users?${new URLSearchParams(query)}` }
}

/** What somebody types who looks for a user: up to a thousand have it in common. */
function prefixOf (email: string): string {
  return email.slice(0, Math.max('person-'.length + 1, email.indexOf('@') - 3))
}

function grant ({ userId, name: badge }: { userId: string, name: string }): Question {
  return { method: 'POST', path: '/grant', headers: JSON_CLIENT, body: JSON.stringify({ userId, badge }) }
}
