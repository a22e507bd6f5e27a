/** Attacks around the first proof of an address, by number: see docs/threats.md. */
import t, { type Test } from 'tap'
import { Accounts, type AuthPluginOptions } from '../../lib/index.js'
import { Pages, en } from '../../lib/pages.js'
import { Passkeys } from '../../lib/passkeys.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { userIdIn } from '../helpers/app.js'
import { eventsOf } from '../helpers/audit-events.js'
import { Browser } from '../helpers/browser.js'
import { type Enrolled, DATA_SECRET, enrolAt, nextCode } from '../helpers/factor-app.js'
import {
  ADA, type MailApp, NEW_PASSWORD, confirmAddress, mailsInTheEnd, registerAt, resetTokenOf, startMailApp
} from '../helpers/mail-app.js'
import { linkAt, signInAt } from '../helpers/own-provider.js'
import { addAt, newDevice, signInBy } from '../helpers/passkey-app.js'
import { SOME_STORES } from '../helpers/stores.js'
import { type ShownPage, readerOf } from '../pages/page.js'

const VERIFY = '/auth/local/verify-email'
const RESET = '/auth/local/reset-password'
const ASK = '/auth/local/mail-login'
const CONFIRM = '/auth/local/mail-login/confirm'
const PASSKEY = 'a name that the maker of the account typed'

interface Owned extends MailApp, Enrolled {
  /** Of the link that confirms the address. */
  token: string
  device: ReturnType<typeof newDevice>
  /** Another browser with the same session. */
  copy: Browser
}

/** Starts an application with a signed-in user who has a password, an app, a passkey and a provider, and an unproven address. */
async function startOwned (t: Test, options: AuthPluginOptions = {}): Promise<Owned> {
  const made = await startMailApp(t, {
    dataSecret: DATA_SECRET,
    secondFactor: new SecondFactor({ issuer: 'Shop' }),
    passkeys: new Passkeys({ name: 'Shop' }),
    pages: new Pages({ name: 'Shop' }),
    rateLimit: {},
    ...options
  }, { signInByMail: true, mails: { limits: false } })
  const { app, browser } = made
  await registerAt(made)
  const device = newDevice()
  await linkAt(browser, 'b', { subject: 'ada at b' })
  const enrolled = await enrolAt(t, browser)
  t.equal((await addAt(browser, device, { name: PASSKEY })).statusCode, 201)
  // The app has ended the links of before.
  await browser.post(VERIFY)
  const { token } = await made.mails.next('verify-email')
  return { ...made, ...enrolled, token, device, copy: new Browser(app, new Map(browser.cookies)) }
}

/** What the user has to sign in with. */
async function methodsOf ({ app, userId }: Owned): Promise<string[]> {
  const { factors = [] } = await app.auth.findUser({ userId }) ?? {}
  return [...(await app.auth.links(userId)).map(({ provider }) => provider), ...factors]
}

const ALL = ['b', 'local', 'passkey', 'recovery', 'totp']

/** The list that a page shows before the user chooses. */
function assertListed (t: Test, { html, text }: ShownPage, hasPassword = true): void {
  const listed = /<ul>[^]*?<\/ul>/.exec(html.slice(html.indexOf('This stays in your account')))?.[0] ?? ''
  const items = Array.from(listed.matchAll(/<span class="what">([^<]*) <small>([^<]*)/g), ([, name, date = '']) => [name, date !== ''])
  t.strictSame(items.sort(), [
    ['Authenticator app', true], ['B', false], ['Passkey', true], ...hasPassword ? [['Password', false]] : [], ['Recovery codes', true]
  ])
  t.notMatch(html, PASSKEY)
  t.match(text, en.links.existingRemove)
}

/** Sends a form without a choice, and returns what keeps all that the refusal lists. */
async function keepOf (t: Test, browser: Browser, path: string, fields: object): Promise<string> {
  const refused = await browser.post(path, fields)
  t.match([refused.statusCode, refused.json()], [409, { code: 'choice_required', keep: /^[\w-]{32}$/ }])
  const kinds = refused.json().methods.map(({ kind }: { kind: string }) => kind)
  t.strictSame(kinds.sort(), ['passkey', ...path === RESET ? [] : ['password'], 'provider', 'recovery', 'totp'])
  t.notMatch(refused.body, PASSKEY)
  return refused.json().keep
}

async function codeFor (browser: Browser, { mails }: MailApp): Promise<string> {
  await browser.post(ASK, { email: ADA.email })
  return String((await mails.next('sign-in')).code)
}

for (const [kind, createStore] of Object.entries(SOME_STORES)) {
  t.test(`the first proof of an address with ${kind}`, async t => {
    t.test('attack 152: in a session of the user a sign-in by mail keeps what was listed, and ends all copies of the session', async t => {
      const owned = await startOwned(t, { store: await createStore(t) })
      const { app, browser, copy, userId, secret } = owned
      const { generation } = await app.auth.findUser({ userId }) ?? { generation: NaN }
      const verifications = eventsOf(t, 'verification')
      const recoveries = eventsOf(t, 'recovery')
      const revoked: string[] = []
      app.auth.channel.on('revoke', id => { revoked.push(id) })
      const code = await codeFor(browser, owned)
      const keep = await keepOf(t, browser, CONFIRM, { code })
      t.match(await app.auth.findUser({ userId }), { emailVerified: false, generation }, 'nothing is written')

      const waiting = await browser.post(CONFIRM, { code, existing: keep })

      t.match(waiting.json(), { code: 'second_factor_required', methods: ALL.slice(2) })
      t.match(await app.auth.findUser({ userId }), { emailVerified: true, generation: generation + 1 })
      t.strictSame(await methodsOf(owned), ALL)
      t.equal((await copy.get('/private')).statusCode, 401, 'a copy of the session has ended')
      t.match([verifications, recoveries, revoked], [[{ userId }], [], [userId]])
      t.equal((await browser.post('/auth/local/second-factor', { code: nextCode(t, secret) })).statusCode, 200)
      t.equal((await browser.get('/private')).statusCode, 200)
      t.equal((await signInBy(new Browser(app), owned.device)).statusCode, 200)
      t.notOk((await mailsInTheEnd(owned)).some(({ kind }) => kind === 'email-proven'))
    })

    t.test('attack 113: in any other browser a sign-in by mail removes all of it, factors too', async t => {
      const authStore = await createStore(t)
      const store = new Accounts(authStore)
      const owned = await startOwned(t, { store: authStore })
      const { app, browser: squatter, userId, device } = owned
      const owner = new Browser(app)
      const recoveries = eventsOf(t, 'recovery')

      const code = await codeFor(owner, owned)
      const { keep } = await app.auth.findUser({ userId }).then(async user => user && store.unprovenMethods(user)) ?? {}
      for (const existing of ['x'.repeat(32), keep]) {
        t.equal((await owner.post(CONFIRM, { code, existing, isOwner: true })).json().code, 'unauthenticated', 'nothing is kept there')
      }
      t.equal((await owner.post(CONFIRM, { code })).statusCode, 200, 'the code was not used')

      t.strictSame(await methodsOf(owned), ['application'])
      t.match(recoveries, [{ userId, removed: ['b', 'local'] }])
      t.equal((await squatter.get('/private')).statusCode, 401)
      t.equal((await signInBy(new Browser(app), device)).statusCode, 401)
      t.equal((await new Browser(app).post('/auth/local/login', ADA)).json().code, 'invalid')
      t.equal(await userIdIn(owner), userId)
    })

    t.test('attack 152: a user who says that it is not theirs keeps the account alone', async t => {
      const owned = await startOwned(t, { store: await createStore(t) })
      const { browser, copy, userId } = owned
      const code = await codeFor(browser, owned)

      t.equal((await browser.post(CONFIRM, { code, existing: 'remove' })).statusCode, 200)

      t.strictSame(await methodsOf(owned), ['application'])
      t.equal(await userIdIn(browser), userId)
      t.equal((await copy.get('/private')).statusCode, 401)
      t.ok((await mailsInTheEnd(owned)).some(({ kind }) => kind === 'email-proven'))
    })

    t.test('attack 152: a reset keeps what was listed in a session of the user, and removes it elsewhere', async t => {
      for (const [inSession, choice, left] of [
        [true, 'keep', ALL], [true, 'remove', ['local']], [false, undefined, ['local']]
      ] as const) {
        const owned = await startOwned(t, { store: await createStore(t) })
        const { app } = owned
        const browser = inSession ? owned.browser : new Browser(app)
        const fields = { token: await resetTokenOf(owned), password: NEW_PASSWORD }
        const existing = choice === 'keep' ? await keepOf(t, browser, RESET, fields) : choice

        t.equal((await browser.post(RESET, { ...fields, existing })).statusCode, 204)

        t.strictSame(await methodsOf(owned), left)
        t.match(await app.auth.findUser({ userId: owned.userId }), { emailVerified: true })
        for (const present of [owned.browser, owned.copy]) t.equal((await present.get('/private')).statusCode, 401)
        const again = await new Browser(app).post('/auth/local/login', { ...ADA, password: NEW_PASSWORD })
        t.equal(again.json().code, choice === 'keep' ? 'second_factor_required' : undefined)
      }
    })

    t.test('attack 152: a link confirms in a session of the user or with the password, and nowhere else', async t => {
      for (const inSession of [true, false]) {
        for (const choice of ['keep', 'remove']) {
          const owned = await startOwned(t, { store: await createStore(t) })
          const { app, browser, copy, token } = owned
          t.equal((await new Browser(app).post(VERIFY, { token, existing: 'remove' })).json().code, 'unauthenticated', 'unspent')
          const sender = inSession ? browser : new Browser(app)
          const fields = { token, ...(!inSession && { password: ADA.password }) }
          const existing = choice === 'keep' ? await keepOf(t, sender, VERIFY, fields) : choice

          t.equal((await sender.post(VERIFY, { ...fields, existing })).statusCode, 204)

          t.strictSame(await methodsOf(owned), choice === 'keep' ? ALL : ['application'])
          t.match(await app.auth.findUser({ userId: owned.userId }), { emailVerified: true })
          t.equal((await copy.get('/private')).statusCode, 401)
          t.equal((await browser.get('/private')).statusCode, inSession && choice === 'keep' ? 200 : 401)
          t.equal((await sender.post(VERIFY, fields)).json().code, 'invalid_token', 'the link works once')
        }
      }
    })

    t.test('attack 152: what is added after the list was shown is not kept by it', async t => {
      const owned = await startOwned(t, { store: await createStore(t) })
      const { browser, token } = owned
      const code = await codeFor(browser, owned)
      const listed = await keepOf(t, browser, CONFIRM, { code })
      t.equal((await addAt(browser, newDevice())).statusCode, 201)

      for (const [path, fields] of [[VERIFY, { token }], [CONFIRM, { code }], [RESET, { token: await resetTokenOf(owned), password: NEW_PASSWORD }]] as const) {
        t.equal((await browser.post(path, { ...fields, existing: listed })).json().code, 'choice_required', path)
      }
      const { keep } = (await browser.post(CONFIRM, { code })).json()
      t.equal((await browser.post(CONFIRM, { code, existing: keep })).json().code, 'second_factor_required')
      t.strictSame(await methodsOf(owned), ALL)
    })
  })
}

t.test('attack 152: the pages list what stays, and keep or remove it by a button', async t => {
  for (const choice of ['keep', 'remove']) {
    const owned = await startOwned(t)
    const { browser, userId, mails } = owned
    const { open, send } = readerOf(t, browser)
    const press = choice === 'keep' ? {} : { existing: choice }
    const page = await send((await open('/auth/pages/confirm?next=/private')).formOf(ASK))
    assertListed(t, page)
    const byLink = await open(`${ASK}?token=${(await mails.next('sign-in')).token}`)
    assertListed(t, byLink)
    const wrong = await send(page.formOf(CONFIRM), { code: '12345' })
    assertListed(t, wrong)

    const after = await send(byLink.formOf(CONFIRM), press)

    t.equal(after.title, choice === 'keep' ? en.factors.secondTitle : '')
    t.strictSame(await methodsOf({ ...owned, userId }), choice === 'keep' ? ALL : ['application'])
  }
})

t.test('attack 152: the pages of links list what stays, and offer the sign-in to a visitor', async t => {
  const owned = await startOwned(t)
  const { app, browser, token } = owned
  const path = `${VERIFY}?token=${token}`
  const visitor = readerOf(t, new Browser(app))
  const [own, elsewhere] = [await readerOf(t, browser).open(path), await visitor.open(path)]
  for (const page of [own, elsewhere]) assertListed(t, page)
  t.match(elsewhere.text, en.links.changePassword)
  t.ok(elsewhere.links.includes('/auth/pages/sign-in'))
  const reset = `${RESET}?token=${await resetTokenOf(owned)}`
  assertListed(t, await readerOf(t, browser).open(reset), false)
  t.notMatch((await visitor.open(reset)).text, en.links.existingText)

  t.match(await visitor.send(elsewhere.forms[0], { password: ADA.password }), { status: 200, notice: en.notices.email_confirmed })
  t.strictSame(await methodsOf(owned), ALL)
})

t.test('an address that was proven before takes no choice, and one without anything to remove neither', async t => {
  const owned = await startOwned(t)
  const { app, browser, token, userId, secret } = owned
  t.equal((await confirmAddress(browser, token)).statusCode, 204)
  await app.auth.updateUser(userId, { emailVerified: false })
  t.equal((await browser.post('/auth/local/login', ADA)).json().code, 'second_factor_required')
  t.equal((await browser.post('/auth/local/second-factor', { code: nextCode(t, secret) })).statusCode, 200)
  t.notMatch((await readerOf(t, browser).open(ASK)).text, en.links.existingText)
  t.equal((await browser.post(CONFIRM, { code: await codeFor(browser, owned) })).json().code, 'second_factor_required')
  t.strictSame(await methodsOf(owned), ALL)

  const bare = await startMailApp(t, { rateLimit: {} }, { signInByMail: true })
  await signInAt(bare.browser, 'a', { subject: '1' })
  const { userId: made } = await bare.app.auth.createUser({ email: ADA.email })
  const other = new Browser(bare.app)
  t.equal((await other.post(CONFIRM, { code: await codeFor(other, bare) })).statusCode, 200)
  t.match(await bare.app.auth.findUser({ userId: made }), { emailVerified: true })
})

t.test('a session of another user, and one that has ended, keep nothing', async t => {
  for (const ended of [true, false]) {
    const owned = await startOwned(t)
    const { app, userId } = owned
    const browser = ended ? owned.browser : new Browser(app)
    if (ended) await app.auth.signOutEverywhere(userId)
    else await browser.post('/auth/local/register', { email: 'grace@example.com', password: ADA.password })

    t.equal((await browser.post(CONFIRM, { code: await codeFor(browser, owned) })).statusCode, 200)

    t.strictSame(await methodsOf(owned), ['application'])
  }
})
