import { generateKeyPairSync } from 'node:crypto'
import type { LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import { AppleProvider, type AppleProviderOptions, providersFromEnv } from '../../lib/index.js'
import { AppleStandIn } from '../fakes/apple.js'
import { json } from '../fakes/lies.js'
import type { Browser } from '../helpers/browser.js'
import { Browser as OtherBrowser } from '../helpers/browser.js'
import { appWith, checksFor, errorsIn } from './contract.js'

const CLAIMS = {
  sub: '001544.6f3ab3e3a6d34d0fbf6ce1f3a1f0b9d7.0821', email: 'pq9x7@privaterelay.appleid.com', email_verified: true, is_private_email: true
}
/** What Chromium sends with a form that a page of the provider posts: no cookie. */
const FROM_APPLE = {
  origin: 'https://appleid.apple.com', 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', cookie: ''
}

async function start (t: Test, options: Partial<AppleProviderOptions> = {}) {
  const apple = await new AppleStandIn().start(t)
  const provider = new AppleProvider({
    clientId: apple.clientId, teamId: apple.teamId, keyId: 'KEY1234567', privateKey: apple.newKey('KEY1234567'), fetch: apple.fetch, ...options
  })
  return { apple, provider, ...await appWith(t, provider) }
}

async function signIn (browser: Browser, apple: AppleStandIn): Promise<LightMyRequestResponse> {
  const { headers: { location = '' } } = await browser.get('/auth/apple/login', { referer: 'https://app.example/sign-in' })
  const posted = await browser.submit('/auth/apple/callback', Object.fromEntries(await apple.post(location)), FROM_APPLE)
  if (posted.statusCode !== 303) return posted
  return browser.get(posted.headers.location ?? '', { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'document' })
}

t.test('a user signs in by a form that Apple has the browser post; the name comes with the first consent alone', async t => {
  const { apple, app, browser, lines } = await start(t)

  t.equal((await signIn(browser, apple)).headers.location, '/')

  const { principal } = (await browser.get('/me')).json()
  t.strictSame(principal.claims, { ...CLAIMS, name: 'Ada Lovelace' })
  t.match(await app.auth.findUser({ email: CLAIMS.email }), { name: 'Ada Lovelace', emailVerified: true })
  t.strictSame(apple.backChannelRequests(), [
    'GET appleid.apple.com/.well-known/openid-configuration', 'POST appleid.apple.com/auth/token', 'GET appleid.apple.com/auth/keys'
  ])
  t.notMatch(lines.join(''), /Lovelace|privaterelay|state=/)

  const again = new OtherBrowser(app)
  t.equal((await signIn(again, apple)).headers.location, '/')
  t.strictSame((await again.get('/me')).json().principal, { ...principal, claims: CLAIMS })
  t.match(await app.auth.findUser({ email: CLAIMS.email }), { name: 'Ada Lovelace' }, 'the name of the user stays')
})

t.test('the client secret is made for each token request, and expires in ten minutes', async t => {
  const { apple, app } = await start(t)
  for (let time = 0; time < 2; time++) await signIn(new OtherBrowser(app), apple)
  t.match(apple.secrets, Array(2).fill({ iss: 'TEAM123456', sub: apple.clientId, aud: 'https://appleid.apple.com', kid: 'KEY1234567' }))
  t.strictSame(apple.secrets.map(({ iat, exp }) => Number(exp) - Number(iat)), [600, 600])
})

t.test('a key that functions return is rolled without a restart', async t => {
  const apple = await new AppleStandIn().start(t)
  let [keyId, privateKey] = ['KEY1', apple.newKey('KEY1')]
  const provider = new AppleProvider({ clientId: apple.clientId, teamId: apple.teamId, keyId: () => keyId, privateKey: () => privateKey, fetch: apple.fetch })
  const { app } = await appWith(t, provider)
  t.equal((await signIn(new OtherBrowser(app), apple)).headers.location, '/')

  apple.teamKeys.clear()
  t.equal((await signIn(new OtherBrowser(app), apple)).headers.location, '/sign-in?error=provider_error');
  [keyId, privateKey] = ['KEY2', apple.newKey('KEY2')]
  t.equal((await signIn(new OtherBrowser(app), apple)).headers.location, '/')
  t.strictSame(apple.secrets.map(({ kid }) => kid), ['KEY1', 'KEY2'])
})

t.test('what is in the field user is a name for display, of plain text, and nothing else', async t => {
  const cases: Array<[user: unknown, name: string | undefined]> = [
    [{ name: { firstName: 'Ada\r\nBcc: eve', lastName: '\u202eLovelace' } }, 'AdaBcc: eve Lovelace'],
    [{ name: { firstName: 'Ada' } }, 'Ada'],
    [{ name: { firstName: 7, lastName: ['x'] } }, undefined],
    [{ name: 'Ada', email: 'root@app.example', email_verified: true, sub: 'other' }, undefined],
    [{ name: null }, undefined], [null, undefined], [[], undefined], ['"', undefined],
    [{ name: { firstName: 'x'.repeat(3000) } }, 'x'.repeat(1000)]
  ]
  for (const [user, name] of cases) {
    const { apple, browser } = await start(t)
    apple.user = user === '"' ? '{"name' : JSON.stringify(user)
    t.equal((await signIn(browser, apple)).headers.location, '/')
    t.strictSame((await browser.get('/me')).json().principal.claims, { ...CLAIMS, ...(name !== undefined && { name }) })
  }
})

t.test('email_verified and is_private_email count as booleans and as strings', async t => {
  for (const [sent, isTrue] of [['true', true], [true, true], ['false', false], [false, false]] as const) {
    const { apple, app, browser } = await start(t)
    Object.assign(apple.profile, { email_verified: sent, is_private_email: sent })
    await signIn(browser, apple)
    t.match((await browser.get('/me')).json().principal.claims, { email_verified: isTrue, is_private_email: isTrue })
    t.equal(await app.auth.findUser({ email: CLAIMS.email }) !== null, isTrue)
  }
  const { apple, browser } = await start(t)
  delete apple.profile.is_private_email
  await signIn(browser, apple)
  t.notOk('is_private_email' in (await browser.get('/me')).json().principal.claims)
})

t.test('a user who cancels is access_denied, without an error in the log', async t => {
  const { apple, browser, lines } = await start(t)
  apple.consents = false
  t.equal((await signIn(browser, apple)).headers.location, '/sign-in?error=access_denied')
  t.strictSame(errorsIn(lines), [])
})

t.test('neither the secret nor the code reaches the log when Apple repeats them', async t => {
  const { apple, browser, lines } = await start(t)
  const quoted: string[] = []
  apple.lies.set('POST appleid.apple.com/auth/token', () => {
    const { form = new URLSearchParams() } = apple.requests.at(-1) ?? {}
    quoted.push(form.get('code') ?? '')
    return json(400, { error: 'invalid_request', error_description: quoted.join() })
  })
  await signIn(browser, apple)
  t.ok(quoted.every(secret => secret !== '' && !lines.join('').includes(secret)))
})

t.test('a provider that has no key by now fails that sign-in, and the log does not have the key', async t => {
  let privateKey = ''
  const { apple, browser, lines } = await start(t, { privateKey: () => privateKey || new AppleStandIn().newKey('any') })
  privateKey = 'not-a-key'
  t.equal((await signIn(browser, apple)).headers.location, '/sign-in?error=provider_error')
  t.match(errorsIn(lines).join(), /EC P-256 private key/)
  t.notMatch(lines.join(), /not-a-key/)
})

t.test('a key that is not a private key for P-256 is refused at the start, and not shown', async t => {
  const pem = (type: 'ec' | 'rsa' | 'ed25519', options: object) => {
    const { privateKey } = generateKeyPairSync(type as 'ec', options as { namedCurve: string })
    return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  }
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const wrong = [
    pem('ec', { namedCurve: 'P-384' }), pem('ec', { namedCurve: 'secp256k1' }), pem('rsa', { modulusLength: 2048 }), pem('ed25519', {}),
    publicKey.export({ type: 'spki', format: 'pem' }).toString(), '', 'AuthKey_KEY1234567.p8', undefined, 7, null
  ]
  const options = { clientId: 'a', teamId: 'b', keyId: 'c' }
  for (const key of wrong) {
    for (const privateKey of [key, () => key]) {
      try {
        t.notOk(new AppleProvider({ ...options, privateKey: privateKey as string }), String(key))
      } catch (error) {
        t.match(error, { code: 'invalid_options', message: 'apple: privateKey must be the text of AuthKey_….p8, an EC P-256 private key in PEM' })
        t.equal((error as Error).cause, undefined)
      }
    }
  }
  const privateKey = new AppleStandIn().newKey('c')
  for (const option of ['teamId', 'keyId', 'clientId']) {
    t.throws(() => new AppleProvider({ ...options, privateKey, [option]: '' }), { code: 'invalid_options', message: new RegExp(`apple: ${option} `) })
  }
  t.throws(() => new AppleProvider({ ...options, privateKey, clientSecret: 'x' } as never), { message: /apple has no option "clientSecret"/ })
  t.equal(new AppleProvider({ ...options, privateKey: privateKey.replaceAll('\n', '\\n') }).responseMode, 'form_post')
})

t.test('the settings of Apple make its provider: all four, or none', async t => {
  const privateKey = new AppleStandIn().newKey('c')
  const env = { APPLE_CLIENT_ID: 'com.example', APPLE_TEAM_ID: 'TEAM', APPLE_KEY_ID: 'KEY', APPLE_PRIVATE_KEY: privateKey }
  for (const APPLE_PRIVATE_KEY of [privateKey, privateKey.replaceAll('\n', '\\n'), `\n${privateKey}\n`]) {
    const [provider, ...others] = providersFromEnv({ ...env, APPLE_PRIVATE_KEY })
    t.type(provider, AppleProvider)
    t.strictSame(others, [])
  }
  t.strictSame(providersFromEnv({ APPLE_PRIVATE_KEY: ' \n', APPLE_KEY_ID: '' }), [])
  for (const missing of Object.keys(env)) {
    t.throws(() => providersFromEnv({ ...env, [missing]: ' ' }), { code: 'invalid_options', message: new RegExp(`^${missing} is not set, but APPLE_`) })
  }
})

t.test('the authorization request asks for a form, with state, nonce and PKCE', async t => {
  const { provider } = await start(t)
  const { searchParams } = await provider.authorizationUrl(checksFor('apple'))
  t.match(Object.fromEntries(searchParams), {
    response_mode: 'form_post', response_type: 'code', scope: 'openid name email', code_challenge_method: 'S256', state: /./, nonce: /./
  })
})
