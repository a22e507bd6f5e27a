import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import { Browser } from '../../../test/helpers/browser.js'
import { advanceClock } from '../../../test/helpers/clock.js'
import { DATA_SECRET, enrolAt, nextCode } from '../../../test/helpers/factor-app.js'
import { ADA, Client, HTML, RESOURCE, type Tokens, ask, fieldsIn, send, signedIn, startServer } from '../../../test/helpers/oauth-app.js'
import type { AuthPluginOptions } from '../../index.js'
import type { OAuthServerOptions } from '../../oauth-server.js'
import { SecondFactor } from '../../second-factor.js'

const [SECOND, MINUTE] = [1000, 60_000]
const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code'

interface Codes { device_code: string, user_code: string, verification_uri: string, expires_in: number, interval: number }

const start = async (t: Test, server: Partial<OAuthServerOptions> = {}, options: AuthPluginOptions = {}) =>
  startServer(t, { device: { clients: ['assistant', 'other'] }, ...server }, options)

/** A command line that asks for its codes. */
async function codesFor (app: FastifyInstance, fields: Record<string, string> = {}): Promise<Codes> {
  return (await send(app, '/auth/oauth/device', { client_id: 'assistant', scope: 'notes:read', ...fields })).json<Codes>()
}

async function poll (app: FastifyInstance, code: string, id = 'assistant'): Promise<LightMyRequestResponse> {
  return new Client(app, id).token({ grant_type: DEVICE_CODE, device_code: code })
}

const errorOf = async (app: FastifyInstance, code: string, id?: string): Promise<string> => (await poll(app, code, id)).json().error

/** Types a code, and decides what the page asks. */
async function enter (browser: Browser, code: string): Promise<LightMyRequestResponse> {
  return browser.submit('/auth/device', { user_code: code, error_next: '/auth/device' })
}

async function decide (browser: Browser, page: LightMyRequestResponse, decision: 'allow' | 'deny' = 'allow'): Promise<LightMyRequestResponse> {
  return browser.submit('/auth/device', { ...fieldsIn(page.body), decision })
}

t.test('a command line is connected by a code that the user types', async t => {
  const app = await start(t)
  const browser = await signedIn(app)
  const codes = await codesFor(app)
  t.match(codes.user_code, /^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/)
  t.match(codes, { verification_uri: 'https://app.example/auth/device', expires_in: 600, interval: 5 })
  t.notOk('verification_uri_complete' in codes)
  t.equal(await errorOf(app, codes.device_code), 'authorization_pending')

  const typing = await browser.get('/auth/device', HTML)
  t.match(typing.body, /name="user_code"/)
  const page = await enter(browser, codes.user_code)
  t.equal(page.statusCode, 200, page.body)
  t.match(await decide(browser, page), { statusCode: 200 })
  advanceClock(t, 5 * SECOND)
  const answer = await poll(app, codes.device_code)
  t.match([answer.statusCode, answer.json()], [200, { token_type: 'Bearer', scope: 'notes:read' }])
  t.equal((await ask(app, answer.json<Tokens>().access_token)).statusCode, 200)
  t.equal((await new Client(app).refresh(answer.json<Tokens>().refresh_token)).statusCode, 200)

  advanceClock(t, 5 * SECOND)
  t.equal(await errorOf(app, codes.device_code), 'expired_token', 'the code is good once')
})

t.test('attack 184: the page shows client, address, browser, when and what for', async t => {
  const app = await start(t)
  const browser = await signedIn(app)
  const answer = await app.inject({
    method: 'POST',
    url: '/auth/oauth/device',
    remoteAddress: '203.0.113.9',
    headers: { 'content-type': 'application/x-www-form-urlencoded', 'user-agent': 'television <b>9' },
    payload: 'client_id=assistant&scope=notes%3Aread'
  })
  advanceClock(t, 3 * MINUTE)
  const { body, headers } = await enter(browser, answer.json<Codes>().user_code)
  const shown = [/Assistant/, /203\.0\.113\.9/, /television &#60;b&#62;9/, /[34] minutes/, /Read your notes/, /Ada/]
  for (const text of shown) t.match(body, text)
  t.notMatch(body, /Change your notes/)
  t.match(headers['content-security-policy'], /frame-ancestors 'none'/)
})

t.test('a device that asks too often is told to slow down, and goes on', async t => {
  const app = await start(t)
  const { device_code: code } = await codesFor(app)
  t.equal(await errorOf(app, code), 'authorization_pending')
  t.equal(await errorOf(app, code), 'slow_down')
  advanceClock(t, 4 * SECOND)
  t.equal(await errorOf(app, code), 'slow_down')
  advanceClock(t, 5 * SECOND)
  t.equal(await errorOf(app, code), 'authorization_pending')
})

t.test('a user may refuse, and that stays', async t => {
  const app = await start(t)
  const browser = await signedIn(app)
  const codes = await codesFor(app)
  const page = await enter(browser, codes.user_code)
  t.match(await decide(browser, page, 'deny'), { statusCode: 200 })
  t.equal(await errorOf(app, codes.device_code), 'access_denied')
  await decide(browser, page)
  advanceClock(t, 5 * SECOND)
  t.equal(await errorOf(app, codes.device_code), 'expired_token')
})

t.test('codes are over after ten minutes', async t => {
  const app = await start(t)
  const browser = await signedIn(app)
  const codes = await codesFor(app)
  const page = await enter(browser, codes.user_code)
  advanceClock(t, 10 * MINUTE)
  t.equal(await errorOf(app, codes.device_code), 'expired_token')
  const late = await browser.post('/auth/device', { ...fieldsIn(page.body), decision: 'allow' })
  t.match([late.statusCode, late.json()], [401, { code: 'invalid_code' }])
  t.strictSame(await grantsOf(app), [])
})

const grantsOf = async (app: FastifyInstance) => app.auth.grants(String((await app.auth.findUser({ email: ADA.email }))?.userId))

t.test('a device that is approved twice is approved, with one grant', async t => {
  const app = await start(t)
  const browser = await signedIn(app)
  const codes = await codesFor(app)
  const page = await enter(browser, codes.user_code)
  t.match([await decide(browser, page), await decide(browser, page)], [{ statusCode: 200 }, { statusCode: 200 }])
  t.equal((await poll(app, codes.device_code)).statusCode, 200)
  t.equal((await grantsOf(app)).length, 1)
})

t.test('attack 184: a code is for one user: what another one approves after the device has its tokens gives nothing', async t => {
  const app = await start(t)
  const browser = await signedIn(app)
  const victim = new Browser(app)
  await victim.post('/auth/local/register', { email: 'bob@example.com', password: 'correct horse', name: 'Bob' })
  const codes = await codesFor(app)
  const [page, waiting] = [await enter(browser, codes.user_code), await enter(victim, codes.user_code)]
  await decide(browser, page)
  t.equal((await poll(app, codes.device_code)).statusCode, 200)
  const late = await victim.post('/auth/device', { ...fieldsIn(waiting.body), decision: 'allow' })
  t.match([late.statusCode, late.json()], [401, { code: 'invalid_code' }])
  advanceClock(t, 5 * SECOND)
  t.equal(await errorOf(app, codes.device_code), 'expired_token')
})

t.test('of many that redeem a device code at once, one gets tokens', async t => {
  const app = await start(t)
  const browser = await signedIn(app)
  const codes = await codesFor(app)
  await decide(browser, await enter(browser, codes.user_code))
  const answers = await Promise.all(Array.from({ length: 50 }, async () => poll(app, codes.device_code)))
  t.equal(answers.filter(({ statusCode }) => statusCode === 200).length, 1)
  t.strictSame(answers.filter(({ statusCode }) => statusCode !== 200 && statusCode !== 400), [])
  t.equal((await grantsOf(app)).length, 1)
})

t.test('another device code, and that of another client, is not good', async t => {
  const app = await start(t)
  const browser = await signedIn(app)
  const codes = await codesFor(app)
  await decide(browser, await enter(browser, codes.user_code))
  const userCode = codes.user_code.replace('-', '')
  for (const code of ['', 'x', userCode, `${userCode}.${'x'.repeat(43)}`, codes.device_code.toLowerCase(), `${codes.device_code} `]) {
    t.equal(await errorOf(app, code), 'expired_token')
  }
  t.equal(await errorOf(app, codes.device_code, 'other'), 'expired_token')
  t.equal((await poll(app, codes.device_code)).statusCode, 200)
})

t.test('a code is typed in small or full-width letters, with blanks and without its hyphen', async t => {
  const app = await start(t)
  const browser = await signedIn(app)
  const { user_code: code } = await codesFor(app)
  const wide = code.replaceAll(/[A-Z]/g, letter => String.fromCodePoint(letter.charCodeAt(0) + 0xfee0))
  for (const typed of [code.toLowerCase(), ` ${code.replace('-', '  ')} `, wide.replace('-', ''), code.split('').join(' '), code.replace('-', '–')]) {
    const page = await enter(browser, typed)
    t.match(page.body, /Assistant/, typed)
  }
  for (const typed of ['', '-', code.slice(1), `${code}B`, 'BBBB-BBBB']) {
    const refused = await browser.post('/auth/device', { user_code: typed })
    t.match([refused.statusCode, refused.json()], [401, { code: 'invalid_code' }])
  }
})

t.test('who may use codes, and for what, is said by the options', async t => {
  const app = await start(t, { device: { clients: ['assistant'] } })
  const error = async (fields: Record<string, string>) => (await send(app, '/auth/oauth/device', fields)).json().error
  t.equal(await error({ client_id: 'other' }), 'unauthorized_client')
  t.equal(await error({ client_id: 'nobody' }), 'invalid_client')
  t.equal(await error({ client_id: 'assistant', resource: 'https://app.example/other' }), 'invalid_target')
  t.match(await codesFor(app, { resource: RESOURCE }), { interval: 5 })
  const without = await startServer(t)
  t.equal((await send(without, '/auth/oauth/device', { client_id: 'assistant' })).statusCode, 404)
  t.equal((await new Browser(without).get('/auth/device', HTML)).statusCode, 404)
})

t.test('attack 184: nothing is approved by a link alone, from another origin or without a session', async t => {
  const app = await start(t)
  const browser = await signedIn(app)
  const codes = await codesFor(app)
  const link = await browser.get(`/auth/device?user_code=${codes.user_code}&decision=allow`, HTML)
  t.notMatch(link.body, /Assistant/)
  t.notMatch(link.body, `value="${codes.user_code}"`, 'the code is typed')
  const typed = await enter(browser, codes.user_code)
  t.equal(typed.statusCode, 200)
  t.equal(await errorOf(app, codes.device_code), 'authorization_pending', 'typing is no decision')

  const fields = { ...fieldsIn(typed.body), decision: 'allow' }
  const foreign = await browser.submit('/auth/device', fields, { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' })
  t.equal(foreign.statusCode, 403)
  t.equal((await new Browser(app).post('/auth/device', fields)).statusCode, 401)
  const { statusCode, headers } = await new Browser(app).get('/auth/device', HTML)
  t.match([statusCode, headers.location], [/30[23]/, /next=%2Fauth%2Fdevice/])
  advanceClock(t, 5 * SECOND)
  t.equal(await errorOf(app, codes.device_code), 'authorization_pending')
})

t.test('attack 184: codes cannot be guessed: attempts are counted by the address, and by the user', async t => {
  const app = await start(t, {}, { rateLimit: { code: 3, reauthenticate: 3 } })
  const browser = await signedIn(app)
  const { user_code: code } = await codesFor(app)
  const from = async (remoteAddress: string, userCode = 'BBBB-BBBB') => browser.send({
    method: 'POST', url: '/auth/device', remoteAddress, headers: { accept: 'application/json' }, payload: { user_code: userCode }
  })
  for (let attempt = 0; attempt < 3; attempt++) t.equal((await from(`203.0.113.${attempt}`)).statusCode, 401)
  const limited = await from('203.0.113.9', code)
  t.equal(limited.statusCode, 429, 'also for the right one, from another address')
  t.ok(Number(limited.headers['retry-after']) > 0)
})

t.test('a resource with `within` asks for a recent sign-in, and the code is typed again', async t => {
  const resources = { [RESOURCE]: { scopes: { 'notes:read': 'Read your notes' }, within: 300 } }
  const app = await start(t, { resources })
  const browser = await signedIn(app)
  t.match((await enter(browser, (await codesFor(app)).user_code)).body, /Assistant/)

  advanceClock(t, 6 * MINUTE)
  const codes = await codesFor(app)
  const step = await enter(browser, codes.user_code)
  t.equal(step.statusCode, 303)
  t.notOk(step.headers.location?.includes(codes.user_code))
  const program = await browser.post('/auth/device', { user_code: codes.user_code, decision: 'allow' })
  t.match([program.statusCode, program.json().code], [403, 'reauthenticate'], program.body)
  t.equal(await errorOf(app, codes.device_code), 'authorization_pending')

  t.match((await browser.post('/auth/local/reauthenticate', { password: ADA.password })).statusCode, 204)
  await decide(browser, await enter(browser, codes.user_code))
  advanceClock(t, 5 * SECOND)
  t.equal((await poll(app, codes.device_code)).statusCode, 200)
})

t.test('a resource with `secondFactor` asks for one, and for its setup where the user has none', async t => {
  const resources = { [RESOURCE]: { scopes: { 'notes:read': 'Read your notes' }, secondFactor: true } }
  const app = await start(t, { resources }, { dataSecret: DATA_SECRET, secondFactor: new SecondFactor({ issuer: 'Shop' }) })
  const browser = await signedIn(app)
  const first = await codesFor(app)
  const setUp = await enter(browser, first.user_code)
  t.match([setUp.statusCode, setUp.headers.location], [303, /second_factor_missing/])
  t.match((await browser.post('/auth/device', { user_code: first.user_code, decision: 'allow' })).json(), { code: 'second_factor_missing' })

  const { secret } = await enrolAt(t, browser)
  const other = new Browser(app)
  await other.post('/auth/local/login', ADA)
  t.equal((await other.post('/auth/local/second-factor', { code: nextCode(t, secret) })).statusCode, 200)
  const codes = await codesFor(app)
  const page = await enter(other, codes.user_code)
  t.match(page.body, /Assistant/, page.body)
  await decide(other, page)
  const { access_token: token } = (await poll(app, codes.device_code)).json<Tokens>()
  t.match((await ask(app, token)).json().amr, ['pwd', 'otp'])
})

t.test('attack 181: a block ends what a device was given, also between approval and tokens', async t => {
  const app = await start(t)
  const browser = await signedIn(app)
  const codes = await codesFor(app)
  await decide(browser, await enter(browser, codes.user_code))
  await app.auth.signOutEverywhere(String((await app.auth.findUser({ email: ADA.email }))?.userId))
  t.match((await poll(app, codes.device_code)).json(), { error: 'invalid_grant' })
})
