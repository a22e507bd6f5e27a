/** Attacks 220 to 225: back-channel logout, a route that ends sessions and that anyone can ask. */
import { createHmac } from 'node:crypto'
import { UnsecuredJWT } from 'jose'
import t, { type Test } from 'tap'
import { AppleProvider, Auth0Provider, GoogleProvider, MicrosoftProvider, OidcProvider } from '../../lib/index.js'
import { signed, signingKey } from '../fakes/signing-keys.js'
import { json } from '../fakes/lies.js'
import { userIdIn } from '../helpers/app.js'
import { eventsOf } from '../helpers/audit-events.js'
import { EVENTS, LOGOUT, type LogoutWorld, logoutToken, sendLogout, signInAtFake, startLogoutWorld } from '../helpers/back-channel.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { signInAt } from '../helpers/own-provider.js'
import { SHARED_SESSIONS } from '../helpers/session-stores.js'

const REFUSED = [400, { error: 'invalid_request' }]
/** Not the time of the first line: a test may be run minutes later. */
const now = (): number => Math.floor(Date.now() / 1000)

type Forge = (world: LogoutWorld) => string | Promise<string>

const claims = (claims: Record<string, unknown>, header: Record<string, unknown> = {}): Forge =>
  async ({ fake }) => logoutToken(fake, { sid: 'sid-1', sub: 'ada', ...claims }, header)

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** The first eight are those of the OpenID Foundation's plan for relying parties. */
const FORGED: Readonly<Record<string, Forge>> = {
  'a wrong signature': async ({ fake }) => signed(
    { iss: fake.issuer, aud: fake.clientId, iat: now(), exp: now() + 120, jti: 'a', events: EVENTS, sid: 'sid-1' },
    { privateKey: (await signingKey('another')).privateKey, jwk: { ...fake.jwk, kid: fake.jwk.kid ?? '' } }, { typ: 'logout+jwt' }),
  'the algorithm none': async ({ fake }) => {
    const unsecured = new UnsecuredJWT({ jti: 'a', events: EVENTS, sid: 'sid-1' }).setIssuer(fake.issuer).setAudience(fake.clientId)
    const [, payload] = unsecured.setIssuedAt().setExpirationTime('2m').encode().split('.')
    return `${part({ alg: 'none', typ: 'logout+jwt' })}.${payload}.`
  },
  'another issuer': claims({ iss: 'https://else.example' }),
  'another audience': claims({ aud: 'another-app' }),
  'no events': claims({ events: undefined }),
  'other events': claims({ events: { 'https://id.example/event': {} } }),
  'a nonce': claims({ nonce: 'a-nonce' }),
  'neither sid nor sub': claims({ sid: undefined, sub: undefined }),
  'a time that is over': async world => claims({ exp: now() - 60 })(world),
  'an old time of issue': async world => claims({ iat: now() - 200 })(world),
  'a time of issue to come': async world => claims({ iat: now() + 200, exp: now() + 400 })(world),
  'a MAC by the client secret': ({ fake }) => {
    const payload = { iss: fake.issuer, aud: fake.clientId, iat: now(), exp: now() + 120, jti: 'a', events: EVENTS, sid: 'sid-1' }
    const text = `${part({ alg: 'HS256', typ: 'logout+jwt' })}.${part(payload)}`
    return `${text}.${createHmac('sha256', fake.clientSecret).update(text).digest('base64url')}`
  },
  'an unknown key': claims({}, { kid: 'another' }),
  'a null nonce': claims({ nonce: null }),
  'events that are a list': claims({ events: ['http://schemas.openid.net/event/backchannel-logout'] }),
  'an event that is a text': claims({ events: { 'http://schemas.openid.net/event/backchannel-logout': 'yes' } }),
  'an event that is a list': claims({ events: { 'http://schemas.openid.net/event/backchannel-logout': [] } }),
  'no jti': claims({ jti: undefined }),
  'a jti that is a number': claims({ jti: 1 }),
  'an empty jti': claims({ jti: '' }),
  'no iat': claims({ iat: undefined }),
  'no exp': claims({ exp: undefined }),
  'no type': claims({}, { typ: undefined }),
  'the type of other tokens': claims({}, { typ: 'JWT' }),
  'the type of access tokens': claims({}, { typ: 'at+jwt' }),
  'an empty sid': claims({ sid: '' }),
  'a sid that is a number': claims({ sid: 1 }),
  'a null sub beside the sid': claims({ sub: null }),
  'a long sub': claims({ sid: undefined, sub: 'a'.repeat(256) }),
  'others in its audience': claims({ aud: ['the-app', 'another-app'] }),
  'others in its audience, for one of them': claims({ aud: ['the-app', 'another-app'], azp: 'another-app' }),
  'another authorized party': claims({ azp: 'another-app' }),
  'an ID token': async ({ fake }) => fake.signedIdToken({
    iss: fake.issuer, aud: fake.clientId, iat: now(), exp: now() + 600, nonce: 'a-nonce', sub: 'ada', sid: 'sid-1'
  }),
  'no token': () => 'no-token',
  'an empty text': () => ''
}

for (const [what, forge] of Object.entries(FORGED)) {
  t.test(`attack 220: a logout token with ${what} ends no session`, async t => {
    const world = await startLogoutWorld(t)
    const browser = await signInAtFake(world.app, world.fake, 'sid-1')
    const token = await forge(world)
    const answer = await sendLogout(world.app, token)
    t.strictSame([answer.statusCode, answer.json()], REFUSED)
    t.match(answer.headers['cache-control'], /no-store/)
    t.not(await userIdIn(browser), null)
    t.notOk(token.length > 20 && world.lines.some(line => line.includes(token)), 'the log does not have it')
  })
}

t.test('attack 220: a logout token with a critical header is refused, also one that this application knows', async t => {
  const { fake, app } = await startLogoutWorld(t)
  const token = await logoutToken(fake, { sid: 'a' }, { crit: ['b64'], b64: true })
  t.strictSame((await sendLogout(app, token)).json(), { error: 'invalid_request' })
})

t.test('attack 220: a logout token by another algorithm than those of ID tokens is refused', async t => {
  const { fake, app } = await startLogoutWorld(t)
  fake.metadata.id_token_signing_alg_values_supported = ['ES256']
  t.equal((await sendLogout(app, await logoutToken(fake, { sid: 'a' }))).statusCode, 400)
})

t.test('attack 220: an older provider may leave type and exp out where the option says so, and nothing else', async t => {
  const world = await startLogoutWorld(t)
  const { fake } = world
  const app = await world.start({}, { acceptUntypedLogoutTokens: true })
  const statusOf = async (claims: Record<string, unknown>, header?: Record<string, unknown>) =>
    (await sendLogout(app, await logoutToken(fake, { sid: 'a', ...claims }, header))).statusCode
  for (const typ of [undefined, 'JWT', 'logout+jwt', 'application/logout+jwt']) t.equal(await statusOf({ exp: undefined }, { typ }), 200)
  t.equal(await statusOf({ aud: ['the-app', 'another-app'], azp: 'the-app' }), 200)
  for (const typ of ['at+jwt', 'secevent+jwt', '']) t.equal(await statusOf({}, { typ }), 400)
  t.equal(await statusOf({ exp: now() - 60 }), 400)
  t.equal(await statusOf({ nonce: 'a' }, { typ: undefined }), 400)
  t.equal(await statusOf({ iat: now() - 200, exp: undefined }, { typ: undefined }), 400)
})

t.test('attack 220: the options are checked when the provider is made, and are not for providers that send no such tokens', async t => {
  const client = { clientId: 'a', clientSecret: 'b' }
  const oidc = { ...client, name: 'own', discoveryUrl: 'https://id.example/.well-known/openid-configuration' }
  t.throws(() => new OidcProvider({ ...oidc, backChannelLogout: 'yes' as never }), { name: 'OptionsError', message: /backChannelLogout must be/ })
  t.throws(() => new OidcProvider({ ...oidc, acceptUntypedLogoutTokens: true }), /acceptUntypedLogoutTokens needs backChannelLogout: true/)
  t.throws(() => new OidcProvider({ ...oidc, issuer: 'https://id.example/{tenantid}/', backChannelLogout: true }), /the issuer of one tenant/)
  t.equal(new OidcProvider(oidc).backChannelLogout, false)
  t.equal(new Auth0Provider({ ...client, domain: 'tenant.example', backChannelLogout: true }).backChannelLogout, true)
  const options = { ...client, backChannelLogout: true }
  for (const Class of [GoogleProvider, MicrosoftProvider]) t.throws(() => new Class(options), /has no option "backChannelLogout"/)
  const privateKey = 'no key'
  t.throws(() => new AppleProvider({ ...options, teamId: 'a', keyId: 'b', privateKey }), { name: 'OptionsError' })
})

t.test('attack 221: a logout token that is sent again ends nothing, in no application', async t => {
  for (const [name, keep] of SHARED_SESSIONS) {
    await t.test(`with ${name}`, async t => {
      const world = await startLogoutWorld(t, await keep(t))
      const { fake, app } = world
      const other = await world.start()
      await signInAtFake(app, fake, 'sid-1')
      const token = await logoutToken(fake, { sub: 'ada' })
      t.equal((await sendLogout(app, token)).statusCode, 200)
      const browser = await signInAtFake(app, fake, 'sid-2')
      const events = eventsOf(t, 'revoke')
      for (const target of [app, other]) t.equal((await sendLogout(target, token)).statusCode, 200)
      t.not(await userIdIn(browser), null)
      t.strictSame(events, [])
      t.equal((await sendLogout(other, await logoutToken(fake, { sub: 'ada' }))).statusCode, 200)
      t.equal(await userIdIn(browser), null, 'another one does')
    })
  }
})

t.test('attack 221: a logout that could not be carried out is carried out when it is sent again', async t => {
  const { store, sessions } = await keepFailing(t)
  const world = await startLogoutWorld(t, { store: store.store, sessions: undefined })
  const browser = await signInAtFake(world.app, world.fake, 'sid-1')
  const token = await logoutToken(world.fake, { sid: 'sid-1' })
  sessions.fails = true
  const answer = await sendLogout(world.app, token)
  t.strictSame([answer.statusCode, answer.json()], [503, { error: 'temporarily_unavailable' }])
  sessions.fails = false
  t.equal((await sendLogout(world.app, token)).statusCode, 200)
  t.equal(await userIdIn(browser), null)
})

/** A store whose sessions cannot be ended for a while. */
async function keepFailing (_t: Test) {
  const { MemoryAuthStore, AuthError } = await import('../../lib/index.js')
  const store = new MemoryAuthStore()
  const sessions = { fails: false }
  const { sessions: kept } = store
  const ended = kept.endAtProvider?.bind(kept)
  kept.endAtProvider = async (...given) => {
    if (sessions.fails) throw new AuthError('unavailable')
    return await ended?.(...given) ?? []
  }
  return { store: { store }, sessions }
}

t.test('attack 222: what is sent beside a token has no effect: no cookie, no origin, no user', async t => {
  const { fake, app } = await startLogoutWorld(t)
  const browser = await signInAtFake(app, fake, 'sid-1')
  const other = await signInAtFake(app, fake, 'sid-2')
  const token = await logoutToken(fake, { sid: 'sid-1' })
  const cookie = [...other.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const headers = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site', cookie, 'content-type': 'application/json' }
  const answer = await app.inject({ method: 'POST', url: LOGOUT, headers, payload: { logout_token: token } })
  t.strictSame([answer.statusCode, answer.headers['set-cookie']], [200, undefined])
  t.equal(await userIdIn(browser), null)
  t.not(await userIdIn(other), null)
  for (const method of ['GET', 'PUT'] as const) t.equal((await app.inject({ method, url: LOGOUT })).statusCode, 404)
})

t.test('attack 222: the answer does not tell whether the session or the user is known', async t => {
  const { fake, app } = await startLogoutWorld(t)
  await signInAtFake(app, fake, 'sid-1')
  const answers = []
  for (const claims of [{ sid: 'sid-1' }, { sid: 'unknown' }, { sub: 'ada' }, { sub: 'nobody' }]) {
    const { statusCode, body, headers: { date: _, ...headers } } = await sendLogout(app, await logoutToken(fake, claims))
    answers.push({ statusCode, body, headers })
  }
  for (const answer of answers) t.strictSame(answer, answers[0])
})

t.test('attack 223: requests are counted by address, those without a form are not, and a long one is not read', async t => {
  const { fake, app } = await startLogoutWorld(t, undefined, { rateLimit: { token: 2 } })
  const refused = [
    {}, { payload: '' }, { payload: 'logout_token=a&logout_token=b' }, { payload: `logout_token=${'a'.repeat(16_400)}` }, { payload: 'logout_token=%ff' },
    { payload: `logout_token=${await logoutToken(fake, { sid: 'a' })}&more=${'a'.repeat(16_384)}` },
    { payload: '{"logout_token":["a"]}', headers: { 'content-type': 'application/json' } },
    { payload: 'a', headers: { 'content-type': 'text/plain' } }
  ]
  for (const more of refused.slice(1)) {
    const answer = await sendLogout(app, '', more)
    t.strictSame([answer.statusCode, answer.json()], REFUSED)
  }
  for (let attempt = 0; attempt < 2; attempt++) t.equal((await sendLogout(app, await logoutToken(fake, { sid: 'a' }))).statusCode, 200)
  const answer = await sendLogout(app, await logoutToken(fake, { sid: 'a' }))
  t.match([answer.statusCode, answer.json(), answer.headers['retry-after']], [429, { error: 'temporarily_unavailable' }, /^\d+$/])
})

t.test('attack 224: logout tokens with unknown keys have the keys fetched once a minute, and leave sign-ins theirs', async t => {
  const world = await startLogoutWorld(t)
  const { fake, app } = world
  const requests = (): number => fake.requests.filter(path => path === 'GET /jwks').length
  const forged = async (kid: string): Promise<void> => {
    t.equal((await sendLogout(app, await logoutToken(fake, { sid: 'a' }, { kid }))).statusCode, 400)
  }
  await Promise.all(['a', 'b', 'c', 'd'].map(forged))
  for (const kid of ['e', 'f']) await forged(kid)
  t.equal(requests(), 2, 'the keys, and once more for an unknown one')
  await fake.rotateKey('key-2')
  t.not(await userIdIn(await signInAtFake(app, fake, 'sid-1')), null, 'a sign-in gets the new key at once')
  t.equal(requests(), 3)
  advanceClock(t, 61_000)
  await forged('g')
  t.equal(requests(), 4)
})

t.test('attack 224: while a provider is away its keys are asked for once in five seconds, and the answer is 503', async t => {
  const { fake, app } = await startLogoutWorld(t)
  fake.lies.set('/jwks', () => json(500, {}))
  const token = await logoutToken(fake, { sid: 'a' })
  for (let attempt = 0; attempt < 4; attempt++) t.equal((await sendLogout(app, token)).statusCode, 503)
  t.equal(fake.requests.filter(path => path === 'GET /jwks').length, 1)
  fake.lies.clear()
  advanceClock(t, 5001)
  t.equal((await sendLogout(app, token)).statusCode, 200)
})

t.test('attack 225: a provider ends the sessions that began there, not those of another one or by another method', async t => {
  const { fake, app } = await startLogoutWorld(t)
  const byOther = new Browser(app)
  await signInAt(byOther, 'other', { subject: 'ada' })
  const local = new Browser(app)
  t.equal((await local.post('/auth/local/register', { email: 'local@example.com', password: 'correct horse battery' })).statusCode, 201)
  const byFake = await signInAtFake(app, fake, 'sid-1')
  for (const claims of [{ sub: 'ada' }, { sid: 'ada' }, { sub: 'sid-1' }, { sid: 'sid-2' }, { sub: 'local@example.com' }]) {
    t.equal((await sendLogout(app, await logoutToken(fake, claims))).statusCode, 200)
  }
  t.not(await userIdIn(byOther), null)
  t.not(await userIdIn(local), null)
  t.equal(await userIdIn(byFake), null)
  t.equal((await app.inject({ method: 'POST', url: '/auth/other/backchannel-logout', payload: { logout_token: 'a' } })).statusCode, 404)
})

t.test('attack 225: a logout ends nothing of another provider with the same ids, nor a session that is called like a user', async t => {
  const { fake, start } = await startLogoutWorld(t)
  const [one, twin] = ['fake', 'twin'].map(name => fake.provider({
    name, backChannelLogout: true, allowInsecureRequests: false, fetch: fake.fetch
  }))
  const app = await start({ providers: [one, twin].flatMap(provider => provider ?? []) })
  fake.profile = { sub: 'ada' }
  fake.idTokenClaims = { sid: 'sid-1' }
  const browser = new Browser(app)
  const { headers: { location = '' } } = await browser.get('/auth/twin/login')
  await browser.get(fake.consent(location))
  for (const claims of [{ sid: 'sid-1' }, { sub: 'ada' }, { sub: 'sid-2' }]) {
    t.equal((await sendLogout(app, await logoutToken(fake, claims))).statusCode, 200)
  }
  t.not(await userIdIn(browser), null)
  t.not(await userIdIn(await signInAtFake(app, fake, 'sid-2')), null)
})

t.test('attack 225: the sid of an ID token reaches no claim, no link, no answer, no log, and no hook but in the token', async t => {
  const sid = 'the-sid-of-the-provider'
  const seen: unknown[] = []
  const { fake, app, lines } = await startLogoutWorld(t, undefined, {
    onSignIn ({ principal, identity }) { seen.push(principal, identity) }
  })
  const browser = await signInAtFake(app, fake, sid)
  const userId = await userIdIn(browser) ?? ''
  seen.push(await app.auth.findUser({ userId }), await app.auth.links(userId), await app.auth.sessions(userId))
  seen.push((await browser.get('/auth/session')).body, (await browser.get('/session')).body)
  t.equal((await sendLogout(app, await logoutToken(fake, { sid }))).statusCode, 200)
  t.notOk(JSON.stringify(seen).includes(sid))
  t.notOk(lines.some(line => line.includes(sid)))
  t.equal(await userIdIn(browser), null)
})
