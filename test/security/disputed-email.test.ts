/** Attack 153: who reads the mailbox of an address that its provider no longer vouches for. */
import t, { type Test } from 'tap'
import { Accounts, type AuthPluginOptions, type LocalIdentityProviderOptions } from '../../lib/index.js'
import { Pages } from '../../lib/pages.js'
import { userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { ADA, type MailApp, NEW_PASSWORD, mailsInTheEnd, resetTokenOf, startMailApp } from '../helpers/mail-app.js'
import { type AdmittedUser, linkAt, signInAt } from '../helpers/own-provider.js'
import { STORES } from '../helpers/stores.js'

const FORGOT = '/auth/local/forgot-password'
const RESET = '/auth/local/reset-password'
const VERIFY = '/auth/local/verify-email'
const ASK = '/auth/local/mail-login'
const CONFIRM = '/auth/local/mail-login/confirm'
const REGISTER = '/auth/local/register'
const TAKEN = 'taken@example.com'
const NEW = 'new@example.com'

const VOUCHED: AdmittedUser = { subject: 'ada-a', email: ADA.email }
const UNVERIFIED: AdmittedUser = { ...VOUCHED, emailVerified: false }

/** What a provider that vouched for an address reports, so that it is disputed. */
const DISPUTES: Readonly<Record<string, AdmittedUser>> = {
  'it as unverified': UNVERIFIED,
  'the address of another user': { subject: 'ada-a', email: TAKEN },
  'another address, unverified': { subject: 'ada-a', email: NEW, emailVerified: false },
  'no address': { subject: 'ada-a' }
}

async function start (
  t: Test, options: AuthPluginOptions = {}, local: LocalIdentityProviderOptions = {}
): Promise<MailApp & { userId: string }> {
  const made = await startMailApp(t, { rateLimit: {}, ...options }, {
    signInByMail: true, mails: { limits: false, unknownAddress: true }, ...local
  })
  await made.app.auth.createUser({ email: TAKEN })
  await signInAt(made.browser, 'a', VOUCHED)
  return { ...made, userId: await userIdIn(made.browser) ?? '' }
}

async function report (browser: Browser, person: AdmittedUser, provider = 'a'): Promise<void> {
  t.equal((await signInAt(browser, provider, person)).statusCode, 302)
}

for (const [kind, createStore] of Object.entries(STORES)) {
  t.test(`a disputed address with ${kind}`, async t => {
    for (const [what, person] of Object.entries(DISPUTES)) {
      t.test(`attack 153: an address is disputed when the provider that vouched for it reports ${what}`, async t => {
        const { app, browser, userId } = await start(t, { store: await createStore(t) })

        await report(browser, person)

        t.match(await app.auth.findUser({ userId }), { email: ADA.email, emailVerified: false, emailDisputed: true })
        await report(browser, person)
        t.match(await app.auth.findUser({ userId }), { emailDisputed: true }, 'also when it says so again')
        await report(browser, VOUCHED)
        t.match(await app.auth.findUser({ userId }), { emailVerified: true, emailDisputed: undefined }, 'until it vouches')
      })
    }

    t.test('attack 153: links that were out when an address was disputed open nothing', async t => {
      const made = await start(t, { store: await createStore(t) })
      const { app, browser, mails, userId } = made
      const thief = new Browser(app)
      const token = await resetTokenOf(made)
      await thief.post(ASK, { email: ADA.email })
      const { code } = await mails.next('sign-in')

      await report(browser, UNVERIFIED)

      t.match(await app.auth.openMailToken(token), { valid: false })
      t.equal((await thief.post(RESET, { token, password: NEW_PASSWORD })).json().code, 'invalid_token')
      t.equal((await thief.post(CONFIRM, { code })).json().code, 'account_exists')
      t.equal(await userIdIn(thief), null)
      t.match(await app.auth.findUser({ userId }), { generation: 0, emailDisputed: true })
      t.equal((await app.auth.links(userId)).length, 1)
    })

    t.test('attack 153: a rule that reset a password or signed in by mail refuses a disputed address by itself', async t => {
      const { app, browser, userId } = await start(t, { store: await createStore(t) })
      await report(browser, UNVERIFIED)
      const accounts = new Accounts(app.auth.store)

      t.equal(await accounts.resetPassword({ userId, email: ADA.email, generation: 0 }, 'a hash'), null)
      for (const user of [null, { userId, generation: 0 }]) {
        const signIn = accounts.signInByMail({ user, email: ADA.email }, { newId: null, holds: () => false })
        await t.rejects(signIn, { code: 'account_exists' })
      }
      const identity = { provider: 'application', subject: userId, claims: { sub: userId }, verifiedEmail: null }
      const found = { userId, generation: 0, email: ADA.email, emailVerified: false }
      t.equal(await accounts.signIn(found, { identity, held: 'confirms' }), null, 'nor one that waited for a factor')
      t.match(await app.auth.findUser({ userId }), { emailVerified: false, emailDisputed: true })
    })

    t.test('an address that another provider vouches for is not disputed, until that one is unlinked', async t => {
      const { app, browser, userId } = await start(t, { store: await createStore(t) })
      await linkAt(browser, 'b', { subject: 'ada-b', email: ADA.email })

      await report(browser, UNVERIFIED)
      t.match(await app.auth.findUser({ userId }), { emailVerified: true, emailDisputed: undefined })

      await app.auth.unlink(userId, 'b')
      t.match(await app.auth.findUser({ userId }), { emailVerified: false, emailDisputed: true })
    })

    t.test('an address that another provider vouches for after the dispute is no longer disputed', async t => {
      const { app, browser, userId } = await start(t, { store: await createStore(t) })
      await report(browser, UNVERIFIED)

      await linkAt(browser, 'b', { subject: 'ada-b', email: ADA.email })
      t.match(await app.auth.findUser({ userId }), { emailVerified: true, emailDisputed: undefined })

      await app.auth.unlink(userId, 'b')
      t.match(await app.auth.findUser({ userId }), { emailVerified: false, emailDisputed: undefined })
    })

    t.test('an address that its user has confirmed is never disputed', async t => {
      const { app, browser, userId, mails } = await start(t, { store: await createStore(t) })
      await browser.post(VERIFY)
      await browser.post(VERIFY, { token: (await mails.next('verify-email')).token })

      await report(browser, UNVERIFIED)
      t.match(await app.auth.findUser({ userId }), { emailVerified: true, emailDisputed: undefined })

      await app.auth.updateUser(userId, { emailVerified: false })
      t.match(await app.auth.findUser({ userId }), { emailVerified: false, emailDisputed: undefined })
    })

    t.test('updateUser frees a disputed address, or says that it is the user\'s', async t => {
      const { app, browser, userId } = await start(t, { store: await createStore(t) })
      await report(browser, UNVERIFIED)
      await t.rejects(app.auth.createUser({ email: ADA.email }), { code: 'exists' }, 'it stays taken')

      await app.auth.updateUser(userId, { emailVerified: false })
      t.match(await app.auth.findUser({ userId }), { emailDisputed: true })
      await app.auth.updateUser(userId, { email: 'ada@work.example' })
      t.match(await app.auth.findUser({ userId }), { emailVerified: false, emailDisputed: undefined })
      t.ok(await app.auth.createUser({ email: ADA.email }), 'it is free')
    })

    t.test('an address that comes unverified moves the account once the same provider verifies it', async t => {
      const { app, browser, userId } = await start(t, { store: await createStore(t) })
      await report(browser, { subject: 'ada-a', email: NEW, emailVerified: false })
      await report(browser, { subject: 'ada-a', email: NEW, emailVerified: false })
      t.match(await app.auth.findUser({ userId }), { email: ADA.email })

      await report(browser, { subject: 'ada-a', email: NEW })

      t.match(await app.auth.findUser({ userId }), { email: NEW, emailVerified: true, emailDisputed: undefined })
    })

    t.test('an address that comes unverified at a second provider moves the account as well, and one that has not changed does not', async t => {
      const { app, browser, userId } = await start(t, { store: await createStore(t) })
      const atB = (email: string, emailVerified: boolean): AdmittedUser => ({ subject: 'ada-b', email, emailVerified })
      await linkAt(browser, 'b', atB('first@example.com', false))
      await report(browser, atB('first@example.com', true), 'b')
      await report(browser, atB('first@example.com', false), 'b')
      await report(browser, atB('first@example.com', true), 'b')
      t.match(await app.auth.findUser({ userId }), { email: ADA.email, emailVerified: true })

      await report(browser, atB(NEW, false), 'b')
      t.match(await app.auth.findUser({ userId }), { email: ADA.email, emailVerified: true })
      await report(browser, atB(NEW, true), 'b')
      t.match(await app.auth.findUser({ userId }), { email: NEW, emailVerified: true })
    })
  })
}

t.test('attack 153: the former mailbox gets what an unknown address gets, and the same answers', async t => {
  for (const registration of [false, { verify: 'first' }] as const) {
    const made = await start(t, {}, { registration })
    const { app, browser } = made
    await report(browser, UNVERIFIED)
    const paths = registration === false ? [FORGOT, ASK] : [FORGOT, ASK, REGISTER]
    const answersFor = async (email: string) => {
      const answers = []
      for (const path of paths) {
        const { statusCode, headers: { location }, body } = await new Browser(app).post(path, { email })
        answers.push({ statusCode, location, body })
      }
      return answers
    }

    t.strictSame(await answersFor(ADA.email), await answersFor('unknown@example.com'))

    const mails = await mailsInTheEnd(made)
    const sentTo = (address: string) => mails.filter(({ to, kind }) => to === address && kind !== 'email-disputed')
      .map(({ kind, userId, name }) => ({ kind, name, isKnown: userId === made.userId }))
    t.strictSame(sentTo(ADA.email), sentTo('unknown@example.com'))
    t.equal(sentTo(ADA.email).length, paths.length)
  }
})

t.test('attack 153: who proves a disputed address is told that it has an account, after the proof', async t => {
  const made = await start(t, {}, { registration: { verify: 'first' } })
  const { app, browser, mails, userId } = made
  await report(browser, UNVERIFIED)
  const thief = new Browser(app)

  await thief.post(ASK, { email: ADA.email })
  const { code } = await mails.next('sign-in')
  t.match((await thief.post(CONFIRM, { code })).json(), { statusCode: 409, code: 'account_exists' })

  await thief.post(REGISTER, { email: ADA.email })
  const { token } = await mails.next('register')
  const registering = { token, password: NEW_PASSWORD }
  t.match((await thief.post(REGISTER, registering)).json(), { statusCode: 409, code: 'account_exists' })
  t.equal(await userIdIn(thief), null)

  await app.auth.updateUser(userId, { email: 'ada@work.example' })
  t.equal((await thief.post(REGISTER, registering)).statusCode, 201, 'the link is not used up')
})

t.test('the owner of a disputed address is told, and confirms it by the link of the account page', async t => {
  const made = await start(t, { pages: new Pages({ name: 'Shop' }) })
  const { browser, mails, app, userId } = made
  await report(browser, { ...UNVERIFIED, claims: { name: 'Ada' } })

  t.match(await mails.next('email-disputed'), { to: ADA.email, userId, name: null, url: null })
  await report(browser, UNVERIFIED)
  const disputed = 'A provider no longer confirms this address'
  t.match((await browser.get('/auth/pages/account', { accept: 'text/html' })).body, disputed)
  await browser.post(VERIFY)
  const { token } = await mails.next('verify-email')
  t.equal((await new Browser(app).post(VERIFY, { token })).json().code, 'unauthenticated', 'the mailbox alone does not')
  const released = await new Browser(app).post(VERIFY, { token, not_me: true, email: ADA.email })
  t.equal(released.json().code, 'invalid_token')
  t.equal((await browser.post(VERIFY, { token })).statusCode, 204)

  t.match(await app.auth.findUser({ userId }), { emailVerified: true, emailDisputed: undefined })
  t.notMatch((await browser.get('/auth/pages/account', { accept: 'text/html' })).body, disputed)
  t.equal((await new Browser(app).post(RESET, { token: await resetTokenOf(made), password: NEW_PASSWORD })).statusCode, 204)
  t.equal((await mailsInTheEnd(made)).filter(({ kind }) => kind === 'email-disputed').length, 1, 'told once')
})

t.test('an unlinking leaves the address to mail, and sends the link that confirms it at once', async t => {
  for (const by of ['app.auth', 'page'] as const) {
    const made = await start(t, { pages: new Pages({ name: 'Shop' }) })
    const { app, browser, mails, userId } = made
    await linkAt(browser, 'b', { subject: 'ada-b' })

    if (by === 'page') t.equal((await browser.post('/auth/pages/unlink', { provider: 'a' })).statusCode, 204)
    else await app.auth.unlink(userId, 'a')

    t.match(await app.auth.findUser({ userId }), { emailVerified: false, emailDisputed: undefined })
    const { to, token, about } = await mails.next('verify-email')
    t.equal(to, ADA.email)
    t.equal(about.requestId === null, by === 'app.auth')
    const owner = new Browser(app)
    await report(owner, { subject: 'ada-b' }, 'b')
    t.equal((await owner.post(VERIFY, { token })).statusCode, 204)
    await linkAt(owner, 'a', VOUCHED)
    await app.auth.unlink(userId, 'a')
    const kinds = (await mailsInTheEnd(made)).map(({ kind }) => kind)
    t.equal(kinds.filter(kind => kind === 'verify-email').length, 1, 'a confirmed address needs no other link')
  }
})

t.test('attack 153: mail to a disputed address is no sign-in method that is left', async t => {
  const { app } = await start(t)
  const { userId } = await app.auth.createUser({ email: NEW })
  const accounts = new Accounts(app.auth.store)
  const identity = { provider: 'b', subject: 'ada-b', claims: { sub: 'ada-b', email: NEW } }
  await accounts.addLink(userId, { ...identity, verifiedEmail: NEW })
  await accounts.refreshIdentity({ ...identity, verifiedEmail: null })
  t.match(await app.auth.findUser({ userId }), { emailDisputed: true })

  await t.rejects(app.auth.unlink(userId, 'b'), { code: 'last_link' })
})

t.test('an address that nothing ever vouched for stays usable for mail', async t => {
  const made = await startMailApp(t)
  await made.app.auth.createUser({ email: ADA.email })

  const token = await resetTokenOf(made)

  t.equal((await new Browser(made.app).post(RESET, { token, password: NEW_PASSWORD })).statusCode, 204)
})
