import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { hash, verify } from '@node-rs/argon2'
import { ADA, COST, PATHS } from './login/ada.js'
import { machine } from './parts/machine.js'
import { benchOptions } from './parts/options.js'
import { postgresServer } from './parts/postgres-server.js'
import { CONNECTIONS, type Rival, application, rivalry } from './parts/rivals.js'
import { type Question, startServer } from './parts/server.js'
import { temporaryFolder } from './parts/temporary-folder.js'

/**
 * Shows how many logins with a password are answered in a second, beside what the hashes alone allow and beside other libraries; how many
 * there would be if hashes cost nothing; and how many registrations.
 */

const { dialects, isShort } = benchOptions()
const PROGRAM = new URL('login/server.ts', import.meta.url)

console.log(`${machine('fastify', '@node-rs/argon2', 'better-sqlite3', 'postgres', 'better-auth', '@fastify/passport', '@fastify/session')}\n`)
await bench('Memory', async () => 'memory')
if (dialects.includes('sqlite')) await bench('SQLite', async () => join(temporaryFolder(), 'users.db'))
if (dialects.includes('postgres')) {
  const server = await postgresServer()
  try {
    await bench(`Postgres ${server.version}`, () => server.createDatabase())
  } finally {
    await server.stop()
  }
}

/** Each application has a database of its own. */
async function bench (title: string, createDatabase: () => Promise<string>): Promise<void> {
  const contestants = Object.entries(PATHS).filter(([name]) => title !== 'Memory' || !name.includes('by hand'))
  for (const cost of ['default', 'least']) {
    const servers = await Promise.all(contestants.map(async ([name, paths]) => ({ name, paths, server: await startServer(PROGRAM, name, await createDatabase(), cost) })))
    const rivals = (path: keyof typeof PATHS[keyof typeof PATHS], next: () => typeof ADA) =>
      servers.map(({ name, paths, server }) => application(name, server.origin, () => question(paths[path], next()), '@example.com'))
    try {
      console.log(`${title}: logins${cost === 'least' ? ', with a hash that costs next to nothing' : ''}\n`)
      console.log(await rivalry([...rivals('login', () => ADA), ...cost === 'default' ? [await verification()] : []], { isShort, seconds: 2 }))
      if (cost === 'least') continue
      console.log(`${title}: registrations\n`)
      console.log(await rivalry(rivals('registration', () => ({ ...ADA, email: `${randomUUID()}@example.com` })), { isShort, seconds: 2 }))
    } finally {
      for (const { server } of servers) await server.end()
    }
  }
}

function question (path: string, body: typeof ADA): Question {
  return { method: 'POST', path, headers: { accept: 'application/json', 'content-type': 'application/json' }, body: JSON.stringify(body) }
}

/** What a login cannot do without, in the process of the bench: it has nothing else to do meanwhile. */
async function verification (): Promise<Rival> {
  const stored = await hash(ADA.password, COST)
  return {
    name: 'the hashes alone',
    async rate (seconds) {
      const start = performance.now()
      const end = start + seconds * 1000
      let verified = 0
      await Promise.all(Array.from({ length: CONNECTIONS }, async () => {
        while (performance.now() < end) {
          if (!await verify(stored, ADA.password)) throw new Error('the hash does not match')
          verified++
        }
      }))
      return verified / (performance.now() - start) * 1000
    }
  }
}
