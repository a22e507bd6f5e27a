import { setTimeout as wait } from 'node:timers/promises'
import SqliteDatabase from 'better-sqlite3'
import { drizzle as drizzleSqlite } from 'drizzle-orm/better-sqlite3'
import { drizzle as drizzleNode } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePostgres } from 'drizzle-orm/postgres-js'
import { drizzle as drizzleProxy } from 'drizzle-orm/pg-proxy'
import { sql } from 'drizzle-orm'
import t, { type Test } from 'tap'
import {
  Accounts, AuthError, type AuthStore, type CreateUserHook, MemoryAuthStore, SignInRefused, SqlAuthStore, type SqlEngine, type User
} from '../../lib/index.js'
import { assertAsksHook, creating } from '../../lib/hooks.js'
import { clientOf, emptyDatabase, poolOf, query } from '../helpers/postgres.js'
import { identity, localUser, newUser } from './users.js'

const TABLE = 'create table members (user_id KEY primary key references svc_auth_users (user_id) on delete cascade, nick text unique)'
const SECRET = { code: 'internal_error', statusCode: 500 }

/** What an application writes by `tx`, whatever that is here, and a look into its tables. */
interface Place {
  store: SqlAuthStore
  write: (tx: unknown, statement: string) => unknown
  rows: (table: string) => Promise<unknown[]>
  isAsync: boolean
}

const run = (tx: unknown, method: string, ...given: unknown[]): unknown => Reflect.get(Object(tx), method).apply(tx, given)
const byDrizzle = (tx: unknown, statement: string) => run(tx, 'execute', sql.raw(statement))
const byPostgres = (tx: unknown, statement: string) => run(tx, 'unsafe', statement)
const bySqlite = (tx: unknown, statement: string) => run(tx, 'exec', statement)

async function onSqlite (t: Test, engine: (connection: SqliteDatabase.Database, file: string) => SqlEngine | string, write: Place['write']): Promise<Place> {
  const file = `${t.testdir()}/users.db`
  const connection = new SqliteDatabase(file)
  connection.pragma('journal_mode = wal')
  connection.pragma('foreign_keys = on')
  t.teardown(() => connection.close())
  const store = new SqlAuthStore(engine(connection, file))
  t.teardown(() => store.close())
  await store.findUser({ email: 'nobody@example.com' })
  connection.exec(TABLE.replace('KEY', 'text'))
  return { store, write, rows: async table => connection.prepare(`select * from ${table}`).all(), isAsync: false }
}

async function onPostgres (t: Test, engine: (url: string) => SqlEngine | string, write: Place['write']): Promise<Place> {
  const url = await emptyDatabase(t)
  const store = new SqlAuthStore(engine(url))
  t.teardown(() => store.close())
  await store.findUser({ email: 'nobody@example.com' })
  await query(url, TABLE.replace('KEY', 'uuid'))
  return { store, write, rows: async table => query(url, `select * from ${table}`), isAsync: true }
}

async function onDrizzle (t: Test) {
  const url = await emptyDatabase(t)
  const db = drizzlePostgres(clientOf(t, url))
  await new SqlAuthStore(db).migrate()
  await query(url, TABLE.replace('KEY', 'uuid'))
  return { db, url }
}

const PLACES: Record<string, (t: Test) => Promise<Place>> = {
  'a file': t => onSqlite(t, (_, file) => file, bySqlite),
  'a connection of better-sqlite3': t => onSqlite(t, connection => connection, bySqlite),
  'Drizzle on better-sqlite3': t => onSqlite(t, connection => drizzleSqlite(connection), (tx, statement) => run(tx, 'run', sql.raw(statement))),
  'a Postgres URL': t => onPostgres(t, url => url, byPostgres),
  'a Postgres URL with one connection': t => onPostgres(t, url => `${url}?max=1`, byPostgres),
  'a client of postgres': t => onPostgres(t, url => clientOf(t, url), byPostgres),
  'Drizzle on postgres': t => onPostgres(t, url => drizzlePostgres(clientOf(t, url)), byDrizzle),
  'Drizzle on pg': t => onPostgres(t, url => drizzleNode(poolOf(t, url)), byDrizzle)
}

const insertOf = ({ userId }: User, nick = userId) => `insert into members values ('${userId}', '${nick}')`
const hookOf = (onCreateUser: CreateUserHook) => creating({ onCreateUser }, { method: 'application' })
const USERS = 'svc_auth_users'

for (const [name, open] of Object.entries(PLACES)) {
  t.test(`on ${name}`, async t => {
    const place = await open(t)
    const { store, write, rows, isAsync } = place
    const accounts = new Accounts(store)
    const both = async () => [(await rows(USERS)).length, (await rows('members')).length]

    t.test('the rows of the application are committed with the user, and the claims with both', async t => {
      const ada = localUser('ada@example.com')
      const hook = hookOf(({ user, tx }) => {
        const written = write(tx, insertOf(user))
        const claims = { claims: { org: 'one' } }
        return isAsync ? Promise.resolve(written).then(() => claims) : claims
      })

      t.match(await accounts.createUser({ ...ada, claims: { role: 'member' } }, hook), { claims: { role: 'member', org: 'one' } })
      const eve = newUser({ link: { provider: 'dev', subject: 'eve', claims: { sub: 'eve' } } })
      const entered = await accounts.enterIdentity(identity('dev', 'eve'), null, eve, undefined, hook)
      t.match(entered, { as: 'new', user: { claims: { org: 'one' } } })
      const proven = { user: null, email: 'mail@example.com' }
      const signedIn = await accounts.signInByMail(proven, { newId: newUser().userId, holds: () => false, onCreate: hook })
      t.match(signedIn, { as: 'new', user: { claims: { org: 'one' } } })

      t.match(await accounts.findUser({ userId: ada.userId }), { claims: { role: 'member', org: 'one' } })
      t.strictSame(await both(), [3, 3])
    })

    t.test('attack 196: what the hook throws, or its statements answer, refuses the user once, and leaves nothing', async t => {
      let asked = 0
      const refusals: Record<string, [CreateUserHook, { code: string, statusCode?: number }]> = {
        'an AuthError': [() => { throw new SignInRefused('no_seat') }, { code: 'no_seat', statusCode: 403 }],
        'an error': [() => { throw new TypeError('a mistake') }, SECRET],
        'an error that says what the store looks for': [() => { throw new SignInRefused('full', 'there is no such table') }, { code: 'full' }],
        'a unique violation': [({ user, tx }) => Object(write(tx, `${insertOf(user)}; ${insertOf(user)}`)), SECRET],
        'a missing table': [({ tx }) => Object(write(tx, 'insert into missing values (1)')), SECRET],
        'wrong claims': [() => ({ claims: { sub: 'x' } }), { code: 'invalid_claims' }]
      }
      for (const [what, [refuse, expected]] of Object.entries(refusals)) {
        const before = await both()
        asked = 0
        const hook = hookOf(creation => {
          asked++
          if (!isAsync) {
            write(creation.tx, insertOf(creation.user))
            const result = refuse(creation)
            return Object(result).claims === undefined ? undefined : result
          }
          return Promise.resolve(write(creation.tx, insertOf(creation.user))).then(() => refuse(creation))
        })
        const bob = localUser('bob@example.com')
        await t.rejects(accounts.createUser(bob, hook), expected, `${what}, at an insert`)
        t.equal(asked, 1, `${what}: once`)
        const dev = newUser({ link: { provider: 'dev', subject: 'bob', claims: { sub: 'bob' } } })
        await t.rejects(accounts.enterIdentity(identity('dev', 'bob'), null, dev, undefined, hook), expected, `${what}, at a change`)
        t.equal(asked, 2, `${what}: once`)
        t.strictSame(await both(), before, `${what}: no trace`)
      }
      t.ok(await accounts.createUser(localUser('bob@example.com')), 'the address is free, and the store works')
    })

    t.test('of two who register one address at once the hook is asked about the one who becomes a user', async t => {
      const asked: string[] = []
      const hook = hookOf(({ user, tx }) => {
        asked.push(user.userId)
        const written = write(tx, insertOf(user))
        return isAsync ? Promise.resolve(written).then(() => {}) : undefined
      })
      const made = await Promise.all(Array.from({ length: 8 }, () => accounts.createUser(localUser('race@example.com'), hook)))

      t.strictSame(asked, made.flatMap(user => user === null ? [] : [user.userId]))
      t.equal(asked.length, 1)
    })

    t.test('a user who is deleted takes the rows along', async t => {
      const eve = localUser('eve-deleted@example.com')
      const before = await both()
      await accounts.createUser(eve, hookOf(({ user, tx }) => {
        const written = write(tx, insertOf(user))
        return isAsync ? Promise.resolve(written).then(() => {}) : undefined
      }))
      await accounts.deleteUser(eve.userId)
      t.strictSame(await both(), before)
    })

    if (isAsync) {
      t.test('attack 197: a failed statement that the hook hides refuses the user, who would else be lost in silence', async t => {
        const before = await both()
        const hook = hookOf(async ({ tx }) => {
          try {
            await write(tx, 'insert into missing values (1)')
          } catch {}
        })
        await t.rejects(accounts.createUser(localUser('hidden@example.com'), hook), SECRET)
        t.strictSame(await both(), before)
      })

      t.test('a conflict between transactions asks the hook again, and nothing else does', async t => {
        for (const state of ['40001', '40P01']) {
          let asked = 0
          const hook = hookOf(async ({ tx, user }) => {
            await write(tx, insertOf(user))
            if (asked++ < 2) await write(tx, `do $$ begin raise sqlstate '${state}'; end $$`)
          })
          t.ok(await accounts.createUser(localUser(`again-${state.toLowerCase()}@example.com`), hook))
          t.equal(asked, 3)
        }
      })

      t.test('a constraint that fails at the commit is of the application', async t => {
        const before = await both()
        const hook = hookOf(async ({ tx }) => {
          await write(tx, 'create temporary table late (id int unique deferrable initially deferred) on commit drop')
          await write(tx, 'insert into late values (1), (1)')
        })
        await t.rejects(accounts.createUser(localUser('late@example.com'), hook), SECRET)
        t.strictSame(await both(), before)
      })
    } else {
      t.test('attack 197: a statement of the hook that rolls the transaction back, in silence, refuses the user', async t => {
        const before = await both()
        const hook = hookOf(({ tx, user }) => {
          write(tx, insertOf(user))
          try {
            write(tx, insertOf(user).replace('insert', 'insert or rollback'))
          } catch {}
        })
        await t.rejects(accounts.createUser(localUser('rolled-back@example.com'), hook), SECRET)
        t.strictSame(await both(), before)
        t.ok(await accounts.createUser(localUser('afterwards@example.com')), 'the store works')
      })

      t.test('a function that returns a promise is refused by a sentence, and leaves no user', async t => {
        const before = await both()
        for (const hook of [hookOf(async () => {}), hookOf(async () => { throw new Error('later') })]) {
          const refused: unknown = await accounts.createUser(localUser('later@example.com'), hook).catch((error: unknown) => error)
          t.match(refused, SECRET)
          t.match(Object(refused).cause, { name: 'OptionsError', message: /^onCreateUser must return no promise with SQLite/ })
        }
        t.strictSame(await both(), before)
      })
    }
  })
}

t.test('of two processes that create users with the same addresses, each user has one row', async t => {
  const url = await emptyDatabase(t)
  const stores = [new SqlAuthStore(url), new SqlAuthStore(url)]
  t.teardown(async () => Promise.all(stores.map(async store => store.close())))
  await stores[0]?.migrate()
  await query(url, TABLE.replace('KEY', 'uuid'))
  const hook = hookOf(async ({ tx, user }) => { await byPostgres(tx, insertOf(user, user.email ?? '')) })
  const ofDev = (email: string) => newUser({ email, link: { provider: 'dev', subject: email, claims: { sub: email } } })
  const addresses = Array.from({ length: 8 }, (_, index) => `race-${index}@example.com`)

  const made = await Promise.all(stores.flatMap(store => addresses.flatMap(email => [
    new Accounts(store).createUser(localUser(email), hook), new Accounts(store).enterIdentity(identity('dev', email), email, ofDev(email), () => false, hook)
  ])))

  t.equal(made.length, 32)
  const counted = 'select count(*)::int as users, count(distinct nick)::int as rows from svc_auth_users left join members using (user_id)'
  t.strictSame(await query(url, counted), [{ users: 8, rows: 8 }])
})

t.test('in a Drizzle transaction of the application the hook has a savepoint: a refusal leaves the transaction as it was', async t => {
  const { db, url } = await onDrizzle(t)
  const hook = (refuses: boolean) => hookOf(async ({ tx, user }) => {
    await byDrizzle(tx, insertOf(user))
    if (refuses) throw new SignInRefused('no_seat')
  })
  const counted = 'select count(*)::int as users, count(nick)::int as rows from svc_auth_users left join members using (user_id)'
  const count = async () => query(url, counted)

  await db.transaction(async tx => {
    const accounts = new Accounts(new SqlAuthStore(tx, { createTables: false }))
    await t.rejects(accounts.createUser(localUser('refused@example.com'), hook(true)), { code: 'no_seat' })
    t.ok(await accounts.createUser(localUser('ada@example.com'), hook(false)))
    t.strictSame(await count(), [{ users: 0, rows: 0 }], 'nothing is committed yet')
  })
  t.strictSame(await count(), [{ users: 1, rows: 1 }])

  await t.rejects(db.transaction(async tx => {
    await new Accounts(new SqlAuthStore(tx, { createTables: false })).createUser(localUser('bob@example.com'), hook(false))
    throw new Error('the application gives up')
  }))
  t.strictSame(await count(), [{ users: 1, rows: 1 }])
})

t.test('attack 197: a hook that takes longer than the caller waits leaves no user', async t => {
  const place = await onPostgres(t, url => url, byPostgres)
  let isDone = () => {}
  const done = new Promise<void>(resolve => { isDone = resolve })
  const slow = hookOf(async ({ tx, user }) => {
    await place.write(tx, insertOf(user))
    await wait(6000)
    isDone()
  })
  const started = Date.now()
  await t.rejects(new Accounts(place.store).createUser(localUser('slow@example.com'), slow), { name: 'AuthError' })
  t.ok(Date.now() - started < 10_000)
  await done
  t.ok(await new Accounts(place.store).createUser(localUser('next@example.com')), 'the store works')
  t.strictSame([(await place.rows(USERS)).length, (await place.rows('members')).length], [1, 0])
})

t.test('without the hook SQLite runs not a statement more, and with it the hook has the integers of the connection', async t => {
  const statements: string[] = []
  const connection = new SqliteDatabase(':memory:', { verbose: statement => { statements.push(String(statement)) } })
  connection.defaultSafeIntegers(true)
  t.teardown(() => connection.close())
  const accounts = new Accounts(new SqlAuthStore(connection))
  await accounts.createUser(localUser('first@example.com'))
  const of = async (work: () => Promise<unknown>) => {
    statements.length = 0
    await work()
    return statements.filter(statement => !/^pragma/i.test(statement)).map(statement => statement.split(' ', 2).join(' ').toLowerCase())
  }

  t.strictSame(await of(() => accounts.createUser(localUser('ada@example.com'))),
    ['begin immediate', 'insert into', 'insert into', 'insert into', 'commit'])
  let seen: unknown
  const hook = hookOf(() => { seen = connection.prepare('select 1').pluck().get() })
  await of(() => accounts.createUser(localUser('bob@example.com'), hook))
  t.equal(seen, 1n)
  t.equal(connection.prepare('select 1').pluck().get(), 1n, 'afterwards too')
  t.type((await accounts.findUser({ email: 'bob@example.com' }))?.createdAt, Date)
})

t.test('in memory there is no transaction, and the user is not visible before the hook is done', async t => {
  const accounts = new Accounts(new MemoryAuthStore())
  const seen: unknown[] = []
  const hook = hookOf(async ({ user, tx }) => {
    seen.push(tx, await accounts.findUser({ userId: user.userId }), await accounts.findUser({ email: 'ada@example.com' }))
    return { claims: { org: 'one' } }
  })
  const made = await Promise.all([1, 2, 3].map(() => accounts.createUser(localUser('ada@example.com'), hook)))
  t.strictSame(seen, [null, null, null], 'asked about one of three')
  t.equal(made.filter(user => user !== null).length, 1)
  t.match(await accounts.findUser({ email: 'ada@example.com' }), { claims: { org: 'one' } })

  await t.rejects(accounts.createUser(localUser('bob@example.com'), hookOf(async () => { throw new AuthError('forbidden') })), { code: 'forbidden' })
  t.equal(await accounts.findUser({ email: 'bob@example.com' }), null)
})

t.test('a store that cannot ask the hook is refused at the start', async t => {
  const sync: CreateUserHook = () => {}
  const later: CreateUserHook = async () => {}
  const refused: Array<[AuthStore, RegExp]> = [
    [new SqlAuthStore(':memory:'), /^onCreateUser must not be an async function with SQLite/],
    [new SqlAuthStore(drizzleProxy(async () => ({ rows: [] }))), /^onCreateUser needs transactions in several steps/],
    [Object.assign(new MemoryAuthStore(), { hookProblem: undefined }), /hookProblem$/]
  ]
  for (const [store, message] of refused) await t.rejects(assertAsksHook(store, later), { name: 'OptionsError', message })
  const unreachable = new SqlAuthStore(drizzleNode(poolOf(t, 'postgres://nobody@127.0.0.1:1/none')))
  for (const store of [new MemoryAuthStore(), new SqlAuthStore('postgres://127.0.0.1/app'), unreachable]) await assertAsksHook(store, later)
  await assertAsksHook(new SqlAuthStore(':memory:'), sync)
})
