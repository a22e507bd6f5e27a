import { randomUUID } from 'node:crypto'
import { drizzle } from 'drizzle-orm/postgres-js'
import type { LightMyRequestResponse } from 'fastify'
import postgres from 'postgres'
import t, { type Test } from 'tap'
import { Connections } from '../../lib/connections.js'
import { Accounts, type AuthPluginOptions, type GuestOptions, SqlAuthStore } from '../../lib/index.js'
import type { MailTokenClaims } from '../../lib/accounts/credentials.js'
import { totp } from '../../lib/testing.js'
import { localProvider, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { DATA_SECRET, enrolAda, startFactorApp, waitAt } from '../helpers/factor-app.js'
import { OwnProvider, signInAt } from '../helpers/own-provider.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { isSoon } from '../helpers/soon.js'
import { type TcpProxy, startProxy } from '../helpers/tcp-proxy.js'
import { newFactor, newUser, toFactors } from './users.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }
const NOBODY = {
  email: null, emailVerified: false, name: null, claims: {}, link: { provider: 'dev', subject: '1', claims: { sub: '1' } }
}

/** What is asked for each of the requests; limits count the attempts of each request in one step. */
const ASKS: Record<string, readonly string[]> = {
  'by the start of a sign-in at a provider': ['attempts', 'the pending sign-in'],
  'by a sign-in at a provider': [
    'attempts', 'the pending sign-in',
    'the session of a visitor', 'attempts', 'the pending sign-in is taken', 'the user', 'the session'
  ],
  'by the first sign-in of a user at a provider': [
    'attempts', 'the pending sign-in',
    'the session of a visitor', 'attempts', 'the pending sign-in is taken', 'no user', 'the user', 'the session admits them'
  ],
  'by a registration': ['attempts', 'the user', 'the session admits them'],
  'by a sign-in with a password': ['attempts and the credential', 'the session'],
  'by a sign-in with a password in the session of a user': [
    // It is the first request in the session before, which it notes.
    'the session', 'that it was seen', 'attempts and the credential', 'the new session'
  ],
  'by a guard': ['the session and its user'],
  'by a visitor without a session': [],
  'by a guard in an impersonation': ['the session and its user', 'the status of the user who is shown'],
  'by a front end that reads the session': ['the session and its user'],
  'by the issue of a token': ['the session, its user and the claims'],
  'by a page that writes into the session': ['the session', 'the data'],
  'by a sign-out': ['the session', 'its end']
}

/** What a guest asks for, and a user at a guard that lets guests pass. */
const ASKS_OF_GUESTS: Record<string, readonly string[]> = {
  'by a visitor who becomes a guest': ['attempts', 'the user', 'the session'],
  'by a user at a guard for guests': ['the session and its user'],
  'by a guest at a guard for guests': ['the session and its user'],
  'by a guest at a guard for users': ['the session']
}
const BOB = { subject: 'bob', email: 'bob@example.com' }

for (const guests of [undefined, {}]) {
  t.test(`a request asks Postgres for each of its steps once, ${guests === undefined ? 'without' : 'with'} the option guests`, async t => {
    const proxy = await startProxy(t, await emptyDatabase(t))
    const requests = await requestsTo(t, new SqlAuthStore(`${proxy.url}?max=1`), guests)
    const asks = { ...ASKS, ...guests && ASKS_OF_GUESTS }
    t.strictSame(Object.keys(requests).sort(), Object.keys(asks).sort())

    for (const [name, request] of Object.entries(requests)) {
      t.test(name, async t => {
        await request()

        // A statement that the server does not know yet takes two: it is described first.
        // Once a part of the tables was used, the store looks into the database, beside one of the requests.
        t.equal(Math.min(await roundTripsOf(proxy, request), await roundTripsOf(proxy, request)), asks[name]?.length)
      })
    }
  })
}

/** What the option connections asks besides, also where no domain is enforced. */
const ASKS_OF_CONNECTIONS: Record<string, readonly string[]> = {
  // Nothing is written before the connection of the domain is known.
  'by a sign-in at a provider': ['the connection of the domain', 'what the provider says is written'],
  'by the first sign-in of a user at a provider': ['no user yet', 'the connection of the domain', 'and once there is a session'],
  'by a registration': ['the connection of the domain', 'and once there is a session'],
  'by a sign-in with a password': ['the connection of the domain'],
  'by a sign-in with a password in the session of a user': ['the connection of the domain'],
  'by the issue of a token': ['the user', 'the connection of the domain']
}

t.test('the option connections asks Postgres at sign-ins and for tokens, and at no guard', async t => {
  const proxy = await startProxy(t, await emptyDatabase(t))
  const options = { connections: new Connections(), dataSecret: DATA_SECRET }
  const requests = await requestsTo(t, new SqlAuthStore(`${proxy.url}?max=1`), undefined, options)
  for (const [name, request] of Object.entries(requests)) {
    await request()
    const asked = Math.min(await roundTripsOf(proxy, request), await roundTripsOf(proxy, request))
    t.equal(asked - Number(ASKS[name]?.length), ASKS_OF_CONNECTIONS[name]?.length ?? 0, name)
  }
})

t.test('a change of an account asks Postgres twice, and a new account once', async t => {
  const proxy = await startProxy(t, await emptyDatabase(t))
  const store = new SqlAuthStore(`${proxy.url}?max=1`)
  t.teardown(() => store.close())
  const redemptions: Record<string, (proof: MailTokenClaims) => Promise<unknown>> = {
    verifyEmail: proof => new Accounts(store).verifyEmail(proof),
    resetPassword: proof => new Accounts(store).resetPassword(proof, 'another hash'),
    changeEmail: proof => new Accounts(store).changeEmail(proof, `new-${proof.email}`),
    releaseEmail: proof => new Accounts(store).releaseEmail(proof)
  }
  const proofOfNewUser = async (): Promise<MailTokenClaims> => {
    const userId = randomUUID()
    const email = `${userId}@example.com`
    const link = { provider: 'local', subject: email, claims: { sub: userId } }
    await new Accounts(store).createUser({ ...NOBODY, userId, email, link, passwordHash: 'a hash' })
    return { userId, email, generation: 0 }
  }

  for (const [name, redeem] of Object.entries(redemptions)) {
    t.test(name, async t => {
      // After the first one, which makes the table of revocations, an account is loaded with its factors.
      for (let round = 0; round < 2; round++) await redeem(await proofOfNewUser())
      const proof = await proofOfNewUser()

      t.equal(await roundTripsOf(proxy, async () => { t.ok(await redeem(proof)) }), 2)
    })
  }
  t.test('a new account with a hook: begin, the account, its claims and commit', async t => {
    const asked = async () => { await new Accounts(store).createUser(newUser(), () => null) }
    await asked()
    t.equal(await roundTripsOf(proxy, asked), 4)
  })
  t.test('a new account', async t => {
    t.equal(await roundTripsOf(proxy, async () => { await proofOfNewUser() }), 1)
  })
})

t.test('factors cost no round trip where they are not read or written', async t => {
  const proxy = await startProxy(t, await emptyDatabase(t))
  const store = new SqlAuthStore(`${proxy.url}?max=1`)
  t.teardown(() => store.close())
  const accounts = new Accounts(store)
  const [ada, bob] = [newUser(), newUser()]
  for (const user of [ada, bob]) await accounts.createUser(user)
  await accounts.changeFactors(bob.userId, toFactors(newFactor()))
  let changes = 0
  const operations: Record<string, [(userId: string) => Promise<unknown>, asked: number]> = {
    'a claim is granted': [userId => accounts.grant(userId, { changes: changes++ }), 2],
    'an attempt is counted': [userId => accounts.attemptFactor(userId, 0), 2],
    'factors are read': [userId => accounts.factors(userId), 1],
    'a user is found': [userId => accounts.findUser({ userId }), 1],
    'the status is asked for': [userId => accounts.status(userId), 1],
    'factors are added and removed': [async userId => {
      const before = await accounts.factors(userId)
      await accounts.changeFactors(userId, toFactors(newFactor()))
      await accounts.changeFactors(userId, toFactors(...before))
    }, 1 + 2 + 2]
  }

  for (const [name, [operation, asked]] of Object.entries(operations)) {
    for (const { userId } of [ada, bob]) {
      await operation(userId)

      t.equal(await roundTripsOf(proxy, async () => { t.ok(await operation(userId) ?? true) }), asked, name)
    }
  }
})

t.test('a code at a sign-in asks Postgres for each of its steps once', async t => {
  const proxy = await startProxy(t, await emptyDatabase(t))
  const made = await startFactorApp(t, { tolerance: 2 }, { store: new SqlAuthStore(`${proxy.url}?max=1`) })
  const { secret, recoveryCodes } = await enrolAda(t, made)
  let step = 0
  const before = ['the session of a visitor', 'the sign-in']
  const after = ['the account', 'the code is spent', 'the sign-in is taken', 'the session']
  const codes: Record<string, [code: () => string | undefined, steps: readonly string[]]> = {
    'of an authenticator app': [() => totp(secret, { step: ++step }), [...before, 'the secret', ...after]],
    'for recovery': [() => recoveryCodes.pop(), [...before, ...after]]
  }

  for (const [name, [nextOf, steps]] of Object.entries(codes)) {
    const counts: number[] = []
    for (let round = 0; round < 2; round++) {
      const browser = new Browser(made.app)
      await waitAt(t, browser)
      const code = nextOf()
      counts.push(await roundTripsOf(proxy, async () => {
        t.equal((await browser.post('/auth/local/second-factor', { code })).statusCode, 200)
      }))
    }
    t.equal(Math.min(...counts), steps.length, `${name}: ${counts}`)
  }
})

t.test('the statuses that are asked for at the same time are sent together', async t => {
  const proxy = await startProxy(t, await emptyDatabase(t))
  const store = new SqlAuthStore(proxy.url)
  t.teardown(() => store.close())
  const userId = randomUUID()
  await new Accounts(store).createUser({ ...NOBODY, userId })
  await store.status(userId)
  let chunks = 0
  proxy.hear = () => { chunks++ }

  const statuses = await Promise.all([userId, randomUUID(), userId].map(id => store.status(id)))

  t.equal(chunks, 1)
  const present = { generation: 0, signedOutAt: 0, verifiedEmail: null }
  t.strictSame(statuses, [present, null, present])
})

t.test('statuses whose connection was lost are asked for again', async t => {
  const url = await emptyDatabase(t)
  const client = postgres(url, { onnotice: () => {}, max: 1 })
  t.teardown(() => client.end())
  const store = new SqlAuthStore(`${url}?application_name=asked-together`)
  t.teardown(() => store.close())
  const userId = randomUUID()
  await new Accounts(store).createUser({ ...NOBODY, userId })
  await store.status(userId)
  await client`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'asked-together'`

  const statuses = await Promise.all(Array.from({ length: 20 }, () => store.status(userId)))

  t.strictSame(new Set(statuses.map(status => status?.generation)), new Set([0]))
})

t.test('statuses that the server refuses leave the connection as it is', async t => {
  const url = await emptyDatabase(t)
  const client = postgres(url, { onnotice: () => {}, max: 1 })
  t.teardown(() => client.end())
  const store = new SqlAuthStore(`${url}?application_name=asked-together`)
  t.teardown(() => store.close())
  await store.status(randomUUID())
  const backends = () => client`select pid from pg_stat_activity where application_name = 'asked-together'`
  const before = await backends()
  await client`alter table svc_auth_users rename column extras to elsewhere`

  const outcomes = await Promise.allSettled(Array.from({ length: 3 }, () => store.status(randomUUID())))

  t.match(outcomes, Array(3).fill({ status: 'rejected', reason: { code: 'unavailable', cause: /extras/ } }))
  const present = new Set((await backends()).map(({ pid }) => pid))
  t.ok(before.every(({ pid }) => present.has(pid)))
})

t.test('Drizzle builds no statement while requests are answered', async t => {
  const client = postgres(await emptyDatabase(t), { onnotice: () => {} })
  t.teardown(() => client.end())
  const db = drizzle(client)
  // What a save changes differs from page to page.
  const { 'by a page that writes into the session': _, ...requests } = await requestsTo(t, new SqlAuthStore(db))
  for (const request of Object.values(requests)) await request()
  const built = (['select', 'insert', 'update', 'delete', 'with'] as const).map(name => t.capture(db, name, db[name]))

  // A sweep, which builds some once a minute, may still be under way.
  t.ok(await isSoon(async () => {
    for (const calls of built) calls()
    for (const request of Object.values(requests)) await request()
    return built.every(calls => calls().length === 0)
  }))
})

/** What users of an application do; each call resolves when the user was admitted. */
async function requestsTo (
  t: Test, store: SqlAuthStore, guests?: GuestOptions, options: AuthPluginOptions = {}
): Promise<Record<string, () => Promise<void>>> {
  const app = await startApp(t, {
    baseUrl: 'http://localhost:3000',
    providers: [new OwnProvider('dev')],
    local: localProvider(),
    store,
    guests,
    rateLimit: { guest: 1000 },
    impersonation: { allow: ({ user }) => user.email === BOB.email },
    ...options
  }, {}, app => {
    app.post<{ Body: { email: string } }>('/support', async request => {
      const user = await app.auth.findUser({ email: request.body.email })
      return app.auth.impersonate(request, String(user?.userId), { reason: 'a ticket' })
    })
    app.get('/guarded', { preHandler: app.auth.requireUser }, async () => 'welcome')
    app.get('/basket', { preHandler: app.auth.requireClaims({}, { guests: true }) }, async () => 'welcome')
    app.post('/basket', async request => app.auth.signInGuest(request))
    app.post('/visits', async ({ session }) => Object.assign(session, { visit: randomUUID() }).visit)
  })
  const browser = new Browser(app)
  const letIn = ({ statusCode, headers: { location } }: LightMyRequestResponse): void => {
    if (statusCode >= 400 || location?.includes('error=') === true) throw new Error(`answered ${statusCode} ${location}`)
  }
  letIn(await browser.post('/auth/local/register', ADA))
  letIn(await signInAt(new Browser(app), 'dev', BOB))
  const support = new Browser(app)
  // Each sign-out takes one; of two rounds each is asked, or more where a sweep is under way.
  const signedIn = Array.from({ length: 10 }, () => new Browser(app))
  for (const browser of [support, ...signedIn]) letIn(await browser.post('/auth/local/login', ADA))
  letIn(await support.post('/support', { email: BOB.email }))
  const guest = new Browser(app)
  if (guests !== undefined) letIn(await guest.post('/basket'))
  return {
    ...guests !== undefined && {
      'by a visitor who becomes a guest': async () => { letIn(await new Browser(app).post('/basket')) },
      'by a user at a guard for guests': async () => { letIn(await browser.get('/basket')) },
      'by a guest at a guard for guests': async () => { letIn(await guest.get('/basket')) },
      'by a guest at a guard for users': async () => { await guest.get('/guarded') }
    },
    'by a visitor without a session': async () => { await new Browser(app).get('/guarded') },
    'by the start of a sign-in at a provider': async () => { letIn(await new Browser(app).get('/auth/dev/login')) },
    'by a sign-in at a provider': async () => { letIn(await signInAt(new Browser(app), 'dev', BOB)) },
    'by the first sign-in of a user at a provider': async () => {
      letIn(await signInAt(new Browser(app), 'dev', { subject: randomUUID(), email: `${randomUUID()}@example.com` }))
    },
    'by a registration': async () => {
      letIn(await new Browser(app).post('/auth/local/register', { ...ADA, email: `${randomUUID()}@example.com` }))
    },
    'by a sign-in with a password': async () => { letIn(await new Browser(app).post('/auth/local/login', ADA)) },
    'by a sign-in with a password in the session of a user': async () => { letIn(await browser.post('/auth/local/login', ADA)) },
    'by a guard': async () => { letIn(await browser.get('/guarded')) },
    'by a guard in an impersonation': async () => { letIn(await support.get('/guarded')) },
    'by a front end that reads the session': async () => { letIn(await browser.get('/auth/session')) },
    'by the issue of a token': async () => { letIn(await browser.post('/auth/local/token')) },
    'by a page that writes into the session': async () => { letIn(await browser.post('/visits')) },
    'by a sign-out': async () => { letIn(await signedIn.pop()?.post('/auth/logout') ?? await browser.get('/missing')) }
  }
}

/** How often Postgres is asked meanwhile, on a connection that there is. */
async function roundTripsOf (proxy: TcpProxy, work: () => Promise<void>): Promise<number> {
  proxy.roundTrips = 0
  await work()
  return proxy.roundTrips
}
