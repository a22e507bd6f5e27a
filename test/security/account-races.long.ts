import t, { type Test } from 'tap'
import { type AuthStore, SqlAuthStore } from '../../lib/index.js'
import type { AdmittedUser } from '../helpers/own-provider.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { SESSION_STORES } from '../helpers/session-stores.js'
import { STORES } from '../helpers/stores.js'
import { Visitor } from '../helpers/visitor.js'
import { HALF_MADE, type TestDatabase, postgresDatabase, sqliteDatabase } from '../store/database.js'
import { forkAccountsApp, startAccountsApp } from './accounts-process.js'

t.setTimeout(300_000)

const ADA = { email: 'ada@example.com', password: 'correct horse' }

/** What must come out of twenty requests at once, whichever of them is first. */
async function testRaces (t: Test, origins: readonly string[], store: AuthStore): Promise<void> {
  const twenty = () => Array.from({ length: 20 }, (_, index) => new Visitor(origins[index % origins.length] ?? ''))

  t.test('attack 43: twenty registrations of one e-mail at once, in three spellings, make one user, and nineteen are told that it exists', async t => {
    const spellings = ['ada@example.com', 'Ada@Example.com ', ' ADA@EXAMPLE.COM']
    const passwordOf = (index: number) => `the password of ${index}`
    const visitors = twenty()

    const answers = await Promise.all(visitors.map(async (visitor, index) => visitor.post('/auth/local/register', {
      email: spellings[index % 3],
      password: passwordOf(index)
    })))

    const winner = answers.findIndex(({ status }) => status === 201)
    t.strictSame(answers.map(({ status, body }) => [status, body.code]), answers.map((_, index) => index === winner ? [201, undefined] : [409, 'exists']))
    const userId = answers[winner]?.body.userId
    t.strictSame(
      await Promise.all(visitors.map(visitor => visitor.userId())),
      answers.map((_, index) => index === winner ? userId : undefined),
      'one is signed in'
    )
    t.match(await store.findUser({ email: 'ada@example.com' }), { userId })
    t.match(await store.links(String(userId)), [{ provider: 'local', subject: 'ada@example.com' }])
    const logins = await Promise.all(twenty().map(async (visitor, index) => visitor.post('/auth/local/login', {
      email: 'ada@example.com',
      password: passwordOf(index)
    })))
    t.strictSame(logins.map(({ status }) => status), answers.map((_, index) => index === winner ? 200 : 401), 'and it is his password')
  })

  for (const [what, person] of Object.entries<AdmittedUser>({
    'a verified e-mail': { subject: 'bob-1', email: 'bob@example.com' },
    'an e-mail that is not verified': { subject: 'bob-2', email: 'bob-2@example.com', emailVerified: false },
    'no e-mail': { subject: 'bob-3' }
  })) {
    t.test(`attack 43: twenty first sign-ins at once of one identity with ${what} make one user with one link`, async t => {
      const visitors = twenty()
      const callbacks = await Promise.all(visitors.map(visitor => visitor.leaveFor('mine', person)))

      const answers = await Promise.all(visitors.map((visitor, index) => visitor.get(callbacks[index] ?? '')))

      t.strictSame(answers.map(({ status, location }) => [status, location]), answers.map(() => [302, '/#']))
      const user = await store.findUser({ provider: 'mine', subject: person.subject })
      t.strictSame(await Promise.all(visitors.map(visitor => visitor.userId())), answers.map(() => user?.userId))
      t.match(await store.links(String(user?.userId)), { length: 1 })
    })
  }

  t.test('attack 43: twenty first sign-ins at once of two identities with one verified e-mail make one user with two links', async t => {
    const visitors = twenty()
    const callbacks = await Promise.all(visitors.map((visitor, index) => visitor.leaveFor(
      index % 3 === 0 ? 'mine' : 'other',
      { subject: 'carol-1', email: 'carol@example.com' }
    )))

    const answers = await Promise.all(visitors.map((visitor, index) => visitor.get(callbacks[index] ?? '')))

    t.strictSame(answers.map(({ status, location }) => [status, location]), answers.map(() => [302, '/#']))
    const user = await store.findUser({ email: 'carol@example.com' })
    t.strictSame(await Promise.all(visitors.map(visitor => visitor.userId())), answers.map(() => user?.userId))
    t.strictSame((await store.links(String(user?.userId))).map(({ provider }) => provider), ['mine', 'other'])
  })

  t.test('attack 43: a registration and a verified callback of one e-mail at once make one user, and the other is told so', async t => {
    const emails = Array.from({ length: 10 }, (_, index) => `dan-${index}@example.com`)
    await Promise.all(emails.map(async (email, index) => {
      const [registrant, owner] = [new Visitor(origins[0] ?? ''), new Visitor(origins.at(-1) ?? '')]
      const callback = await owner.leaveFor('mine', { subject: `dan-${index}`, email })

      const [registered, returned] = await Promise.all([registrant.post('/auth/local/register', { email, password: ADA.password }), owner.get(callback)])

      const user = await store.findUser({ email })
      const links = (await store.links(String(user?.userId))).map(({ provider }) => provider)
      const all = [registered.status, registered.body.code, returned.status, returned.body.code, links, await registrant.userId(), await owner.userId()]
      t.strictSame(all, registered.status === 201
        ? [201, undefined, 409, 'account_exists', ['local'], user?.userId, undefined]
        : [409, 'exists', 302, undefined, ['mine'], undefined, user?.userId])
    }))
  })

  t.test('attack 43: none of twenty grants at once of different claims is lost', async t => {
    const visitors = twenty()
    for (const visitor of visitors) await visitor.get(await visitor.leaveFor('mine', { subject: 'erin-1' }))

    const answers = await Promise.all(visitors.map((visitor, index) => visitor.post('/grants', { [`claim-${index}`]: index })))

    t.ok(answers.every(({ status }) => status === 200))
    t.strictSame(
      (await store.findUser({ provider: 'mine', subject: 'erin-1' }))?.claims,
      Object.fromEntries(visitors.map((_, index) => [`claim-${index}`, index]))
    )
  })
}

for (const [kind, create] of Object.entries(STORES)) {
  for (const [name, createSessions] of SESSION_STORES) {
    t.test(`the rules hold with ${kind} and ${name}`, async t => {
      const store = await create(t)
      const app = await startAccountsApp(store, createSessions())
      t.teardown(() => app.close())
      await testRaces(t, [app.origin], store)
    })
  }
}

for (const [kind, create] of Object.entries({
  'an SQLite file': async (t: Test): Promise<TestDatabase> => sqliteDatabase(t),
  Postgres: async (t: Test): Promise<TestDatabase> => postgresDatabase(await emptyDatabase(t))
})) {
  t.test(`the rules hold with two processes on ${kind}`, async t => {
    const database = await create(t)
    const apps = await Promise.all([forkAccountsApp(t, database.target), forkAccountsApp(t, database.target)])
    const store = new SqlAuthStore(database.target)
    t.teardown(() => store.close())

    await t.test('at once', async t => testRaces(t, apps.map(({ origin }) => origin), store))

    t.strictSame(await database.query(HALF_MADE), [], 'nothing is half-made')
    t.match(await database.query('select user_id from svc_auth_users'), { length: 1 + 3 + 1 + 10 + 1 })
  })
}
