import { randomUUID } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import t, { type Test } from 'tap'
import { Authorization } from './authorization.js'
import { OptionsError } from '../../errors.js'
import { Accounts, type AuthStore, MemoryAuthStore, type User, isBlocked } from '../../index.js'
import { mailbox } from '../../testing.js'
import { localProvider, principalIn, startApp, userIdIn } from '../../../test/helpers/app.js'
import { eventsOf } from '../../../test/helpers/audit-events.js'
import { Browser } from '../../../test/helpers/browser.js'
import { OwnProvider, signInAt } from '../../../test/helpers/own-provider.js'
import { SOME_STORES } from '../../../test/helpers/stores.js'
import { newFactor } from '../../../test/store/users.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }
const NO_TEXTS = [null, 1, '', 'a\u0000b', 'a\ud800b', {}] as unknown[] as string[]

function withStore (store: AuthStore = new MemoryAuthStore(), local = localProvider()): Authorization {
  return new Authorization(store, undefined, local)
}

/** The audit events that are published while a test runs: name and payload. */
function events (t: Test, ...names: string[]): Array<[string, unknown]> {
  const heard: Array<[string, unknown]> = []
  for (const name of names) {
    const hear = (payload: unknown): void => { heard.push([name, payload]) }
    subscribe(`fastify-svc-auth.${name}`, hear)
    t.teardown(() => unsubscribe(`fastify-svc-auth.${name}`, hear))
  }
  return heard
}

for (const [kind, newStore] of Object.entries(SOME_STORES)) {
  t.test(`users are managed on ${kind}`, async t => {
    t.test('a user with a password signs in with it', async t => {
      const store = await newStore(t)
      const app = await startApp(t, { local: localProvider(), store })

      const user = await app.auth.createUser({ email: ' Ada@Example.com', password: ADA.password, name: 'Ada', claims: { role: 'admin' } })

      const browser = new Browser(app)
      const { statusCode } = await browser.post('/auth/local/login', ADA)
      t.equal(statusCode, 200)
      t.strictSame(await principalIn(browser), {
        userId: user.userId,
        provider: 'local',
        claims: { sub: user.userId, email: 'ada@example.com', name: 'Ada', role: 'admin' }
      })
      t.hasStrict(user, { email: 'ada@example.com', emailVerified: false, name: 'Ada', claims: { role: 'admin' } })
      t.notOk(user.isNew)
    })

    t.test('a user without a password is signed in by the application', async t => {
      const app = await startApp(t, { store: await newStore(t) }, {}, app => {
        app.post('/enter/:userId', async request => app.auth.signIn(request, (request.params as { userId: string }).userId))
      })
      const user = await app.auth.createUser({ name: 'Ada' })

      const browser = new Browser(app)
      await browser.post(`/enter/${user.userId}`, {})

      t.strictSame(await principalIn(browser), {
        userId: user.userId, provider: 'application', claims: { sub: user.userId, name: 'Ada' }
      })
      t.strictSame(await app.auth.links(user.userId), [
        { provider: 'application', subject: user.userId, userId: user.userId, claims: { sub: user.userId, name: 'Ada' } }
      ])
    })

    t.test("a provider's verified e-mail joins a user whose e-mail the application verified, and no other", async t => {
      const store = await newStore(t)
      const app = await startApp(t, { baseUrl: 'http://localhost:3000', providers: [new OwnProvider('dev')], store })
      const verified = await app.auth.createUser({ email: 'ada@example.com', emailVerified: true })
      await app.auth.createUser({ email: 'bob@example.com' })
      t.equal(verified.emailVerified, true)
      t.strictSame((await app.auth.links(verified.userId))[0]?.claims, {
        sub: verified.userId, email: 'ada@example.com', email_verified: true
      })

      const ada = new Browser(app)
      await signInAt(ada, 'dev', { subject: 'ada', email: 'ada@example.com' })
      t.equal(await userIdIn(ada), verified.userId)

      const bob = new Browser(app)
      await signInAt(bob, 'dev', { subject: 'bob', email: 'bob@example.com' })
      t.equal(await userIdIn(bob), null)
      t.hasStrict(await app.auth.findUser({ email: 'ada@example.com' }), { emailVerified: true })
    })

    t.test('a second user with an e-mail is refused', async t => {
      const users = withStore(await newStore(t))
      await users.createUser(ADA)

      await t.rejects(users.createUser({ email: 'ADA@example.com' }), { code: 'exists' })
      await t.rejects(users.createUser(ADA), { code: 'exists' })
      t.equal((await users.users()).users.length, 1)
    })

    t.test('a password is set for a user who has none, replaced, and compared', async t => {
      const users = withStore(await newStore(t))
      const { userId } = await users.createUser({ email: 'ada@example.com', name: 'Ada' })
      t.equal(await users.checkPassword(userId, 'the first one'), false)

      const user = await users.setPassword(userId, 'the first one')
      t.equal(user.generation, 1)
      t.equal(await users.checkPassword(userId, 'the first one'), true)
      t.equal(await users.checkPassword(userId, 'another one'), false)

      await users.setPassword(userId, 'the second one')
      t.equal(await users.checkPassword(userId, 'the first one'), false)
      t.equal(await users.checkPassword(userId, 'the second one'), true)
      t.strictSame((await users.links(userId)).map(({ provider }) => provider), ['application', 'local'])
    })

    t.test('a blocked user is blocked until the block is removed or over', async t => {
      const users = withStore(await newStore(t))
      const { userId } = await users.createUser({ name: 'Ada' })
      const until = new Date(Date.now() + 60_000)

      const blocked = await users.block(userId, { until, reason: 'spam' })

      t.hasStrict(blocked, { blocked: { until, reason: 'spam' }, generation: 1 })
      t.equal(isBlocked(blocked), true)
      t.equal(isBlocked(blocked, until.getTime() - 1), true)
      t.equal(isBlocked(blocked, until.getTime()), false)
      t.equal((await users.users({ blocked: true })).users.length, 1)
      const free = await users.unblock(userId)
      t.equal(isBlocked(free), false)
      t.equal(free.generation, 1, 'the sessions that the block ended stay ended')
      t.equal((await users.users({ blocked: true })).users.length, 0)
      const again = await users.block(userId, { reason: '' })
      t.equal(isBlocked(again), true)
      t.strictSame(Object.keys(again.blocked ?? {}), ['at'], 'an empty field of a form is not a reason')
    })

    t.test('users are listed page by page', async t => {
      const users = withStore(await newStore(t))
      const made: User[] = []
      for (let count = 0; count < 5; count++) made.push(await users.createUser({ email: `ada+${count}@example.com` }))
      await users.createUser({ email: 'bob@example.com' })
      const ids = made.map(({ userId }) => userId).sort()

      const first = await users.users({ search: ' ADA+', limit: 3 })
      t.strictSame(first.users.map(({ userId }) => userId), ids.slice(0, 3))
      t.match(first.next, `.${ids[2]}`)
      const second = await users.users({ search: 'ada+', limit: 3, after: first.next })
      t.strictSame(second.users.map(({ userId }) => userId), ids.slice(3))
      t.equal(second.next, null)
      t.equal((await users.users({ search: 'ada+', limit: 5 })).next, null, 'a full last page is the last')
      t.equal((await users.users()).users.length, 6)
      t.equal((await users.users({ after: null, blocked: false })).users.length, 6)
    })
  })
}

t.test('a user is not created from wrong values', async t => {
  const store = new MemoryAuthStore()
  const users = withStore(store, localProvider({ password: { check: password => password !== 'ada@example.com' } }))
  const refused: Array<[Parameters<typeof users.createUser>[0], string]> = [
    [{ email: 'no address' }, 'invalid_email'],
    [{ email: 1 as unknown as string }, 'invalid_email'],
    [{ password: ADA.password }, 'invalid_request'],
    [{ emailVerified: true }, 'invalid_request'],
    [{ ...ADA, emailVerified: 'true' as unknown as boolean }, 'invalid_request'],
    [{ ...ADA, password: 'short' }, 'weak_password'],
    [{ ...ADA, password: ADA.email }, 'weak_password'],
    [{ ...ADA, password: 'a password \ufffd' }, 'invalid_request'],
    [{ ...ADA, password: 12345678 as unknown as string }, 'invalid_request'],
    [{ ...ADA, claims: JSON.parse('{"sub":"x"}') }, 'invalid_claims'],
    ...NO_TEXTS.map((name): [Parameters<typeof users.createUser>[0], string] => [{ ...ADA, name }, 'invalid_request'])
  ]
  for (const [user, code] of refused) await t.rejects(users.createUser(user), { code }, JSON.stringify(user))
  await t.rejects(users.createUser({ ...ADA, role: 'admin' } as object), new OptionsError(
    'createUser has no option "role"; expected one of email, name, emailVerified, password, claims'
  ))
  t.strictSame(await store.users({ after: null, limit: 1, order: 'id', search: null, blocked: null }), [])
})

t.test('wrong values change nothing', async t => {
  const users = withStore()
  const ada = await users.createUser({ ...ADA, name: 'Ada' })
  const { userId } = ada

  for (const name of [...NO_TEXTS.slice(1), '\r\n']) await t.rejects(users.updateUser(userId, { name }), { code: 'invalid_request' })
  await t.rejects(users.updateUser(userId, { name: 'x', role: 'x' } as { name: string }), OptionsError)
  await t.rejects(users.setPassword(userId, 'short'), { code: 'weak_password' })
  await t.rejects(users.setPassword(userId, 'a password \ufffd'), { code: 'invalid_request' })
  await t.rejects(users.checkPassword(userId, 1 as unknown as string), { code: 'invalid_request' })
  for (const until of [new Date(), new Date(NaN), Date.now() + 1000, '2099-01-01'] as Date[]) {
    await t.rejects(users.block(userId, { until }), { code: 'invalid_request' })
  }
  for (const reason of NO_TEXTS.filter(reason => reason !== '')) await t.rejects(users.block(userId, { reason }), { code: 'invalid_request' })
  await t.rejects(users.block(userId, { forever: true } as object), OptionsError)

  t.strictSame(await users.findUser({ userId }), ada)
  t.equal(await users.checkPassword(userId, ADA.password), true)
})

t.test('a list is not made from wrong values', async t => {
  const users = withStore()
  const lists = [
    ...['', 'x', "' or ''='", randomUUID().toUpperCase(), 1, {}].map(after => ({ after })),
    ...[0, 501, 1.5, NaN, '50', null].map(limit => ({ limit })),
    ...[1, 'a\u0000', {}].map(search => ({ search })),
    ...['oldest', null, 1].map(order => ({ order })),
    ...['true', 1, {}].map(blocked => ({ blocked }))
  ]
  for (const list of lists) await t.rejects(users.users(list as object), { code: 'invalid_request' }, JSON.stringify(list))
  await t.rejects(users.users({ offset: 10 } as object), OptionsError)
  t.strictSame(await users.users({ limit: 500 }), { users: [], next: null })
})

t.test('an unknown user is told from one without a password', async t => {
  const users = withStore()
  for (const userId of [randomUUID(), 'ada', '', 1 as unknown as string]) {
    await t.rejects(users.updateUser(userId, { name: 'x' }), { code: 'unknown_user' })
    await t.rejects(users.setPassword(userId, ADA.password), { code: 'unknown_user' })
    await t.rejects(users.checkPassword(userId, ADA.password), { code: 'unknown_user' })
    await t.rejects(users.block(userId), { code: 'unknown_user' })
    await t.rejects(users.unblock(userId), { code: 'unknown_user' })
    await t.rejects(users.signOutEverywhere(userId), { code: 'unknown_user' })
  }
})

t.test('a password needs an e-mail, also one that is there when the password is hashed', async t => {
  const store = new MemoryAuthStore()
  const users = withStore(store)
  const invalid = { code: 'invalid_request', message: 'The user has no e-mail; a password needs one.' }
  const { userId } = await users.createUser({ name: 'Ada' })
  await t.rejects(users.setPassword(userId, ADA.password), invalid)

  const bob = await users.createUser({ email: ADA.email })
  const set = users.setPassword(bob.userId, ADA.password)
  t.equal(await new Accounts(store).releaseEmail({ userId: bob.userId, email: ADA.email, generation: 0 }), 'freed')
  await t.rejects(set, invalid)
})

t.test('a name that the application set stays at a sign-in', async t => {
  const app = await startApp(t, { baseUrl: 'http://localhost:3000', providers: [new OwnProvider('dev')] })
  const browser = new Browser(app)
  await signInAt(browser, 'dev', { subject: 'ada', email: 'ada@example.com' })
  const userId = await userIdIn(browser) ?? ''

  t.equal((await app.auth.updateUser(userId, { name: 'Coun\ntess\u202e' })).name, 'Countess', 'as pages and mails can show it')
  await signInAt(new Browser(app), 'dev', { subject: 'ada', email: 'ada@example.com' })
  t.equal((await app.auth.findUser({ userId }))?.name, 'Countess')
  t.equal((await app.auth.updateUser(userId, { name: null })).name, null)
})

t.test('what ends the sessions of a user counts', async t => {
  const users = withStore()
  const { userId } = await users.createUser(ADA)
  const generation = async () => (await users.findUser({ userId }))?.generation ?? 0

  await users.signOutEverywhere(userId)
  t.equal(await generation(), 1)
  await users.setPassword(userId, 'another password')
  t.equal(await generation(), 2)
  await users.block(userId)
  t.equal(await generation(), 3)
  await new Accounts(users.store).addLink(userId, { provider: 'dev', subject: '1', claims: { sub: '1' }, verifiedEmail: null })
  await users.unlink(userId, 'dev')
  t.equal(await generation(), 4)
  await users.updateUser(userId, { name: 'Ada' })
  await users.grant(userId, { role: 'admin' })
  t.equal(await generation(), 4)
})

t.test('changes are published without e-mail, password and reason', async t => {
  const heard = events(t, 'creation', 'password', 'block', 'unblock', 'sign-out-everywhere')
  const users = withStore()
  const until = new Date(Date.now() + 60_000)

  const { userId } = await users.createUser(ADA)
  const other = await users.createUser({ name: 'Bob' })
  await users.setPassword(userId, 'another password')
  await users.block(userId, { until, reason: 'said ada@example.com' })
  await users.block(userId)
  await users.unblock(userId)
  await users.signOutEverywhere(userId)
  await users.setPassword(userId, 'short').catch(() => {})

  t.strictSame(heard, [
    ['creation', { userId, provider: 'local' }],
    ['creation', { userId: other.userId, provider: 'application' }],
    ['password', { userId }],
    ['block', { userId, until }],
    ['block', { userId, until: null }],
    ['unblock', { userId }],
    ['sign-out-everywhere', { userId }]
  ])
})

t.test('methods that take a password say that they need a local identity provider', async t => {
  const users = new Authorization(new MemoryAuthStore())
  const { userId } = await users.createUser({ email: ADA.email })

  const calls: Record<string, () => Promise<unknown>> = {
    createUser: () => users.createUser({ email: 'bob@example.com', password: ADA.password }),
    setPassword: () => users.setPassword(userId, ADA.password),
    checkPassword: () => users.checkPassword(userId, ADA.password)
  }
  for (const [name, call] of Object.entries(calls)) {
    await t.rejects(call(), new OptionsError(`${name} needs a LocalIdentityProvider; set the option local of the plugin, ` +
      'or pass it to new Authorization(store, log, local)'))
  }
})

t.test('passwords are compared in the queue of the logins', async t => {
  const local = localProvider()
  const callers: unknown[] = []
  const verify = local.verifyPassword.bind(local)
  local.verifyPassword = async (hash, password, caller) => {
    callers.push([hash === null, caller])
    return verify(hash, password, caller)
  }
  const users = withStore(new MemoryAuthStore(), local)
  const ada = await users.createUser(ADA)
  const bob = await users.createUser({ name: 'Bob' })

  await users.checkPassword(ada.userId, 'x', { address: '192.0.2.1' })
  t.equal(await users.checkPassword(bob.userId, 'x'), false)

  t.strictSame(callers, [[false, { address: '192.0.2.1' }], [true, undefined]], 'without a password too')
})

t.test('an operator restores a user who has lost their mailbox: sessions and links end, factors stay, both addresses are told', async t => {
  const mails = mailbox()
  const app = await startApp(t, { baseUrl: 'http://localhost:3000', local: localProvider({ sendMail: mails.sendMail }) }, {}, app => {
    app.get('/guarded', { preHandler: app.auth.requireUser }, async () => 'welcome')
  })
  const { userId } = await app.auth.createUser({ ...ADA, emailVerified: true })
  const accounts = new Accounts(app.auth.store)
  const browser = new Browser(app)
  await browser.post('/auth/local/login', ADA)
  await accounts.changeFactors(userId, { endsSessions: false, change: () => [newFactor()] })
  await browser.post('/auth/local/forgot-password', { email: ADA.email })
  const { token } = await mails.next('reset-password')
  const revoked = eventsOf(t, 'revoke')
  const changed = eventsOf(t, 'email')

  const user = await app.auth.updateUser(userId, { email: ' New@Example.com', emailVerified: true }, { actor: 'support' })
  await app.auth.mailsSent()

  t.match(user, { email: 'new@example.com', emailVerified: true, factors: ['totp'] })
  t.match([changed, revoked], [[{ userId, verified: true, actor: 'support' }], [{ userId, actor: 'support' }]])
  t.equal((await browser.get('/guarded')).statusCode, 401)
  t.match((await browser.post('/auth/local/reset-password', { token, password: 'another pass phrase' })).json(), { code: 'invalid_token' })
  t.strictSame([await mails.next('email-changed'), await mails.next('email-changed')].map(({ to }) => to), [ADA.email, 'new@example.com'])
  t.equal(await app.auth.checkPassword(userId, ADA.password), true)
  t.equal((await new Browser(app).post('/auth/local/login', ADA)).statusCode, 401)

  await app.auth.createUser({ email: ADA.email })
  await t.rejects(app.auth.updateUser(userId, { email: ADA.email }), { code: 'exists' })
  await t.rejects(app.auth.updateUser((await app.auth.createUser({})).userId, { emailVerified: true }), { code: 'invalid_request' })
  await t.rejects(app.auth.updateUser(userId, { emailVerified: Object(1) }), { code: 'invalid_request' })
  t.equal(changed.length, 1)
})
