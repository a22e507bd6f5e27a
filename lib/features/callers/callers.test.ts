import Sqlite from 'better-sqlite3'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import t, { type Test } from 'tap'
import { eventsOf } from '../../../test/helpers/audit-events.js'
import { ISSUER, ADA, Client, RESOURCE, send, signedIn, startServer } from '../../../test/helpers/oauth-app.js'
import type { Browser } from '../../../test/helpers/browser.js'
import { ApiKeys } from '../../api-keys.js'
import { type AuthPluginOptions, SqlAuthStore } from '../../index.js'
import type { CallerKind } from './callers.js'

const SCOPES = { 'notes:read': 'Read your notes', introspect: 'Check tokens' }
const KINDS: readonly CallerKind[] = ['session', 'token', 'key', 'grant']

interface Setup {
  app: FastifyInstance
  browser: Browser
  userId: string
  /** The headers of each kind of caller, all of Ada but `job`. */
  headers: Record<CallerKind | 'job', Record<string, string>>
}

async function start (t: Test, options: AuthPluginOptions = {}, keys: { browsers?: boolean } = {}): Promise<Setup> {
  const apiKeys = new ApiKeys({ prefix: 'shop', scopes: SCOPES, ...keys })
  const app = await startServer(t, {}, { apiKeys, loginPage: '/login', ...options }, {}, app => {
    const { requireCaller, anyOf, requireUser, requireRecent } = app.auth
    const tell = async (request: FastifyRequest) => app.auth.caller(request)
    for (const kind of KINDS) app.get(`/${kind}`, { preHandler: requireCaller({ by: [kind] }) }, tell)
    app.get('/all', { preHandler: requireCaller({ by: KINDS, scopes: ['notes:read'] }) }, tell)
    app.get('/write', { preHandler: requireCaller({ by: KINDS, scopes: ['notes:write'] }) }, async () => 'written')
    app.get('/any', { preHandler: anyOf(requireCaller({ by: ['key'] }), requireUser) }, async request => request.token?.sub ?? null)
    app.get('/recent', { preHandler: [requireCaller({ by: KINDS }), requireRecent({ within: 600 })] }, async () => 'recent')
    app.get('/none', tell)
    app.post('/grant', { preHandler: requireCaller({ by: ['key'] }) }, async request =>
      app.auth.grant(String((await app.auth.findUser({ email: ADA.email }))?.userId), { plan: 'gold' }, { request }))
  })
  const browser = await signedIn(app)
  const userId = String((await app.auth.findUser({ email: ADA.email }))?.userId)
  await app.auth.grant(userId, { role: 'admin' })
  const { token } = (await browser.post('/auth/local/token')).json<{ token: string }>()
  const { key } = await app.auth.createKey({ userId, name: 'Laptop', scopes: ['notes:read'] }, { actor: 'test' })
  const job = await app.auth.createKey({ owner: 'job:nightly', name: 'Nightly', scopes: ['notes:read', 'introspect'] }, { actor: 'test' })
  const { access_token: access } = await new Client(app).connect(browser)
  const bearer = (text: string) => ({ authorization: `Bearer ${text}` })
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const headers = { session: { cookie }, token: bearer(token), key: bearer(key), grant: bearer(access), job: bearer(job.key) }
  return { app, browser, userId, headers }
}

t.test('a guard lets the callers pass that it names, and says who they are', async t => {
  const { app, userId, headers } = await start(t)
  const claims = { sub: userId, email: ADA.email, role: 'admin' }
  const expected = {
    session: { by: 'session', id: `user:${userId}`, userId, scopes: null, claims, authentication: { secondFactor: false } },
    token: { by: 'token', id: `user:${userId}`, userId, scopes: [], claims, authentication: { secondFactor: false } },
    key: { by: 'key', id: /^key:\w{12}$/, userId, owner: null, scopes: ['notes:read'], claims, authentication: null },
    grant: { by: 'grant', id: /^grant:/, userId, clientId: 'assistant', scopes: ['notes:read'], claims, authentication: { secondFactor: false } },
    job: { by: 'key', userId: null, owner: 'job:nightly', scopes: ['notes:read', 'introspect'], claims: { sub: 'job:nightly' } }
  }
  for (const [name, caller] of Object.entries(expected)) {
    const own = headers[name as keyof typeof headers]
    for (const kind of KINDS) {
      const answer = await app.inject({ url: `/${kind}`, headers: own })
      if (kind === caller.by) t.match([answer.statusCode, answer.json()], [200, caller], `${name} at /${kind}`)
      else t.equal(answer.statusCode, 401, `${name} at /${kind}`)
    }
  }
})

t.test('a scope is asked of all but sessions', async t => {
  const { app, headers } = await start(t)
  for (const [name, status] of Object.entries({ session: 200, token: 403, key: 200, grant: 200, job: 200 })) {
    const answer = await app.inject({ url: '/all', headers: headers[name as keyof typeof headers] })
    t.equal(answer.statusCode, status, name)
    if (status === 403) t.match(answer.headers['www-authenticate'], 'Bearer error="insufficient_scope", scope="notes:read notes:write"')
  }
  const written = await app.inject({ url: '/write', headers: headers.key })
  t.match([written.statusCode, written.json()], [403, { code: 'insufficient_scope' }])
  t.equal((await app.inject({ url: '/write', headers: headers.session })).statusCode, 200)
})

t.test('what is refused is told how to come, and without a token there is no error to name', async t => {
  const { app } = await start(t)
  const metadata = `resource_metadata="${ISSUER}/.well-known/oauth-protected-resource/mcp"`
  const challenge = `scope="notes:read notes:write", ${metadata}`
  const asked = async (url: string, headers = {}) => {
    const answer = await app.inject({ url, headers: { accept: 'application/json', ...headers } })
    return [answer.statusCode, answer.json<{ code: string }>().code, answer.headers['www-authenticate']]
  }
  t.strictSame(await asked('/all'), [401, 'unauthenticated', `Bearer ${challenge}`])
  t.strictSame(await asked('/grant', { authorization: 'Basic YTpi' }), [401, 'invalid_token', `Bearer ${challenge}`])
  t.strictSame(await asked('/key'), [401, 'invalid_token', 'Bearer'])
  t.strictSame(await asked('/key', { authorization: 'Basic YTpi' }), [401, 'invalid_token', 'Bearer'])
  t.strictSame(await asked('/key', { authorization: 'Bearer nothing' }), [401, 'invalid_token', 'Bearer error="invalid_token"'])
  t.strictSame(await asked('/session'), [401, 'unauthenticated', undefined])
  t.strictSame(await asked('/none'), [401, 'unauthenticated', undefined])
  const page = await app.inject({ url: '/all', headers: { accept: 'text/html', 'sec-fetch-mode': 'navigate' } })
  t.match([page.statusCode, page.headers.location], [302, /^\/login/])
})

t.test('attack 190: a request with a header is judged by that alone, whatever cookie it has', async t => {
  const { app, headers: { session, key, job } } = await start(t)
  for (const authorization of ['Bearer nothing', 'Bearer shop_nothing', 'Basic YTpi', 'Bearer', '']) {
    t.equal((await app.inject({ url: '/all', headers: { ...session, authorization } })).statusCode, 401, authorization)
  }
  t.match((await app.inject({ url: '/all', headers: { ...session, ...job } })).json(), { owner: 'job:nightly', userId: null })
  const recent = async (headers: object) => (await app.inject({ url: '/recent', headers: { ...headers } })).statusCode
  t.equal(await recent(session), 200)
  t.equal(await recent({ ...session, ...key }), 401, 'the session of a cookie does not speak for a key')
  t.equal((await app.inject({ url: '/any', headers: session })).body, 'null')
  t.equal((await app.inject({ url: '/any', headers: job })).body, 'job:nightly')
})

t.test('attack 190: an event by a key names its owner, not the user of a cookie', async t => {
  const { app, headers: { session, job } } = await start(t)
  const events = eventsOf(t, 'grant')
  await app.inject({ method: 'POST', url: '/grant', headers: { ...session, ...job } })
  t.match(events, [{ actor: 'job:nightly' }])
})

t.test('attack 188: a page of a browser sends no key, unless the option says so', async t => {
  const { app, headers: { key } } = await start(t)
  const refused = await app.inject({ url: '/key', headers: { ...key, origin: ISSUER } })
  t.match([refused.statusCode, refused.json()], [403, { code: 'cross_origin' }])
  const other = await start(t, {}, { browsers: true })
  t.equal((await other.app.inject({ url: '/key', headers: { ...other.headers.key, origin: ISSUER } })).statusCode, 200)
})

t.test('each caller ends with what it stands on', async t => {
  const { app, userId, headers } = await start(t)
  const statuses = async () => Promise.all(KINDS.map(async kind => (await app.inject({ url: `/${kind}`, headers: headers[kind] })).statusCode))
  t.strictSame(await statuses(), [200, 200, 200, 200])
  await app.auth.withdraw(userId, ['role'])
  for (const kind of KINDS) t.notOk('role' in (await app.inject({ url: `/${kind}`, headers: headers[kind] })).json().claims, kind)
  await app.auth.signOutEverywhere(userId)
  t.strictSame(await statuses(), [401, 401, 200, 401])
  await app.auth.block(userId)
  t.strictSame(await statuses(), [401, 401, 401, 401])
  await app.auth.unblock(userId)
  t.strictSame(await statuses(), [401, 401, 200, 401])
  await app.auth.deleteUser(userId)
  t.strictSame(await statuses(), [401, 401, 401, 401])
})

t.test('each caller is found by one statement, and a typo by none', async t => {
  const statements: string[] = []
  const database = new Sqlite(':memory:')
  t.teardown(() => database.close())
  const store = new SqlAuthStore(drizzle(database, { logger: { logQuery: statement => { statements.push(statement) } } }))
  const { app, headers } = await start(t, { store })
  const asked = async (kind: CallerKind, headers: Record<string, string>) => {
    await app.inject({ url: `/${kind}`, headers })
    statements.length = 0
    const { statusCode } = await app.inject({ url: `/${kind}`, headers })
    return [statusCode, statements.length]
  }
  for (const kind of KINDS) t.strictSame(await asked(kind, headers[kind]), [200, 1], kind)
  const typo = headers.key.authorization?.replace(/.$/, last => last === 'A' ? 'B' : 'A') ?? ''
  t.strictSame(await asked('key', { authorization: typo }), [401, 0])
})

t.test('attack 191: guard and router agree about a path: what is spelled otherwise is another route or the same guard', async t => {
  const { app, headers: { key } } = await start(t)
  for (const url of ['//key', '/key/', '/KEY', '/%6bey', '/key%2f', '/./key', '/key/../key', '/key;a', '/key.', '/key?x=/none', '/%2e/key']) {
    const visitor = await app.inject({ url })
    t.ok([401, 404].includes(visitor.statusCode), `${url}: ${visitor.statusCode}`)
    const caller = await app.inject({ url, headers: key })
    t.equal(caller.statusCode, visitor.statusCode === 401 ? 200 : 404, url)
  }
})

t.test('what a guard is told wrong is told at once', async t => {
  const { app } = await start(t)
  const { requireCaller } = app.auth
  const wrong = [
    {}, { by: [] }, { by: ['cookie'] }, { by: ['key'], scopes: ['a b'] }, { by: ['grant'], resource: 'https://app.example/x' }, { by: ['key'], scope: 'a' }
  ]
  for (const use of wrong) t.throws(() => requireCaller(use as never), { name: 'OptionsError' }, JSON.stringify(use))
  const bare = await startServer(t, {}, { oauthServer: undefined })
  t.throws(() => bare.auth.requireCaller({ by: ['key'] }), /needs the option apiKeys/)
  t.throws(() => bare.auth.requireCaller({ by: ['grant'] }), /needs the option oauthServer/)
})

t.test('a key of a user does not introspect', async t => {
  const { app, userId } = await start(t)
  await t.rejects(app.auth.createKey({ userId, name: 'Laptop', scopes: ['introspect'] }, { actor: 'test' }), { code: 'invalid_request' })
})

t.test('attack 191: a resource server of another language asks what a token allows', async t => {
  const { app, userId, headers: { key, job, grant } } = await start(t)
  const token = grant.authorization?.slice('Bearer '.length) ?? ''
  const ask = async (fields: Record<string, string>, headers: Record<string, string> = {}) => app.inject({
    method: 'POST',
    url: '/auth/oauth/introspect',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    payload: new URLSearchParams(fields).toString()
  })
  const active = await ask({ token, token_type_hint: 'access_token' }, job)
  t.match(active.headers['cache-control'], /no-store/)
  t.equal(active.headers['access-control-allow-origin'], undefined)
  t.match(active.json(), {
    active: true, token_type: 'Bearer', iss: ISSUER, aud: RESOURCE, sub: userId, client_id: 'assistant', scope: 'notes:read', exp: Number, iat: Number
  })
  for (const other of ['', 'x', `${token}x`, key.authorization?.slice(7) ?? '']) t.strictSame((await ask({ token: other }, job)).json(), { active: false })
  t.strictSame((await ask({}, job)).json(), { active: false })

  const refused = async (headers: Record<string, string>) => {
    const { statusCode, headers: { 'www-authenticate': challenge }, body } = await ask({ token }, headers)
    return [statusCode, challenge, JSON.parse(body).error]
  }
  t.strictSame(await refused({}), [401, 'Bearer', 'invalid_token'])
  t.strictSame(await refused(grant), [401, 'Bearer', 'invalid_token'], 'a token introspects nothing')
  t.strictSame(await refused(key), [403, undefined, 'insufficient_scope'])
  const metadata = (await app.inject('/.well-known/oauth-authorization-server')).json()
  t.match(metadata, { introspection_endpoint: `${ISSUER}/auth/oauth/introspect`, introspection_endpoint_auth_methods_supported: ['Bearer'] })

  await app.auth.signOutEverywhere(userId)
  t.strictSame((await ask({ token }, job)).json(), { active: false })
})

t.test('without a scope introspect there is no such endpoint', async t => {
  const app = await startServer(t, {}, { apiKeys: new ApiKeys({ prefix: 'shop', scopes: { read: 'Read' } }) })
  t.equal((await send(app, '/auth/oauth/introspect', {})).statusCode, 404)
  t.notOk('introspection_endpoint' in (await app.inject('/.well-known/oauth-authorization-server')).json())
})
