import { join } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import { drizzle } from 'drizzle-orm/node-postgres'
import t, { type Test } from 'tap'
import { Accounts } from '../../lib/accounts/accounts.js'
import { SqlAuthStore } from '../../lib/engines/sql.js'
import type { UsersQuery } from '../../lib/accounts/auth-store.js'
import { emptyDatabase, poolOf } from '../helpers/postgres.js'
import { newFactor, toFactors } from './users.js'

/** A store with many users, and how the database goes about the statements that the store runs. */
interface Observed {
  store: SqlAuthStore
  /** The steps of the plans of all statements since the last look. */
  plans (): Promise<Step[]>
}

/** What is done with one table: found by an index, or read as a whole. */
interface Step {
  readsAll: boolean
  what: string
}

const USERS = 2000

/** One of the many users; each of them has a password and two links. */
const ADA = { userId: '00000000-0000-4000-8000-000000001234', email: 'user-1234@example.com', link: { provider: 'dev', subject: 'subject-1234' } }
const BOB = { userId: '00000000-0000-4000-8000-000000000123', email: 'user-123@example.com' }
const CAROL = { userId: '00000000-0000-4000-8000-000000000012', email: 'user-12@example.com' }
const NEWS = { claims: { sub: 'subject-1234', name: 'Ada' }, verifiedEmail: 'ada@example.com' }

const ALL: UsersQuery = { after: null, limit: 50, order: 'id', search: null, blocked: null }
const EARLIER = { userId: '00000000-0000-4000-8000-000000001233', createdAt: new Date(1234) }

type List = [name: string, query: Partial<UsersQuery>, index: RegExp]

const LATER = { userId: '00000000-0000-4000-8000-000000001235', createdAt: new Date(1235) }

/** Each text by its own index. */
const SEARCHED = /svc_auth_users_(?:email_unique|domain|name)/

const OPERATIONS: Record<string, (store: SqlAuthStore) => Promise<unknown>> = {
  'a user is found by id': store => store.findUser({ userId: ADA.userId }),
  'a user is found by e-mail': store => store.findUser({ email: ADA.email }),
  'a user is found by link': store => store.findUser(ADA.link),
  'the links of a user are found': async store => (await store.links(ADA.userId)).length === 2,
  'a credential is found': store => store.findCredential(ADA.email),
  'a sign-in is noted': store => new Accounts(store).refreshIdentity({ ...ADA.link, ...NEWS }),
  'a claim is granted': store => new Accounts(store).grant(ADA.userId, { role: 'admin' }),
  'a claim is withdrawn': store => new Accounts(store).withdraw(ADA.userId, ['role']),
  'a way in is added': store => new Accounts(store).addLink(ADA.userId, { provider: 'other', subject: '1', ...NEWS }),
  'a way in is taken away': store => new Accounts(store).removeLink(ADA.userId, 'other'),
  'a password hash is replaced': async store => {
    await new Accounts(store).replacePasswordHash(ADA.userId, 'a hash', 'another hash')
    return (await store.findCredential(ADA.email))?.passwordHash === 'another hash'
  },
  'the status of a user is found': store => store.status(ADA.userId),
  'a user is changed': store => new Accounts(store).changeUser(ADA.userId, { name: 'Ada', endSessions: true }),
  'a password is set': store => new Accounts(store).setPassword(ADA.userId, { passwordHash: 'a third hash' }),
  'what an account has before an address is proven is found': store => new Accounts(store).unprovenMethods({ ...BOB, generation: 0 }),
  'an e-mail is verified': store => new Accounts(store).verifyEmail({ ...BOB, generation: 0 }),
  'a password is reset': store => new Accounts(store).resetPassword({ ...BOB, generation: 1 }, 'a hash'),
  'an e-mail is changed': store => new Accounts(store).changeEmail({ ...BOB, generation: 2 }, 'bob@example.com'),
  'an e-mail is released': store => new Accounts(store).releaseEmail({ ...CAROL, generation: 0 }),
  'factors are added, changed and removed': async store => {
    const accounts = new Accounts(store)
    const [one, two] = [newFactor(), newFactor()]
    await accounts.changeFactors(ADA.userId, toFactors(one, two))
    return accounts.changeFactors(ADA.userId, { ...toFactors({ ...one, counter: 1 }), endsSessions: true })
  },
  'factors are found': async store => (await new Accounts(store).factors(ADA.userId)).length === 1,
  'an attempt at a factor is counted': async store => new Accounts(store).attemptFactor(ADA.userId, 4),
  'a page of users is listed': async store => {
    const users = await store.users({ ...ALL, after: { ...ADA, createdAt: new Date(0) }, limit: 10 })
    return users.length === 10
  },
  'a user is deleted': async store => {
    await new Accounts(store).deleteUser(ADA.userId)
    return await store.findUser({ userId: ADA.userId }) === null
  }
}

for (const [database, observe] of Object.entries({ Postgres: observePostgres, SQLite: observeSqlite })) {
  t.test(`${database} reads no table as a whole`, async t => {
    const { store, plans } = await observe(t)

    for (const [name, operation] of Object.entries(OPERATIONS)) {
      t.test(`${database} reads no table as a whole when ${name}`, async t => {
        t.ok(await operation(store))

        const steps = await plans()
        t.ok(steps.length > 0, 'tables are read')
        // The journal of migrations and the list of tables have a handful of rows.
        t.strictSame(steps.filter(({ what, readsAll }) => readsAll && !/svc_auth_migrations|sqlite_master/.test(what)), [])
      })
    }
  })

  t.test(`${database} lists users by the index that finds the fewest`, async t => {
    const { store, plans } = await observe(t)
    await new Accounts(store).changeUser(ADA.userId, { blocked: { at: new Date() } })
    await plans()

    const lists: List[] = [
      ['by the whole e-mail', { search: ADA.email }, SEARCHED],
      ['by a prefix', { search: 'user-123' }, SEARCHED],
      ['by a prefix, further on', { search: 'user-12', after: EARLIER }, SEARCHED],
      ...database === 'SQLite'
        ? [['by a prefix of all', { search: 'user-', order: 'newest', after: LATER }, /svc_auth_users_(?:created|email_unique|domain|name)/] satisfies List]
        : [],
      ['newest first', { order: 'newest', after: LATER }, /svc_auth_users_created/],
      ['by a block', { blocked: true }, /svc_auth_users_blocked/],
      ['by a block, further on', { blocked: true, after: EARLIER }, /svc_auth_users_blocked/]
    ]
    for (const [name, query, index] of lists) {
      const users = await store.users({ ...ALL, ...query })

      t.ok(users.some(({ userId }) => userId === ADA.userId), name)
      for (const { what } of await plans()) if (/Index|USING/.test(what)) t.match(what, index, name)
    }
  })
}

async function observePostgres (t: Test): Promise<Observed> {
  const pool = poolOf(t, await emptyDatabase(t))
  let statements: Array<{ statement: string, params: unknown[] }> = []
  const store = new SqlAuthStore(drizzle(pool, { logger: { logQuery: (statement, params) => { statements.push({ statement, params }) } } }))
  await store.links(ADA.userId)
  await pool.query(`
    insert into svc_auth_users
      select ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 'user-' || n || '@example.com', 'Ada', '{}',
        jsonb_build_object('created_at', n, 'name_key', 'ada ' || n, 'email_domain', 'example-' || n || '.com')
      from generate_series(1, ${USERS}) n;
    insert into svc_auth_credentials select user_id, 'a hash' from svc_auth_users;
    insert into svc_auth_provider_links select 'local', email, user_id, '{}' from svc_auth_users;
    insert into svc_auth_provider_links select 'dev', 'subject-' || substring(email from '[0-9]+'), user_id, '{}' from svc_auth_users`)
  await new Accounts(store).changeFactors(ADA.userId, toFactors(newFactor()))
  await pool.query(`
    insert into svc_auth_factors select 'of ' || user_id, user_id, 'totp', null, null, '{}', 0, 0, null from svc_auth_users;
    analyze`)
  statements = []

  return {
    store,
    async plans () {
      // A part of the tables is made when it is first used.
      const ran = statements.filter(({ statement }) => !statement.startsWith('do '))
      statements = []
      const plans = await Promise.all(ran.map(({ statement, params }) => pool.query<{ 'QUERY PLAN': [{ Plan: PostgresPlan }] }>(
        `explain (format json) ${statement}`,
        params
      )))
      return plans.flatMap(({ rows }) => rows.flatMap(row => stepsOf(row['QUERY PLAN'][0].Plan)))
    }
  }
}

interface PostgresPlan {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Index Cond'?: string
  Plans?: PostgresPlan[]
}

/** An index that is gone through from end to end is a table that is read as a whole. */
function stepsOf (plan: PostgresPlan): Step[] {
  const { 'Node Type': type, 'Relation Name': table, 'Index Name': index, 'Index Cond': condition } = plan
  const step = { readsAll: index === undefined ? type !== 'Bitmap Heap Scan' : condition === undefined, what: [type, table, index, condition].join(' ') }
  const isLook = index !== undefined || (table !== undefined && type !== 'ModifyTable')
  return [...isLook ? [step] : [], ...(plan.Plans ?? []).flatMap(stepsOf)]
}

async function observeSqlite (t: Test): Promise<Observed> {
  let statements: string[] = []
  const connection = new SqliteDatabase(join(t.testdir(), 'users.db'), { verbose: statement => { statements.push(String(statement)) } })
  t.teardown(() => { connection.close() })
  const store = new SqlAuthStore(connection)
  await store.links(ADA.userId)
  connection.exec(`
    insert into svc_auth_users with recursive series (n) as (select 1 union all select n + 1 from series where n < ${USERS})
      select '00000000-0000-4000-8000-' || printf('%012d', n), 'user-' || n || '@example.com', 'Ada', '{}',
        json_object('created_at', n, 'name_key', 'ada ' || n, 'email_domain', 'example-' || n || '.com') from series;
    insert into svc_auth_credentials select user_id, 'a hash' from svc_auth_users;
    insert into svc_auth_provider_links select 'local', email, user_id, '{}' from svc_auth_users;
    insert into svc_auth_provider_links select 'dev', 'subject-' || substr(email, 6, length(email) - 17), user_id, '{}' from svc_auth_users`)
  await new Accounts(store).changeFactors(ADA.userId, toFactors(newFactor()))
  connection.exec(`
    insert into svc_auth_factors select 'of ' || user_id, user_id, 'totp', null, null, '{}', 0, 0, null from svc_auth_users;
    analyze`)
  statements = []

  return {
    store,
    async plans () {
      const ran = statements.filter(statement => !/^(begin|commit)/i.test(statement))
      const steps = ran.flatMap(statement => connection.prepare<[], { detail: string }>(`explain query plan ${statement}`).all())
      statements = []
      return steps.flatMap(({ detail }) => /^(SEARCH|SCAN) /.test(detail) ? [{ readsAll: detail.startsWith('SCAN '), what: detail }] : [])
    }
  }
}
