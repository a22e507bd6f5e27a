import { randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import t, { type Test } from 'tap'
import { Accounts } from '../../../lib/accounts/accounts.js'
import { authStoreContract } from '../../../lib/testing.js'
import { identity, localUser, newUser } from '../users.js'
import { type Run, type Target, UNAVAILABLE, database, open } from './database.js'

/** An empty database. */
export interface Place {
  /** What a store is opened on: an engine with connections of its own, where there can be several. */
  target (t: Test): Target
  run: Run
}

const UNSTORABLE = { name: 'AuthError', code: 'invalid_request', statusCode: 400, message: /NUL character or half a surrogate pair/ }

/** The contract of user stores, and what else holds on Postgres, for a store that is opened on an engine. */
export function testEngine (name: string, emptyPlace: (t: Test) => Promise<Place>): void {
  t.test(`SqlAuthStore on ${name}`, async t => {
    const { target, run } = await emptyPlace(t)
    const [one, two] = [target(t), target(t)]
    await open(t, one).links(randomUUID()) // The tables are there for what follows.
    const emptyStore = async (t: Test, engine = one) => {
      await run('delete from svc_auth_users')
      return open(t, engine)
    }

    authStoreContract(t.test, async () => {
      return { store: await emptyStore(t), twin: open(t, two) }
    })

    t.test('a user is written whole or not at all', async t => {
      const store = await emptyStore(t)
      const bob = localUser('bob@example.com')
      await failOn(t, run, 'insert on svc_auth_credentials')

      await t.rejects(new Accounts(store).createUser(bob), UNAVAILABLE)

      t.strictSame(await contents(run), [[], [], []])
    })

    t.test('a link is added with what is noted about the user, or not at all', async t => {
      const store = await emptyStore(t)
      const ada = newUser()
      await new Accounts(store).createUser(ada)
      const before = await contents(run)
      await failOn(t, run, 'update on svc_auth_users')

      await t.rejects(new Accounts(store).addLink(ada.userId, identity('other', '1')), UNAVAILABLE)
      await t.rejects(new Accounts(store).refreshIdentity({ ...ada.link, claims: { sub: 'changed' }, verifiedEmail: null }), UNAVAILABLE)

      t.strictSame(await contents(run), before)
    })

    t.test('the local link is removed with the password, or not at all', async t => {
      const store = await emptyStore(t)
      const bob = localUser('bob@example.com')
      await new Accounts(store).createUser(bob)
      await new Accounts(store).addLink(bob.userId, identity('other', '1'))
      const before = await contents(run)
      await failOn(t, run, 'delete on svc_auth_credentials')

      await t.rejects(new Accounts(store).removeLink(bob.userId, 'local'), UNAVAILABLE)

      t.strictSame(await contents(run), before)
    })

    t.test('a user that a table of the application refers to stays whole, unless the table cascades', async t => {
      const store = await emptyStore(t)
      const [author, visitor] = [localUser('author@example.com'), localUser('visitor@example.com')]
      for (const { userId, ...user } of [author, visitor]) await new Accounts(store).createUser({ userId, ...user })
      t.teardown(() => run('drop table articles, visits'))
      await run(`
        create table articles (author uuid references svc_auth_users (user_id) on delete no action);
        create table visits (visitor uuid references svc_auth_users (user_id) on delete cascade);
        insert into articles values ('${author.userId}');
        insert into visits values ('${author.userId}'), ('${visitor.userId}')`)
      const before = await contents(run)

      await t.rejects(new Accounts(store).deleteUser(author.userId), { name: 'AuthError', code: 'user_in_use', statusCode: 409 })
      t.strictSame(await contents(run), before)

      await new Accounts(store).deleteUser(visitor.userId)
      t.equal(await store.findUser({ userId: visitor.userId }), null)
      t.strictSame(await run('select visitor from visits'), [{ visitor: author.userId }])
    })

    t.test('what Postgres cannot store is refused, and nothing is written', async t => {
      const store = await emptyStore(t)
      const ada = newUser({ email: 'ada@example.com', claims: { role: 'member' } })
      const sub = ada.link.subject
      await new Accounts(store).createUser(ada)
      const before = await contents(run)
      const attempts: Record<string, () => Promise<unknown>> = {
        'NUL in a name': () => new Accounts(store).createUser(newUser({ name: 'Bob\0' })),
        'NUL in a subject': () => new Accounts(store).createUser(newUser({ link: { provider: 'dev', subject: 'bob\0', claims: { sub: 'bob' } } })),
        'NUL in a claim': () => new Accounts(store).createUser(newUser({ claims: { role: ['a\0'] } })),
        'NUL in an identity claim': () => new Accounts(store).createUser(newUser({ link: { provider: 'dev', subject: 'bob', claims: { sub: 'bob\0' } } })),
        'NUL in a granted claim': () => new Accounts(store).grant(ada.userId, { role: 'admin\0' }),
        'NUL in the name of a granted claim': () => new Accounts(store).grant(ada.userId, { 'role\0': 'admin' }),
        'NUL in the name of a withdrawn claim': () => new Accounts(store).withdraw(ada.userId, ['role\0']),
        'NUL in a claim of a sign-in': () => new Accounts(store).refreshIdentity({ ...ada.link, claims: { sub, picture: '\0' }, verifiedEmail: null }),
        'NUL in the name of a sign-in': () => new Accounts(store).refreshIdentity({ ...ada.link, claims: { sub, name: 'Ada\0' }, verifiedEmail: null }),
        'NUL in the e-mail of a sign-in': () => new Accounts(store).refreshIdentity({ ...ada.link, verifiedEmail: 'ada\0@example.com' }),
        'NUL in a subject of a second way in': () => new Accounts(store).addLink(ada.userId, identity('other', 'ada\0')),
        'NUL in an e-mail that is looked for': () => store.findUser({ email: 'ada\0@example.com' }),
        'half a surrogate pair in a claim': () => new Accounts(store).createUser(newUser({ claims: { role: '\ud83d' } })),
        'half a surrogate pair in a granted claim': () => new Accounts(store).grant(ada.userId, { role: '\ude00' }),
        'half a surrogate pair in a claim of a sign-in': () =>
          new Accounts(store).refreshIdentity({ ...ada.link, claims: { sub, picture: '\ud83d!' }, verifiedEmail: null })
      }

      for (const [what, attempt] of Object.entries(attempts)) await t.rejects(attempt(), UNSTORABLE, what)

      t.strictSame(await contents(run), before)
    })

    t.test('a sign-in that reports what the store has writes no row', async t => {
      const store = await emptyStore(t)
      const claims = { sub: '1', email: 'ada@example.com', name: 'Ada' }
      const reported = { provider: 'dev', subject: '1', claims, verifiedEmail: 'ada@example.com' }
      await new Accounts(store).createUser(newUser({ link: { provider: 'dev', subject: '1', claims: { sub: '1' } } }))
      const first = await new Accounts(store).refreshIdentity(reported)
      await failOn(t, run, 'update on svc_auth_users', 'update on svc_auth_provider_links')

      t.strictSame(await new Accounts(store).refreshIdentity(reported), first)

      t.hasStrict(first, { email: 'ada@example.com', emailVerified: true, name: 'Ada' })
      await t.rejects(new Accounts(store).refreshIdentity({ ...reported, verifiedEmail: null }), UNAVAILABLE, 'one that reports another thing writes')
    })

    t.test('a failure prints neither e-mail nor password hash', async t => {
      const store = await emptyStore(t)
      const secrets = /bob-the-secret|the-secret-hash/
      const bob = { ...localUser('bob-the-secret@example.com'), passwordHash: 'the-secret-hash' }
      const printed = async () => inspect(await new Accounts(store).createUser(bob).catch((error: unknown) => error), { depth: 10 })

      await failOn(t, run, 'insert on svc_auth_credentials')
      const failed = await printed()
      t.teardown(() => run('alter table svc_auth_credentials drop constraint is_argon2'))
      await run("drop trigger fails on svc_auth_credentials; alter table svc_auth_credentials add constraint is_argon2 check (pw_hash like '$argon2%')")
      const violating = await printed()

      t.match(failed, /AuthError[^]*the disk is full/)
      t.notMatch(failed, secrets)
      t.match(violating, /AuthError[^]*is_argon2/)
      t.notMatch(violating, secrets, 'the server itself tells the row that it refused')
    })

    t.test('a migration that changes the tables while the store runs does not make it fail', async t => {
      const store = await emptyStore(t)
      const ada = newUser({ email: 'ada@example.com' })
      await new Accounts(store).createUser(ada)
      const everyCall = async () => [
        (await store.findUser({ userId: ada.userId }))?.email,
        (await store.findUser({ email: 'ada@example.com' }))?.email,
        (await new Accounts(store).refreshIdentity({ ...ada.link, verifiedEmail: null }))?.email
      ]
      const before = await everyCall()
      t.teardown(() => run('alter table svc_auth_users alter email type text, drop note'))

      await run('alter table svc_auth_users alter email type varchar(254), add note text')

      t.strictSame(await everyCall(), before)
    })

    if (typeof one === 'string') return
    t.test('the engine stays open when the store is closed', async t => {
      const store = await emptyStore(t)
      const ada = newUser()
      await new Accounts(store).createUser(ada)

      await store.close()

      await t.rejects(store.findUser({ userId: ada.userId }), { ...UNAVAILABLE, cause: { message: 'the store is closed' } })
      t.hasStrict(await open(t, one).findUser({ userId: ada.userId }), { userId: ada.userId })
    })
  })
}

/** Places on the server, each in a database of its own. */
export function onServer (target: (t: Test, url: string) => Target) {
  return async (t: Test): Promise<Place> => {
    const { url, run } = await database(t)
    return { target: t => target(t, url), run }
  }
}

/** Makes kinds of statements fail for the rest of the test. */
async function failOn (t: Test, run: Run, ...events: string[]): Promise<void> {
  t.teardown(() => run('drop function fails cascade'))
  await run(`
    create function fails() returns trigger language plpgsql as $$ begin raise exception 'the disk is full'; end $$;
    ${events.map(event => `create trigger fails before ${event} for each row execute function fails();`).join(' ')}`)
}

async function contents (run: Run): Promise<unknown[]> {
  const contents: unknown[] = []
  for (const table of ['users', 'credentials', 'provider_links']) contents.push(await run(`select * from svc_auth_${table} order by 1, 2`))
  return contents
}
