import { join } from 'node:path'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import { localProvider } from '../../../test/helpers/app.js'
import { eventsOf } from '../../../test/helpers/audit-events.js'
import { advanceClock } from '../../../test/helpers/clock.js'
import {
  ADA, Client, HTML, REDIRECT, RESOURCE, type Tokens, ask, decide, answerOf, send, signedIn, startServer
} from '../../../test/helpers/oauth-app.js'
import { type AuthPluginOptions, SqlAuthStore } from '../../index.js'
import type { OAuthServerOptions } from '../../oauth-server.js'
import { mailbox } from '../../testing.js'

const TOKEN = '/auth/oauth/token'
const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000]

/** An application, a client, and the code that Ada has allowed it. */
async function withCode (t: Test, options: Partial<OAuthServerOptions> = {}, plugin: AuthPluginOptions = {}) {
  const app = await startServer(t, options, plugin)
  const browser = await signedIn(app)
  const client = new Client(app)
  const code = (await client.authorize(browser)).get('code') ?? ''
  return { app, browser, client, code }
}

async function connected (t: Test, options: Partial<OAuthServerOptions> = {}, plugin: AuthPluginOptions = {}) {
  const { app, browser, client, code } = await withCode(t, options, plugin)
  return { app, browser, client, code, tokens: (await client.redeem(code)).json<Tokens>() }
}

/** Each answer of the endpoints is for its client alone, and for scripts of any origin. */
function isAnswer (t: Test, answer: LightMyRequestResponse, status: number, error?: string): void {
  const { headers } = answer
  t.equal(answer.statusCode, status, answer.body)
  t.match(headers['cache-control'], /no-store/)
  t.equal(headers['access-control-allow-origin'], '*')
  t.strictSame([headers['set-cookie'], headers['access-control-allow-credentials'], headers.location], [undefined, undefined, undefined])
  if (error === undefined) return
  t.match(headers['content-type'], /^application\/json/)
  const body = answer.json<Record<string, unknown>>()
  t.strictSame([Object.keys(body).sort(), body.error], [['error', 'error_description'], error], answer.body)
}

const grantsOf = async (app: FastifyInstance) => app.auth.grants(String((await app.auth.findUser({ email: ADA.email }))?.userId))

t.test('what is wrong with a token request is told as RFC 6749 says', async t => {
  const app = await startServer(t)
  const fields = { client_id: 'assistant', grant_type: 'authorization_code', code: 'x' }
  const refused = async (given: Record<string, string>, status: number, error: string) =>
    t.test(`${JSON.stringify(given)}: ${error}`, async t => isAnswer(t, await send(app, TOKEN, given), status, error))
  await refused({}, 401, 'invalid_client')
  await refused({ ...fields, client_id: 'nobody' }, 401, 'invalid_client')
  await refused({ client_id: 'assistant' }, 400, 'invalid_request')
  await refused({ ...fields, grant_type: 'password' }, 400, 'unsupported_grant_type')
  await refused({ ...fields, grant_type: 'constructor' }, 400, 'unsupported_grant_type')
  await refused({ ...fields, grant_type: 'urn:ietf:params:oauth:grant-type:device_code' }, 400, 'unsupported_grant_type')
  await refused(fields, 400, 'invalid_grant')
  await refused({ ...fields, grant_type: 'refresh_token' }, 400, 'invalid_grant')
  await refused({ ...fields, grant_type: 'refresh_token', refresh_token: 'x' }, 400, 'invalid_grant')

  const request = (payload: string, headers: Record<string, string>) =>
    app.inject({ method: 'POST', url: TOKEN, headers, payload })
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  for (const [payload, headers, status, error] of [
    ['client_id=assistant&grant_type=refresh_token&grant_type=refresh_token', form, 400, 'invalid_request'],
    ['client_id=assistant&client_id=assistant', form, 400, 'invalid_request'],
    [JSON.stringify({ client_id: ['assistant'] }), { 'content-type': 'application/json' }, 400, 'invalid_request'],
    ['{', { 'content-type': 'application/json' }, 400, 'invalid_request'],
    ['client_id=assistant', { 'content-type': 'text/plain' }, 400, 'invalid_request'],
    ['<x/>', { 'content-type': 'application/xml' }, 400, 'invalid_request'],
    [`client_id=${'x'.repeat(2_000_000)}`, form, 400, 'invalid_request']
  ] as const) isAnswer(t, await request(payload, headers), status, error)
  const basic = await request('client_id=assistant&grant_type=refresh_token', { ...form, authorization: 'Basic YXNzaXN0YW50Og==' })
  isAnswer(t, basic, 401, 'invalid_client')
  t.match(basic.headers['www-authenticate'], /^Basic /)
})

t.test('an unknown client is told so with 401, also after a restart of the server', async t => {
  const file = join(t.testdir(), 'auth.db')
  const client = { client_id: 'assistant', client_name: 'Assistant', redirect_uris: [REDIRECT] }
  const { tokens } = await connected(t, { clients: [client] }, { store: new SqlAuthStore(file) })
  const again = await startServer(t, { clients: [{ ...client, client_id: 'another' }] }, { store: new SqlAuthStore(file) })
  isAnswer(t, await new Client(again).refresh(tokens.refresh_token), 401, 'invalid_client')
  const back = await startServer(t, { clients: [client] }, { store: new SqlAuthStore(file) })
  isAnswer(t, await new Client(back).refresh(tokens.refresh_token), 200)
})

t.test('a client that asks too often is told when to come back', async t => {
  const app = await startServer(t, {}, { rateLimit: { token: 2 } })
  const client = new Client(app)
  await client.refresh('x')
  await client.refresh('x')
  const limited = await client.refresh('x')
  isAnswer(t, limited, 429, 'temporarily_unavailable')
  t.match(limited.headers['retry-after'], /^\d+$/)
})

t.test('a database that is away is no fault of the token', async t => {
  const store = new SqlAuthStore(join(t.testdir(), 'auth.db'))
  const { client, tokens } = await connected(t, {}, { store })
  await store.close()
  const answer = await client.refresh(tokens.refresh_token)
  isAnswer(t, answer, 503, 'temporarily_unavailable')
})

t.test('attack 179: a code is taken before anything of it is compared', async t => {
  const { app, client } = await withCode(t)
  const browser = await signedIn(app)
  const verifier = 'v'.repeat(43)
  for (const [fields, thief] of [
    [{ code_verifier: verifier }, 'assistant'],
    [{ code_verifier: '' }, 'assistant'],
    [{ redirect_uri: 'http://127.0.0.1/callback' }, 'assistant'],
    [{}, 'other']
  ] as const) {
    const code = (await client.authorize(browser)).get('code') ?? ''
    const other = new Client(app, thief)
    other.verifier = client.verifier
    isAnswer(t, await other.redeem(code, fields), 400, 'invalid_grant')
    isAnswer(t, await client.redeem(code), 400, 'invalid_grant')
  }
})

t.test('a code whose redirect URI is not said again is good: its challenge binds it (OAuth 2.1)', async t => {
  const { client, code } = await withCode(t)
  isAnswer(t, await client.token({ grant_type: 'authorization_code', code, code_verifier: client.verifier }), 200)
})

t.test('attack 179: the second use of a code ends its grant only with the right client and verifier', async t => {
  const { app, client, code, tokens } = await connected(t)
  const ended = eventsOf(t, 'grant-ended')
  const thief = new Client(app)
  thief.verifier = 'v'.repeat(43)
  isAnswer(t, await thief.redeem(code), 400, 'invalid_grant')
  const other = new Client(app, 'other')
  other.verifier = client.verifier
  isAnswer(t, await other.redeem(code), 400, 'invalid_grant')
  t.equal((await ask(app, tokens.access_token)).statusCode, 200)
  t.strictSame(ended, [])

  isAnswer(t, await client.redeem(code), 400, 'invalid_grant')
  t.equal((await ask(app, tokens.access_token)).statusCode, 401)
  isAnswer(t, await client.refresh(tokens.refresh_token), 400, 'invalid_grant')
  t.match(ended, [{ clientId: 'assistant' }])
})

t.test('attack 179: a stolen code without its verifier ends nothing: the next click gives a code that is good', async t => {
  const app = await startServer(t)
  const browser = await signedIn(app)
  const client = new Client(app)
  const page = await browser.get(client.request(), HTML)
  const stolen = answerOf(await decide(browser, page)).get('code') ?? ''
  const thief = new Client(app)
  thief.verifier = 'v'.repeat(43)
  const ended = eventsOf(t, 'grant-ended')
  isAnswer(t, await thief.redeem(stolen), 400, 'invalid_grant')
  isAnswer(t, await client.redeem(stolen), 400, 'invalid_grant')
  t.strictSame(ended, [], 'there was nothing to end')
  const next = answerOf(await decide(browser, page)).get('code') ?? ''
  isAnswer(t, await client.redeem(next), 200)
})

t.test('attack 179: a code is good for a minute', async t => {
  const { client, code } = await withCode(t)
  advanceClock(t, MINUTE + 1000)
  isAnswer(t, await client.redeem(code), 400, 'invalid_grant')
})

t.test('a second click makes another code of the same grant, and the first is void', async t => {
  const app = await startServer(t)
  const browser = await signedIn(app)
  const client = new Client(app)
  const page = await browser.get(client.request(), HTML)
  const [first = '', second = ''] = [await decide(browser, page), await decide(browser, page)].map(answer => answerOf(answer).get('code') ?? '')
  isAnswer(t, await client.redeem(first), 400, 'invalid_grant')
  isAnswer(t, await client.redeem(second), 200)
  t.equal((await grantsOf(app)).length, 1)
  t.equal((await browser.post('/auth/oauth/authorize', { waiting: 'x', seen: 'x', decision: 'allow' })).statusCode, 400)
})

t.test('attack 182: the resource of a token request is that of the grant, or none', async t => {
  const { client, code } = await withCode(t)
  isAnswer(t, await client.redeem(code, { resource: `${RESOURCE}/` }), 400, 'invalid_target')
  const { client: other, tokens } = await connected(t)
  isAnswer(t, await other.refresh(tokens.refresh_token, { resource: 'https://app.example' }), 400, 'invalid_target')
  isAnswer(t, await other.refresh(tokens.refresh_token, { resource: RESOURCE }), 200)
  isAnswer(t, await other.refresh(tokens.refresh_token), 200)
})

t.test('unknown scopes, offline_access and none at all are no error', async t => {
  const app = await startServer(t)
  const browser = await signedIn(app)
  for (const [scope, given] of [
    ['unknown offline_access', 'notes:read notes:write'],
    ['', 'notes:read notes:write'],
    ['notes:read offline_access', 'notes:read']
  ] as const) {
    const client = new Client(app)
    const answer = await client.redeem((await client.authorize(browser, { scope })).get('code') ?? '')
    t.equal(answer.json<Tokens>().scope, given)
    t.equal((await client.refresh(answer.json<Tokens>().refresh_token, { scope: 'unknown' })).json<Tokens>().scope, given)
  }
  const client = new Client(app)
  const { refresh_token: token } = (await client.redeem((await client.authorize(browser, { scope: '' })).get('code') ?? '')).json<Tokens>()
  const narrowed = (await client.refresh(token, { scope: 'notes:write' })).json<Tokens>()
  t.equal(narrowed.scope, 'notes:write')
  t.equal((await ask(app, narrowed.access_token)).statusCode, 403)
})

t.test('an answer has a new refresh token each time, and what expires says when', async t => {
  const { app, client, tokens } = await connected(t)
  const next = await client.refresh(tokens.refresh_token)
  isAnswer(t, next, 200)
  t.strictSame(Object.keys(next.json()).sort(), ['access_token', 'expires_in', 'refresh_token', 'scope', 'token_type'])
  t.equal(new Set([tokens, next.json<Tokens>()].flatMap(each => [each.access_token, each.refresh_token])).size, 4)
  advanceClock(t, 10 * MINUTE)
  t.equal((await ask(app, tokens.access_token)).statusCode, 401)
  t.equal((await ask(app, tokens.refresh_token)).statusCode, 401)
})

t.test('attack 180: a refresh token of one client is of no use to another', async t => {
  const { app, client, tokens } = await connected(t)
  const replayed = eventsOf(t, 'token-replayed')
  isAnswer(t, await new Client(app, 'other').refresh(tokens.refresh_token), 400, 'invalid_grant')
  isAnswer(t, await new Client(app, 'other').token({ grant_type: 'refresh_token', refresh_token: tokens.access_token }), 400, 'invalid_grant')
  isAnswer(t, await client.refresh(tokens.refresh_token), 200)
  t.strictSame(replayed, [])
})

t.test('attack 180: a refresh token that is sent again after an hour is refused and audited, and the grant lives on', async t => {
  const { app, client, tokens } = await connected(t)
  const next = (await client.refresh(tokens.refresh_token)).json<Tokens>()
  const replayed = eventsOf(t, 'token-replayed')
  advanceClock(t, HOUR)
  isAnswer(t, await client.refresh(tokens.refresh_token), 400, 'invalid_grant')
  isAnswer(t, await client.refresh(tokens.refresh_token), 400, 'invalid_grant')
  t.match(replayed, [{ clientId: 'assistant' }, { clientId: 'assistant' }])
  const last = await client.refresh(next.refresh_token)
  isAnswer(t, last, 200)
  t.equal((await ask(app, last.json<Tokens>().access_token)).statusCode, 200)
})

t.test('attack 180: the user is told of a replay by mail, once a day', async t => {
  const mails = mailbox()
  const app = await startServer(t, {}, { local: localProvider({ sendMail: mails.sendMail }) })
  await app.auth.createUser({ ...ADA, emailVerified: true })
  const client = new Client(app)
  const tokens = await client.connect(await signedIn(app))
  const next = (await client.refresh(tokens.refresh_token)).json<Tokens>()
  await client.refresh(next.refresh_token)
  const replay = async (): Promise<void> => {
    isAnswer(t, await client.refresh(tokens.refresh_token), 400, 'invalid_grant')
    await app.auth.mailsSent()
  }
  await Promise.all(Array.from({ length: 5 }, replay))
  advanceClock(t, 23 * HOUR)
  await replay()
  const notices = () => mails.all.filter(({ kind }) => kind === 'token-replayed')
  t.match(notices(), [{ to: ADA.email }])
  advanceClock(t, 25 * HOUR)
  await replay()
  t.equal(notices().length, 2)
})

t.test("attack 180: with replays: 'end-grant' it ends the grant", async t => {
  const { app, client, tokens } = await connected(t, { replays: 'end-grant' })
  const next = (await client.refresh(tokens.refresh_token)).json<Tokens>()
  isAnswer(t, await client.refresh(tokens.refresh_token), 200)
  advanceClock(t, 11 * MINUTE)
  const ended = eventsOf(t, 'grant-ended')
  isAnswer(t, await client.refresh(tokens.refresh_token), 400, 'invalid_grant')
  isAnswer(t, await client.refresh(next.refresh_token), 400, 'invalid_grant')
  t.match(ended, [{ clientId: 'assistant' }])
  t.strictSame(await grantsOf(app), [])
})

t.test('a refresh token that nobody used for thirty days is refused without an alarm', async t => {
  const { client, tokens } = await connected(t, { replays: 'end-grant' })
  const replayed = eventsOf(t, 'token-replayed')
  advanceClock(t, 30 * DAY)
  isAnswer(t, await client.refresh(tokens.refresh_token), 400, 'invalid_grant')
  t.strictSame(replayed, [])
})

t.test('what is not known is revoked with 200', async t => {
  const { app, client, tokens } = await connected(t)
  const revoke = async (id: string, token: Record<string, string>) => send(app, '/auth/oauth/revoke', { client_id: id, ...token })
  isAnswer(t, await revoke('assistant', {}), 200)
  for (const token of ['', 'x', `${tokens.refresh_token}x`, `srt_${'x'.repeat(67)}`, `${tokens.refresh_token.slice(0, 28)}${'x'.repeat(43)}`]) {
    isAnswer(t, await revoke('assistant', { token }), 200)
  }
  isAnswer(t, await revoke('other', { token: tokens.refresh_token }), 200)
  isAnswer(t, await revoke('nobody', { token: tokens.refresh_token }), 401, 'invalid_client')
  t.equal((await ask(app, tokens.access_token)).statusCode, 200)
  isAnswer(t, await client.refresh(tokens.refresh_token), 200)
})

t.test('an access token is revoked alone, a refresh token with its grant', async t => {
  const { app, client, tokens } = await connected(t)
  const next = (await client.refresh(tokens.refresh_token)).json<Tokens>()
  const revoke = async (token: string) => isAnswer(t, await send(app, '/auth/oauth/revoke', { client_id: 'assistant', token, token_type_hint: 'x' }), 200)
  await revoke(tokens.access_token)
  t.equal((await ask(app, tokens.access_token)).statusCode, 401)
  t.equal((await ask(app, next.access_token)).statusCode, 200)

  const ended = eventsOf(t, 'grant-ended')
  await revoke(next.refresh_token)
  t.equal((await ask(app, next.access_token)).statusCode, 401)
  isAnswer(t, await client.refresh(next.refresh_token), 400, 'invalid_grant')
  t.match(ended, [{ clientId: 'assistant' }])
  await revoke(next.refresh_token)
})

t.test('scripts of any origin may ask before they send', async t => {
  const app = await startServer(t)
  for (const path of ['token', 'revoke']) {
    const headers = { origin: 'https://elsewhere.example', 'access-control-request-method': 'POST', 'access-control-request-headers': 'mcp-protocol-version' }
    const answer = await app.inject({ method: 'OPTIONS', url: `/auth/oauth/${path}`, headers })
    t.match([answer.statusCode, answer.headers['access-control-allow-origin']], [204, '*'])
    t.match(answer.headers['access-control-allow-headers'], /mcp-protocol-version/)
  }
})

t.test('a cookie of a signed-in user says nothing to the endpoints', async t => {
  const { app, browser, client, code } = await withCode(t)
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const answer = await app.inject({
    method: 'POST',
    url: TOKEN,
    headers: { cookie, 'content-type': 'application/x-www-form-urlencoded', origin: 'https://elsewhere.example', 'sec-fetch-site': 'cross-site' },
    payload: new URLSearchParams({ grant_type: 'authorization_code', client_id: 'assistant', code, code_verifier: client.verifier }).toString()
  })
  isAnswer(t, answer, 200)
})

t.test('no code, token or verifier is in the log or in an audit event', async t => {
  const lines: string[] = []
  const events = (['grant-given', 'grant-ended', 'token-replayed'] as const).map(name => eventsOf(t, name))
  const app = await startServer(t, {}, {}, { logger: { level: 'trace', stream: { write: (line: string) => { lines.push(line) } } } })
  const browser = await signedIn(app)
  const client = new Client(app)
  const code = (await client.authorize(browser)).get('code') ?? ''
  const tokens = (await client.redeem(code)).json<Tokens>()
  const next = (await client.refresh(tokens.refresh_token)).json<Tokens>()
  const last = (await client.refresh(next.refresh_token)).json<Tokens>()
  await client.refresh(tokens.refresh_token)
  await ask(app, last.access_token)
  await ask(app, `${last.access_token.slice(0, -1)}x`)
  await client.redeem(code)
  await client.redeem(`${code.slice(0, -1)}x`)
  t.strictSame(events.map(({ length }) => length), [1, 1, 1])
  t.ok(lines.length > 10)
  const written = [...lines, JSON.stringify(events, (_, value) => value === app ? undefined : value?.raw === undefined ? value : undefined)].join('\n')
  const secrets = [tokens, next, last].flatMap(each => [each.access_token, each.refresh_token])
  for (const secret of [...secrets.map(text => text.slice(28)), code.slice(28), client.verifier]) t.notOk(written.includes(secret))
})
