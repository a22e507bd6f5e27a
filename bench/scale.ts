import { createHmac } from 'node:crypto'
import { hash } from '@node-rs/argon2'
import Fastify, { type FastifyInstance, type LightMyRequestResponse } from 'fastify'
import postgres, { type Sql } from 'postgres'
import authPlugin, { type ExternalProvider, LocalIdentityProvider, SqlAuthStore } from '../dist/index.js'
import { SECRET } from './login/ada.js'
import { filledPostgres } from './parts/databases.js'
import { machine } from './parts/machine.js'
import { benchOptions } from './parts/options.js'
import { PASSWORD, anyPerson, anyPersonWithPassword, identityClaims, newPerson } from './parts/people.js'
import { postgresServer } from './parts/postgres-server.js'
import { figure, table } from './parts/table.js'

/**
 * Shows what visits leave in a Postgres database with as many sessions as users: statements, write-ahead log, rows. It counts, and times nothing:
 * whatever else the machine does changes no figure.
 */

const { isShort, sizes } = benchOptions()
const USERS = sizes.at(-1) ?? 1000
/** Of each kind, after a checkpoint: what a million a day are in the five minutes until the next one. */
const VISITS = isShort ? 100 : 3500
const IN_FLIGHT = 16

const AGENT = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36'
/** Passwords are compared, but it is not their hashes that are measured. */
const CHEAP = { memoryCost: 8, timeCost: 1, parallelism: 1 }
const CHEAP_HASH = await hash(PASSWORD, CHEAP)

/** Signs in anyone. */
const dev: ExternalProvider = {
  name: 'dev',
  async authorizationUrl ({ state }) {
    return new URL(`https://provider.example/?${new URLSearchParams({ state })}`)
  },
  async authenticate () {
    const person = anyPerson(USERS)
    return { identity: { subject: person.subject, claims: identityClaims(person), emailVerified: true }, tokens: { accessToken: 'unused' } }
  }
}

let visitors = 0

const server = await postgresServer()
try {
  console.log(`Postgres ${server.version}: ${machine('fastify', 'postgres')}; ${USERS} users, ${USERS} sessions, ${VISITS} visits of each kind\n`)
  const url = await filledPostgres(server, USERS)
  const client = postgres(url, { max: 1, onnotice: () => {} })
  await client`create extension if not exists pg_walinspect`
  await client`update svc_auth_credentials set pw_hash = ${CHEAP_HASH}`
  await fillSessions(client, url)
  await showVisits(client, url)
  await showTables(client)
  await client.end()
} finally {
  await server.stop()
}

/** One kind of visit; each visitor has an address of their own. */
interface Kind {
  title: string
  isSignIn?: true
  visit (app: FastifyInstance, index: number): Promise<unknown>
}

function kinds (): Kind[] {
  return [
    {
      title: 'registration',
      async visit (app) {
        const { email, name } = newPerson(USERS)
        await answer(app, 201, { method: 'POST', url: '/auth/local/register', body: { email, name, password: PASSWORD } })
      }
    },
    {
      title: 'sign-in with a password',
      isSignIn: true,
      async visit (app) {
        const { email } = anyPersonWithPassword(USERS)
        await answer(app, 200, { method: 'POST', url: '/auth/local/login', body: { email, password: PASSWORD } })
      }
    },
    { title: 'guarded page', visit: (app, index) => answer(app, 200, { url: '/me', cookie: cookieOfFilled(index) }) },
    {
      title: 'guarded page, a day later',
      visit: (app, index) => answer(app, 200, { url: '/me', cookie: cookieOfFilled(index, { lastSeen: 'a day ago' }) })
    },
    { title: 'sign-out', visit: (app, index) => answer(app, 204, { method: 'POST', url: '/auth/logout', cookie: cookieOfFilled(index) }) },
    { title: 'start at a provider', visit: app => answer(app, 302, { url: '/auth/dev/login' }) },
    {
      title: 'sign-in at a provider',
      isSignIn: true,
      async visit (app) {
        const started = await answer(app, 302, { url: '/auth/dev/login' })
        const { searchParams } = new URL(String(started.headers.location))
        const query = new URLSearchParams({ state: searchParams.get('state') ?? '', code: 'a code' })
        await answer(app, 302, { url: `/auth/dev/callback?${query}`, cookie: cookieOf(started) })
      }
    }
  ]
}

async function startApp (url: string): Promise<FastifyInstance> {
  const app: FastifyInstance = Fastify()
  await app.register(authPlugin, {
    baseUrl: 'http://localhost',
    providers: [dev],
    local: new LocalIdentityProvider({ secret: SECRET, argon2: CHEAP }),
    store: new SqlAuthStore(url),
    session: { secret: SECRET }
  })
  app.get('/me', { preHandler: app.auth.requireUser }, async () => 'you')
  return app
}

async function answer (
  app: FastifyInstance, expected: number, { cookie, ...request }: { method?: 'GET' | 'POST', url: string, body?: object, cookie?: string | undefined }
): Promise<LightMyRequestResponse> {
  const number = ++visitors
  const response = await app.inject({
    ...request,
    remoteAddress: `10.${number >> 16 & 255}.${number >> 8 & 255}.${number & 255}`,
    headers: { accept: 'application/json', 'user-agent': AGENT, ...(cookie !== undefined && { cookie }) }
  })
  if (response.statusCode !== expected) throw new Error(`${request.url} answered ${response.statusCode}: ${response.body}`)
  return response
}

function cookieOf ({ cookies: [cookie] }: LightMyRequestResponse): string {
  return `${cookie?.name}=${cookie?.value}`
}

/** The cookie of a session that was filled in, for each index another one, far from each other. */
function cookieOfFilled (index: number, { lastSeen = 'now' }: { lastSeen?: 'now' | 'a day ago' } = {}): string {
  const pair = index * Math.floor(USERS / VISITS / 2)
  const id = String(2 * pair + (lastSeen === 'now' ? 2 : 1))
  return `svc_session=${id}.${createHmac('sha256', SECRET).update(id).digest('base64').replace(/=+$/, '')}`
}

/** Copies the session of one sign-in for all users; the ids are numbers, their hashes come in no order. The odd ones were last seen a day ago. */
async function fillSessions (client: Sql, url: string): Promise<void> {
  const app = await startApp(url)
  for (const { isSignIn, visit } of kinds()) if (isSignIn === true) await visit(app, 0)
  await app.close()
  const columns = await client`select column_name as name from information_schema.columns where table_name = 'svc_auth_sessions' order by ordinal_position`
  const values = columns.map(({ name }) => {
    if (name === 'id_hash') return "translate(left(encode(sha256(n::text::bytea), 'base64'), 32), '+/', '-_')"
    if (name === 'seen_at') return 'template.seen_at - n % 2 * 86400000'
    return name === 'user_id' ? "md5('person ' || n)::uuid" : `template."${name}"`
  })
  await client.unsafe(`
    insert into svc_auth_sessions
    select ${values.join()} from (select * from svc_auth_sessions where provider = 'local' limit 1) template, generate_series(1, ${USERS}) n
  `)
}

async function showVisits (client: Sql, url: string): Promise<void> {
  const rows: string[][] = []
  for (const { title, visit } of kinds()) {
    await client`vacuum (analyze)`
    const app = await startApp(url)
    await app.ready()
    await client`checkpoint`
    const before = await counters(client)
    const waiting = Array.from({ length: VISITS }, (_, index) => index).values()
    await Promise.all(Array.from({ length: IN_FLIGHT }, async () => { for (const index of waiting) await visit(app, index) }))
    await app.close()
    await whenAlone(client)
    const after = await counters(client)
    const { records, images } = await walBetween(client, before.lsn, after.lsn)
    const updates = after.updates - before.updates
    rows.push([
      title, ...[after.statements - before.statements, records, images].map(total => figure(total / VISITS)),
      updates === 0 ? '' : `${Math.round(100 * (after.hot - before.hot) / updates)} %`
    ])
  }
  console.log(table(['a visit', 'statements', 'bytes of records', 'of page images', 'HOT updates of sessions'], rows) + '\n')
}

/** Connections report what they did when they end. */
async function whenAlone (client: Sql): Promise<void> {
  for (let others = 1; others > 0;) {
    const [row] = await client`select count(*)::int as others from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`
    others = Number(row?.others)
  }
}

/** The statements of the database, the updates of sessions, and how many of those moved no entry of an index. */
async function counters (client: Sql) {
  await client`select pg_stat_force_next_flush()`
  const [row] = await client`
    select xact_commit::int as statements, n_tup_upd::int as updates, n_tup_hot_upd::int as hot, pg_current_wal_flush_lsn()::text as lsn
    from pg_stat_database, pg_stat_user_tables where datname = current_database() and relname = 'svc_auth_sessions'
  `
  return { statements: Number(row?.statements), updates: Number(row?.updates), hot: Number(row?.hot), lsn: String(row?.lsn) }
}

/** The bytes of records in the write-ahead log, and of the whole pages that go with the first change of each after a checkpoint. */
async function walBetween (client: Sql, start: string, end: string) {
  if (start === end) return { records: 0, images: 0 }
  const [row] = await client`select sum(record_size)::float8 as records, sum(fpi_size)::float8 as images from pg_get_wal_stats(${start}, ${end})`
  return { records: Number(row?.records), images: Number(row?.images) }
}

async function showTables (client: Sql): Promise<void> {
  await client`vacuum (analyze)`
  const tables = await client`
    select relname as name, reltuples::int as rows, pg_table_size(oid)::float8 as bytes, pg_indexes_size(oid)::float8 as indexes
    from pg_class where relname like 'svc\\_auth\\_%' and relkind = 'r' and reltuples > 0 order by relname
  `
  console.log(table(
    ['table', 'rows', 'bytes a row', 'of its indexes', 'MB in all'],
    tables.map(({ name, rows, bytes, indexes }) => [name, String(rows), figure(bytes / rows), figure(indexes / rows), figure((bytes + indexes) / 1e6)])
  ) + '\n')
}
