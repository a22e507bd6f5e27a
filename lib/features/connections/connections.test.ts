import Database from 'better-sqlite3'
import t, { type Test } from 'tap'
import { principalIn, startApp, userIdIn } from '../../../test/helpers/app.js'
import { eventsOf } from '../../../test/helpers/audit-events.js'
import { Browser } from '../../../test/helpers/browser.js'
import { advanceClock } from '../../../test/helpers/clock.js'
import { ADA, type MailApp, confirmAddress, registerAt } from '../../../test/helpers/mail-app.js'
import { ecKey } from '../../../test/helpers/signing-key.js'
import { emptyDatabase } from '../../../test/helpers/postgres.js'
import { isSoon } from '../../../test/helpers/soon.js'
import { connect, proveAll, signInBy, startConnectionApp, startTenants } from '../../../test/helpers/tenants.js'
import { AuthError, OptionsError, SqlAuthStore } from '../../index.js'
import { SecondFactor } from '../../second-factor.js'
import { type Connection, type ConnectionDomain, Connections } from '../../connections.js'

const DATABASES = { SQLite: async () => ':memory:', Postgres: emptyDatabase }

/** Runs a test on each database. */
function onEach (name: string, test: (t: Test, store: SqlAuthStore) => Promise<void>): void {
  for (const [engine, target] of Object.entries(DATABASES)) {
    t.test(`${name} (${engine})`, async t => test(t, new SqlAuthStore(await target(t))))
  }
}

const DAY = 24 * 60 * 60 * 1000

onEach('a user signs in by a connection that was just added, with its id among the claims', async (t, store) => {
  const { tenants: [acme] } = await startTenants(t)
  const { app } = await startConnectionApp(t, { store })
  const connection = await connect(app, acme, { domains: ['example.com'] })
  const browser = new Browser(app)

  const answer = await signInBy(browser, acme, connection, '/home')

  t.match(answer, { statusCode: 302, headers: { location: '/home' } }, answer.body)
  t.match(await principalIn(browser), {
    provider: connection.provider,
    claims: { sub: 'ada', email: 'ada@example.com', email_verified: false, name: 'Ada', connection: connection.id }
  })
})

t.test('an address of a proven domain is verified, and of no other one', async t => {
  const world = await startTenants(t)
  const { tenants: [acme] } = world
  const { app } = await startConnectionApp(t)
  const connection = await connect(app, acme, { domains: ['example.com'] })
  await proveAll(app, world, connection)
  const [ada, eve, bob] = [new Browser(app), new Browser(app), new Browser(app)]

  await signInBy(ada, acme, connection)
  acme.idp.account = { sub: 'eve', email: 'eve@sub.example.com', email_verified: true }
  await signInBy(eve, acme, connection)
  acme.idp.account = { sub: 'bob', email: 'bob@example.com', email_verified: false }
  await signInBy(bob, acme, connection)

  t.match(await principalIn(ada), { claims: { email: 'ada@example.com', email_verified: true } })
  t.match(await principalIn(eve), { claims: { email: 'eve@sub.example.com', email_verified: false } }, 'a proof holds for the exact name')
  t.match(await principalIn(bob), { claims: { email: 'bob@example.com', email_verified: false } }, 'the provider says no itself')
  t.match(await app.auth.findUser({ email: 'ada@example.com' }), { emailVerified: true })
  t.equal(await app.auth.findUser({ email: 'eve@sub.example.com' }), null)
})

t.test('a connection whose provider says nothing about the address answers for its proven domain', async t => {
  const world = await startTenants(t)
  const { tenants: [acme] } = world
  const { app } = await startConnectionApp(t)
  const connection = await connect(app, acme, { domains: ['example.com'] })
  await proveAll(app, world, connection)
  acme.idp.account = { sub: 'ada', email: 'Ada@Example.com' }
  const browser = new Browser(app)

  await signInBy(browser, acme, connection)

  t.match(await app.auth.findUser({ email: 'ada@example.com' }), { emailVerified: true })
})

t.test('a user who has confirmed an address of the domain is joined, and one who has not is not', async t => {
  const world = await startTenants(t)
  const { tenants: [acme] } = world
  const made = await startConnectionApp(t)
  const { app } = made
  const token = await registerAt(made)
  await confirmAddress(made.browser, token, ADA.password)
  const registered = await userIdIn(made.browser)
  await new Browser(app).post('/auth/local/register', { email: 'bob@example.com', password: 'a long password' })
  const connection = await connect(app, acme, { domains: ['example.com'] })
  await proveAll(app, world, connection)
  const [ada, bob] = [new Browser(app), new Browser(app)]

  await signInBy(ada, acme, connection)
  acme.idp.account = { sub: 'bob', email: 'bob@example.com', email_verified: true }
  const refused = await signInBy(bob, acme, connection)

  t.equal(await userIdIn(ada), registered)
  t.match(refused.json(), { code: 'account_exists' })
  t.equal(await userIdIn(bob), null)
})

onEach('a connection is changed, and the next sign-in is by what it is then; domains keep their state', async (t, store) => {
  const world = await startTenants(t)
  const { tenants: [acme] } = world
  const { app } = await startConnectionApp(t, { store })
  const connection = await connect(app, acme, { domains: ['example.com'] })
  await proveAll(app, world, connection)
  const wrong = await app.auth.connections.update(connection.id, { name: 'Acme Inc', clientSecret: 'another-secret' })
  t.match(wrong, { name: 'Acme Inc', domains: [{ domain: 'example.com', state: 'proven' }] })
  const refused = await signInBy(new Browser(app), acme, connection)
  t.match(refused.json(), { code: 'provider_error' })

  const right = await app.auth.connections.update(connection.id, {
    clientSecret: acme.idp.clientSecret, domains: ['example.com', 'BÜCHER.example']
  })

  const browser = new Browser(app)
  await signInBy(browser, acme, connection)
  t.match(await principalIn(browser), { claims: { email_verified: true } })
  t.match(right.domains, [
    { domain: 'example.com', state: 'proven' },
    { domain: 'xn--bcher-kva.example', state: 'claimed', record: { name: '_svc-auth-challenge.xn--bcher-kva.example', type: 'TXT' } }
  ])
  const record = right.domains.map(({ record }) => record.value)
  t.strictSame((await app.auth.connections.update(connection.id, { domains: ['xn--bcher-kva.example'] })).domains.map(({ record }) => record.value),
    record.slice(1), 'the other domain is claimed no more, and this one has the same record')
})

t.test('issuer and client id never change, and what cannot be is refused with a sentence', async t => {
  const { app } = await startConnectionApp(t)
  const { connections } = app.auth
  const fine = { name: 'Acme', issuer: 'https://id.acme.example', clientId: 'the-app', clientSecret: 'a secret of the client' }
  const { id } = await connections.create(fine)

  for (const [change, sentence] of [
    [{ issuer: 'https://evil.example' }, 'issuer of a connection never changes'],
    [{ clientId: 'other' }, 'clientId of a connection never changes'],
    [{ name: '' }, 'name must be text'],
    [{ clientSecret: '' }, 'clientSecret must be'],
    [{ clientKey: { kty: 'RSA' } }, 'clientKey must be a private JWK'],
    [{ clientSecret: 'a secret', clientKey: { kty: 'RSA' } }, 'not both'],
    [{ domains: ['co.uk'] }, 'co.uk is a public suffix'],
    [{ domains: ['github.io'] }, 'github.io is a public suffix'],
    [{ domains: ['not a domain'] }, 'A domain must be a host name'],
    [{ domains: ['127.0.0.1'] }, 'A domain must be a host name'],
    [{ domains: Array(101).fill('acme.example') }, 'at most 100 domains'],
    [{ enforce: { days: 0 } }, 'enforce.days must be a whole number of days'],
    [{ enforce: { except: ['ada'] } }, 'enforce.except must be a list of user ids'],
    [{ scopes: [''] }, 'scopes must be a list'],
    [{ secret: 'x' }, 'has no option "secret"']
  ] as const) {
    await t.rejects(connections.update(id, change as object), { code: 'invalid_request', message: new RegExp(sentence) }, sentence)
  }
  await t.rejects(connections.update(id, { administrators: ['nobody'] }), { code: 'invalid_email' })
  for (const [wrong, sentence] of [
    [{ issuer: 'http://id.acme.example' }, 'issuer must be an https: URL'],
    [{ issuer: 'https://127.0.0.1' }, 'issuer must be an https: URL'],
    [{ issuer: 'https://id.acme.example?tenant=1' }, 'issuer must be an https: URL'],
    [{ clientSecret: undefined }, 'clientSecret must be'],
    [{ clientId: '' }, 'clientId must be']
  ] as const) {
    await t.rejects(connections.create({ ...fine, ...wrong }), { code: 'invalid_request', message: new RegExp(sentence) }, sentence)
  }
  t.match(await connections.list(), { connections: [{ id, issuer: fine.issuer, clientId: 'the-app' }], next: null })
  t.notMatch(JSON.stringify(await connections.list()), fine.clientSecret)
})

t.test('calls for a connection that there is not, and without the option, say so', async t => {
  const { app } = await startConnectionApp(t)
  const { auth } = await startApp(t)
  const unknown = '00000000-0000-4000-8000-000000000000'

  for (const id of [unknown, 'x']) {
    const { update, test, proveDomain } = app.auth.connections
    await t.rejects(update(id, {}), { code: 'not_found' })
    await t.rejects(test(id), { code: 'not_found' })
    await t.rejects(proveDomain(id, 'a.example'), { code: 'not_found' })
    t.equal(await app.auth.connections.remove(id), false)
    for (const path of ['login', 'callback?code=1&state=2']) {
      const answer = await new Browser(app).get(`/auth/connections/${id}/${path}`)
      t.equal(answer.statusCode, path === 'login' ? 404 : 400, answer.body)
    }
  }
  await t.rejects(app.auth.connections.list({ after: 'x' }), { code: 'invalid_request' })
  await t.rejects(app.auth.connections.list({ limit: 0 }), { code: 'invalid_request' })
  t.strictSame(await app.auth.connections.list(), { connections: [], next: null })
  const broken = { get name (): string { throw new Error('of the application') } }
  await t.rejects(app.auth.connections.update(unknown, broken), { message: 'of the application' })
  await t.rejects(auth.connections.list(), { code: 'unsupported' })
  await t.rejects(auth.connections.remove(unknown), { code: 'unsupported' })
})

t.test('a connection authenticates its client by a key, whose private part nobody sees', async t => {
  const { d, ...jwk } = { ...ecKey(), alg: 'ES256', kid: 'one' }
  const { tenants: [acme] } = await startTenants(t, { token_endpoint_auth_method: 'private_key_jwt', client_secret: undefined, jwks: { keys: [jwk] } })
  const { app } = await startConnectionApp(t)
  const connection = await connect(app, acme, { clientSecret: undefined, clientKey: { ...jwk, d } })
  const browser = new Browser(app)

  await signInBy(browser, acme, connection)

  t.match(await principalIn(browser), { claims: { sub: 'ada' } })
  t.notMatch(JSON.stringify(await app.auth.connections.list()), d)
  await app.auth.connections.update(connection.id, { clientKey: { ...ecKey(), alg: 'ES256', kid: 'one' } })
  t.match((await signInBy(new Browser(app), acme, connection)).json(), { code: 'provider_error' })
})

onEach('changes of a connection at once all stay, and of two removals at once one tells each user', async (t, store) => {
  const { tenants: [acme] } = await startTenants(t)
  const { app } = await startConnectionApp(t, { store })
  const removed = eventsOf(t, 'unlink')
  const { id, ...connection } = await connect(app, acme)
  const browser = new Browser(app)
  await signInBy(browser, acme, connection)
  const request = { log: app.log, headers: {}, id: 'req-1', ip: '127.0.0.1' } as never

  await Promise.all([
    app.auth.connections.update(id, { name: 'Acme Inc' }, { request }), app.auth.connections.update(id, { scopes: ['groups'] }),
    app.auth.connections.update(id, { administrators: ['it@acme.example'] }), app.auth.connections.update(id, { domains: ['acme.example'] })
  ])
  t.match((await app.auth.connections.list()).connections, [
    { name: 'Acme Inc', scopes: ['groups'], administrators: ['it@acme.example'], domains: [{ domain: 'acme.example' }] }
  ])

  await Promise.all([app.auth.connections.remove(id), app.auth.connections.remove(id)])
  t.equal(removed.length, 1)
  t.equal((await browser.get('/private')).statusCode, 401)
})

t.test('what a database refuses ends a proof with its error, and a check with a line in the log', async t => {
  const world = await startTenants(t)
  const { tenants: [acme] } = world
  const db = new Database(':memory:')
  const lines: string[] = []
  const logger = { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } }
  const made = await startConnectionApp(t, { store: new SqlAuthStore(db) }, {}, { logger })
  const connection = await connect(made.app, acme, { domains: ['example.com'] })
  await proveAll(made.app, world, connection)
  db.exec("create trigger refusal before update on svc_auth_domains begin select raise(abort, 'no'); end")

  await t.rejects(made.app.auth.connections.update(connection.id, { domains: ['example.com', 'b.example'] }).then(async () => {
    const { domains: [domain] } = (await made.app.auth.connections.list()).connections[0] ?? connection
    world.records.set(String(domain?.record.name), [String(domain?.record.value)])
    return made.app.auth.connections.proveDomain(connection.id, 'b.example')
  }), { code: 'unavailable' })
  advanceClock(t, 2 * DAY)
  await made.app.inject(connection.loginPath)
  t.ok(await isSoon(async () => lines.some(line => line.includes('the domains of connections could not be checked'))))
})

t.test('addresses of all users of a domain that has a new owner are disputed, however many they are', async t => {
  const world = await startTenants(t)
  const { tenants: [acme, other] } = world
  const { app } = await startConnectionApp(t)
  const first = await connect(app, acme, { domains: ['example.com'] })
  await proveAll(app, world, first)
  for (let number = 0; number < 501; number++) await app.auth.createUser({ email: `user${number}@example.com`, emailVerified: true })
  await app.auth.createUser({ email: 'ada@example.com.evil.example', emailVerified: true })
  const second = await connect(app, other, { domains: ['example.com'] })
  world.records.clear()

  await proveAll(app, world, second)

  const { users } = await app.auth.users({ limit: 500 })
  t.ok(users.every(({ email, emailDisputed }) => emailDisputed === (email === 'ada@example.com.evil.example' ? undefined : true)))
  t.match(await app.auth.findUser({ email: 'ada@example.com.evil.example' }), { emailVerified: true })
})

onEach('connections are listed a page at a time', async (t, store) => {
  const { app } = await startConnectionApp(t, { store })
  const ids: string[] = []
  for (const name of ['A', 'B', 'C']) {
    const made = await app.auth.connections.create({
      name, issuer: `https://${name}.example`, clientId: 'c', clientSecret: 'a secret', domains: [`${name}.example`, 'x.example']
    })
    ids.push(made.id)
  }

  const first = await app.auth.connections.list({ limit: 2 })
  const second = await app.auth.connections.list({ limit: 2, after: first.next })

  t.strictSame([...first.connections, ...second.connections].map(({ id }) => id), ids.sort())
  t.ok(first.connections.every(({ domains }) => domains.length === 2))
  t.equal(second.next, null)
})

t.test('the option needs a base URL, a data secret and a store in SQL', async t => {
  t.throws(() => new Connections({ claim: () => ({}) } as object), OptionsError)
  for (const [options, sentence] of [
    [{ baseUrl: undefined, providers: [], local: undefined }, 'baseUrl is required with connections'],
    [{ dataSecret: undefined }, 'dataSecret'],
    [{ store: undefined }, 'connections needs a SqlAuthStore']
  ] as const) {
    await t.rejects(startConnectionApp(t, options as object), { message: new RegExp(sentence) }, sentence)
  }
})

t.test('groups become claims of the connection, which go with them, and granted claims come before them', async t => {
  const { tenants: [acme] } = await startTenants(t)
  const seen: unknown[] = []
  const { app } = await startConnectionApp(t, {
    connections: {
      claims: async ({ connection: { name }, identity: { provider, claims } }) => {
        seen.push([name, provider, claims.role, claims.iss])
        const groups = Array.isArray(claims.groups) ? claims.groups : []
        return groups.includes('admins') ? { role: 'admin', team: 'red' } : {}
      }
    }
  })
  const connection = await connect(app, acme)
  const browser = new Browser(app)
  acme.idp.account = { sub: 'ada', groups: ['admins'], role: 'owner' }

  await signInBy(browser, acme, connection)
  const { userId, claims } = await principalIn(browser) ?? { userId: '', claims: {} }
  t.match(claims, { role: 'admin', team: 'red' })
  t.strictSame(seen, [['Acme', connection.provider, 'owner', undefined]])
  t.strictSame((await app.auth.findUser({ userId }))?.claims, {}, 'the user has none of their own')

  await app.auth.grant(userId, { team: 'blue' })
  await signInBy(browser, acme, connection)
  t.match(await principalIn(browser), { claims: { role: 'admin', team: 'blue' } })

  acme.idp.account = { sub: 'ada', groups: [], role: 'owner' }
  await signInBy(browser, acme, connection)
  const left = (await principalIn(browser))?.claims
  t.equal(left?.role, undefined, 'a claim of the customer is none of the application')
  t.equal(left?.team, 'blue')
})

t.test('identity claims and what is not JSON are refused as claims of a connection', async t => {
  const { tenants: [acme] } = await startTenants(t)
  let mapped: object = { email: 'root@example.com' }
  const { app } = await startConnectionApp(t, { connections: { claims: () => mapped as {} } })
  const connection = await connect(app, acme)

  for (mapped of [{ email: 'root@example.com' }, { at: new Date() }]) {
    t.match((await signInBy(new Browser(app), acme, connection)).json(), { statusCode: 500 })
  }
})

onEach('a domain is proven by its own record, one by one', async (t, store) => {
  const world = await startTenants(t)
  const { tenants: [acme], records } = world
  const { app } = await startConnectionApp(t, { store })
  const proven = eventsOf(t, 'domain-proven')
  const { id, domains: [one, two] } = await connect(app, acme, { domains: ['one.example', 'two.example'] })
  const prove = async (domain: string) => app.auth.connections.proveDomain(id, domain)

  t.match(await prove('one.example'), { state: 'claimed', problem: 'no_record', provenAt: null })
  records.set(String(one?.record.name), ['v=spf1 -all', String(two?.record.value)])
  t.match(await prove('one.example'), { state: 'claimed', problem: 'no_record' }, 'the token of another domain proves nothing')
  records.set(String(one?.record.name), ['v=spf1 -all', String(one?.record.value)])
  t.match(await prove('ONE.example'), { state: 'proven', problem: null })
  records.set(String(two?.record.name), new Error('SERVFAIL'))
  t.match(await prove('two.example'), { state: 'claimed', problem: 'unreachable' })
  await t.rejects(prove('three.example'), { code: 'not_found' })

  t.match((await app.auth.connections.list()).connections, [{ domains: [{ state: 'proven' }, { state: 'claimed' }] }])
  t.match(proven, [{ connectionId: id, domain: 'one.example' }])
  t.equal(proven.length, 1)
})

/** Some days later a sign-in starts, behind which the domain is checked; returns when it is in a state, and was looked up again if that was due. */
async function checkedAs (
  t: Test, { app }: Pick<MailApp, 'app'>, { id }: Pick<Connection, 'id'>, days: number, expected: ConnectionDomain['state'], isDue = true
): Promise<void> {
  const domain = async () => (await app.auth.connections.list()).connections[0]?.domains[0]
  const before = (await domain())?.checkedAt?.getTime() ?? 0
  advanceClock(t, days * DAY)
  await app.inject(`/auth/connections/${id}/login`)
  t.ok(await isSoon(async () => {
    const { state, checkedAt } = await domain() ?? {}
    return state === expected && (checkedAt?.getTime() !== before) === isDue
  }), `${expected} after ${days} days`)
}

onEach('a record that is gone is noticed within a day, and after a week the domain lapses, once, with an event and a mail', async (t, store) => {
  const world = await startTenants(t)
  const { tenants: [acme], records } = world
  const made = await startConnectionApp(t, { store })
  const { app, mails } = made
  const lapsed = eventsOf(t, 'domain-lapsed')
  const { id, domains, loginPath } = await connect(app, acme, { domains: ['example.com'], administrators: ['IT@acme.example'] })
  await proveAll(app, world, { id, domains } as never)
  await signInBy(new Browser(app), acme, { loginPath })
  records.clear()

  await checkedAs(t, made, { id }, 0.5, 'proven', false)
  await checkedAs(t, made, { id }, 0.6, 'missing')
  await checkedAs(t, made, { id }, 6, 'missing')
  t.strictSame(mails.all, [])
  await checkedAs(t, made, { id }, 1.1, 'lapsed')

  t.match(lapsed, [{ connectionId: id, domain: 'example.com' }])
  t.equal(lapsed.length, 1)
  t.match(await mails.next('domain-lapsed'), { to: 'it@acme.example', domain: 'example.com', userId: null, url: null })
  const known = new Browser(app)
  await signInBy(known, acme, { loginPath })
  t.match(await principalIn(known), { claims: { email: 'ada@example.com', email_verified: false } })
  t.match(await app.auth.findUser({ email: 'ada@example.com' }), { emailVerified: false, emailDisputed: true })
  acme.idp.account = { sub: 'bob', email: 'bob@example.com', email_verified: true }
  t.match((await signInBy(new Browser(app), acme, { loginPath })).json(), { code: 'not_allowed' }, 'nobody is added')
})

t.test('a record that is there again within the week changes nothing, nor do name servers that do not answer', async t => {
  const world = await startTenants(t)
  const { tenants: [acme], records } = world
  const made = await startConnectionApp(t)
  const connection = await connect(made.app, acme, { domains: ['example.com'] })
  await proveAll(made.app, world, connection)
  const [[name = '', texts = []] = []] = [...records]

  records.clear()
  await checkedAs(t, made, connection, 1.1, 'missing')
  records.set(name, texts)
  await checkedAs(t, made, connection, 1.1, 'proven')
  records.set(name, new Error('SERVFAIL'))
  await checkedAs(t, made, connection, 20, 'proven')
  await checkedAs(t, made, connection, 20, 'proven')
  records.clear()
  await checkedAs(t, made, connection, 1.1, 'missing')
})

onEach('a second connection gets a domain once the record of the first is gone, and joins nobody who was there before', async (t, store) => {
  const world = await startTenants(t)
  const { tenants: [acme, other], records } = world
  const made = await startConnectionApp(t, { store })
  const { app, mails } = made
  const lapsed = eventsOf(t, 'domain-lapsed')
  const first = await connect(app, acme, { domains: ['example.com'] })
  await proveAll(app, world, first)
  const [ada, eve] = [new Browser(app), new Browser(app)]
  await signInBy(ada, acme, first)
  const bob = { email: 'bob@example.com', password: 'correct horse' }
  const browser = new Browser(app)
  await confirmAddress(browser, await registerAt({ ...made, browser }, bob), bob.password)
  t.match(await app.auth.findUser({ email: bob.email }), { emailVerified: true })
  const second = await connect(app, other, { name: 'Other', domains: ['example.com'] })
  const [record] = second.domains.map(({ record }) => record)
  const prove = async () => app.auth.connections.proveDomain(second.id, 'example.com')

  records.set(String(record?.name), [String(record?.value), String(first.domains[0]?.record.value)])
  t.match(await prove(), { state: 'claimed', problem: 'taken' })
  records.set(String(record?.name), [String(record?.value)])
  t.match(await prove(), { state: 'proven', problem: null })

  t.match(lapsed, [{ connectionId: first.id }])
  for (const email of ['ada@example.com', bob.email]) {
    t.match(await app.auth.findUser({ email }), { emailVerified: false, emailDisputed: true }, email)
  }
  other.idp.account = { sub: 'eve', email: 'ada@example.com', email_verified: true }
  t.match((await signInBy(eve, other, second)).json(), { code: 'account_exists' })
  t.equal(await userIdIn(eve), null)
  await new Browser(app).post('/auth/local/forgot-password', { email: bob.email })
  await app.auth.mailsSent()
  t.notOk(mails.all.some(({ kind }) => kind === 'reset-password'), 'mail opens no account whose address is disputed')
  const known = new Browser(app)
  await signInBy(known, acme, first)
  t.equal(await userIdIn(known), await userIdIn(ada), 'who has the link still signs in')
  other.idp.account = { sub: 'new', email: 'new@example.com', email_verified: true }
  const fresh = new Browser(app)
  await signInBy(fresh, other, second)
  t.match(await app.auth.findUser({ email: 'new@example.com' }), { emailVerified: true })

  t.match((await app.auth.connections.proveDomain(first.id, 'example.com')), { state: 'lapsed', problem: 'no_record' })
  records.set(String(record?.name), [String(record?.value), String(first.domains[0]?.record.value)])
  t.match((await app.auth.connections.proveDomain(first.id, 'example.com')), { state: 'lapsed', problem: 'taken' })
})

onEach('of many connections that prove one domain at once, one does', async (t, store) => {
  const world = await startTenants(t)
  const { tenants: [acme], records } = world
  const { app } = await startConnectionApp(t, { store })
  const made = await Promise.all(Array.from({ length: 5 }, () => connect(app, acme, { domains: ['example.com'] })))
  records.set('_svc-auth-challenge.example.com', made.map(({ domains: [domain] }) => String(domain?.record.value)))

  const proofs = await Promise.all(made.map(async ({ id }) => app.auth.connections.proveDomain(id, 'example.com')))

  t.strictSame(proofs.map(({ problem }) => problem).sort(), [null, 'taken', 'taken', 'taken', 'taken'])
})

onEach('a connection that is removed ends its sessions, and its users sign in by mail', async (t, store) => {
  const world = await startTenants(t)
  const { tenants: [acme] } = world
  const made = await startConnectionApp(t, { store, rateLimit: {} }, { signInByMail: true })
  const { app, mails } = made
  const removed = eventsOf(t, 'connection-removed')
  const revoked: string[] = []
  app.auth.channel.on('revoke', userId => { revoked.push(userId) })
  const connection = await connect(app, acme, { domains: ['example.com'] })
  await proveAll(app, world, connection)
  const browser = new Browser(app)
  await signInBy(browser, acme, connection)
  const userId = await userIdIn(browser) ?? ''

  t.equal(await app.auth.connections.remove(connection.id), true)
  t.equal(await app.auth.connections.remove(connection.id), false)

  t.equal((await browser.get('/private')).statusCode, 401)
  t.strictSame(revoked, [userId])
  t.match(await mails.next('identity-unlinked'), { to: 'ada@example.com', userId })
  t.match(removed, [{ connectionId: connection.id }])
  t.match(await app.auth.links(userId), [{ provider: 'application', claims: { email: 'ada@example.com', email_verified: true } }])
  t.match(await app.auth.findUser({ userId }), { email: 'ada@example.com', emailVerified: true })
  t.equal((await signInBy(new Browser(app), acme, connection)).statusCode, 404)
  t.strictSame((await app.auth.connections.list()).connections, [])
  const other = new Browser(app)
  await other.post('/auth/local/mail-login', { email: 'ada@example.com' })
  const { code } = await mails.next('sign-in')
  t.equal((await other.post('/auth/local/mail-login/confirm', { code })).statusCode, 200)
  t.equal(await userIdIn(other), userId)
})

t.test('a removal ends a sign-in that is under way', async t => {
  const { tenants: [acme] } = await startTenants(t)
  const { app } = await startConnectionApp(t)
  const connection = await connect(app, acme)
  const browser = new Browser(app)
  const started = await browser.get(connection.loginPath)
  const callback = await acme.idp.authorize(String(started.headers.location))

  await app.auth.connections.remove(connection.id)

  const answer = await browser.get(callback.pathname + callback.search)
  t.equal(answer.statusCode, 404)
  t.equal(await userIdIn(browser), null)
})

t.test('the test of a connection signs nobody in, and says which step works and which does not', async t => {
  const world = await startTenants(t)
  const { tenants: [acme] } = world
  const { app } = await startConnectionApp(t, { connections: { claims: () => { throw new AuthError('forbidden') } } })
  const silent = await startConnectionApp(t)
  const test = async (made = silent.app, change: object = {}) => {
    const connection = await connect(made, acme, { domains: ['example.com'], ...change })
    const browser = new Browser(made)
    const answer = async () => signInBy(browser, acme, { loginPath: await made.auth.connections.test(connection.id) })
    return { connection, browser, answer }
  }

  const works = await test()
  const unproven = await works.answer()
  t.match(unproven, { statusCode: 200, headers: { 'cache-control': 'no-store' }, body: /its domain is not proven for this connection/ })
  t.match(unproven.body, 'Nobody was signed in.')
  t.equal(await userIdIn(works.browser), null)
  await proveAll(silent.app, world, works.connection)
  t.match(await works.answer(), { body: /its domain is proven\./ })
  acme.idp.account = { sub: 'ada' }
  t.match(await works.answer(), { body: /without an e-mail address/ })
  t.strictSame((await silent.app.auth.users({})).users, [], 'nobody was made')

  t.match(await (await test(silent.app, { clientSecret: 'a wrong secret' })).answer(), { body: /Step 3, tokens: they were refused/ })
  t.match(await (await test(app)).answer(), { body: /Step 4, claims/ })
  acme.idp.consents = false
  t.match(await works.answer(), { body: /Step 2, sign-in at the provider: it refused/ })

  const gone = await silent.app.auth.connections.create({ name: 'Gone', issuer: 'https://localhost:1', clientId: 'c', clientSecret: 'a secret' })
  const json = await new Browser(silent.app).get(await silent.app.auth.connections.test(gone.id), { accept: 'application/json' })
  t.match(json.json(), { passed: false, finding: 'metadataAway' })
  const mixed = await silent.app.auth.connections.create({ name: 'Mixed', issuer: `${acme.idp.issuer}/tenant`, clientId: 'c', clientSecret: 'a secret' })
  const path = await silent.app.auth.connections.test(mixed.id)
  t.match(await new Browser(silent.app).get(path, { accept: 'text/html' }), { body: /Step 1, metadata: they cannot be used/ })
})

t.test('only a signed path tests a connection, that connection alone, and only by a GET', async t => {
  const { tenants: [acme] } = await startTenants(t)
  const { app } = await startConnectionApp(t)
  const [one, two] = [await connect(app, acme), await connect(app, acme)]
  const signed = new URL(await app.auth.connections.test(one.id), 'https://app.example').searchParams.get('signed') ?? ''

  t.equal((await new Browser(app).get(`${two.loginPath}?signed=${signed}`)).statusCode, 400)
  t.equal((await new Browser(app).get(`${one.loginPath}?signed=x`)).statusCode, 400)
  t.equal((await new Browser(app).post(one.loginPath, { signed })).statusCode, 400)
})

t.test('a response of one customer\'s provider at the callback of another is a mix-up', async t => {
  const { tenants: [acme, other] } = await startTenants(t)
  const { app } = await startConnectionApp(t)
  const [first, second] = [await connect(app, acme), await connect(app, other)]
  const browser = new Browser(app)
  const started = await browser.get(first.loginPath)
  const callback = await acme.idp.authorize(String(started.headers.location))

  const answer = await browser.get(callback.pathname.replace(first.id, second.id) + callback.search)

  t.match(answer.json(), { code: 'invalid_state' })
  t.equal(await userIdIn(browser), null)
})

t.test('the same subject at two connections is two users', async t => {
  const { tenants: [acme, other] } = await startTenants(t)
  const { app } = await startConnectionApp(t)
  const [one, two] = [new Browser(app), new Browser(app)]

  await signInBy(one, acme, await connect(app, acme))
  await signInBy(two, other, await connect(app, other))

  t.not(await userIdIn(one), await userIdIn(two))
})

t.test('a secret is sealed for its connection: a row with that of another one is unavailable', async t => {
  const { tenants: [acme] } = await startTenants(t)
  const db = new Database(':memory:')
  const { app } = await startConnectionApp(t, { store: new SqlAuthStore(db) })
  const [one, two] = [await connect(app, acme), await connect(app, acme)]
  t.notMatch(JSON.stringify(db.prepare('select * from svc_auth_connections').all()), acme.idp.clientSecret)

  const content = db.prepare('select content from svc_auth_connections where connection_id = ?').pluck().get(one.id)
  db.prepare('update svc_auth_connections set version = 7, content = ? where connection_id = ?').run(content, two.id)

  t.equal((await new Browser(app).get(two.loginPath)).statusCode, 503)
  t.equal((await new Browser(app).get(one.loginPath)).statusCode, 302)
})

onEach('what one process adds, changes and removes is so at the next request in the others', async (t, store) => {
  const world = await startTenants(t)
  const { tenants: [acme] } = world
  const [{ app: one }, { app: two }] = [await startConnectionApp(t, { store }), await startConnectionApp(t, { store })]
  const connection = await connect(one, acme, { domains: ['example.com'] })
  const browser = new Browser(two)

  await signInBy(browser, acme, connection)
  t.match(await principalIn(browser), { claims: { email_verified: false } })
  await proveAll(one, world, connection)
  await signInBy(browser, acme, connection)
  t.match(await principalIn(browser), { claims: { email_verified: true } })
  await one.auth.connections.update(connection.id, { clientSecret: 'another secret' })
  t.match((await signInBy(new Browser(two), acme, connection)).json(), { code: 'provider_error' })
  await one.auth.connections.remove(connection.id)
  t.equal((await browser.get('/private')).statusCode, 401)
  t.equal((await two.inject(connection.loginPath)).statusCode, 404)
})

onEach('a logout at the provider of a connection ends its sessions here, those of other connections not', async (t, store) => {
  const { tenants: [acme, other] } = await startTenants(t)
  const { app } = await startConnectionApp(t, { store })
  const [first, second] = [await connect(app, acme), await connect(app, other)]
  const [ada, eve] = [new Browser(app), new Browser(app)]
  await signInBy(ada, acme, first)
  await signInBy(eve, other, second)
  const send = async (path: string, token: string) => app.inject({
    method: 'POST', url: new URL(path).pathname, headers: { 'content-type': 'application/x-www-form-urlencoded' }, payload: `logout_token=${token}`
  })
  await acme.idp.tellOfLogout('ada')
  const [token = ''] = acme.logoutTokens

  t.match(await send(second.backChannelLogoutUri, token), { statusCode: 400 }, 'of the provider of another customer')
  t.match(await send(second.backChannelLogoutUri.replace(second.id, 'x'), token), { statusCode: 400 })
  t.not(await userIdIn(ada), null)
  t.match(await send(first.backChannelLogoutUri, token), { statusCode: 200, body: '' })

  t.equal(await userIdIn(ada), null)
  t.not(await userIdIn(eve), null)
})

t.test('the application asks the provider of a connection for more by signInUrl', async t => {
  const { tenants: [acme] } = await startTenants(t)
  const { app } = await startConnectionApp(t)
  const connection = await connect(app, acme)
  const url = app.auth.signInUrl(connection.provider, { loginHint: 'ada@example.com', next: '/home' })
  const browser = new Browser(app)

  t.match((await browser.get(url)).headers.location, 'login_hint=ada%40example.com')
  t.match(await signInBy(browser, acme, { loginPath: url }), { statusCode: 302, headers: { location: '/home' } })
  const { auth } = await startApp(t)
  t.throws(() => auth.signInUrl(connection.provider, {}), OptionsError)
})

t.test('the second factor of a customer stands for none of the application, unless the option says so', async t => {
  const { tenants: [acme] } = await startTenants(t)
  const codeOf = async (connections?: boolean): Promise<string | undefined> => {
    const secondFactor = new SecondFactor({ issuer: 'Shop', required: () => true, trusts: () => true, connections })
    const { app } = await startConnectionApp(t, { secondFactor, store: new SqlAuthStore(':memory:') })
    const connection = await connect(app, acme)
    const browser = new Browser(app)
    const { headers: { location } } = await browser.get(connection.loginPath)
    const { pathname, search } = await acme.idp.authorize(String(location))
    const answer = await browser.get(pathname + search)
    return answer.statusCode === 302 ? undefined : answer.json().code
  }

  t.equal(await codeOf(), 'second_factor_required')
  t.equal(await codeOf(true), undefined)
})
