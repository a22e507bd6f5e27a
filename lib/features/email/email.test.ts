/** Users whose provider does not vouch for an address: they add one, and confirm it by mail. */
import t, { type Test } from 'tap'
import { type AuthStore, MemoryAuthStore } from '../../index.js'
import { Pages, en } from '../../pages.js'
import { mailbox } from '../../testing.js'
import { localProvider, principalIn, startApp, userIdIn } from '../../../test/helpers/app.js'
import { eventsOf } from '../../../test/helpers/audit-events.js'
import { Browser } from '../../../test/helpers/browser.js'
import { ADA, BASE_URL, type MailApp, confirmAddress, mailsInTheEnd, registerAt, startMailApp } from '../../../test/helpers/mail-app.js'
import { OwnProvider, linkAt, signInAt } from '../../../test/helpers/own-provider.js'
import { sessionIdOf } from '../../../test/helpers/shared-apps.js'
import { SOME_STORES } from '../../../test/helpers/stores.js'
import { readerOf } from '../../../test/pages/page.js'

const { email } = ADA
const CHANGE = '/auth/local/change-email'
const CONFIRM = '/auth/local/change-email/confirm'
const ACCOUNT = '/auth/pages/account'
const UNVOUCHED = { subject: 'ada at a', email, emailVerified: false }

interface Adding extends MailApp {
  userId: string
}

/** Starts an application in which a user without an address is signed in. */
async function startAdding (t: Test, store: AuthStore = new MemoryAuthStore()): Promise<Adding> {
  const start = await startMailApp(t, { store })
  await signInAt(start.browser, 'a', UNVOUCHED)
  return { ...start, userId: await userIdIn(start.browser) ?? '' }
}

async function linkFor ({ browser, mails }: Pick<MailApp, 'browser' | 'mails'>, to = email): Promise<string> {
  await browser.post(CHANGE, { email: to })
  return (await mails.next('change-email')).token
}

/** Confirms an address, and keeps what the account has. */
async function confirm (browser: Browser, token: string): Promise<[status: number, code: string | null]> {
  const { keep } = (await browser.post(CONFIRM, { token })).json()
  const answer = await browser.post(CONFIRM, { token, existing: keep })
  return [answer.statusCode, answer.body === '' ? null : answer.json().code]
}

for (const [kind, createStore] of Object.entries(SOME_STORES)) {
  t.test(`addresses are added with ${kind}`, async t => {
    t.test('a user without an address adds one, which is theirs once they have confirmed it', async t => {
      const start = await startAdding(t, await createStore(t))
      const { app, browser, mails, userId } = start
      const copy = new Browser(app, browser.cookies)
      const [events, recoveries] = [eventsOf(t, 'email'), eventsOf(t, 'recovery')]
      t.match(await principalIn(browser), { claims: { email } }, 'the proposal of the provider')

      t.equal((await browser.post(CHANGE, { email: ' ADA@example.com' })).statusCode, 202)
      const mail = await mails.next('change-email')
      t.match(mail, { to: email, name: null, userId })
      t.match(await app.auth.openMailToken(mail.token), { valid: true, kind: 'change-email', email })
      const other = await linkFor(start, 'ada@other.example')
      t.match(await app.auth.findUser({ userId }), { email: null, emailVerified: false }, 'nothing is stored until then')
      const id = sessionIdOf(browser)
      const asked = await browser.post(CONFIRM, { token: mail.token })
      t.match([asked.statusCode, asked.json()], [409, { code: 'choice_required', methods: [{ kind: 'provider', provider: 'a' }] }])

      t.strictSame(await confirm(browser, mail.token), [204, null])

      t.match(await app.auth.findUser({ email }), { userId, emailVerified: true })
      t.not(sessionIdOf(browser), id)
      t.equal((await browser.get('/private')).statusCode, 200)
      t.equal((await copy.get('/private')).statusCode, 401)
      t.match(events, [{ userId, verified: true }])
      t.strictSame(recoveries, [])
      for (const token of [mail.token, other]) t.equal((await browser.post(CONFIRM, { token })).json().code, 'invalid_token')
      t.match(await app.auth.openMailToken(other), { valid: false, reason: 'used' })
      await signInAt(browser, 'a', { ...UNVOUCHED, email: 'ada@moved.example' })
      t.match(await app.auth.findUser({ userId }), { email, emailVerified: true }, 'the provider does not move it')
      t.equal((await browser.post(CHANGE, { email: 'ada@other.example' })).statusCode, 202)
      t.strictSame((await mailsInTheEnd(start)).map(({ kind, to }) => [kind, to]).sort(), [
        // No notice goes to an address that was none.
        ['change-email', email], ['change-email', 'ada@other.example'], ['change-email', 'ada@other.example'],
        ['email-change-requested', email]
      ])
    })

    t.test('attack 74: an address that another account has is mailed like a free one, and nothing is taken from its user', async t => {
      for (const isVerified of [true, false]) {
        const start = await startAdding(t, await createStore(t))
        const { app, browser, mails, userId } = start
        const owner = new Browser(app)
        const token = await registerAt({ ...start, browser: owner })
        if (isVerified) await confirmAddress(owner, token)
        const before = [await app.auth.findUser({ email }), await app.auth.findUser({ userId }), await app.auth.links(userId)]
        const [free, taken] = [await browser.post(CHANGE, { email: 'free@example.com' }), await browser.post(CHANGE, { email })]
        t.strictSame([taken.statusCode, taken.body], [free.statusCode, free.body])
        await mails.next('change-email')

        t.strictSame(await confirm(browser, (await mails.next('change-email')).token), [409, 'exists'])

        t.strictSame([await app.auth.findUser({ email }), await app.auth.findUser({ userId }), await app.auth.links(userId)], before)
        t.equal((await new Browser(app).post('/auth/local/login', ADA)).statusCode, 200)
      }
    })

    t.test('attack 74: of two users who confirm one address at once, one gets it', async t => {
      const start = await startAdding(t, await createStore(t))
      const { app, browser, mails } = start
      const other = new Browser(app)
      await signInAt(other, 'b', UNVOUCHED)
      const uses = [[browser, await linkFor(start)], [other, await linkFor({ browser: other, mails })]] as const

      const answers = await Promise.all(uses.map(async ([browser, token]) => confirm(browser, token)))

      t.strictSame(answers.map(String).sort(), ['204,', '409,exists'])
      const winner = uses[answers.findIndex(([status]) => status === 204)]?.[0] ?? other
      t.equal((await app.auth.findUser({ email }))?.userId, await userIdIn(winner))
    })

    t.test('attack 152: in the planted session of another user the owner of the address removes what the account had', async t => {
      const start = await startAdding(t, await createStore(t))
      const { app, browser, userId } = start
      const mallory = new Browser(app, browser.cookies)
      const token = await linkFor(start)
      const { keep } = (await browser.post(CONFIRM, { token })).json()
      await linkAt(mallory, 'b', { subject: 'mallory' })
      t.equal((await browser.post(CONFIRM, { token, existing: keep })).json().code, 'choice_required', 'what was added since')
      const recoveries = eventsOf(t, 'recovery')

      t.equal((await browser.post(CONFIRM, { token, existing: 'remove' })).statusCode, 204)

      t.match(await app.auth.findUser({ email }), { userId, emailVerified: true })
      t.strictSame((await app.auth.links(userId)).map(({ provider }) => provider), ['application'])
      t.match(recoveries, [{ userId, removed: ['a', 'b'] }])
      t.equal((await mallory.get('/private')).statusCode, 401)
      await signInAt(mallory, 'a', UNVOUCHED)
      t.equal(await userIdIn(mallory), null, 'the identity of before opens nothing')
    })
  })
}

t.test('attack 69: a link to a first address does nothing without a session of its user', async t => {
  const start = await startAdding(t)
  const { app, browser } = start
  const token = await linkFor(start)
  const stranger = new Browser(app)
  for (const body of [{ token }, { token, existing: 'remove' }]) {
    t.equal((await stranger.post(CONFIRM, body)).json().code, 'unauthenticated')
  }
  t.equal((await stranger.post(CONFIRM, { token, password: ADA.password })).json().code, 'invalid')
  await signInAt(stranger, 'b', { subject: 'stranger' })
  t.equal((await stranger.post(CONFIRM, { token })).json().code, 'unauthenticated')

  t.strictSame(await confirm(browser, token), [204, null])
})

t.test('a link to a first address is over once the account has got one in another way', async t => {
  const start = await startAdding(t)
  const { app, browser, userId } = start
  const token = await linkFor(start)
  await linkAt(browser, 'b', { subject: 'ada at b', email: 'ada@vouched.example' })

  t.equal((await browser.post(CONFIRM, { token })).json().code, 'invalid_token')
  t.match(await app.auth.findUser({ userId }), { email: 'ada@vouched.example' })
})

t.test('who has made an account by mail meanwhile deletes one of the two, and links the provider', async t => {
  const start = await startAdding(t)
  const { app, browser } = start
  const owner = new Browser(app)
  await confirmAddress(owner, await registerAt({ ...start, browser: owner }))
  t.strictSame(await confirm(browser, await linkFor(start)), [409, 'exists'])

  t.equal((await browser.post('/auth/local/delete-account')).statusCode, 204)
  await linkAt(owner, 'a', UNVOUCHED)

  const userId = await userIdIn(owner)
  await signInAt(browser, 'a', UNVOUCHED)
  t.equal(await userIdIn(browser), userId)
})

t.test('the pages lead from requireVerified to a first address, and back', async t => {
  const mails = mailbox()
  const app = await startApp(t, {
    baseUrl: BASE_URL,
    providers: [new OwnProvider('a')],
    local: localProvider({ sendMail: mails.sendMail }),
    pages: new Pages({ name: 'Shop' })
  }, {}, app => { app.get('/orders', { preHandler: app.auth.requireVerified }, async () => 'your orders') })
  const browser = new Browser(app)
  const { open, send } = readerOf(t, browser)
  await signInAt(browser, 'a', UNVOUCHED)

  const account = await open('/orders')
  t.match(account, { url: `${ACCOUNT}?error=email_missing&next=%2Forders`, alert: en.errors.email_missing })
  t.equal(account.formOf('/auth/local/verify-email'), undefined, 'there is nothing to send again')
  const form = account.formOf(CHANGE)
  t.equal(form?.values.email, email, 'what the provider says')
  t.match(account.text, en.account.addEmail)
  const failed = await send(form, { email: 'ada' })
  t.match([failed.alert, failed.formOf(CHANGE)?.values.email], [en.errors.invalid_email, 'ada'])
  t.equal((await send(failed.formOf(CHANGE), { email })).notice, en.common.sent)
  const link = String((await mails.next('change-email')).url).replace(BASE_URL, '')

  const elsewhere = await readerOf(t, new Browser(app)).open(link)
  t.match(elsewhere.text, en.links.addSignIn)
  t.strictSame([elsewhere.forms, elsewhere.links.includes('/auth/pages/sign-in')], [[], true])
  t.notMatch(elsewhere.text, en.links.existingText)
  const page = await open(link)
  t.match(page.text, `${email} will become the e-mail address of your account.`)
  for (const text of [en.links.existingText, en.links.existingRemove]) t.match(page.text, text)
  t.match(await send(page.forms[0]), { url: '/orders', html: 'your orders' })
  t.match((await open(ACCOUNT)).text, `${email} ${en.account.confirmed}`)
})

t.test('the account page offers no first address without the route for it', async t => {
  const { browser } = await startMailApp(t, { pages: new Pages({ name: 'Shop' }) }, { accountRoutes: { changeEmail: false } })
  await signInAt(browser, 'a', UNVOUCHED)

  const page = await readerOf(t, browser).open(ACCOUNT)

  t.equal(page.formOf(CHANGE), undefined)
  t.notMatch(page.html, `<h2>${en.common.email}</h2>`)
})

t.test('requireVerified tells scripts and tokens that the address is missing', async t => {
  const local = localProvider()
  const options = { baseUrl: BASE_URL, providers: [new OwnProvider('a')], local, accountPage: '/account' }
  const app = await startApp(t, options, {}, app => {
    const { requireBearer, requireVerified } = app.auth
    app.get('/orders', { preHandler: requireVerified }, async () => 'your orders')
    app.get('/machine', { preHandler: [requireBearer, requireVerified] }, async () => 'your orders')
  })
  const browser = new Browser(app)
  await signInAt(browser, 'a', UNVOUCHED)
  const authorization = `Bearer ${await local.issueIdToken(await userIdIn(browser) ?? '')}`

  for (const [path, headers] of [['/orders', {}], ['/machine', { authorization }]] as const) {
    const answer = await browser.get(path, headers)
    t.strictSame([answer.statusCode, answer.json().code], [403, 'email_missing'], path)
  }
  const page = await browser.get('/orders', { accept: 'text/html' })
  t.equal(page.headers.location, '/account?error=email_missing&next=%2Forders')
})
