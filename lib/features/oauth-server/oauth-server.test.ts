import t from 'tap'
import { eventsOf } from '../../../test/helpers/audit-events.js'
import { Browser } from '../../../test/helpers/browser.js'
import { advanceClock } from '../../../test/helpers/clock.js'
import {
  ADA, Client, HTML, ISSUER, REDIRECT, RESOURCE, type Tokens, answerOf, ask, decide, fieldsIn, signedIn, startServer
} from '../../../test/helpers/oauth-app.js'

t.test('a client is connected by the user and asks the resource for them', async t => {
  const app = await startServer(t)
  const browser = await signedIn(app)
  const client = new Client(app)

  const page = await browser.get(client.request(), HTML)
  t.equal(page.statusCode, 200, page.body)
  t.match(page.body, /Connect Assistant\?/)
  t.match(page.body, /Read your notes/)
  t.notMatch(page.body, /Change your notes/)
  t.match(page.body, /client\.example/)
  t.notMatch(page.headers['content-security-policy'], /form-action/)

  const answer = await decide(browser, page)
  t.equal(answer.statusCode, 303, answer.body)
  t.ok(answer.headers.location?.startsWith(REDIRECT))
  const parameters = answerOf(answer)
  t.strictSame([parameters.get('state'), parameters.get('iss')], [client.state, ISSUER])

  const redeemed = await client.redeem(parameters.get('code') ?? '')
  t.equal(redeemed.statusCode, 200, redeemed.body)
  t.match(redeemed.json(), { token_type: 'Bearer', expires_in: 600, scope: 'notes:read' })
  const { access_token: token, refresh_token: refresh } = redeemed.json<Tokens>()

  const asked = await ask(app, token)
  t.equal(asked.statusCode, 200, asked.body)
  const user = await app.auth.findUser({ email: ADA.email })
  t.match(asked.json(), { iss: ISSUER, sub: user?.userId, aud: RESOURCE, client_id: 'assistant', scope: 'notes:read' })

  const next = await client.refresh(refresh)
  t.equal(next.statusCode, 200, next.body)
  t.equal((await ask(app, next.json<Tokens>().access_token)).statusCode, 200)
})

t.test('a visitor signs in first, and comes back to the request', async t => {
  const app = await startServer(t)
  await signedIn(app)
  const browser = new Browser(app)
  const client = new Client(app)

  const { headers: { location = '' } } = await browser.get(client.request({ state: 'x'.repeat(2000) }), HTML)
  const next = new URL(location, ISSUER).searchParams.get('next') ?? ''
  t.match(next, /^\/auth\/oauth\/authorize\?waiting=[\w-]{24}$/)
  const signIn = await browser.submit('/auth/local/login', { ...ADA, next })
  t.equal(signIn.headers.location, next)

  const page = await browser.get(next, HTML)
  t.match(page.body, /Connect Assistant\?/)
  t.equal(answerOf(await decide(browser, page)).get('state'), 'x'.repeat(2000))
})

t.test('a request waits for ten minutes', async t => {
  const app = await startServer(t)
  const browser = await signedIn(app)
  const page = await browser.get(new Client(app).request(), HTML)
  const fields = fieldsIn(page.body)
  advanceClock(t, 10 * 60_000)
  const late = await browser.post('/auth/oauth/authorize', { ...fields, decision: 'allow' })
  t.match(late.json(), { code: 'invalid_state' })
  const expired = await browser.get(`/auth/oauth/authorize?waiting=${fields.waiting}`, HTML)
  t.equal(expired.statusCode, 400)
})

t.test('a user may refuse', async t => {
  const app = await startServer(t)
  const browser = await signedIn(app)
  const page = await browser.get(new Client(app).request(), HTML)
  t.match(answerOf(await decide(browser, page, 'deny')).get('error'), 'access_denied')
})

t.test('attack 178: a client of the owner is not asked for, unless another program could have sent the request', async t => {
  const app = await startServer(t)
  const browser = await signedIn(app)

  const own = await browser.get(new Client(app, 'own').request(), HTML)
  t.match(answerOf(own).get('code'), /^sac_/)
  const onMachine = await browser.get(new Client(app, 'own', 'http://127.0.0.1:5555/callback').request(), HTML)
  t.match(onMachine.body, /Connect Own\?/)
  t.match(onMachine.body, /program on this device/)
})

t.test('attack 181: whatever ends the sessions of a user ends their grants', async t => {
  const app = await startServer(t)
  const browser = await signedIn(app)
  const user = await app.auth.findUser({ email: ADA.email })
  const userId = String(user?.userId)
  for (const end of [
    async () => app.auth.signOutEverywhere(userId),
    async () => app.auth.block(userId).then(async () => app.auth.unblock(userId)),
    async () => app.auth.setPassword(userId, 'another horse')
      .then(async () => app.auth.setPassword(userId, ADA.password))
  ]) {
    await browser.post('/auth/local/login', ADA)
    const client = new Client(app)
    const { access_token: token, refresh_token: refresh } = await client.connect(browser)
    t.equal((await ask(app, token)).statusCode, 200)

    await end()

    const refused = await ask(app, token)
    t.equal(refused.statusCode, 401)
    t.match(refused.headers['www-authenticate'], 'error="invalid_token"')
    t.match(refused.headers['www-authenticate'], `resource_metadata="${ISSUER}/.well-known/oauth-protected-resource/mcp"`)
    const dead = await client.refresh(refresh)
    t.match([dead.statusCode, dead.json()], [400, { error: 'invalid_grant' }])
    t.strictSame(await app.auth.grants(userId), [])
  }
  const { access_token: token } = await (async () => {
    await browser.post('/auth/local/login', ADA)
    return new Client(app).connect(browser)
  })()
  await app.auth.deleteUser(userId)
  t.equal((await ask(app, token)).statusCode, 401)
})

t.test('users see the clients that they have connected, and disconnect them', async t => {
  const app = await startServer(t)
  const browser = await signedIn(app)
  const user = await app.auth.findUser({ email: ADA.email })
  const { access_token: token } = await new Client(app).connect(browser)

  const [grant] = await app.auth.grants(String(user?.userId))
  t.match(grant, { clientId: 'assistant', name: 'Assistant', resource: RESOURCE, scopes: ['notes:read'] })
  const page = await browser.get('/auth/pages/account', HTML)
  t.match(page.body, /Connected applications[^]*Assistant[^]*Read your notes[^]*Disconnect/)
  const ended = await browser.post('/auth/local/grants/end', { id: grant?.id })
  t.equal(ended.statusCode, 204, ended.body)
  t.equal((await ask(app, token)).statusCode, 401)
  t.equal((await browser.post('/auth/local/grants/end', { id: grant?.id })).statusCode, 404)
})

t.test('an application that ends a grant is named in the event, or its user is', async t => {
  const app = await startServer(t, {}, {}, {}, app => {
    app.post('/end', async request => {
      const { userId } = app.auth.user(request)
      const [grant] = await app.auth.grants(userId)
      return app.auth.endGrant(userId, String(grant?.id), { request })
    })
  })
  const browser = await signedIn(app)
  const userId = String((await app.auth.findUser({ email: ADA.email }))?.userId)
  const events = eventsOf(t, 'grant-ended')
  await new Client(app).connect(browser)
  const [grant] = await app.auth.grants(userId)
  t.equal(await app.auth.endGrant(userId, String(grant?.id), { actor: 'support' }), true)
  t.equal(await app.auth.endGrant(userId, String(grant?.id), { actor: 'support' }), false)
  await t.rejects(app.auth.endGrant(userId, String(grant?.id), { actor: '' }), { code: 'invalid_request' })
  await new Client(app).connect(browser)
  t.equal((await browser.post('/end')).body, 'true')
  t.match(events, [{ userId, clientId: 'assistant', actor: 'support' }, { userId, actor: userId, ip: String }])
})

t.test('the server and its resource say where they are', async t => {
  const app = await startServer(t)
  const server = await app.inject('/.well-known/oauth-authorization-server')
  t.match(server.json(), {
    issuer: ISSUER,
    authorization_endpoint: `${ISSUER}/auth/oauth/authorize`,
    token_endpoint: `${ISSUER}/auth/oauth/token`,
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: true
  })
  const resource = await app.inject('/.well-known/oauth-protected-resource/mcp')
  const scopes = ['notes:read', 'notes:write']
  t.match(resource.json(), { resource: RESOURCE, authorization_servers: [ISSUER], scopes_supported: scopes })
  const preflight = await app.inject({ method: 'OPTIONS', url: '/auth/oauth/token', headers: { origin: 'https://x.example' } })
  t.match([preflight.statusCode, preflight.headers['access-control-allow-headers']], [204, /mcp-protocol-version/])
})

t.test('attack 177: nothing is sent to what is not registered', async t => {
  const app = await startServer(t)
  const browser = await signedIn(app)
  for (const [client, parameters] of [
    [new Client(app, 'unknown'), {}],
    [new Client(app, 'assistant', 'https://evil.example/callback'), {}],
    [new Client(app, 'assistant', ['javascript', 'alert(1)'].join(':')), {}],
    [new Client(app, 'other', 'http://127.0.0.1:1/callback'), {}]
  ] as const) {
    for (const visitor of [browser, new Browser(app)]) {
      const answer = await visitor.get(client.request(parameters), HTML)
      t.equal(answer.statusCode, 400)
      t.equal(answer.headers.location, undefined)
      t.notMatch(answer.body, /http-equiv/)
    }
  }
  const repeated = await browser.get(`${new Client(app).request()}&state=2`, HTML)
  t.equal(repeated.statusCode, 400)
})

t.test('attack 185: what is wrong with a request is told the client, with the issuer', async t => {
  const app = await startServer(t)
  const browser = await signedIn(app)
  for (const [parameters, error] of [
    [{ response_type: 'token' }, 'unsupported_response_type'],
    [{ code_challenge_method: 'plain' }, 'invalid_request'],
    [{ code_challenge: 'short' }, 'invalid_request'],
    [{ resource: 'https://app.example/other' }, 'invalid_target'],
    [{ request: 'x' }, 'request_not_supported'],
    [{ prompt: 'none' }, 'interaction_required']
  ] as const) {
    const client = new Client(app)
    const answer = answerOf(await browser.get(client.request(parameters), HTML))
    t.strictSame([answer.get('error'), answer.get('state'), answer.get('iss')], [error, client.state, ISSUER])
  }
})

t.test('attack 178: a consent is for what its page has shown, and from there', async t => {
  const app = await startServer(t)
  const browser = await signedIn(app)
  const page = await browser.get(new Client(app).request(), HTML)
  const fields = { ...fieldsIn(page.body), decision: 'allow' }
  const foreign = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }
  const refused = await browser.submit('/auth/oauth/authorize', fields, foreign)
  t.equal(refused.statusCode, 403)
  t.equal((await browser.post('/auth/oauth/authorize', { ...fields, seen: 'x' })).json().code, 'invalid_state')

  const [first, second] = [await decide(browser, page), await decide(browser, page)].map(answerOf)
  t.not(first?.get('code'), second?.get('code'))
})

t.test('attack 182: a token is for one resource and its scopes, and a local JWT for none of them', async t => {
  const other = `${ISSUER}/other`
  const resources = Object.fromEntries([RESOURCE, other].map(url => [url, { scopes: { 'notes:read': 'Read', 'notes:write': 'Write' } }]))
  const app = await startServer(t, { resources })
  const browser = await signedIn(app)
  const client = new Client(app)
  const code = (await client.authorize(browser, { resource: other })).get('code') ?? ''
  const { access_token: token } = (await client.redeem(code)).json<Tokens>()
  t.equal((await ask(app, token)).statusCode, 401)

  const narrow = (await client.authorize(browser, { resource: RESOURCE, scope: 'notes:write' })).get('code') ?? ''
  const refused = await ask(app, (await client.redeem(narrow)).json<Tokens>().access_token)
  t.equal(refused.statusCode, 403)
  t.match(refused.headers['www-authenticate'], /insufficient_scope.*scope="notes:read notes:write"/)

  const user = await app.auth.findUser({ email: ADA.email })
  const jwt = await app.localIdp?.issueIdToken(String(user?.userId), { scope: 'notes:read' }, 60, { audience: RESOURCE })
  t.equal((await ask(app, String(jwt))).statusCode, 401)
})
