import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { SqlAuthStore } from '../../lib/engines/sql.js'
import type { AuthStore } from '../../lib/accounts/auth-store.js'
import { emptyDatabase, startPostgres } from '../helpers/postgres.js'
import { HALF_CREATED, MEMBERS, WRITERS, newUser, secondIdentity } from './crash-process.js'
import { HALF_MADE, type TestDatabase, postgresDatabase, sqliteDatabase } from './database.js'

const TYPESCRIPT = new URL('../typescript.mjs', import.meta.url).href
const PROGRAM = fileURLToPath(new URL('crash-process.ts', import.meta.url))
const ROUNDS = 20
const MOST_WRITES = 150
/** Longer than a write takes. */
const MOST_MILLISECONDS = 5

/** A second link and the name that it brings are one write. */
const HALF_LINKED = `
  select user_id from svc_auth_users
    where (name = 'Linked') <> (user_id in (select user_id from svc_auth_provider_links where provider = 'dev'))`

t.setTimeout(600_000)

t.test('when a process is killed, what an SQLite file has acknowledged is there, and nothing is half-made', async t => {
  const database = sqliteDatabase(t)

  await crash(t, database, async writing => {
    writing.kill()
    await writing.ended
    t.strictSame(await database.query('pragma integrity_check'), [{ integrity_check: 'ok' }])
  })
})

t.test('when a process is killed, what Postgres has acknowledged is there, and nothing is half-made', async t => {
  const database = postgresDatabase(await emptyDatabase(t))

  await crash(t, database, async writing => {
    writing.kill()
    await writing.ended
  })
})

t.test('when Postgres is killed, it has what it has acknowledged, nothing is half-made, and the process is told that it is unavailable', async t => {
  const server = await startPostgres(t)
  const database = postgresDatabase(await server.createDatabase())

  await crash(t, database, async writing => {
    server.signal('SIGKILL')
    const { code, lines } = await writing.ended
    t.equal(code, 0, 'the process ends by itself, and in order')
    t.strictSame(lines.filter(line => line.startsWith('refused')), Array(WRITERS).fill('refused unavailable'))
    await server.start()
  })
})

/** Lets a process write to the database and, at a random moment, `strike` end that; again and again, on what was there before. */
async function crash (t: Test, database: TestDatabase, strike: (writing: Writing) => Promise<void>): Promise<void> {
  const everything: string[] = []
  await makeTables(database)
  for (let round = 1; round <= ROUNDS; round++) {
    const count = 1 + Math.floor(Math.random() * MOST_WRITES)
    const writing = startWriting(t, database.target)

    await writing.acknowledged(count)
    spin(Math.random() * MOST_MILLISECONDS)
    await strike(writing)

    const { lines } = await writing.ended
    const writes = lines.filter(line => !line.startsWith('refused'))
    const when = `round ${round}, after ${writes.length} writes`
    t.ok(writes.length >= count, when)
    t.strictSame(await lost(database, writes), [], `${when}: nothing is lost`)
    const halves = [HALF_MADE, HALF_LINKED, HALF_CREATED].map(look => database.query(look))
    t.strictSame((await Promise.all(halves)).flat(), [], `${when}: nothing is half-made`)
    everything.push(...writes)
  }
  t.strictSame(await lost(database, everything), [], 'in the end all is there still')
}

/** The tables of the store, and that of the application. */
async function makeTables ({ target, query }: TestDatabase): Promise<void> {
  const store = new SqlAuthStore(target)
  await store.migrate()
  await store.close()
  await query(MEMBERS.replace('KEY', target.startsWith('postgres') ? 'uuid' : 'text'))
}

interface Writing {
  /** Resolves when so many writes were acknowledged. */
  acknowledged (count: number): Promise<void>
  kill (): void
  /** What the process has printed, and its exit code. */
  ended: Promise<{ code: unknown, lines: string[] }>
}

function startWriting (t: Test, target: string): Writing {
  // env -i keeps tap's loaders out, with which each of the many processes takes seconds to start; one that is killed reports no coverage anyway.
  const child = spawn('env', ['-i', process.execPath, '--import', TYPESCRIPT, PROGRAM, target], { stdio: ['ignore', 'pipe', 'inherit'] })
  const lines: string[] = []
  const reader = createInterface(child.stdout).on('line', line => { lines.push(line) })
  const end: Promise<unknown[][]> = Promise.all([once(child, 'exit'), once(reader, 'close')])
  const ended = end.then(([exit]) => ({ code: exit?.[0], lines }))
  const kill = () => { child.kill('SIGKILL') }
  t.teardown(kill)
  return {
    async acknowledged (count) {
      const written = new Promise<void>(resolve => { reader.on('line', () => { if (lines.length >= count) resolve() }) })
      await Promise.race([written, ended.then(({ code }) => { throw new Error(`the process ended with ${code} after ${lines.length} of ${count} writes`) })])
    },
    kill,
    ended
  }
}

/** Lets so many milliseconds pass, to the microsecond. */
function spin (milliseconds: number): void {
  const end = performance.now() + milliseconds
  while (performance.now() < end);
}

/** Which acknowledged writes are not there, for a store that is opened now. */
async function lost (database: TestDatabase, writes: string[]): Promise<string[]> {
  const store = new SqlAuthStore(database.target)
  try {
    const found = await Promise.all(writes.map(write => isThere(store, write)))
    return writes.filter((_, index) => found[index] !== true)
  } finally {
    await store.close()
  }
}

async function isThere (store: AuthStore, write: string): Promise<boolean> {
  const [what, userId = '', claim = ''] = write.split(' ')
  const user = await store.findUser({ userId })
  const { email, passwordHash } = newUser(userId)
  switch (what) {
    case 'created': {
      const credential = await store.findCredential(email)
      return user?.email === email && credential?.user.userId === userId && credential.passwordHash === passwordHash
    }
    case 'linked':
      return user?.emailVerified === true && (await store.findUser(secondIdentity(userId)))?.userId === userId
    case 'granted':
      return user !== null && Object.hasOwn(user.claims, claim)
    default:
      throw new Error(`unexpected line: ${write}`)
  }
}
