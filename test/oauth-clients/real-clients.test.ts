/** What clients that people use are known to do, each as it is on the wire. */
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import {
  Client, HTML, ISSUER, RESOURCE, answerOf, ask, decide, send, signedIn, startServer
} from '../helpers/oauth-app.js'

const SECOND = 1000
const MINUTE = 60 * SECOND

interface Connection {
  client: Client
  tokens: { access_token: string, refresh_token: string, scope: string }
}

async function connect (app: FastifyInstance, client = new Client(app)): Promise<Connection> {
  return { client, tokens: await client.connect(await signedIn(app)) }
}

/** Registers a client, and returns its id. */
async function register (app: FastifyInstance, metadata: object): Promise<string> {
  const response = await app.inject({ method: 'POST', url: '/auth/oauth/register', payload: metadata })
  return response.json().client_id
}

for (const gap of [33 * SECOND, 76 * SECOND, 7 * MINUTE + 45 * SECOND]) {
  t.test(`a second window that refreshes by the same token ${gap / SECOND} s later stays connected, and so does the first`, async t => {
    const app = await startServer(t)
    const { client, tokens } = await connect(app)
    const first = (await client.refresh(tokens.refresh_token)).json()
    advanceClock(t, gap)
    const second = await client.refresh(tokens.refresh_token)

    t.equal(second.statusCode, 200)
    for (const { refresh_token: token } of [first, second.json()]) t.equal((await client.refresh(token)).statusCode, 200)
  })
}

t.test('five windows that refresh by one token in one second all get tokens', async t => {
  const app = await startServer(t)
  const { client, tokens } = await connect(app)
  const answers = await Promise.all(Array.from({ length: 5 }, async () => client.refresh(tokens.refresh_token)))

  t.strictSame(answers.map(({ statusCode }) => statusCode), [200, 200, 200, 200, 200])
  for (const answer of answers) t.equal((await ask(app, answer.json().access_token)).statusCode, 200)
})

t.test('a refresh without a resource is for that of the grant', async t => {
  const app = await startServer(t, { resources: { [RESOURCE]: { scopes: { 'notes:read': 'Read' } }, [`${ISSUER}/api`]: { scopes: { all: 'All' } } } })
  const browser = await signedIn(app)
  const client = new Client(app)
  const code = (await client.authorize(browser, { resource: RESOURCE })).get('code') ?? ''
  const tokens = (await client.redeem(code)).json()
  const refreshed = (await client.refresh(tokens.refresh_token)).json()

  t.equal((await ask(app, refreshed.access_token)).statusCode, 200)
  t.match((await client.refresh(refreshed.refresh_token, { resource: `${ISSUER}/api` })).json(), { error: 'invalid_target' })
})

t.test('a replay after an hour is invalid_grant, upon which clients ask the user again', async t => {
  const app = await startServer(t)
  const { client, tokens } = await connect(app)
  await client.refresh(tokens.refresh_token)
  advanceClock(t, 60 * MINUTE)
  const replay = await client.refresh(tokens.refresh_token)

  t.equal(replay.statusCode, 400)
  t.match(replay.json(), { error: 'invalid_grant' })
})

t.test('a client that this server has forgotten is invalid_client with 401, upon which clients register anew', async t => {
  const app = await startServer(t, { registration: true })
  const forgotten = new Client(app, `client_${'A'.repeat(24)}`)
  const answer = await forgotten.refresh('srt_old')

  t.equal(answer.statusCode, 401)
  t.match(answer.json(), { error: 'invalid_client' })
})

t.test('a client that registers a loopback URI without a port comes back on any port, but on no other path', async t => {
  const app = await startServer(t, { registration: true })
  const browser = await signedIn(app)
  const id = await register(app, { redirect_uris: ['http://127.0.0.1/', 'http://127.0.0.1:33418/', 'https://vscode.dev/redirect'] })
  for (const uri of ['http://127.0.0.1:59656/', 'http://127.0.0.1:33418/', 'http://127.0.0.1:33419/']) {
    t.equal((await new Client(app, id, uri).connect(browser)).scope, 'notes:read', uri)
  }
  const other = await browser.get(new Client(app, id, 'http://127.0.0.1:33418/callback').request(), HTML)
  t.equal(other.statusCode, 400)
  t.match(other.body, 'The application asks to be sent the answer at an address that is not registered.')
})

t.test('a client that registers as web keeps its custom scheme with a host, where the option names the scheme', async t => {
  const app = await startServer(t, { registration: true, schemes: ['cursor'] })
  const uri = 'cursor://anysphere.cursor-mcp/oauth/callback'
  const id = await register(app, { redirect_uris: [uri, 'foo:bar'], application_type: 'web', token_endpoint_auth_method: 'client_secret_post' })
  const client = new Client(app, id, uri)
  const tokens = await client.connect(await signedIn(app))

  t.equal((await ask(app, tokens.access_token)).statusCode, 200)
})

t.test('a resource is compared with its path: without it, it is another one', async t => {
  const app = await startServer(t)
  const browser = await signedIn(app)
  const typed = async (resource: string) => answerOf(await browser.get(new Client(app).request({ resource }), HTML)).get('error')

  t.equal(await typed(ISSUER), 'invalid_target')
  t.equal(await typed(`${ISSUER}/`), 'invalid_target')
  t.equal(await typed(`${RESOURCE}/`), 'invalid_target')
  t.equal((await new Client(app).authorize(browser, { resource: RESOURCE })).get('error'), null)
})

t.test('unknown scopes and offline_access are left out, and without any it is all of the resource', async t => {
  const app = await startServer(t)
  const browser = await signedIn(app)
  const scopeFor = async (scope: string): Promise<string> => {
    const client = new Client(app)
    const code = (await client.authorize(browser, { scope })).get('code') ?? ''
    const { refresh_token: refresh, scope: granted } = (await client.redeem(code)).json()
    t.match(refresh, /^srt_/, 'a refresh token always')
    return granted
  }

  t.equal(await scopeFor('openid notes:write profile'), 'notes:write')
  t.equal(await scopeFor('notes:read offline_access'), 'notes:read')
  t.equal(await scopeFor('openid'), 'notes:read notes:write')
  t.equal(await scopeFor(''), 'notes:read notes:write')
})

t.test('a challenge names all scopes of the resource, for clients that ask once and ignore a 403', async t => {
  const app = await startServer(t)
  const { headers } = await app.inject({ method: 'POST', url: '/mcp' })

  t.equal(headers['www-authenticate'], 'Bearer scope="notes:read notes:write", ' +
    `resource_metadata="${ISSUER}/.well-known/oauth-protected-resource/mcp"`)
})

t.test('scripts of any origin may find the server and ask for tokens, with an old protocol header', async t => {
  const app = await startServer(t, { registration: true })
  const documents = ['/.well-known/oauth-authorization-server', '/.well-known/oauth-protected-resource/mcp']
  const headers = { origin: 'https://inspector.example', 'mcp-protocol-version': '2025-03-26' }
  for (const url of [...documents, '/auth/oauth/token', '/auth/oauth/register', '/auth/oauth/revoke']) {
    const preflight = await app.inject({ method: 'OPTIONS', url, headers: { ...headers, 'access-control-request-headers': 'mcp-protocol-version' } })
    t.equal(preflight.statusCode, 204, url)
    t.equal(preflight.headers['access-control-allow-origin'], '*')
    t.match(preflight.headers['access-control-allow-headers'], 'mcp-protocol-version')
  }
  for (const url of documents) {
    const { statusCode, headers: answered } = await app.inject({ url, headers })
    t.strictSame([statusCode, answered['access-control-allow-origin']], [200, '*'])
  }
  const failed = await send(app, '/auth/oauth/token', { client_id: 'nobody' })
  t.equal(failed.headers['access-control-allow-origin'], '*', 'a script can read errors, too')
})

t.test('a state of 2 KB comes back, through a sign-in as well', async t => {
  const app = await startServer(t)
  await signedIn(app)
  const state = 'a state/+='.repeat(205)
  const visitor = new Browser(app)
  const { headers: { location } } = await visitor.get(new Client(app).request({ state }), HTML)
  const next = new URL(String(location), ISSUER).searchParams.get('next') ?? ''
  t.ok(next.length < 200, next)
  await visitor.post('/auth/local/login', { email: 'ada@example.com', password: 'correct horse' })
  const answer = answerOf(await decide(visitor, await visitor.get(next, HTML)))

  t.equal(answer.get('state'), state)
})

t.test('prompt=consent asks, and prompt=none never does', async t => {
  const app = await startServer(t)
  const browser = await signedIn(app)
  const asked = async (visitor: Browser, id: string, prompt: string) => visitor.get(new Client(app, id).request({ prompt }), HTML)

  t.match((await asked(browser, 'own', 'consent')).body, 'name="decision" value="allow"')
  t.equal(answerOf(await asked(browser, 'assistant', 'none')).get('error'), 'interaction_required')
  t.match(answerOf(await asked(browser, 'own', 'none')).get('code'), /^sac_/)
})

t.test('a visitor with prompt=none gets a page, and their browser leads nobody on', async (t: Test) => {
  const app = await startServer(t)
  const { statusCode, headers, body } = await new Browser(app).get(new Client(app).request({ prompt: 'none' }), HTML)

  t.match(String(headers.location ?? ''), /^(?:\/auth\/pages\/sign-in\?|$)/)
  t.ok(statusCode < 500)
  t.notMatch(body, 'client.example')
})
