/** Attacks on passkeys over the routes; passkey-ceremonies.test.ts has what a ceremony itself refuses. */
import { type KeyObject, generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { type AuthPluginOptions, MemoryAuthStore } from '../../lib/index.js'
import { Passkeys, type PasskeysOptions } from '../../lib/passkeys.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { type CredentialJson, type Lies, type SoftwareAuthenticator, cbor, newKeys } from '../fakes/authenticator.js'
import { principalIn, userIdIn } from '../helpers/app.js'
import { eventsOf } from '../helpers/audit-events.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { enrolAt, waitAt } from '../helpers/factor-app.js'
import { ADA, type MailApp, confirmAddress, registerAt, startMailApp } from '../helpers/mail-app.js'
import { type Ceremony, addAt, finishBy, newDevice, optionsAt, proveBy, signInBy, startPasskeyApp } from '../helpers/passkey-app.js'
import { holds } from '../helpers/properties.js'

const MALLORY = { email: 'mallory@example.com', password: 'correct horse' }
const BASE = '/auth/local/passkeys'
const MINUTE_MS = 60_000

interface Users extends MailApp {
  device: SoftwareAuthenticator
  id: string
  userId: string
  /** Signed in as Mallory, with a passkey. */
  mallory: Browser
  theirs: SoftwareAuthenticator
}

/** An application with Ada and Mallory, who have a passkey each. */
async function startWithUsers (
  t: Test, options: AuthPluginOptions = {}, passkeys: Partial<PasskeysOptions> = {}
): Promise<Users> {
  const made = await startPasskeyApp(t, options, {}, passkeys)
  const token = await registerAt(made)
  await confirmAddress(made.browser, token)
  const [device, theirs, mallory] = [newDevice(), newDevice(), new Browser(made.app)]
  const { id } = (await addAt(made.browser, device)).json()
  await mallory.post('/auth/local/register', MALLORY)
  await addAt(mallory, theirs)
  return { ...made, device, id, userId: await userIdIn(made.browser) ?? '', mallory, theirs }
}

const twoFactors = () => ({ secondFactor: new SecondFactor({ issuer: 'Shop' }) })

t.test('attack 86: a passkey whose authenticator has not verified the user finishes no sign-in', async t => {
  const { app, device, browser: ada } = await startWithUsers(t, twoFactors())
  await enrolAt(t, ada)
  const browser = new Browser(app)
  const unverified: Lies = { flags: { uv: false } }
  const alone = await signInBy(browser, device, unverified)
  t.match([alone.statusCode, alone.json().code], [401, 'invalid'])

  await waitAt(t, browser)
  const response = device.get(await optionsAt(browser, 'factor'), unverified)
  const refused = await browser.post('/auth/local/second-factor', { response })
  t.match([refused.statusCode, refused.json().code], [401, 'invalid'])
  t.equal(await principalIn(browser), null)
})

t.test('attack 94: a challenge is for one ceremony', async t => {
  const { app, browser: ada, device, mallory, theirs } = await startWithUsers(t, twoFactors())
  await enrolAt(t, ada)
  const visitor = new Browser(app)
  await waitAt(t, visitor)
  const signIn = (browser: Browser, response: unknown) => browser.post(`${BASE}/login`, { response })
  const add = (browser: Browser, response: unknown) => browser.post(`${BASE}/register`, { response })
  const finish = (browser: Browser, response: unknown) => browser.post('/auth/local/second-factor', { response })
  const prove = (browser: Browser, response: unknown) => browser.post('/auth/local/reauthenticate', { response })

  for (const [name, answer] of [
    ['login at the second factor', await finish(visitor, device.get(await optionsAt(visitor, 'login')))],
    ['factor at the sign-in', await signIn(visitor, device.get(await optionsAt(visitor, 'factor')))],
    ['login at a new passkey', await add(mallory, newDevice().create({ ...await optionsAt(mallory, 'login'), user: { id: '' } }))],
    ['login again', await prove(mallory, theirs.get(await optionsAt(mallory, 'login')))],
    ['register at the sign-in', await signIn(mallory, theirs.get(await optionsAt(mallory, 'register')))],
    ['a chosen challenge', await signIn(visitor, device.get({ challenge: randomBytes(32).toString('base64url') }))]
  ] as const) t.match([answer.statusCode, answer.json().code], [400, 'invalid_state'], name)
  const registration = await signIn(visitor, newDevice().create({ ...await optionsAt(visitor, 'login'), user: { id: '' } }))
  t.match([registration.statusCode, registration.json().code], [401, 'invalid'], 'a registration at the sign-in')
  const assertion = await add(mallory, theirs.get(await optionsAt(mallory, 'register')))
  t.match([assertion.statusCode, assertion.json().code], [401, 'invalid'], 'an assertion at a new passkey')
  t.equal(await principalIn(visitor), null)
  t.equal((await finishBy(visitor, device)).statusCode, 200, 'the sign-in that waits is untouched')
})

t.test('a form with a passkey and a password authenticates by the passkey', async t => {
  const { mallory, theirs } = await startWithUsers(t, twoFactors())

  const response = theirs.get(await optionsAt(mallory, 'factor'))
  const answer = await mallory.post('/auth/local/reauthenticate', { response, password: 'a wrong password' })

  t.equal(answer.statusCode, 204, answer.body)
})

t.test('attack 94, attack 106: a challenge is for one session, once, for five minutes', async t => {
  const { app, device, userId } = await startWithUsers(t)
  const [one, other] = [new Browser(app), new Browser(app)]
  const options = await optionsAt(one, 'login')
  await optionsAt(other, 'login')
  const send = async (browser: Browser) => {
    const { statusCode, body } = await browser.post(`${BASE}/login`, { response: device.get(options) })
    return [statusCode, JSON.parse(body).code ?? JSON.parse(body).userId]
  }
  t.strictSame(await send(other), [400, 'invalid_state'], 'of another session')
  t.strictSame(await send(new Browser(app)), [400, 'invalid_state'], 'of none')
  const before = new Browser(app, one.cookies)
  t.strictSame(await send(one), [200, userId])
  for (const browser of [one, before, other]) t.strictSame(await send(browser), [400, 'invalid_state'], 'used')
  for (const challenge of [undefined, null, '', 'short', 5]) {
    const response = device.get(await optionsAt(other, 'login'), { clientData: { challenge } })
    const refused = await other.post(`${BASE}/login`, { response })
    t.match([refused.statusCode, refused.json().code], [400, 'invalid_state'], 'that no session was ever given')
  }

  const late = await optionsAt(other, 'login')
  advanceClock(t, 5 * MINUTE_MS + 1000)
  const refused = await other.post(`${BASE}/login`, { response: device.get(late) })
  t.match([refused.statusCode, refused.json().code], [400, 'invalid_state'])
  t.equal(await principalIn(other), null)
})

t.test('attack 94: of many requests with one response, one signs in; tabs of a session do not disturb each other', async t => {
  const { app, device } = await startWithUsers(t)
  const browser = new Browser(app)
  const [first, second] = [await optionsAt(browser, 'login'), await optionsAt(browser, 'login')]
  const response = device.get(first)
  const answers = await Promise.all(Array.from({ length: 5 }, (_, index) =>
    new Browser(app, browser.cookies).post(`${BASE}/login`, { response, next: `/${index}` })))
  t.strictSame(answers.map(({ statusCode }) => statusCode).sort(), [200, 400, 400, 400, 400])
  t.match((await browser.post(`${BASE}/login`, { response: device.get(second) })).json().code, 'invalid_state', 'the session was replaced')
})

t.test('attack 95: a forged assertion signs nobody in, at each route that takes one', async t => {
  const { app, device, mallory, theirs } = await startWithUsers(t)
  const handle = Buffer.from(String(await userIdIn(mallory)).replaceAll('-', ''), 'hex').toString('base64url')
  const lies: Array<[name: string, lie: Lies, code?: string]> = [
    ['another origin', { clientData: { origin: 'https://evil.example' } }],
    ['a sub-domain', { clientData: { origin: 'https://blog.app.example' } }],
    ['http', { clientData: { origin: 'http://app.example' } }],
    ['another port', { clientData: { origin: 'https://app.example:8443' } }],
    ['the domain above', { rpId: 'example' }],
    ['a frame', { clientData: { crossOrigin: true, topOrigin: 'https://evil.example' } }],
    ['nobody present', { flags: { up: false } }],
    ['no verification', { flags: { uv: false } }],
    ['another key', { signer: newKeys('ES256').privateKey }],
    ['another backup eligibility', { flags: { be: true } }],
    ['a backup that is not possible', { flags: { bs: true } }],
    ['the id of another passkey', { id: theirs.id.toString('base64url') }, 'unknown_passkey'],
    ['another user', { response: { userHandle: handle } }, 'unknown_passkey'],
    ['nobody', { response: { userHandle: undefined } }],
    ['a list of users', { response: { userHandle: [handle] } }],
    ['the type of a registration', { clientData: { type: 'webauthn.create' } }]
  ]
  for (const [name, lie, code = 'invalid'] of lies) {
    const browser = new Browser(app)
    const response = device.get(await optionsAt(browser, 'login'), lie)
    const refused = await browser.post(`${BASE}/login`, { response }, { origin: 'https://app.example' })
    t.match([refused.statusCode, refused.json().code], [401, code], name)
    t.equal(await principalIn(browser), null, name)
    t.notMatch(refused.body, /origin|RP ID|verif/i, 'the reason is not for the sender')
  }
  t.equal((await signInBy(new Browser(app), device)).statusCode, 200)
})

t.test('attack 95: the header Origin plays no part', async t => {
  const { app, device } = await startWithUsers(t, { trustedOrigins: ['https://admin.app.example'] })
  const browser = new Browser(app)
  const response = device.get(await optionsAt(browser, 'login'), { clientData: { origin: 'https://admin.app.example' } })
  const refused = await browser.post(`${BASE}/login`, { response }, { origin: 'https://admin.app.example' })
  t.match([refused.statusCode, refused.json().code], [401, 'invalid'])
})

t.test('attack 96: a hostile registration adds nothing', async t => {
  const { app, userId, id, device, mallory } = await startWithUsers(t)
  const count = async () => (await app.auth.factors(await userIdIn(mallory) ?? '')).length
  const before = await count()
  const refused = async (device: SoftwareAuthenticator, lies: Lies, status: number, code: string): Promise<void> => {
    const answer = await addAt(mallory, device, { lies })
    t.match([answer.statusCode, answer.json().code], [status, code])
    t.equal(await count(), before)
  }
  await refused(newDevice({ id: device.id }), {}, 409, 'exists')
  await refused(newDevice({ id: randomBytes(1024) }), {}, 401, 'invalid')
  await refused(newDevice({ algorithm: 'ES384' }), {}, 401, 'invalid')
  await refused(newDevice(), { id }, 401, 'invalid')
  await refused(newDevice(), { flags: { uv: false } }, 401, 'invalid')
  await refused(newDevice(), { clientData: { origin: 'https://evil.example' } }, 401, 'invalid')
  const large = await mallory.post(`${BASE}/register`, { response: 'x'.repeat(10_000_000) })
  t.match([large.statusCode, large.json().code], [413, 'invalid_request'])
  t.match(await app.auth.factors(userId), [{ id }], 'the passkey of the owner is as it was')

  const attested: Lies = { attestation: { fmt: 'packed', attStmt: [['alg', -7], ['sig', Buffer.alloc(64)], ['x5c', [Buffer.alloc(300)]]] } }
  t.equal((await addAt(mallory, newDevice(), { lies: attested })).statusCode, 201, 'certificates are not read')
})

t.test('attack 96: the name of a passkey is text, and short', async t => {
  const { browser } = await startWithUsers(t)
  t.equal((await addAt(browser, newDevice(), { name: '<script>alert(1)</script>' })).json().name, '<script>alert(1)</script>')
  t.equal((await addAt(browser, newDevice(), { name: 'x'.repeat(1000) })).json().name, 'x'.repeat(64))
  const long = await addAt(browser, newDevice(), { name: 'x'.repeat(10_000) })
  t.match([long.statusCode, long.json().code], [400, 'invalid_request'])
})

t.test('attack 97: a user changes only passkeys of their own', async t => {
  const { app, id, userId, mallory } = await startWithUsers(t)
  for (const other of [id, 'AAAA', '', randomUUID()]) {
    const answers = [await mallory.post(`${BASE}/remove`, { id: other }), await mallory.post(`${BASE}/rename`, { id: other, name: 'x' })]
    for (const answer of answers) t.match([answer.statusCode, answer.json().code], [404, 'not_found'])
  }
  t.match(await app.auth.factors(userId), [{ id, name: /^Passkey/ }])
})

t.test('attack 97: an app of a user is neither removed nor renamed as a passkey', async t => {
  const { app, browser, userId } = await startWithUsers(t, twoFactors())
  await enrolAt(t, browser)
  const totp = (await app.auth.factors(userId)).find(({ kind }) => kind === 'totp')
  t.equal((await browser.post(`${BASE}/remove`, { id: totp?.id })).json().code, 'not_found')
  t.equal((await browser.post(`${BASE}/rename`, { id: totp?.id, name: 'x' })).json().code, 'not_found')
  const kept = await app.auth.factors(userId)
  t.match([kept.length, kept.find(({ kind }) => kind === 'totp')], [3, { name: null }])
})

t.test('attack 97: neither the options nor a refusal tell whether a user exists, or which passkeys one has', async t => {
  const { app, device } = await startWithUsers(t)
  const asked = async (fields: object) => {
    const { body } = await new Browser(app).post(`${BASE}/options`, { for: 'login', ...fields })
    return body.replace(/"challenge":"[^"]*"/, '')
  }
  t.equal(await asked({ email: ADA.email, username: ADA.email }), await asked({ email: 'nobody@example.com' }))

  const ofNobody = newDevice()
  ofNobody.create({ challenge: '', user: { id: Buffer.from(randomUUID().replaceAll('-', ''), 'hex').toString('base64url') } })
  const ofUser = await signInBy(new Browser(app), device, { id: randomBytes(32).toString('base64url') })
  const unknown = await signInBy(new Browser(app), ofNobody)
  t.match([unknown.statusCode, unknown.json().code], [401, 'unknown_passkey'])
  t.equal(ofUser.body, unknown.body, 'only the id of a passkey, which is random, would tell')
})

t.test('attack 97: of the store as much is asked about a user with passkeys as about one without and an unknown one', async t => {
  const store = new MemoryAuthStore()
  const made = await startPasskeyApp(t, { store })
  await registerAt(made)
  const device = newDevice()
  await addAt(made.browser, device)
  const without = new Browser(made.app)
  await without.post('/auth/local/register', MALLORY)
  const asked: string[] = []
  for (const method of ['findUser', 'links', 'factors', 'findCredential', 'status', 'change'] as const) {
    const { [method]: ask } = store
    Object.assign(store, { [method]: (...given: Parameters<typeof ask>) => { asked.push(method); return Reflect.apply(ask, store, given) } })
  }
  const askedFor = async (userId: string, lies: Lies, code = 'unknown_passkey'): Promise<string[]> => {
    const [browser, handle] = [new Browser(made.app), Buffer.from(userId.replaceAll('-', ''), 'hex').toString('base64url')]
    const response = device.get(await optionsAt(browser, 'login'), { ...lies, response: { userHandle: handle } })
    asked.length = 0
    const refused = await browser.post(`${BASE}/login`, { response })
    t.match([refused.statusCode, refused.json().code], [401, code])
    return [...asked]
  }
  const [id, another] = [await userIdIn(made.browser) ?? '', await userIdIn(without) ?? '']
  const ofOther: Lies = { id: randomBytes(32).toString('base64url') }

  const known = await askedFor(id, { signer: newKeys('ES256').privateKey }, 'invalid')

  t.strictSame(known, ['findUser', 'factors'])
  for (const [userId, lies] of [[id, ofOther], [another, {}], [another, ofOther], [randomUUID(), {}], [randomUUID(), ofOther]] as const) {
    t.strictSame(await askedFor(userId, lies), known)
  }
})

t.test('attack 97: the options for a factor name the passkeys of the present user alone, and none after the session ended', async t => {
  const { app, browser, userId, id, mallory, theirs } = await startWithUsers(t)
  t.match(await optionsAt(mallory, 'factor'), { allowCredentials: [{ id: theirs.id.toString('base64url') }] })
  t.match(await optionsAt(browser, 'factor'), { allowCredentials: [{ id }] })
  await app.auth.signOutEverywhere(userId)
  const refused = await browser.post(`${BASE}/options`, { for: 'factor' })
  t.match([refused.statusCode, refused.json().code], [400, 'invalid_state'])
  t.notMatch(refused.body, id)
})

t.test('attack 102: without the code in the mailbox no passkey is enrolled, in any session', async t => {
  let isRequired = false
  const made = await startPasskeyApp(t, { secondFactor: new SecondFactor({ issuer: 'Shop', required: () => isRequired }) })
  const token = await registerAt(made)
  await confirmAddress(made.browser, token)
  const userId = await userIdIn(made.browser) ?? ''
  isRequired = true
  const [thief, owner] = [new Browser(made.app), new Browser(made.app)]
  for (const browser of [thief, owner]) await browser.post('/auth/local/login', ADA)
  await optionsAt(owner, 'register')
  const { code: mailCode } = await made.mails.next('enrolment')

  const skipped = await thief.post(`${BASE}/register`, { response: newDevice().create({ challenge: randomBytes(32).toString('base64url'), user: { id: '' } }) })
  t.equal(skipped.json().code, 'invalid_state')
  t.equal((await addAt(thief, newDevice())).json().code, 'invalid_code')
  t.equal((await addAt(thief, newDevice(), { mailCode })).json().code, 'invalid_code', 'that of another session')
  t.equal((await thief.post('/auth/local/recovery-codes')).json().code, 'unauthenticated')
  t.strictSame(await made.app.auth.factors(userId), [])
  t.equal(await principalIn(thief), null)
})

t.test('attack 106: garbage in a response is refused, and nothing is stored', async t => {
  const { app, browser, userId, mallory, theirs } = await startWithUsers(t)
  const stored = async () => [await app.auth.factors(userId), await app.auth.factors(await userIdIn(mallory) ?? '')]
  const before = await stored()
  const bytes = fc.uint8Array({ maxLength: 300 }).map(bytes => Buffer.from(bytes).toString('base64url'))
  const garbage = fc.oneof(bytes, fc.jsonValue(), fc.constant(cbor(new Map([['fmt', 'none']])).toString('base64url')))

  await holds(t, fc.asyncProperty(garbage, fc.constantFrom('authenticatorData', 'signature', 'userHandle'), async (wrong, part) => {
    const visitor = new Browser(app)
    const signed = theirs.get(await optionsAt(visitor, 'login'), { response: { [part]: wrong } })
    const made = newDevice().create(await optionsAt(browser, 'register'), { response: { attestationObject: wrong } })
    for (const answer of [
      await visitor.post(`${BASE}/login`, { response: signed }),
      await browser.post(`${BASE}/register`, { response: made }),
      await visitor.post(`${BASE}/login`, { response: wrong })
    ]) if (![400, 401].includes(answer.statusCode)) throw new Error(answer.body)
  }), 100)

  t.strictSame(await stored(), before)
})

t.test('attack 106: an object in place of a text is refused, also one that has no text', async t => {
  const { app, theirs } = await startWithUsers(t)
  for (const wrong of [{ toString: '' }, { toString: null, valueOf: null }, { toJSON: '' }, ['AA'], 5, true]) {
    for (const part of ['authenticatorData', 'signature', 'userHandle', 'clientDataJSON']) {
      const visitor = new Browser(app)
      const response = theirs.get(await optionsAt(visitor, 'login'), { response: { [part]: wrong } })
      const refused = await visitor.post(`${BASE}/login`, { response })
      t.match([refused.statusCode, refused.json().code], [/^40[01]$/, /^invalid(?:_state|_request)?$/], `${part}: ${JSON.stringify(wrong)}`)
    }
  }
})

t.test('attack 106: a response of a megabyte, and one that has no form, are refused', async t => {
  const { app } = await startWithUsers(t)
  const browser = new Browser(app)
  await optionsAt(browser, 'login')
  for (const [response, status] of [
    ['x'.repeat(900_000), 400], ['x'.repeat(2_000_000), 413], [5, 400], [[], 400], [null, 400], [true, 400], ['', 400], ['{}', 400], [{}, 400]
  ] as const) {
    const refused = await browser.post(`${BASE}/login`, { response })
    t.match([refused.statusCode, refused.json().code], [status, /^(?:invalid_request|invalid_state)$/], String(response).slice(0, 10))
  }
})

t.test('attack 143: a passkey with a weak or false public key is refused, and nothing is stored', async t => {
  const { browser, app, userId, id } = await startWithUsers(t)
  const jwk = (key: KeyObject): Record<string, Buffer> =>
    Object.fromEntries(Object.entries(key.export({ format: 'jwk' })).map(([name, text]) => [name, Buffer.from(String(text), 'base64url')]))
  const [weak, p384, p256] = [
    jwk(generateKeyPairSync('rsa', { modulusLength: 512 }).publicKey), jwk(newKeys('ES384').publicKey), jwk(newKeys('ES256').publicKey)
  ]
  const keys: Record<string, Iterable<[number, unknown]>> = {
    '512 bits as RS256': [[1, 3], [3, -257], [-1, weak.n], [-2, weak.e]],
    'P-384 as ES256': [[1, 2], [3, -7], [-1, 2], [-2, p384.x], [-3, p384.y]],
    'ES256 as RS256': [[1, 2], [3, -257], [-1, 1], [-2, p256.x], [-3, p256.y]],
    'a point that is not on the curve': [[1, 2], [3, -7], [-1, 1], [-2, p256.x], [-3, p256.x]]
  }
  for (const [name, publicKey] of Object.entries(keys)) {
    const refused = await addAt(browser, newDevice(), { lies: { publicKey } })
    t.match([refused.statusCode, refused.json().code], [401, 'invalid'], name)
  }
  t.match(await app.auth.factors(userId), { length: 1, 0: { id } })
})

/** What a form or JSON has as response that is none, with the challenge of a right one. */
function malformed (right: CredentialJson): unknown[] {
  const { clientDataJSON, ...members } = right.response
  return [
    '', '{}', '{', 'null', '[]', 'not JSON', {}, { ...right, response: {} }, { ...right, response: { clientDataJSON } }, { ...right, response: members },
    { ...right, id: undefined }, { ...right, rawId: undefined }, { ...right, type: 'password' }, { ...right, more: 'x'.repeat(16_384) },
    JSON.stringify({ ...right, more: 'x'.repeat(16_384) }), JSON.stringify({ ...right, response: { ...right.response, clientDataJSON: 'e30=' } })
  ]
}

t.test('attack 144: what does not have the form of a response counts for nothing and takes nothing, at each route', async t => {
  const { app, browser, device } = await startWithUsers(t, { ...twoFactors(), rateLimit: { factor: 8, reauthenticate: 1 } })
  await enrolAt(t, browser)
  const waiting = new Browser(app)
  await waitAt(t, waiting)
  const routes: Array<[path: string, browser: Browser, ceremony: Ceremony, status: number]> = [
    ['/auth/local/second-factor', waiting, 'factor', 200],
    ['/auth/local/reauthenticate', browser, 'factor', 204],
    [`${BASE}/register`, browser, 'register', 201],
    [`${BASE}/login`, new Browser(app), 'login', 200]
  ]

  for (const [path, browser, ceremony, status] of routes) {
    const options = await optionsAt(browser, ceremony)
    const right = ceremony === 'register' ? newDevice().create(options) : device.get(options)
    for (const response of malformed(right)) {
      const refused = await browser.post(path, { response })
      t.match([refused.statusCode, refused.json().code], [400, 'invalid_request'], `${path} ${JSON.stringify(response).slice(0, 30)}`)
      const text = typeof response === 'string' ? response : JSON.stringify(response)
      const { statusCode, headers: { location } } = await browser.submit(path, { response: text, error_next: '/failed' })
      t.match([statusCode, location], [303, '/failed?error=invalid_request'], `${path} as a form`)
    }
    const accepted = await browser.post(path, { response: right })
    t.equal(accepted.statusCode, status, `${path} ${accepted.body}`)
  }
  const last = await waiting.post('/auth/local/reauthenticate', { response: device.get(await optionsAt(waiting, 'factor')) })
  t.match(last.json().code, 'rate_limited', 'two passkeys, two steps of an app, and four responses have counted')
})

t.test('attack 107: a foreign origin is refused with related ones, and a related one accepted', async t => {
  const { app, device } = await startWithUsers(
    t, { trustedOrigins: ['https://app.test', 'https://admin.app.example'] }, { relatedOrigins: ['https://app.test'] }
  )
  const from = async (origin: string) => (await signInBy(new Browser(app), device, { clientData: { origin } })).statusCode
  t.equal(await from('https://app.test'), 200)
  for (const origin of ['https://admin.app.example', 'https://app.test:8443', 'http://app.test', 'https://evil.test']) t.equal(await from(origin), 401)
})

t.test('nothing of a ceremony is in the log or in an audit event', async t => {
  const lines: string[] = []
  const events = [eventsOf(t, 'factor-added'), eventsOf(t, 'sign-in'), eventsOf(t, 'passkey-cloned'), eventsOf(t, 'failure')]
  const made = await startMailApp(t, { passkeys: new Passkeys({ name: 'Shop' }) }, {}, {
    logger: { level: 'trace', stream: { write: (line: string) => { lines.push(line) } } }
  })
  await registerAt(made)
  const device = newDevice()
  const { id } = (await addAt(made.browser, device)).json()
  const visitor = new Browser(made.app)
  const options = await optionsAt(visitor, 'login')
  await visitor.post(`${BASE}/login`, { response: device.get(options, { counter: 5 }) })
  t.equal((await signInBy(new Browser(made.app), device, { counter: 4 })).statusCode, 401)
  await proveBy(made.browser, device)

  t.ok(lines.length > 10 && events.flat().length > 3)
  const told = lines.join('') + JSON.stringify(events)
  for (const secret of [String(options.challenge), id, 'clientDataJSON']) t.notMatch(told, secret)
})
