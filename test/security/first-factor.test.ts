/** Attacks 129 to 132, 134, 136 and 145: what someone does with a first factor alone. */
import t, { type Test } from 'tap'
import { Accounts, type AuthPluginOptions, type LocalIdentityProviderOptions, MemoryAuthStore } from '../../lib/index.js'
import { Passkeys } from '../../lib/passkeys.js'
import { SecondFactor, type SecondFactorOptions } from '../../lib/second-factor.js'
import { totp } from '../../lib/testing.js'
import { SESSION_SECRET, principalIn, startApp, userIdIn } from '../helpers/app.js'
import { eventsOf } from '../helpers/audit-events.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { deferred } from '../helpers/deferred.js'
import { DATA_SECRET, enrolAt, nextCode, waitAt } from '../helpers/factor-app.js'
import {
  ADA, BASE_URL, type MailApp, NEW_PASSWORD, confirmAddress, registerAt, resetTokenOf, startMailApp
} from '../helpers/mail-app.js'
import { type AdmittedUser, leaveFor, linkAt, postLogin } from '../helpers/own-provider.js'
import { addAt, newDevice, optionsAt, proveBy, signInBy } from '../helpers/passkey-app.js'
import { SOME_STORES } from '../helpers/stores.js'

const MINUTE_MS = 60_000
const ADA_AT_A: AdmittedUser = { subject: 'ada-a', email: ADA.email, claims: { name: 'Ada' } }

/** The options for both kinds of factors. */
function both (options: Partial<SecondFactorOptions> = {}): AuthPluginOptions {
  return {
    dataSecret: DATA_SECRET,
    secondFactor: new SecondFactor({ issuer: 'Shop', ...options }),
    passkeys: new Passkeys({ name: 'Shop' })
  }
}

async function start (
  t: Test, factor: Partial<SecondFactorOptions> = {}, options: AuthPluginOptions = {}, local: LocalIdentityProviderOptions = {}
): Promise<MailApp> {
  return startMailApp(t, { ...both(factor), ...options }, local)
}

/** Registers Ada with a confirmed address. */
async function confirmedAda (t: Test, made: MailApp): Promise<string> {
  const token = await registerAt(made)
  t.equal((await confirmAddress(made.browser, token)).statusCode, 204)
  return await userIdIn(made.browser) ?? ''
}

/** Registers Ada with a confirmed address and a passkey. */
async function adaWithPasskey (t: Test, made: MailApp) {
  const userId = await confirmedAda(t, made)
  const device = newDevice()
  t.equal((await addAt(made.browser, device)).statusCode, 201)
  await made.mails.next('factor-added')
  return { userId, device, id: device.id.toString('base64url') }
}

/** Goes to a provider and comes back as this person, by a script. */
async function signInAt (browser: Browser, provider: string, person: AdmittedUser) {
  return browser.get(await leaveFor(browser, `/auth/${provider}/login`, person), { accept: 'application/json' })
}

/** All that an account has. */
async function accountOf ({ app }: Pick<MailApp, 'app'>, userId: string) {
  const { auth } = app
  return { user: await auth.findUser({ userId }), links: await auth.links(userId), factors: await auth.factors(userId) }
}

/** A browser that knows the password of Ada, and no more. */
async function thief ({ app }: Pick<MailApp, 'app'>): Promise<Browser> {
  const browser = new Browser(app)
  await browser.post('/auth/local/login', ADA)
  return browser
}

function answerOf ({ statusCode, body }: { statusCode: number, body: string }): [status: number, code?: string] {
  const { code }: { code?: string } = body === '' ? {} : JSON.parse(body)
  return code === undefined ? [statusCode] : [statusCode, code]
}

for (const [kind, createStore] of Object.entries(SOME_STORES)) {
  t.test(`attack 129: a sign-in at a provider writes nothing before the second factor, on ${kind}`, async t => {
    const made = await start(t, {}, { store: await createStore(t) })
    // Ada came by the provider alone, so that it may move her e-mail.
    await signInAt(made.browser, 'a', ADA_AT_A)
    const { secret, userId } = await enrolAt(t, made.browser)
    await made.mails.next('factor-added')
    const before = await accountOf(made, userId)
    const audited = [eventsOf(t, 'link'), eventsOf(t, 'sign-in')]

    const moved: AdmittedUser = { subject: 'ada-a', email: 'mallory@example.com', claims: { name: 'Mallory' } }
    for (const person of [moved, moved, { subject: 'ada-a', email: 'other@example.com', emailVerified: false }, { subject: 'ada-a' }]) {
      t.strictSame(answerOf(await signInAt(new Browser(made.app), 'a', person)), [401, 'second_factor_required'])
    }
    t.strictSame(answerOf(await signInAt(new Browser(made.app), 'b', { subject: 'b-1', email: ADA.email })), [401, 'second_factor_required'])

    t.strictSame(await accountOf(made, userId), before)
    t.equal(await made.app.auth.findUser({ email: 'mallory@example.com' }), null)
    t.equal(await made.app.auth.findUser({ provider: 'b', subject: 'b-1' }), null)
    t.strictSame(audited, [[], []])
    await t.rejects(made.mails.next(undefined, { timeout: 50 }), 'no mail was sent')

    const finishing = new Browser(made.app)
    await signInAt(finishing, 'a', moved)
    t.equal((await finishing.post('/auth/local/second-factor', { code: nextCode(t, secret) })).statusCode, 200)
    t.match(await principalIn(finishing), { userId, claims: { email: moved.email, name: 'Mallory' } })
    t.match(await made.app.auth.findUser({ userId }), { email: moved.email, name: 'Mallory', emailVerified: true })
    t.match(await made.mails.next('email-changed'), { to: ADA.email }, 'the former address is told')

    const joining = new Browser(made.app)
    await signInAt(joining, 'b', { subject: 'b-1', email: moved.email ?? '' })
    t.equal((await joining.post('/auth/local/second-factor', { code: nextCode(t, secret) })).statusCode, 200)
    t.equal((await made.app.auth.findUser({ provider: 'b', subject: 'b-1' }))?.userId, userId)
    t.match(await made.mails.next('identity-linked'), { to: moved.email }, 'so is that of the account')
    t.match(audited[0], [{ userId, provider: 'b', by: 'email' }])
  })

  t.test(`attack 129: what the first factor found must still be so after the second, on ${kind}`, async t => {
    const store = await createStore(t)
    const made = await start(t, {}, { store })
    const { auth } = made.app
    const accounts = new Accounts(store)
    await confirmedAda(t, made)
    await linkAt(made.browser, 'a', ADA_AT_A)
    const { secret, userId, recoveryCodes } = await enrolAt(t, made.browser)
    const finishes = async (provider: string, person: AdmittedUser, meanwhile: () => Promise<unknown>): Promise<unknown[]> => {
      const browser = new Browser(made.app)
      t.strictSame(answerOf(await signInAt(browser, provider, person)), [401, 'second_factor_required'])
      await meanwhile()
      const before = await auth.links(userId)
      const answer = answerOf(await browser.post('/auth/local/second-factor', { code: recoveryCodes.pop() }))
      t.equal(await principalIn(browser), null)
      t.strictSame(await auth.links(userId), before)
      return answer
    }
    const joining = { subject: 'b-1', email: ADA.email }

    t.strictSame(await finishes('b', joining, async () =>
      accounts.addLink(userId, { provider: 'b', subject: 'b-2', claims: { sub: 'b-2' }, verifiedEmail: null })), [400, 'invalid_state'], 'another subject')
    await accounts.removeLink(userId, 'b')
    t.strictSame(await finishes('b', joining, async () => signInAt(new Browser(made.app), 'b', { subject: 'b-1' })
      .then(async () => accounts.createUser({
        userId: '00000000-0000-4000-8000-000000000009',
        email: null,
        emailVerified: false,
        name: null,
        claims: {},
        link: { provider: 'b', subject: 'b-1', claims: { sub: 'b-1' } }
      }))), [400, 'invalid_state'], 'the identity of another user')
    await auth.deleteUser((await auth.findUser({ provider: 'b', subject: 'b-1' }))?.userId ?? '')
    t.strictSame(await finishes('a', ADA_AT_A, async () => accounts.changeUser(userId, { blocked: { at: new Date() } })), [403, 'blocked'])
    await auth.unblock(userId)
    t.strictSame(await finishes('a', ADA_AT_A, async () => auth.signOutEverywhere(userId)), [400, 'invalid_state'])
    const again = new Browser(made.app)
    await waitAt(t, again)
    await again.post('/auth/local/second-factor', { code: nextCode(t, secret) })
    t.strictSame(await finishes('a', ADA_AT_A, async () => accounts.removeLink(userId, 'a')), [400, 'invalid_state'])
  })

  t.test(`attack 129: the address of the password must be the same, and as verified, with the code, on ${kind}`, async t => {
    const store = await createStore(t)
    const made = await start(t, {}, { store })
    await registerAt(made)
    await linkAt(made.browser, 'a', ADA_AT_A)
    const { secret, userId } = await enrolAt(t, made.browser)
    t.match(await made.app.auth.findUser({ userId }), { email: ADA.email, emailVerified: true }, 'by the word of the provider')
    const [browser, accounts] = [new Browser(made.app), new Accounts(store)]
    const finish = async () => answerOf(await browser.post('/auth/local/second-factor', { code: nextCode(t, secret) }))
    /** What the provider reports at another sign-in. */
    const report = async (email: string | null) => accounts.refreshIdentity({
      provider: 'a', subject: 'ada-a', claims: { sub: 'ada-a', ...(email !== null && { email }) }, verifiedEmail: email
    })

    await waitAt(t, browser)
    t.match(await report(null), { email: ADA.email, emailVerified: false })
    t.strictSame(await finish(), [400, 'invalid_state'], 'no longer verified')
    await report(ADA.email)
    await waitAt(t, browser)
    t.match(await report('ada@other.example'), { email: 'ada@other.example', emailVerified: true })
    t.strictSame(await finish(), [400, 'invalid_state'], 'another address')
    t.equal(await principalIn(browser), null)
    await report(ADA.email)
    await waitAt(t, browser)
    t.strictSame(await finish(), [200], 'as it was')
  })

  t.test(`attack 130: who reads a mailbox removes no factor of a user who has ever owned an address, on ${kind}`, async t => {
    const made = await start(t, {}, { store: await createStore(t) })
    await signInAt(made.browser, 'a', ADA_AT_A)
    const { userId } = await enrolAt(t, made.browser)
    const accounts = new Accounts(made.app.auth.store)
    await accounts.addLink(userId, { provider: 'b', subject: 'ada-b', claims: { sub: 'ada-b' }, verifiedEmail: null })
    await made.app.auth.unlink(userId, 'a')
    t.match(await made.app.auth.findUser({ userId }), { email: ADA.email, emailVerified: false }, 'no provider vouches')

    const token = await resetTokenOf(made)
    t.equal((await new Browser(made.app).post('/auth/local/reset-password', { token, password: NEW_PASSWORD })).statusCode, 204)

    t.strictSame((await made.app.auth.links(userId)).map(({ provider }) => provider), ['b', 'local'])
    t.strictSame((await made.app.auth.findUser({ userId }))?.factors, ['recovery', 'totp'])
    await waitAt(t, new Browser(made.app), { ...ADA, password: NEW_PASSWORD })
  })
}

t.test('attack 129: a blocked user\'s sign-in at a provider writes nothing', async t => {
  const store = new MemoryAuthStore()
  const made = await start(t, {}, { store })
  await signInAt(made.browser, 'a', ADA_AT_A)
  const userId = await userIdIn(made.browser) ?? ''
  await made.app.auth.block(userId)
  const before = await accountOf(made, userId)
  t.strictSame(answerOf(await signInAt(new Browser(made.app), 'a', { subject: 'ada-a', email: 'new@example.com' })), [403, 'blocked'])
  t.strictSame(answerOf(await signInAt(new Browser(made.app), 'b', { subject: 'b-1', email: ADA.email })), [403, 'blocked'])
  t.strictSame(await accountOf(made, userId), before)
})

t.test('attack 129: where a factor is required, an abandoned sign-in leaves no trace, and one without a due factor is written', async t => {
  const made = await start(t, { required: ({ principal }) => principal.claims.role === 'admin' })
  await signInAt(made.browser, 'a', ADA_AT_A)
  const userId = await userIdIn(made.browser) ?? ''
  const renamed = { ...ADA_AT_A, claims: { name: 'Countess' } }
  t.equal((await signInAt(new Browser(made.app), 'a', renamed)).statusCode, 302)
  t.equal((await made.app.auth.findUser({ userId }))?.name, 'Countess')

  await made.app.auth.grant(userId, { role: 'admin' })
  const before = await accountOf(made, userId)
  for (const person of [ADA_AT_A, { subject: 'ada-a', email: 'mallory@example.com' }]) {
    t.strictSame(answerOf(await signInAt(new Browser(made.app), 'a', person)), [401, 'second_factor_required'])
  }
  t.strictSame(await accountOf(made, userId), before)

  const browser = new Browser(made.app)
  await signInAt(browser, 'a', ADA_AT_A)
  t.equal((await addAt(browser, newDevice())).statusCode, 201)
  t.match(await made.app.auth.findUser({ userId }), { name: 'Ada', factors: ['passkey'] })
  t.equal(await userIdIn(browser), userId)
})

t.test('attack 129: a sign-in by a trusted browser, or of a user with passkeys alone, is written without a code', async t => {
  const made = await start(t, { trustedBrowser: { days: 30 } })
  await signInAt(made.browser, 'a', ADA_AT_A)
  const userId = await userIdIn(made.browser) ?? ''
  const nameNow = async () => (await made.app.auth.findUser({ userId }))?.name
  await addAt(made.browser, newDevice())
  t.equal((await signInAt(new Browser(made.app), 'a', { ...ADA_AT_A, claims: { name: 'One' } })).statusCode, 302)
  t.equal(await nameNow(), 'One')

  const { secret } = await enrolAt(t, made.browser)
  const browser = new Browser(made.app)
  await signInAt(browser, 'a', ADA_AT_A)
  await browser.post('/auth/local/second-factor', { code: nextCode(t, secret), trust: true })
  await browser.post('/auth/logout')
  t.equal((await signInAt(browser, 'a', { ...ADA_AT_A, claims: { name: 'Two' } })).statusCode, 302)
  t.equal(await nameNow(), 'Two')
})

t.test('attack 130: neither an unlinked provider nor a changed address makes the reader of a mailbox the owner', async t => {
  const made = await start(t)
  await confirmedAda(t, made)
  await linkAt(made.browser, 'a', ADA_AT_A)
  const { userId } = await enrolAt(t, made.browser)
  await made.browser.post('/auth/local/change-email', { email: 'new@example.com' })
  const { token: change } = await made.mails.next('change-email')
  const old = await resetTokenOf(made)
  t.equal((await made.browser.post('/auth/local/change-email/confirm', { token: change })).statusCode, 204)
  t.strictSame(answerOf(await new Browser(made.app).post('/auth/local/reset-password', { token: old, password: NEW_PASSWORD })), [401, 'invalid_token'])

  const { token } = await registerOther()
  const release = { token, not_me: 'on', email: 'new@example.com' }
  t.strictSame(answerOf(await new Browser(made.app).post('/auth/local/verify-email', release)), [401, 'invalid_token'])
  const present = await resetTokenOf(made, 'new@example.com')
  t.equal((await new Browser(made.app).post('/auth/local/reset-password', { token: present, password: NEW_PASSWORD })).statusCode, 204)
  t.strictSame((await made.app.auth.findUser({ userId }))?.factors, ['recovery', 'totp'])
  t.strictSame((await made.app.auth.links(userId)).map(({ provider }) => provider), ['a', 'local'])

  async function registerOther (): Promise<{ token: string }> {
    await made.browser.post('/auth/local/verify-email', {})
    return made.mails.next('verify-email')
  }
})

t.test('attack 130: the owner of an address that was never proven removes what a squatter set up', async t => {
  const made = await start(t)
  await registerAt(made)
  const { userId } = await enrolAt(t, made.browser)
  await linkAt(made.browser, 'a', { subject: 'mallory', email: 'mallory@example.com' })
  const token = await resetTokenOf(made)
  t.equal((await new Browser(made.app).post('/auth/local/reset-password', { token, password: NEW_PASSWORD })).statusCode, 204)
  t.equal((await made.app.auth.findUser({ userId }))?.factors, undefined)
  t.strictSame((await made.app.auth.links(userId)).map(({ provider }) => provider), ['local'])
})

t.test('attack 131: a password alone adds, renews and removes no factor of a user with a passkey', async t => {
  const made = await start(t)
  const { userId, device, id } = await adaWithPasskey(t, made)
  const before = await accountOf(made, userId)
  const browser = await thief(made)
  t.equal(await userIdIn(browser), userId, 'a passkey alone is not asked for')
  const attempts = [
    ['totp/enroll', {}], ['passkeys/options', { for: 'register' }], ['recovery-codes', {}], ['passkeys/remove', { id }],
    ['totp/confirm', { code: '123456' }], ['passkeys/register', { response: device.get(await optionsAt(browser, 'login')) }]
  ] as const
  const tryAll = async () => {
    for (const [path, body] of attempts) {
      const answer = await browser.post(`/auth/local/${path}`, body)
      t.match([answer.statusCode, answer.json()], [403, { code: 'reauthenticate', methods: ['passkey'] }], path)
    }
  }
  await tryAll()
  t.equal((await browser.post('/auth/local/reauthenticate', { password: ADA.password })).statusCode, 204)
  await tryAll()
  t.strictSame(await accountOf(made, userId), before)

  t.equal((await proveBy(browser, device)).statusCode, 204)
  t.equal((await browser.post('/auth/local/totp/enroll')).statusCode, 200)
})

t.test('attack 131: a user with an app changes their account by a factor, and not by the password alone', async t => {
  const made = await start(t, { trustedBrowser: { days: 30 } })
  await confirmedAda(t, made)
  await linkAt(made.browser, 'a', ADA_AT_A)
  const { secret, userId } = await enrolAt(t, made.browser)
  const browser = new Browser(made.app)
  await waitAt(t, browser)
  await browser.post('/auth/local/second-factor', { code: nextCode(t, secret), trust: true })
  await browser.post('/auth/logout')
  t.equal((await browser.post('/auth/local/login', ADA)).statusCode, 200, 'a trusted browser is not asked at the sign-in')
  const before = await accountOf(made, userId)
  const current = ADA.password

  for (const [path, body] of [
    ['change-password', { password: NEW_PASSWORD, current }], ['change-password', { password: NEW_PASSWORD }],
    ['change-email', { email: 'mallory@example.com', current }], ['delete-account', { current }], ['delete-account', {}],
    ['set-password', { password: NEW_PASSWORD }], ['totp/remove', {}], ['recovery-codes', {}]
  ] as const) {
    const answer = await browser.post(`/auth/local/${path}`, body)
    t.match([answer.statusCode, answer.json()], [403, { code: 'reauthenticate', methods: ['recovery', 'totp'] }], path)
  }
  const linking = await postLogin(browser, '/auth/b/login?link=true')
  t.strictSame(answerOf(linking), [403, 'reauthenticate'])
  t.strictSame(await accountOf(made, userId), before)

  t.equal((await browser.post('/auth/local/reauthenticate', { code: nextCode(t, secret) })).statusCode, 204)
  t.strictSame(answerOf(await browser.post('/auth/local/change-password', { password: NEW_PASSWORD, current: 'wrong' })), [401, 'invalid'])
  t.equal((await browser.post('/auth/local/change-password', { password: NEW_PASSWORD, current })).statusCode, 204)
})

t.test('attack 131: a linking that was begun before the user had a factor needs one at the callback', async t => {
  let isRequired = false
  const made = await start(t, { required: () => isRequired })
  await confirmedAda(t, made)
  const browser = await thief(made)
  const callback = await leaveFor(browser, '/auth/b/login?link=true', { subject: 'mallory' })
  t.equal((await addAt(made.browser, newDevice())).statusCode, 201)
  isRequired = true
  const answer = await browser.get(callback, { accept: 'application/json' })
  t.match([answer.statusCode, answer.json()], [403, { code: 'reauthenticate', methods: ['passkey'] }])
  t.equal(await made.app.auth.findUser({ provider: 'b', subject: 'mallory' }), null)
})

t.test('attack 131: where the application requires them, passkeys protect the account as an app does', async t => {
  let isRequired = false
  const made = await start(t, { required: () => isRequired })
  const { device } = await adaWithPasskey(t, made)
  const browser = await thief(made)
  isRequired = true
  for (const [path, body] of [
    ['change-password', { password: NEW_PASSWORD, current: ADA.password }], ['change-email', { email: 'm@example.com', current: ADA.password }],
    ['delete-account', { current: ADA.password }]
  ] as const) {
    const answer = await browser.post(`/auth/local/${path}`, body)
    t.match([answer.statusCode, answer.json()], [403, { code: 'reauthenticate', methods: ['passkey'] }], path)
  }
  await proveBy(browser, device)
  t.equal((await browser.post('/auth/local/change-password', { password: NEW_PASSWORD, current: ADA.password })).statusCode, 204)
})

t.test('attack 131: the second factor of a provider stands in at the sign-in, and for no change of factors', async t => {
  const made = await startMailApp(t, {
    ...both({ trusts: ({ amr }) => amr.includes('mfa') }),
    providers: [Object.assign(new (await import('../helpers/own-provider.js')).OwnProvider('a'), {
      async authenticate ({ parameters }: { parameters: URLSearchParams }) {
        const identity = JSON.parse(parameters.get('code') ?? '')
        const tokens = { accessToken: 'x', refreshToken: null, idToken: 'y', expiresIn: 60, scope: null }
        return { identity, tokens, signed: { amr: ['mfa'], acr: null } }
      }
    })]
  })
  await signInAt(made.browser, 'a', ADA_AT_A)
  t.match((await made.browser.get('/authentication')).json(), { secondFactor: true }, 'asked and kept, although nothing was due')
  await enrolAt(t, made.browser)

  const browser = new Browser(made.app)
  t.equal((await signInAt(browser, 'a', ADA_AT_A)).statusCode, 302)
  t.match((await browser.get('/authentication')).json(), { secondFactor: true })
  for (const path of ['totp/remove', 'totp/enroll', 'recovery-codes', 'set-password']) {
    t.strictSame(answerOf(await browser.post(`/auth/local/${path}`, { password: NEW_PASSWORD })), [403, 'reauthenticate'], path)
  }
})

t.test('a code that is mailed stands in for passkeys that a user has lost; all other sessions end', async t => {
  for (const add of ['an app', 'a passkey', 'nothing'] as const) {
    t.test(`adding ${add}`, async t => {
      const made = await start(t)
      const { userId, id } = await adaWithPasskey(t, made)
      const browser = await thief(made)
      const kinds = async () => (await made.app.auth.findUser({ userId }))?.factors
      if (add === 'an app') {
        const { secret } = (await browser.post('/auth/local/totp/enroll', { lost: 'on' })).json()
        const { code: mailCode } = await made.mails.next('enrolment')
        t.strictSame(answerOf(await browser.post('/auth/local/totp/confirm', { code: totp(secret), lost: true })), [401, 'invalid_code'])
        t.strictSame(answerOf(await browser.post('/auth/local/totp/confirm', { code: totp(secret), mailCode: '1' })), [401, 'invalid_code'])
        t.equal((await browser.post('/auth/local/totp/confirm', { code: totp(secret), mailCode })).statusCode, 200)
        t.strictSame(await kinds(), ['passkey', 'recovery', 'totp'])
      } else if (add === 'a passkey') {
        const options = (await browser.post('/auth/local/passkeys/options', { for: 'register', lost: true })).json()
        const { code: mailCode } = await made.mails.next('enrolment')
        const device = newDevice()
        t.equal((await browser.post('/auth/local/passkeys/register', { response: device.create(options), mailCode })).statusCode, 201)
        t.equal((await made.app.auth.factors(userId)).length, 2)
        t.equal((await signInBy(new Browser(made.app), device)).statusCode, 200)
      } else {
        t.equal((await browser.post('/auth/local/passkeys/remove', { id, lost: true })).statusCode, 202)
        t.strictSame(await kinds(), ['passkey'])
        const { code: mailCode } = await made.mails.next('enrolment')
        t.strictSame(answerOf(await browser.post('/auth/local/passkeys/remove', { id, mailCode: '000' })), [401, 'invalid_code'])
        t.equal((await browser.post('/auth/local/passkeys/remove', { id, mailCode })).statusCode, 200)
        t.equal(await kinds(), undefined)
      }
      t.match(await made.mails.next(add === 'nothing' ? 'factor-removed' : 'factor-added'), { to: ADA.email })
      t.equal((await browser.get('/private')).statusCode, 200)
      t.equal((await made.browser.get('/private')).statusCode, 401, 'the session before')
    })
  }
})

t.test('attack 131: no mailed code stands in for passkeys that are required, for an app, or without a confirmed address', async t => {
  const refused = async (made: MailApp, browser: Browser, id: string): Promise<void> => {
    for (const [path, body] of [
      ['totp/enroll', { lost: true }], ['passkeys/options', { for: 'register', lost: true }], ['passkeys/remove', { id, lost: true }]
    ] as const) t.strictSame(answerOf(await browser.post(`/auth/local/${path}`, body)), [403, 'reauthenticate'], path)
    await t.rejects(made.mails.next('enrolment', { timeout: 50 }))
  }
  let method = ''
  const requiring = await start(t, { required: signIn => signIn.method === method })
  const { id, device } = await adaWithPasskey(t, requiring)
  const browser = await thief(requiring)
  method = 'application'
  await refused(requiring, browser, id)
  method = ''
  const late = await thief(requiring)
  advanceClock(t, 11 * MINUTE_MS)
  await refused(requiring, late, id)
  await proveBy(requiring.browser, device)
  await enrolAt(t, requiring.browser)
  await new Browser(requiring.app).post('/auth/local/login', ADA)

  const unconfirmed = await start(t)
  await registerAt(unconfirmed)
  const added = await addAt(unconfirmed.browser, newDevice())
  await refused(unconfirmed, await thief(unconfirmed), added.json().id)

  const withoutMails = await start(t, {}, {}, { sendMail: undefined })
  await withoutMails.browser.post('/auth/local/register', ADA)
  await addAt(withoutMails.browser, newDevice())
  t.strictSame(answerOf(await (await thief(withoutMails)).post('/auth/local/totp/enroll', { lost: true })), [403, 'reauthenticate'])
})

t.test('attack 131: the code for lost passkeys takes five attempts, and ten of a user', async t => {
  const made = await start(t)
  const { id } = await adaWithPasskey(t, made)
  const codes: unknown[] = []
  for (let session = 0; session < 3; session++) {
    const browser = await thief(made)
    await browser.post('/auth/local/passkeys/remove', { id, lost: true })
    for (let attempt = 0; attempt < 5; attempt++) {
      codes.push((await browser.post('/auth/local/passkeys/remove', { id, mailCode: 'wrong' })).json().code)
    }
  }
  t.strictSame(codes, [...Array(10).fill('invalid_code'), ...Array(5).fill('rate_limited')])
})

t.test('attack 132: a process that can ask for none of the factors of a user signs them in by nothing else', async t => {
  const store = new MemoryAuthStore()
  const made = await start(t, {}, { store })
  const others: Record<string, AuthPluginOptions> = {
    'no option': {},
    'passkeys alone': { passkeys: new Passkeys({ name: 'Shop' }) },
    'second factors alone': { secondFactor: new SecondFactor({ issuer: 'Shop' }) }
  }
  const apps = new Map(await Promise.all(Object.entries(others).map(async ([name, options]) =>
    [name, await startMailApp(t, { store, dataSecret: DATA_SECRET, ...options })] as const)))
  const { userId, device } = await adaWithPasskey(t, made)
  const signIns = async (options: string): Promise<unknown[]> => {
    const { app } = apps.get(options) ?? made
    const answers = [await new Browser(app).post('/auth/local/login', ADA), await signInAt(new Browser(app), 'a', ADA_AT_A)]
    return answers.map(answerOf)
  }
  const refused = [[503, 'unavailable'], [503, 'unavailable']]
  const asked = [[401, 'second_factor_required'], [401, 'second_factor_required']]

  let before = await accountOf(made, userId)
  t.strictSame(await signIns('no option'), refused, 'passkeys alone')
  t.strictSame(await signIns('second factors alone'), refused, 'passkeys alone')
  t.strictSame(await accountOf(made, userId), before)

  const { secret } = await enrolAt(t, made.browser)
  before = await accountOf(made, userId)
  t.strictSame(await signIns('no option'), refused)
  t.strictSame(await signIns('second factors alone'), asked)
  t.strictSame(await signIns('passkeys alone'), asked, 'asks for what it can ask for')
  t.strictSame(await accountOf(made, userId), before)
  const browser = new Browser(apps.get('passkeys alone')?.app ?? made.app)
  t.match((await browser.post('/auth/local/login', ADA)).json(), { methods: ['passkey'] })
  const response = device.get(await optionsAt(browser, 'factor'))
  const finished = await browser.post('/auth/local/second-factor', { response, trust: 'on' })
  t.equal(finished.statusCode, 200)
  t.notOk(finished.cookies.some(({ name }) => name.endsWith('trusted')), 'it trusts no browser')
  t.equal(await userIdIn(browser), userId)
  const other = new Browser(apps.get('second factors alone')?.app ?? made.app)
  t.match((await other.post('/auth/local/login', ADA)).json(), { methods: ['recovery', 'totp'] })
  t.equal((await other.post('/auth/local/second-factor', { code: nextCode(t, secret) })).statusCode, 200)
})

t.test('attack 132: a process that can ask for none of the factors of a user changes none, and nothing that they protect', async t => {
  const store = new MemoryAuthStore()
  const made = await start(t, {}, { store })
  const { userId, id } = await adaWithPasskey(t, made)
  const codesAlone = (await startMailApp(t, { store, dataSecret: DATA_SECRET, secondFactor: new SecondFactor({ issuer: 'Shop' }) })).app
  const neither = (await startMailApp(t, { store })).app
  const before = await accountOf(made, userId)
  const at = async (app: MailApp['app'], path: string, body: object): Promise<unknown> =>
    answerOf(await new Browser(app, made.browser.cookies).post(`/auth/local/${path}`, body))

  for (const path of ['totp/enroll', 'recovery-codes', 'totp/remove']) t.strictSame(await at(codesAlone, path, {}), [503, 'unavailable'], path)
  for (const path of ['change-password', 'delete-account', 'change-email']) {
    t.strictSame(await at(neither, path, { current: ADA.password, password: NEW_PASSWORD, email: 'm@example.com' }), [503, 'unavailable'], path)
  }
  const guarded = await startApp(t, { baseUrl: BASE_URL, store, dataSecret: DATA_SECRET, secondFactor: new SecondFactor({ issuer: 'Shop' }) }, {}, app => {
    app.get('/secure', { preHandler: app.auth.requireSecondFactor }, async () => 'passed')
  })
  const other = await thief(made)
  t.equal((await new Browser(guarded, other.cookies).get('/secure')).statusCode, 503, 'and none is said to be missing')

  t.strictSame(await accountOf(made, userId), before)

  await enrolAt(t, made.browser)
  const passkeysAlone = (await startMailApp(t, { store, dataSecret: DATA_SECRET, passkeys: new Passkeys({ name: 'Shop' }) })).app
  t.strictSame(await at(passkeysAlone, 'passkeys/remove', { id }), [200], 'one kind can be asked for')
  t.strictSame(await at(passkeysAlone, 'passkeys/options', { for: 'register' }), [401, 'unauthenticated'], 'the session went on elsewhere')
})

t.test('attack 134: an unlinking by a session that has ended meanwhile removes nothing', async t => {
  const store = new MemoryAuthStore()
  const made = await startMailApp(t, { store }, {})
  const app = made.app
  const userId = await confirmedAda(t, made)
  await linkAt(made.browser, 'a', ADA_AT_A)
  const links = store.links.bind(store)
  const endMeanwhile = (): void => {
    store.links = async id => {
      store.links = links
      const found = await links(id)
      await new Accounts(store).changeUser(userId, { endSessions: true })
      return found
    }
  }
  const withApi = await startApp(t, { store, baseUrl: BASE_URL, session: { secret: SESSION_SECRET } }, {}, app => {
    app.post('/unlink', async request => {
      await app.auth.unlink(app.auth.user(request).userId, 'a', { except: request })
      return {}
    })
  })
  endMeanwhile()
  t.strictSame(answerOf(await new Browser(withApi, made.browser.cookies).post('/unlink')), [401, 'unauthenticated'])
  t.strictSame((await app.auth.links(userId)).map(({ provider }) => provider), ['a', 'local'])
})

t.test('attack 134: an identity joins the user as the rule of the application saw them, and nobody else', async t => {
  const asked = deferred()
  const goOn = deferred()
  let holds = false
  const made = await startMailApp(t, {
    linking: async () => {
      if (!holds) return true
      asked.resolve()
      await goOn.promise
      return true
    }
  })
  await signInAt(made.browser, 'a', ADA_AT_A)
  const userId = await userIdIn(made.browser) ?? ''
  holds = true
  const joining = signInAt(new Browser(made.app), 'b', { subject: 'new-owner', email: ADA.email })
  await asked.promise
  holds = false
  // The provider moves the account to another address: the first one has another owner by now.
  await signInAt(new Browser(made.app), 'a', { subject: 'ada-a', email: 'ada@new.example' })
  goOn.resolve()
  await joining
  t.not((await made.app.auth.findUser({ provider: 'b', subject: 'new-owner' }))?.userId, userId)
  t.strictSame((await made.app.auth.links(userId)).map(({ provider }) => provider), ['a'])
})

t.test('attack 134: a passkey keeps the name that it is given while it is used', async t => {
  const store = new MemoryAuthStore()
  const made = await start(t, {}, { store })
  const { userId, device, id } = await adaWithPasskey(t, made)
  const change = store.change.bind(store)
  let isRenamed = false
  store.change = async (...asked) => {
    if (!isRenamed) {
      isRenamed = true
      store.change = change
      t.equal((await made.browser.post('/auth/local/passkeys/rename', { id, name: 'Phone' })).statusCode, 204)
    }
    return change(...asked)
  }
  t.equal((await signInBy(new Browser(made.app), device, { counter: 7 })).statusCode, 200)
  t.match(await made.app.auth.factors(userId), [{ name: 'Phone' }])
})

t.test('attack 134: an enrolment that a password began ends when the owner has a factor', async t => {
  let isRequired = false
  const made = await start(t, { required: () => isRequired }, {}, { sendMail: undefined })
  await made.browser.post('/auth/local/register', ADA)
  const userId = await userIdIn(made.browser) ?? ''
  const signedIn = await thief(made)
  const { secret: theirs } = (await signedIn.post('/auth/local/totp/enroll')).json()
  isRequired = true
  const pending = await thief(made)
  const { secret } = (await pending.post('/auth/local/totp/enroll')).json()
  t.equal((await addAt(made.browser, newDevice())).statusCode, 201)

  t.strictSame(answerOf(await pending.post('/auth/local/totp/confirm', { code: totp(secret) })), [400, 'invalid_state'])
  t.strictSame(answerOf(await pending.post('/auth/local/passkeys/options', { for: 'register' })), [400, 'invalid_state'])
  t.strictSame(answerOf(await signedIn.post('/auth/local/totp/confirm', { code: totp(theirs) })), [403, 'reauthenticate'])
  t.strictSame((await made.app.auth.findUser({ userId }))?.factors, ['passkey'])
})

t.test('attack 134: a factor that the owner adds while another one is confirmed refuses that one', async t => {
  const store = new MemoryAuthStore()
  const made = await start(t, {}, { store })
  const userId = await confirmedAda(t, made)
  const browser = await thief(made)
  const { secret } = (await browser.post('/auth/local/totp/enroll')).json()
  const change = store.change.bind(store)
  let calls = 0
  store.change = async (...asked) => {
    // The first counts the attempt, the second adds the app.
    if (++calls === 2) {
      store.change = change
      t.equal((await addAt(made.browser, newDevice())).statusCode, 201)
    }
    return change(...asked)
  }
  t.strictSame(answerOf(await browser.post('/auth/local/totp/confirm', { code: totp(secret) })), [400, 'invalid_state'])
  t.strictSame((await made.app.auth.findUser({ userId }))?.factors, ['passkey'])
})

t.test('attack 136: any truthy answer of the rule requires a second factor', async t => {
  for (const answer of [1, 'yes', {}, Promise.resolve('yes'), Promise.resolve(1)]) {
    const made = await start(t, { required: () => answer as never })
    t.strictSame(answerOf(await made.browser.post('/auth/local/register', ADA)), [401, 'second_factor_required'], typeof answer)
  }
  for (const answer of [0, '', null, undefined, Promise.resolve(0)]) {
    const made = await start(t, { required: () => answer as never })
    t.equal((await made.browser.post('/auth/local/register', ADA)).statusCode, 201)
  }
})

t.test('attack 136: the rule is asked about each method before the last factor is removed, whatever came first', async t => {
  for (const required of ['password', 'provider', 'application']) {
    const made = await start(t, { required: ({ method }) => method === required })
    await signInAt(made.browser, 'a', ADA_AT_A)
    if (required === 'provider') await addAt(made.browser, newDevice())
    else await enrolAt(t, made.browser)
    const [{ id = '' } = {}] = await made.app.auth.factors(await userIdIn(made.browser) ?? '')
    const path = required === 'provider' ? 'passkeys/remove' : 'totp/remove'
    t.strictSame(answerOf(await made.browser.post(`/auth/local/${path}`, { id })), [403, 'forbidden'], required)
  }
})

t.test('attack 145: a user whose first sign-in was never finished, and whose address was confirmed since, types the mailed code', async t => {
  const made = await start(t, { required: () => true })
  await made.browser.post('/auth/local/register', ADA)
  const { token } = await made.mails.next('verify-email')
  t.equal((await confirmAddress(new Browser(made.app), token, ADA.password)).statusCode, 204)

  const browser = await thief(made)
  const { secret } = (await browser.post('/auth/local/totp/enroll')).json()
  t.strictSame(answerOf(await browser.post('/auth/local/totp/confirm', { code: totp(secret) })), [401, 'invalid_code'])
  const { code: mailCode } = await made.mails.next('enrolment')
  t.equal((await browser.post('/auth/local/totp/confirm', { code: totp(secret), mailCode })).statusCode, 200)
})
