/**
 * Attack 149 and attack 150: what a first factor has found, and the factor that a sign-in sets up, are written after
 * a factor of the user and the word of the application, or not at all.
 */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { Accounts, type AuthPluginOptions, type AuthorizationResponse, MemoryAuthStore, type SignIn, SignInRefused } from '../../lib/index.js'
import { Passkeys } from '../../lib/passkeys.js'
import { SecondFactor, type SecondFactorOptions } from '../../lib/second-factor.js'
import { totp } from '../../lib/testing.js'
import { SESSION_SECRET, principalIn, startApp, userIdIn } from '../helpers/app.js'
import { eventsOf } from '../helpers/audit-events.js'
import { Browser } from '../helpers/browser.js'
import { DATA_SECRET, enrolAt, nextCode, waitAt } from '../helpers/factor-app.js'
import { ADA, type MailApp, registerAt, startMailApp, confirmAddress } from '../helpers/mail-app.js'
import { type AdmittedUser, OwnProvider, leaveFor } from '../helpers/own-provider.js'
import { addAt, newDevice, optionsAt } from '../helpers/passkey-app.js'
import { holds } from '../helpers/properties.js'
import { SOME_STORES } from '../helpers/stores.js'

const ADA_AT_A: AdmittedUser = { subject: 'ada-a', email: ADA.email, claims: { name: 'Ada' } }
const NEWS: AdmittedUser = { ...ADA_AT_A, claims: { name: 'Countess' } }
const MOVED: AdmittedUser = { ...ADA_AT_A, email: 'mallory@example.com' }
const UNVERIFIED: AdmittedUser = { ...ADA_AT_A, emailVerified: false }
const JOINING: AdmittedUser = { subject: 'mallory-b', email: ADA.email }

/** Ways of a first factor that would change more than its link: the provider, and what it reports. */
const CHANGES = { 'another address': ['a', MOVED], 'an unverified address': ['a', UNVERIFIED], 'an identity that joins': ['b', JOINING] } as const

/** A provider whose ID token says that the user has authenticated by several factors. */
class SigningProvider extends OwnProvider {
  override async authenticate (response: AuthorizationResponse) {
    return { ...await super.authenticate(response), signed: { amr: ['mfa'], acr: null } }
  }
}

async function start (t: Test, factor: Partial<SecondFactorOptions> = {}, options: AuthPluginOptions = {}): Promise<MailApp> {
  return startMailApp(t, {
    dataSecret: DATA_SECRET,
    secondFactor: new SecondFactor({ issuer: 'Shop', ...factor }),
    passkeys: new Passkeys({ name: 'Shop' }),
    providers: [new SigningProvider('a'), new SigningProvider('b')],
    ...options
  })
}

async function signInAt (browser: Browser, provider: string, person: AdmittedUser) {
  return browser.get(await leaveFor(browser, `/auth/${provider}/login`, person), { accept: 'application/json' })
}

function answerOf ({ statusCode, body }: { statusCode: number, body: string }): [status: number, code?: string] {
  const { code }: { code?: string } = body.startsWith('{') ? JSON.parse(body) : {}
  return code === undefined ? [statusCode] : [statusCode, code]
}

const ASKED = [401, 'second_factor_required']

/** All that an account has, but when a factor was used. */
async function accountOf ({ app: { auth } }: Pick<MailApp, 'app'>, userId: string) {
  const factors = (await auth.factors(userId)).map(({ id }) => id)
  return { user: await auth.findUser({ userId }), links: await auth.links(userId), factors }
}

/** What of an account takes a factor of its own: all but the name, and the claims of its links. */
async function protectedOf (made: MailApp, userId: string) {
  const { user, links, factors } = await accountOf(made, userId)
  const { email, emailVerified, generation } = user ?? {}
  return { email, emailVerified, generation, factors, links: links.map(({ provider, subject }) => `${provider} ${subject}`) }
}

type Finish = (browser: Browser, trust?: boolean) => Promise<[status: number, code?: string]>

/** Ada, who came by the provider alone, with an app or a passkey; and how she finishes a sign-in. */
async function adaWith (t: Test, made: MailApp, kind: 'app' | 'passkey'): Promise<{ userId: string, finish: Finish }> {
  await signInAt(made.browser, 'a', ADA_AT_A)
  const userId = await userIdIn(made.browser) ?? ''
  const device = newDevice()
  const secret = kind === 'app' ? (await enrolAt(t, made.browser)).secret : ''
  if (kind === 'passkey') t.equal((await addAt(made.browser, device)).statusCode, 201)
  return {
    userId,
    async finish (browser, trust = false) {
      const proof = kind === 'app' ? { code: nextCode(t, secret) } : { response: device.get(await optionsAt(browser, 'factor')) }
      return answerOf(await browser.post('/auth/local/second-factor', { ...proof, trust }))
    }
  }
}

for (const [kind, createStore] of Object.entries(SOME_STORES)) {
  for (const factor of ['app', 'passkey'] as const) {
    for (const spared of ['trusts', 'a trusted browser'] as const) {
      t.test(`attack 149: ${spared} spares the question, and no change of an account with a factor (${factor}), on ${kind}`, async t => {
        let isRequired = false
        const made = await start(t, {
          required: () => isRequired, trustedBrowser: { days: 30 }, ...(spared === 'trusts' && { trusts: () => true })
        }, { store: await createStore(t) })
        const { userId, finish } = await adaWith(t, made, factor)
        isRequired = factor === 'passkey'
        const browser = new Browser(made.app)
        if (spared === 'a trusted browser') {
          t.strictSame(answerOf(await signInAt(browser, 'a', ADA_AT_A)), ASKED)
          t.strictSame(await finish(browser, true), [200])
          await browser.post('/auth/logout')
        }

        for (const [what, [provider, person]] of Object.entries(CHANGES)) {
          const before = await accountOf(made, userId)
          t.strictSame(answerOf(await signInAt(browser, provider, person)), ASKED, what)
          t.strictSame(await accountOf(made, userId), before, what)
          t.equal(await principalIn(browser), null)
        }
        t.equal((await signInAt(browser, 'a', NEWS)).statusCode, 302, 'a refresh of the link is spared')
        t.equal((await made.app.auth.findUser({ userId }))?.name, 'Countess')

        const own = new Browser(made.app, browser.cookies)
        await own.post('/auth/logout')
        await signInAt(own, 'b', JOINING)
        t.strictSame(await finish(own), [200], 'after a factor of the user it joins')
        t.equal((await made.app.auth.findUser({ provider: 'b', subject: 'mallory-b' }))?.userId, userId)
        await own.post('/auth/logout')
        await signInAt(own, 'a', MOVED)
        t.strictSame(await finish(own), [200])
        t.match(await made.app.auth.findUser({ userId }), { email: MOVED.email, emailVerified: true })
      })
    }
  }

  for (const factor of ['an app', 'a passkey'] as const) {
    t.test(`attack 150: ${factor} of a sign-in that is not completed is not in the account, on ${kind}`, async t => {
      let [isRequired, hook] = [false, async (_signIn: SignIn): Promise<unknown> => undefined]
      const store = await createStore(t)
      const made = await start(t, { required: () => isRequired }, { store, onSignIn: async signIn => { await hook(signIn) } })
      const { app, browser, mails } = made
      await confirmAddress(browser, await registerAt(made))
      const userId = await userIdIn(browser) ?? ''
      isRequired = true
      const audited = [eventsOf(t, 'factor-added'), eventsOf(t, 'sign-in')]
      const enrol = async (browser: Browser) => {
        t.strictSame(answerOf(await browser.post('/auth/local/login', ADA)), ASKED)
        const [path, begun] = factor === 'an app'
          ? ['totp/confirm', (await browser.post('/auth/local/totp/enroll')).json()]
          : ['passkeys/register', await optionsAt(browser, 'register')]
        const proof = factor === 'an app' ? { code: totp(begun.secret) } : { response: newDevice().create(begun) }
        const { code: mailCode } = await mails.next('enrolment')
        return browser.post(`/auth/local/${path}`, { ...proof, mailCode })
      }
      const ends: Record<string, [typeof hook, unknown[]]> = {
        refuses: [async () => { throw new SignInRefused('not_now') }, [403, 'not_now']],
        'ends all sessions': [async () => app.auth.signOutEverywhere(userId), [400, 'invalid_state']],
        'finds another state of the address': [async () => new Accounts(store).updateUser(userId, { emailVerified: false }), [400, 'invalid_state']],
        blocks: [async () => new Accounts(store).changeUser(userId, { blocked: { at: new Date() } }), [403, 'blocked']]
      }
      for (const [what, [ending, answer]] of Object.entries(ends)) {
        hook = ending
        const thief = new Browser(app)
        const refused = await enrol(thief)
        t.strictSame(answerOf(refused), answer, what)
        t.notMatch(refused.body, 'recoveryCodes')
        t.match(await made.app.auth.findUser({ userId }), { factors: undefined }, what)
        t.strictSame([await app.auth.factors(userId), await principalIn(thief)], [[], null], what)
        await app.auth.unblock(userId)
        await new Accounts(store).updateUser(userId, { emailVerified: true })
      }
      t.strictSame(audited, [[], []])

      hook = async () => undefined
      const owner = new Browser(app)
      t.equal((await enrol(owner)).statusCode, factor === 'an app' ? 200 : 201, 'the owner can set one up')
      t.equal(await userIdIn(owner), userId)
      t.match(audited, [[{ userId }], [{ userId }]])
      await app.close()
      t.equal(mails.all.filter(({ kind }) => kind === 'factor-added').length, 1, 'told once')
    })
  }

  t.test(`attack 150: what the application refuses after the second factor is not written, on ${kind}`, async t => {
    let [isRefused, present] = [false, '']
    const seen: unknown[] = []
    const made = await start(t, {}, {
      store: await createStore(t),
      async onSignIn ({ principal }) {
        if (!isRefused) return
        seen.push([principal.claims.email, (await made.app.auth.findUser({ userId: present }))?.email])
        throw new SignInRefused('not_now')
      }
    })
    const { userId, finish } = await adaWith(t, made, 'app')
    present = userId
    const before = await accountOf(made, userId)
    const joins = eventsOf(t, 'link')
    isRefused = true
    for (const [what, [provider, person]] of Object.entries(CHANGES)) {
      const browser = new Browser(made.app)
      await signInAt(browser, provider, person)
      t.strictSame(await finish(browser), [403, 'not_now'], what)
      t.strictSame(await accountOf(made, userId), before, what)
      t.equal(await principalIn(browser), null)
    }
    t.strictSame(seen, [[MOVED.email, ADA.email], [ADA.email, ADA.email], [ADA.email, ADA.email]], 'asked with the claims of the sign-in')
    t.strictSame(joins, [])
    await t.rejects(made.mails.next('identity-linked', { timeout: 50 }))
  })

  t.test(`attack 150: an address that has changed since the first factor leaves no factor, on ${kind}`, async t => {
    let isRequired = false
    const store = await createStore(t)
    const asked: unknown[] = []
    const made = await start(t, { required: () => isRequired }, { store, onSignIn: ({ principal }) => { asked.push(principal) } })
    await signInAt(made.browser, 'a', ADA_AT_A)
    const userId = await userIdIn(made.browser) ?? ''
    isRequired = true
    for (const person of [MOVED, UNVERIFIED]) {
      const browser = new Browser(made.app)
      await signInAt(browser, 'a', NEWS)
      const { secret } = (await browser.post('/auth/local/totp/enroll')).json()
      const { subject, emailVerified = true } = person
      const report = async ({ email = '' }: AdmittedUser, isVerified: boolean) => new Accounts(store)
        .refreshIdentity({ provider: 'a', subject, claims: { sub: subject, email }, verifiedEmail: isVerified ? email : null })
      await report(person, emailVerified)
      const before = await accountOf(made, userId)
      asked.length = 0
      t.strictSame(answerOf(await browser.post('/auth/local/totp/confirm', { code: totp(secret) })), [400, 'invalid_state'])
      t.strictSame([await accountOf(made, userId), asked, await principalIn(browser)], [before, [], null], 'the application was not asked')
      await report(ADA_AT_A, true)
    }
  })
}

t.test('attack 150: the application is not asked about a sign-in that can no longer be written', async t => {
  const [store, asked]: [MemoryAuthStore, unknown[]] = [new MemoryAuthStore(), []]
  const made = await start(t, {}, { store, onSignIn: ({ principal }) => { asked.push(principal) } })
  const { userId, finish } = await adaWith(t, made, 'app')
  asked.length = 0
  const browser = new Browser(made.app)
  t.strictSame(answerOf(await signInAt(browser, 'b', JOINING)), ASKED)
  await new Accounts(store).addLink(userId, { provider: 'b', subject: 'another', claims: { sub: 'another' }, verifiedEmail: null })
  t.strictSame(await finish(browser), [400, 'invalid_state'])
  t.strictSame([asked, await principalIn(browser)], [[], null])
})

t.test('attack 149: an address that is free only after the question was spared is not taken', async t => {
  let meanwhile = async (): Promise<void> => undefined
  const made = await start(t, { async trusts () { await meanwhile(); return true } })
  const { userId, finish } = await adaWith(t, made, 'app')
  const joining = new Browser(made.app)
  await signInAt(joining, 'b', JOINING)
  t.strictSame(await finish(joining), [200], 'two providers vouch for the address')
  const { userId: otherId } = await made.app.auth.createUser({ email: MOVED.email ?? '', emailVerified: true, password: ADA.password })
  const before = await accountOf(made, userId)
  meanwhile = async () => made.app.auth.deleteUser(otherId)

  t.strictSame(answerOf(await signInAt(new Browser(made.app), 'a', MOVED)), [400, 'invalid_state'])

  t.strictSame(await accountOf(made, userId), before)
  meanwhile = async () => undefined
  t.strictSame(answerOf(await signInAt(new Browser(made.app), 'a', MOVED)), ASKED)
})

t.test('attack 149: trusts spares the question by nothing but true', async t => {
  let answer: unknown = true
  const made = await start(t, { trusts: () => answer as boolean })
  await adaWith(t, made, 'app')
  for (answer of [true, Promise.resolve(true)]) {
    const browser = new Browser(made.app)
    t.equal((await signInAt(browser, 'a', ADA_AT_A)).statusCode, 302)
    t.match((await browser.get('/authentication')).json(), { secondFactor: true })
  }
  for (answer of [1, 'true', 'yes', {}, [true], Promise.resolve(1), Promise.resolve('true'), false, null, undefined]) {
    const browser = new Browser(made.app)
    t.strictSame(answerOf(await signInAt(browser, 'a', ADA_AT_A)), ASKED, String(answer))
    const stranger = new Browser(made.app)
    t.equal((await signInAt(stranger, 'b', { subject: `b-${String(answer)}` })).statusCode, 302)
    t.match((await stranger.get('/authentication')).json(), { secondFactor: false }, 'nor is it kept where nothing is due')
  }
})

t.test('attack 149: a mail confirms an address in a trusted browser only after a factor of the user', async t => {
  const store = new MemoryAuthStore()
  const made = await startMailApp(t, {
    store,
    rateLimit: {},
    dataSecret: DATA_SECRET,
    secondFactor: new SecondFactor({ issuer: 'Shop', trustedBrowser: { days: 30 } }),
    passkeys: new Passkeys({ name: 'Shop' })
  }, { signInByMail: true, mails: { limits: false } })
  await confirmAddress(made.browser, await registerAt(made))
  const { userId, secret } = await enrolAt(t, made.browser)
  // The operator has taken the word for it back.
  await new Accounts(store).updateUser(userId, { emailVerified: false })
  const browser = new Browser(made.app)
  await waitAt(t, browser)
  t.strictSame(answerOf(await browser.post('/auth/local/second-factor', { code: nextCode(t, secret), trust: true })), [200])
  const byMail = async () => {
    await browser.post('/auth/logout')
    await browser.post('/auth/local/mail-login', { email: ADA.email })
    return answerOf(await browser.post('/auth/local/mail-login/confirm', { code: (await made.mails.next('sign-in')).code }))
  }

  t.strictSame(await byMail(), ASKED)
  t.match(await made.app.auth.findUser({ userId }), { emailVerified: false })
  t.strictSame(answerOf(await browser.post('/auth/local/second-factor', { code: nextCode(t, secret) })), [200])
  t.match(await made.app.auth.findUser({ userId }), { emailVerified: true })
  t.strictSame(await byMail(), [200], 'it is verified: nothing of it changes')
})

t.test('attack 149: app.auth.signIn joins and moves nothing, also where it spares the factor', async t => {
  const store = new MemoryAuthStore()
  const made = await start(t, {}, { store })
  const { userId } = await adaWith(t, made, 'app')
  const secondFactor = new SecondFactor({ issuer: 'Shop' })
  const app = await startApp(t, { store, dataSecret: DATA_SECRET, secondFactor, session: { secret: SESSION_SECRET } }, {}, app => {
    app.post('/sign-in', async request => app.auth.signIn(request, userId, { secondFactor: 'skip' }))
  })
  const before = await accountOf(made, userId)
  const browser = new Browser(app)
  t.equal((await browser.post('/sign-in')).statusCode, 200)
  t.equal(await userIdIn(browser), userId)
  t.strictSame(await accountOf(made, userId), before)
})

t.test('attack 150: an enrolment that waits ends when the address is proven for the first time', async t => {
  let isRequired = false
  const store = new MemoryAuthStore()
  const made = await start(t, { required: () => isRequired }, { store })
  const token = await registerAt(made)
  isRequired = true
  const browser = new Browser(made.app)
  t.strictSame(answerOf(await browser.post('/auth/local/login', ADA)), ASKED)
  t.equal((await confirmAddress(new Browser(made.app), token, ADA.password)).statusCode, 204)

  t.strictSame(answerOf(await browser.post('/auth/local/totp/enroll')), [400, 'invalid_state'])
})

t.test('attack 149, attack 150: no sign-in changes an account but by a factor of its own and the word of the application', async t => {
  const ways = { ...CHANGES, 'a refresh': ['a', NEWS] } as const
  const run = async (
    owner: 'app' | 'passkey' | 'none', way: keyof typeof ways, spared: 'nothing' | 'trusts' | 'browser', step: 'none' | 'wrong' | 'right', admits: boolean
  ): Promise<void> => {
    let [isRequired, isAdmitted, failure] = [false, true, '']
    await t.test('a sign-in', async t => {
      const made = await start(t, { required: () => isRequired, trusts: () => spared === 'trusts', trustedBrowser: { days: 1 } }, {
        onSignIn () { if (!isAdmitted) throw new SignInRefused('not_now') }
      })
      const fails = (what: string) => { failure ||= what }
      const [browser, kind] = [new Browser(made.app), owner === 'none' ? null : owner]
      const ada = kind && await adaWith(t, made, kind)
      if (ada === null) await signInAt(made.browser, 'a', ADA_AT_A)
      const userId = ada?.userId ?? await userIdIn(made.browser) ?? ''
      isRequired = owner !== 'app'
      if (ada && spared === 'browser') {
        await signInAt(browser, 'a', ADA_AT_A)
        await ada.finish(browser, true)
        await browser.post('/auth/logout')
      }
      isAdmitted = admits
      const [before, core] = [await accountOf(made, userId), await protectedOf(made, userId)]
      const [provider, person] = ways[way]
      const [status, code] = answerOf(await signInAt(browser, provider, person))
      const isDue = code === ASKED[1]
      const isSpared = spared === 'trusts' || (spared === 'browser' && ada !== null)
      if (isDue !== (!isSpared || (ada !== null && way !== 'a refresh'))) fails(`the factor was ${isDue ? '' : 'not '}asked: ${status}`)
      if (isDue && step === 'wrong') await browser.post('/auth/local/second-factor', { code: '000000' })
      if (isDue && step === 'right') {
        if (ada !== null) await ada.finish(browser)
        else await addAt(browser, newDevice())
      }
      const isComplete = admits && (!isDue || step === 'right')
      if ((await userIdIn(browser) === userId) !== isComplete) fails('a session')
      const [after, coreAfter] = [await accountOf(made, userId), await protectedOf(made, userId)]
      if (isDue && !isComplete && JSON.stringify(after) !== JSON.stringify(before)) fails(`written: ${JSON.stringify(after)}`)
      if (ada !== null && !(isDue && isComplete) && JSON.stringify(coreAfter) !== JSON.stringify(core)) fails(`changed: ${JSON.stringify(coreAfter)}`)
      if (isComplete && JSON.stringify(after) === JSON.stringify(before)) fails('not written')
    })
    if (failure !== '') throw new Error(failure)
  }
  await holds(t, fc.asyncProperty(
    fc.constantFrom('app', 'passkey', 'none'), fc.constantFrom(...Object.keys(ways) as Array<keyof typeof ways>),
    fc.constantFrom('nothing', 'trusts', 'browser'), fc.constantFrom('none', 'wrong', 'right'), fc.boolean(), run
  ), 600)
})
