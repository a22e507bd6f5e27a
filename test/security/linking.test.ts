/** Linking by a stolen session: attacks 120 and 121. */
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { Accounts, type AuthPluginOptions, type Linking } from '../../lib/index.js'
import { type Mailbox, mailbox } from '../../lib/testing.js'
import { localProvider, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { confirmAddress } from '../helpers/mail-app.js'
import { FROM_OWN_PAGE, leaveFor, postLogin, signInAt } from '../helpers/own-provider.js'
import { SOME_SESSION_STORES, type SessionStores } from '../helpers/session-stores.js'
import { ADA, GRACE, startTwoApps } from '../helpers/shared-apps.js'

const MINUTE_MS = 60_000
const LINK = '/auth/a/login?link=true&next=/linked'
const THIEF = { subject: 'thief' }
const FROM_PAGE = { ...FROM_OWN_PAGE, referer: 'http://app.example/account' }
const AS_SCRIPT = { ...FROM_PAGE, accept: 'application/json' }
const AS_PAGE = { ...FROM_PAGE, accept: 'text/html' }
const NEW_PASSWORD = 'battery staple'

interface Setting {
  app: FastifyInstance
  mails: Mailbox
  /** The browser of the user. */
  browser: Browser
  userId: string
  /** The providers of the user's links. */
  linked: () => Promise<string[]>
}

interface Choices {
  options?: AuthPluginOptions
  sessions?: SessionStores
  /** Default true. */
  notices?: boolean
}

/** A user who has just registered, and confirmed their address. */
async function start (t: Test, { options, sessions, notices = true }: Choices = {}): Promise<Setting> {
  const mails = mailbox()
  const local = localProvider({ sendMail: mails.sendMail, mails: { notices } })
  const [app] = await startTwoApps(t, { sessions, options: { local, ...options } })
  const browser = new Browser(app)
  const { userId }: { userId: string } = (await browser.post('/auth/local/register', ADA)).json()
  const { token } = await mails.next('verify-email')
  await confirmAddress(browser, token)
  return { app, mails, browser, userId, linked: async () => (await app.auth.links(userId)).map(({ provider }) => provider) }
}

for (const [kind, createSessions] of SOME_SESSION_STORES) {
  t.test(`the rules hold with ${kind}`, async t => {
    t.test('attack 120: a session whose last authentication is older than ten minutes links nothing, and so changes no password', async t => {
      const { app, browser, userId, linked } = await start(t, { sessions: createSessions() })
      const stolen = new Browser(app, browser.cookies)
      advanceClock(t, 11 * MINUTE_MS)

      const answer = await postLogin(stolen, LINK)
      const { message, ...body } = answer.json()

      t.strictSame(body, { statusCode: 403, code: 'reauthenticate', error: 'Forbidden', methods: ['password'] })
      t.type(message, 'string')
      t.equal((await stolen.submit('/auth/a/login', { link: 'true' }, AS_PAGE)).headers.location, '/account?error=reauthenticate')
      t.strictSame(await linked(), ['local'])
      const thief = new Browser(app)
      await signInAt(thief, 'a', THIEF)
      t.not(await userIdIn(thief), userId)
      t.not((await thief.post('/auth/local/change-password', { password: NEW_PASSWORD })).statusCode, 204)
      t.equal((await new Browser(app).post('/auth/local/login', ADA)).statusCode, 200)
    })

    t.test('attack 120: a linking that comes back later than ten minutes after the last authentication links nothing', async t => {
      const told: Linking[] = []
      const { app, browser, linked } = await start(t, { options: { onLink: linking => { told.push(linking) } }, sessions: createSessions() })
      advanceClock(t, 5 * MINUTE_MS)
      const [asScript, asPage] = [await leaveFor(browser, LINK, THIEF, FROM_PAGE), await leaveFor(browser, LINK, THIEF, FROM_PAGE)]
      advanceClock(t, 6 * MINUTE_MS)

      const answer = await browser.get(asScript, AS_SCRIPT)
      t.strictSame([answer.statusCode, answer.json().code, answer.json().methods], [403, 'reauthenticate', ['password']])
      t.equal((await browser.get(asPage, { accept: 'text/html' })).headers.location, '/account?error=reauthenticate')

      t.strictSame(await linked(), ['local'])
      t.equal(await app.auth.findUser({ provider: 'a', subject: THIEF.subject }), null)
      t.strictSame(told, [], 'onLink is not asked')
    })

    t.test('attack 121: a linking that a stolen session left pending finishes in no session that replaces it', async t => {
      const ends: Record<string, (setting: Setting) => Promise<unknown>> = {
        'the user changes the password': async ({ browser }) =>
          browser.post('/auth/local/change-password', { current: ADA.password, password: NEW_PASSWORD }),
        'the user ends all other sessions': async ({ browser }) => browser.post('/end-others'),
        'the user reauthenticates': async ({ browser }) =>
          browser.post('/auth/local/reauthenticate', { password: ADA.password }),
        'the user signs in again': async ({ browser }) => browser.post('/auth/local/login', ADA),
        'the user resets the password and signs in': async ({ app, mails, browser }) => {
          await new Browser(app).post('/auth/local/forgot-password', { email: ADA.email })
          const { token } = await mails.next('reset-password')
          await browser.post('/auth/local/reset-password', { token, password: NEW_PASSWORD })
          return browser.post('/auth/local/login', { ...ADA, password: NEW_PASSWORD })
        }
      }
      for (const [what, end] of Object.entries(ends)) {
        const setting = await start(t, { sessions: createSessions() })
        const { app, browser, userId, linked } = setting
        const callback = await leaveFor(new Browser(app, browser.cookies), LINK, THIEF, FROM_PAGE)

        await end(setting)
        const answer = await browser.get(callback, AS_SCRIPT)

        t.strictSame([answer.statusCode, answer.json().code], [400, 'invalid_state'], what)
        t.equal((await browser.get(callback, AS_SCRIPT)).json().code, 'invalid_state', `${what}: again`)
        t.strictSame(await linked(), ['local'], what)
        t.equal(await userIdIn(browser), userId, `${what}: the user stays signed in`)
      }
    })

    t.test('attack 121: a reauthentication that a replaced session started does not finish', async t => {
      const { app, browser, userId } = await start(t, { sessions: createSessions() })
      await new Accounts(app.auth.store).addLink(userId, { provider: 'proving', subject: 'ada', claims: { sub: 'ada' }, verifiedEmail: null })
      const callback = await leaveFor(browser, '/auth/proving/login?reauthenticate=true', { subject: 'ada' }, FROM_PAGE)

      await browser.post('/auth/local/login', ADA)

      t.equal((await browser.get(callback, AS_SCRIPT)).json().code, 'invalid_state')
    })
  })
}

t.test('attack 120: browsers go to the page for reauthentication, then the identity is linked', async t => {
  const { browser, linked } = await start(t, { options: { reauthenticatePage: '/confirm?from=link' } })
  advanceClock(t, 9 * MINUTE_MS)
  const late = await leaveFor(browser, LINK, THIEF, FROM_PAGE)
  advanceClock(t, 2 * MINUTE_MS)
  const { referer: _, ...withoutPage } = AS_PAGE

  const answers = [
    await browser.submit('/auth/a/login', { link: 'true' }, AS_PAGE),
    await browser.submit('/auth/a/login', { link: 'true' }, withoutPage),
    await browser.get(late, { accept: 'text/html' })
  ]

  t.strictSame(answers.map(({ statusCode, headers }) => [statusCode, headers.location]), [
    [303, '/confirm?from=link&next=%2Faccount'],
    [303, '/confirm?from=link'],
    [302, '/confirm?from=link&next=%2Faccount']
  ])
  t.equal((await postLogin(browser, LINK)).statusCode, 403, 'a script gets the answer')
  t.equal((await browser.get('/auth/a/callback?state=unknown-act', AS_PAGE)).headers.location, '/account?error=invalid_state')
  await browser.post('/auth/local/reauthenticate', { password: ADA.password })
  const landing = await browser.get(await leaveFor(browser, LINK, { subject: 'ada' }, FROM_PAGE))
  t.equal(landing.headers.location, '/linked')
  t.strictSame(await linked(), ['a', 'local'])
})

t.test('attack 120: a user is told of an identity that was added, once', async t => {
  const { app, mails, browser } = await start(t)
  await browser.get(await leaveFor(browser, LINK, { subject: 'ada' }, FROM_PAGE))
  await browser.get(await leaveFor(browser, LINK, { subject: 'ada' }, FROM_PAGE))
  await browser.get(await leaveFor(browser, '/auth/proving/login?link=true', { subject: 'ada', email: 'other@example.com' }, FROM_PAGE))
  await app.close()

  const notices = mails.all.filter(({ kind }) => kind === 'identity-linked')
  t.strictSame(notices.map(({ to, url, token }) => ({ to, url, token })), Array(2).fill({ to: ADA.email, url: null, token: null }))
})

t.test('no notice of an added identity goes to an address that is not confirmed, or with notices off', async t => {
  const { app, mails, browser } = await start(t)
  const grace = new Browser(app)
  await grace.post('/auth/local/register', GRACE)
  await grace.get(await leaveFor(grace, LINK, THIEF, FROM_PAGE))
  await grace.get(await leaveFor(grace, '/auth/proving/login?link=true', { subject: 'grace', email: GRACE.email }, FROM_PAGE))
  await browser.get(await leaveFor(browser, '/auth/proving/login?link=true', THIEF, FROM_PAGE))
  const silent = await start(t, { notices: false })
  await silent.browser.get(await leaveFor(silent.browser, LINK, THIEF, FROM_PAGE))
  t.strictSame(await silent.linked(), ['a', 'local'])
  await Promise.all([app.close(), silent.app.close()])

  const noticesIn = ({ all }: Mailbox) => all.filter(({ kind }) => kind === 'identity-linked').map(({ to }) => to)
  t.strictSame(noticesIn(mails).sort(), [ADA.email, GRACE.email], 'an address that the linked identity confirms is told')
  t.strictSame(noticesIn(silent.mails), [])
})
