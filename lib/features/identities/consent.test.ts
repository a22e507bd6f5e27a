import t, { type Test } from 'tap'
import { type AuthPluginOptions, type Linking, MemoryAuthStore, OAuth2Provider, type SignIn } from '../../index.js'
import { mailbox } from '../../testing.js'
import { SESSION_SECRET, localProvider, principalIn, startApp, userIdIn } from '../../../test/helpers/app.js'
import { eventsOf } from '../../../test/helpers/audit-events.js'
import { Browser } from '../../../test/helpers/browser.js'
import { advanceClock } from '../../../test/helpers/clock.js'
import { enrolAda, enrolAt, nextCode, startFactorApp } from '../../../test/helpers/factor-app.js'
import { confirmAddress } from '../../../test/helpers/mail-app.js'
import { startOpenIdProvider } from '../../../test/helpers/openid-provider.js'
import { OwnProvider, leaveFor, linkAt, postLogin, signInAt, startAt } from '../../../test/helpers/own-provider.js'
import { SOME_SESSION_STORES } from '../../../test/helpers/session-stores.js'

const HOUR_MS = 3_600_000
const ADA = { email: 'ada@example.com', password: 'correct horse' }
const ADA_AT_A = { subject: 'ada-1', email: 'ada@elsewhere.example' }
const AS_SCRIPT = { accept: 'application/json' }
const SCOPES = ['calendar']

/** Ada, who registered with a password and linked an identity at `a`, an hour ago. */
async function withAda (t: Test, options: AuthPluginOptions = {}) {
  const mails = mailbox()
  const [told, signIns]: [Linking[], SignIn[]] = [[], []]
  const app = await startApp(t, {
    baseUrl: 'https://app.example',
    providers: [new OwnProvider('a'), new OwnProvider('b')],
    local: localProvider({ sendMail: mails.sendMail, mails: { limits: false } }),
    rateLimit: false,
    store: new MemoryAuthStore(),
    onLink: linking => { told.push(linking) },
    onSignIn: signIn => { signIns.push(signIn) },
    ...options
  }, {}, app => {
    app.post('/unlink-a', async request => app.auth.unlink(app.auth.user(request).userId, 'a', { except: request }))
    app.get('/connect/:provider', async (request, reply) => reply.redirect(
      app.auth.signInUrl(String(Object(request.params).provider), { link: true, request, next: '/calendar', scopes: SCOPES })))
  })
  const browser = new Browser(app)
  const { userId }: { userId: string } = (await browser.post('/auth/local/register', ADA)).json()
  await confirmAddress(browser, (await mails.next('verify-email')).token)
  await linkAt(browser, 'a', ADA_AT_A)
  await mails.next('identity-linked')
  told.length = 0
  signIns.length = 0
  advanceClock(t, HOUR_MS)
  return {
    app,
    browser,
    userId,
    told,
    signIns,
    mails,
    /** The path of a consent of the user of a browser, as a route of the application makes it. */
    consent: async (asked = browser, provider = 'a') => (await asked.get(`/connect/${provider}`)).headers.location ?? '',
    linked: async () => (await app.auth.links(userId)).map(({ provider, subject }) => `${provider} ${subject}`)
  }
}

const UNCHANGED = ['a ada-1', 'local ada@example.com']

for (const [name, createSessions] of SOME_SESSION_STORES) {
  const options = (): AuthPluginOptions => ({ session: { secret: SESSION_SECRET, store: createSessions() } })

  t.test(`a user gives consent with their identity, an hour after they signed in, with ${name}`, async t => {
    const { app, browser, userId, told, signIns, consent, linked, mails } = await withAda(t, options())
    const links = eventsOf(t, 'link')
    const [before, cookies] = [await principalIn(browser), new Map(browser.cookies)]

    const landing = await browser.get(await leaveFor(browser, await consent(), { ...ADA_AT_A, claims: { locale: 'en' } }))

    t.equal(landing.headers.location, '/calendar')
    t.strictSame([await principalIn(browser), browser.cookies], [before, cookies], 'the session is the same')
    t.match(told, [{ userId, identity: { provider: 'a', subject: 'ada-1' }, tokens: { accessToken: 'the-access-token', scope: 'openid' } }])
    t.strictSame([signIns, links, await linked()], [[], [], UNCHANGED], 'nobody signs in, and nothing is linked')
    t.match((await app.auth.links(userId))[0]?.claims, { locale: 'en' })
    await app.close()
    t.notOk(mails.all.slice(2).some(({ kind }) => kind === 'identity-linked'))
  })

  t.test(`attack 23: a consent with an identity that is not the user's ends as the same user, with ${name}`, async t => {
    const { app, browser, userId, told, consent, linked } = await withAda(t, options())
    const bob = new Browser(app)
    await signInAt(bob, 'a', { subject: 'bob-1', email: 'bob@example.com' })
    const bobId = await userIdIn(bob)

    for (const subject of ['bob-1', 'nobody-yet']) {
      const answer = await browser.get(await leaveFor(browser, await consent(), { subject }), AS_SCRIPT)

      t.strictSame([answer.statusCode, answer.json().code], [409, 'already_linked'], subject)
      t.equal(await userIdIn(browser), userId, subject)
    }
    t.strictSame([await linked(), told.length, await userIdIn(bob)], [UNCHANGED, 0, bobId])
    t.equal(await app.auth.findUser({ provider: 'a', subject: 'nobody-yet' }), null)
  })

  t.test(`attack 120: a consent of a user without an identity at the provider is a linking, with ${name}`, async t => {
    const { browser, told, consent, linked, mails } = await withAda(t, options())
    const url = await consent(browser, 'b')
    t.equal((await postLogin(browser, url)).json().code, 'reauthenticate', 'after an hour')

    await browser.post('/auth/local/reauthenticate', { password: ADA.password })
    t.equal((await postLogin(browser, url)).json().code, 'invalid_state', 'the session has a new id')
    t.equal((await browser.get(await leaveFor(browser, await consent(browser, 'b'), { subject: 'ada-b' }))).headers.location, '/calendar')

    t.strictSame(await linked(), ['a ada-1', 'b ada-b', 'local ada@example.com'])
    t.equal(told.length, 1)
    await mails.next('identity-linked')
  })

  t.test(`attack 120: an identity that was removed meanwhile is not linked again by a consent, with ${name}`, async t => {
    const { browser, told, consent, linked } = await withAda(t, options())
    const callback = await leaveFor(browser, await consent(), ADA_AT_A)
    await browser.post('/unlink-a')

    t.equal((await browser.get(callback, AS_SCRIPT)).json().code, 'invalid_state', 'the session has a new id')
    t.equal((await postLogin(browser, await consent())).json().code, 'reauthenticate', 'a linking')
    t.strictSame([await linked(), told.length], [['local ada@example.com'], 0])
  })
}

t.test('attack 120: an identity that is removed while onLink runs is not linked again', async t => {
  let remove = async (_userId: string): Promise<unknown> => undefined
  const { app, browser, consent, linked } = await withAda(t, { onLink: async ({ userId }) => { await remove(userId) } })
  const callback = await leaveFor(browser, await consent(), ADA_AT_A)
  remove = async userId => app.auth.unlink(userId, 'a')

  t.equal((await browser.get(callback, AS_SCRIPT)).json().code, 'unauthenticated')
  t.strictSame(await linked(), ['local ada@example.com'])
})

t.test('attack 23: a consent is finished by the user who started it alone, in the session that started it', async t => {
  const { app, userId, told, consent, linked } = await withAda(t)
  const other = new Browser(app)
  await other.post('/auth/local/login', ADA)
  const ends: Record<string, (browser: Browser) => Promise<Browser>> = {
    'another session of the user': async () => other,
    'an empty browser': async () => new Browser(app),
    'after the user signed out': async browser => { await browser.post('/auth/local/revoke'); return browser },
    'after the user reauthenticated': async browser => { await browser.post('/auth/local/reauthenticate', { password: ADA.password }); return browser },
    'after another user signed in': async browser => { await signInAt(browser, 'b', { subject: 'bob' }); return browser },
    'after all sessions of the user ended': async browser => { await app.auth.signOutEverywhere(userId); return browser }
  }
  for (const [when, move] of Object.entries(ends)) {
    const started = new Browser(app)
    await started.post('/auth/local/login', ADA)
    const callback = await leaveFor(started, await consent(started), ADA_AT_A)

    const finishing = await move(started)
    const before = await userIdIn(finishing)
    const { code } = (await finishing.get(callback, AS_SCRIPT)).json()

    t.ok(['invalid_state', 'unauthenticated'].includes(code), `${when}: ${code}`)
    t.equal(await userIdIn(finishing), before, when)
  }
  t.strictSame([await linked(), told.length], [UNCHANGED, 0])
})

t.test('attack 175: the path of a consent is good for its user, in the session that asked, and starts nothing by itself', async t => {
  const { app, browser, userId, consent, linked } = await withAda(t)
  const url = await consent()
  t.match((await browser.get(url)).body, /<form method="post" action="\/auth\/a\/login">/, 'a page with a button')
  const stranger = new Browser(app)
  await signInAt(stranger, 'b', { subject: 'bob' })
  const other = new Browser(app)
  await other.post('/auth/local/login', ADA)
  const refused = { 'another user': stranger, 'another session of the user': other, 'a visitor': new Browser(app) }
  for (const [who, browser] of Object.entries(refused)) {
    for (const answer of [await browser.get(url, AS_SCRIPT), await postLogin(browser, url)]) {
      t.equal(answer.json().code, who === 'a visitor' ? 'unauthenticated' : 'invalid_state', who)
    }
  }
  t.equal((await postLogin(browser, url, { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' })).json().code, 'cross_origin')
  t.throws(() => app.auth.signInUrl('a', { link: true }), { name: 'OptionsError', message: /link: true and request together/ })
  t.equal((await new Browser(app).get('/connect/a')).statusCode, 401, 'of a visitor none is made')

  await app.auth.signOutEverywhere(userId)
  t.equal((await postLogin(browser, url)).json().code, 'unauthenticated', 'a session that has ended')
  t.strictSame(await linked(), UNCHANGED)
})

t.test('the purpose is signed: a request neither adds nor removes it', async t => {
  const { app, browser, userId, consent } = await withAda(t)
  const signed = new URLSearchParams(app.auth.signInUrl('a', { scopes: SCOPES }).split('?')[1]).get('signed') ?? ''
  const plain = (more: string) => `/auth/a/login?${new URLSearchParams({ signed })}${more}`

  t.equal((await postLogin(browser, plain('&link=true'))).json().code, 'reauthenticate', 'a plain linking')
  await browser.get(await leaveFor(browser, `${await consent()}&link=false`, { subject: 'bob' }))
  t.equal(await userIdIn(browser), userId)
})

t.test('attack 131: consent takes no second factor, but a linking does', async t => {
  const setting = await startFactorApp(t)
  const { browser } = setting
  const { userId } = await enrolAda(t, setting)
  t.equal((await linkAt(browser, 'a', ADA_AT_A)).headers.location, '/')
  advanceClock(t, HOUR_MS)
  const ask = async (provider: string) => (await browser.get(`/connect/${provider}`)).headers.location ?? ''

  t.equal((await browser.get(await leaveFor(browser, await ask('a'), ADA_AT_A))).headers.location, '/')
  const refused = (await postLogin(browser, await ask('b'))).json()

  t.match(refused, { code: 'reauthenticate', methods: ['recovery', 'totp'] })
  t.equal(await userIdIn(browser), userId)
})

t.test('attack 151: a consent writes the claims of the link, and nothing else of the account', async t => {
  for (const hasApp of [false, true]) {
    const setting = await startFactorApp(t)
    const { app, browser, mails } = setting
    const { auth } = app
    const signedIn = { subject: 'ada-1', email: ADA.email, claims: { name: 'Ada' } }
    await signInAt(browser, 'a', signedIn)
    const userId = await userIdIn(browser) ?? ''
    const secret = hasApp ? (await enrolAt(t, browser)).secret : null
    const before = await auth.findUser({ userId })
    advanceClock(t, HOUR_MS)
    for (const person of [
      { subject: 'ada-1', email: 'mallory@example.com', emailVerified: false, claims: { name: 'Mallory' } },
      { subject: 'ada-1', claims: { name: 'Mallory' } },
      { subject: 'ada-1', email: 'mallory@example.com', claims: { name: 'Mallory', locale: 'en' } }
    ]) {
      const landing = await browser.get(await leaveFor(browser, (await browser.get('/connect/a')).headers.location ?? '', person))
      t.equal(landing.headers.location, '/')
      t.strictSame(await auth.findUser({ userId }), before)
    }
    t.match(await auth.links(userId), [{ claims: { email: 'mallory@example.com', name: 'Mallory', locale: 'en' } }])
    t.equal(await auth.findUser({ email: 'mallory@example.com' }), null)

    // The next sign-in moves the address, as if there had been no consent.
    const later = new Browser(app)
    await signInAt(later, 'a', { subject: 'ada-1', email: 'ada@new.example' })
    if (secret !== null) t.equal((await later.post('/auth/local/second-factor', { code: nextCode(t, secret) })).statusCode, 200)
    t.match(await auth.findUser({ userId }), { email: 'ada@new.example', emailVerified: true })
    await later.get(await leaveFor(later, (await later.get('/connect/a')).headers.location ?? '', { subject: 'ada-1', email: 'ada@last.example' }))
    const last = new Browser(app)
    await signInAt(last, 'a', { subject: 'ada-1', email: 'ada@last.example' })
    if (secret !== null) t.equal((await last.post('/auth/local/second-factor', { code: nextCode(t, secret) })).statusCode, 200)
    t.match(await auth.findUser({ userId }), { email: 'ada@last.example', emailVerified: true })
    t.match(await mails.next('email-changed'), { to: ADA.email })
  }
})

t.test('an OpenID provider is asked for the scopes, and the user stays, also when another one comes back', async t => {
  const idp = await startOpenIdProvider(t, { redirectUris: ['https://app.example/auth/dev/callback'] })
  const told: Linking[] = []
  const app = await startApp(t, {
    baseUrl: 'https://app.example',
    providers: [idp.provider({ scopes: ['openid'] })],
    onLink: linking => { told.push(linking) }
  }, {}, app => {
    app.get('/connect', async (request, reply) => reply.redirect(
      app.auth.signInUrl('dev', { link: true, request, prompt: 'consent', scopes: ['email'] })))
  })
  const browser = new Browser(app)
  const visit = async (url: string) => {
    const { pathname, search } = await idp.authorize(await startAt(browser, url))
    return browser.get(pathname + search, AS_SCRIPT)
  }
  await visit(app.auth.signInUrl('dev', { scopes: [] }))
  const userId = await userIdIn(browser)
  advanceClock(t, HOUR_MS / 2)
  const url = (await browser.get('/connect')).headers.location ?? ''

  t.equal((await visit(url)).headers.location, '/')
  t.strictSame(told.map(({ userId, tokens: { scope } }) => [userId, scope]), [[userId, 'openid email']])
  idp.account = { sub: 'eve' }
  t.equal((await visit(url)).json().code, 'already_linked')
  t.equal(await userIdIn(browser), userId)
  t.equal(await app.auth.findUser({ provider: 'dev', subject: 'eve' }), null)
})

t.test('attack 120: signInUrl without link signs in the user who comes back, as ever', async t => {
  const { app, browser, userId } = await withAda(t)
  await browser.get(await leaveFor(browser, app.auth.signInUrl('a', { scopes: SCOPES }), { subject: 'eve' }))
  t.not(await userIdIn(browser), userId)
})

t.test('acrValues are sent, and the acr of the ID token must be one of them', async t => {
  const idp = await startOpenIdProvider(t, {
    redirectUris: ['https://app.example/auth/dev/callback', 'https://app.example/auth/strict/callback'],
    configuration: { acrValues: ['silver', 'gold'] }
  })
  const strict = idp.provider({ name: 'strict', authorizationParams: { acr_values: 'gold silver' } })
  const app = await startApp(t, { baseUrl: 'https://app.example', providers: [idp.provider(), strict] })
  const attempt = async (url: string, acr: string | undefined) => {
    idp.acr = acr
    const browser = new Browser(app)
    const { headers: { location = '' } } = await browser.get(url)
    const { pathname, search } = await idp.authorize(location)
    const answer = await browser.get(pathname + search, AS_SCRIPT)
    return [new URL(location).searchParams.get('acr_values'), answer.headers.location ?? answer.json().code]
  }
  const golden = app.auth.signInUrl('dev', { acrValues: ['gold'] })

  t.strictSame(await attempt(golden, 'gold'), ['gold', '/'])
  t.strictSame(await attempt(golden, 'silver'), ['gold', 'not_allowed'])
  t.strictSame(await attempt(golden, undefined), ['gold', 'not_allowed'])
  t.strictSame(await attempt(app.auth.signInUrl('dev', { acrValues: ['gold', 'silver'] }), 'silver'), ['gold silver', '/'])
  t.strictSame(await attempt('/auth/dev/login', undefined), [null, '/'], 'only where it was asked for')
  t.strictSame(await attempt('/auth/strict/login', 'silver'), ['gold silver', '/'])
  t.strictSame(await attempt('/auth/strict/login', 'bronze'), ['gold silver', 'not_allowed'])
  t.strictSame(await attempt(app.auth.signInUrl('strict', { acrValues: ['gold'] }), 'silver'), ['gold', 'not_allowed'])
  t.strictSame(await attempt(app.auth.signInUrl('strict', { acrValues: ['bronze', 'gold'] }), 'bronze'), ['gold', 'not_allowed'], 'attack 159')
  t.strictSame(await attempt(app.auth.signInUrl('strict', { maxAge: 60 }), 'bronze'), ['gold silver', 'not_allowed'], 'attack 159')
  const disjoint = await app.inject(app.auth.signInUrl('strict', { acrValues: ['bronze'] }))
  t.match([disjoint.statusCode, disjoint.json()], [502, { code: 'provider_error' }], 'no acr would fulfil both')
})

t.test('a provider without ID tokens refuses acrValues, which could not be compared', async t => {
  class Plain extends OAuth2Provider {
    protected override async identify (): Promise<never> { throw new Error('not asked') }
  }
  const app = await startApp(t, {
    baseUrl: 'https://app.example',
    providers: [new Plain({
      name: 'plain', authorizationEndpoint: 'https://plain.example/a', tokenEndpoint: 'https://plain.example/t', clientId: 'id', clientSecret: 'secret'
    })]
  })
  t.equal((await app.inject(app.auth.signInUrl('plain', { acrValues: ['gold'] }))).json().code, 'provider_error')
  for (const acrValues of [[], [''], ['a b'], 'gold', [5]] as never[]) {
    t.throws(() => app.auth.signInUrl('plain', { acrValues }), { name: 'OptionsError', message: /acrValues must be a list of one or more/ })
  }
  t.throws(() => app.auth.signInUrl('plain', { link: 'true' as never }), { name: 'OptionsError', message: /link must be true or false/ })
  t.equal(app.auth.signInUrl('plain', { link: false }), '/auth/plain/login')
})
