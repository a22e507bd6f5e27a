/** What is full or used up refuses no act that does without it. */
import t, { type Test } from 'tap'
import { AuthError, type AuthPluginOptions } from '../../lib/index.js'
import { Passkeys } from '../../lib/passkeys.js'
import { hashing } from '../../lib/features/password/hashing.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { mailbox } from '../../lib/testing.js'
import type { SoftwareAuthenticator } from '../fakes/authenticator.js'
import { principalIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { deferred } from '../helpers/deferred.js'
import { DATA_SECRET, type Enrolled, enrolAda, nextCode, waitAt } from '../helpers/factor-app.js'
import { ADA, type MailApp, confirmAddress, registerAt, startMailApp } from '../helpers/mail-app.js'
import { linkAt, signInAt } from '../helpers/own-provider.js'
import { addAt, finishBy, newDevice, optionsAt, proveBy, signInBy } from '../helpers/passkey-app.js'

const BOB = { email: 'bob@example.com', password: 'correct horse' }
const LOCAL = '/auth/local'
/** The people of an office, behind one address. */
const OFFICE = 61

interface Users extends MailApp {
  /** Signed in as Ada, who has an app and a passkey. */
  browser: Browser
  ada: Enrolled
  device: SoftwareAuthenticator
  lines: string[]
  /** From now on a mail is sent when the test lets it go. */
  holdMails: () => () => void
  /** From now on a sign-in by password takes a second factor. */
  requireFactor: () => void
}

async function startWithAda (t: Test, options: AuthPluginOptions = {}): Promise<Users> {
  const [lines, mails]: [string[], Users['mails']] = [[], mailbox()]
  let [held, isRequired] = [Promise.resolve(), false]
  const made = await startMailApp(t, {
    dataSecret: DATA_SECRET,
    secondFactor: new SecondFactor({ issuer: 'Shop', required: ({ method }) => isRequired && method === 'password' }),
    passkeys: new Passkeys({ name: 'Shop' }),
    ...options
  }, {
    mails: { limits: false },
    async sendMail (mail) {
      await held
      await mails.sendMail(mail)
    }
  }, { logger: { level: 'info', stream: { write: (line: string) => { lines.push(line) } } } })
  const ada = await enrolAda(t, { ...made, mails })
  const device = newDevice()
  t.equal((await addAt(made.browser, device)).statusCode, 201)
  return {
    ...made,
    mails,
    ada,
    device,
    lines,
    holdMails () {
      const { promise, resolve } = deferred()
      held = promise
      return resolve
    },
    requireFactor () { isRequired = true }
  }
}

/** A browser in which a sign-in of Ada waits for a second factor. */
async function waitingBrowser (t: Test, app: MailApp['app']): Promise<Browser> {
  const browser = new Browser(app)
  await waitAt(t, browser)
  return browser
}

async function codeOf (answer: ReturnType<Browser['post']>): Promise<unknown> {
  const { statusCode, body } = await answer
  return statusCode < 400 ? statusCode : JSON.parse(body).code
}

t.test('attack 137: a full queue of mails refuses what sends a link or a code, and nothing else', async t => {
  const users = await startWithAda(t)
  const { app, browser, ada, device, lines, mails } = users
  const bob = new Browser(app)
  const token = await registerAt({ app, browser: bob, mails }, BOB)
  t.equal(await codeOf(confirmAddress(bob, token)), 204)
  const [byCode, byRecoveryCode, byPasskey] = [await waitingBrowser(t, app), await waitingBrowser(t, app), await waitingBrowser(t, app)]
  users.requireFactor()
  t.equal(await codeOf(bob.post(`${LOCAL}/login`, BOB)), 'second_factor_required')
  const release = users.holdMails()
  const ask = async () => new Browser(app).post(`${LOCAL}/forgot-password`, { email: ADA.email })
  while ((await ask()).statusCode === 202);
  lines.length = 0

  t.equal(await codeOf(byCode.post(`${LOCAL}/second-factor`, { code: nextCode(t, ada.secret) })), 200)
  t.equal(await codeOf(byRecoveryCode.post(`${LOCAL}/second-factor`, { code: ada.recoveryCodes[0] })), 200)
  t.equal(await codeOf(finishBy(byPasskey, device)), 200)
  t.equal(await codeOf(signInBy(new Browser(app), device)), 200)
  t.equal(await codeOf(proveBy(browser, device)), 204)
  t.equal(await codeOf(browser.post(`${LOCAL}/reauthenticate`, { code: nextCode(t, ada.secret) })), 204)
  t.equal(await codeOf(addAt(browser, newDevice())), 201)
  t.equal((await linkAt(browser, 'a', { subject: 'ada-1' })).headers.location, '/')
  t.equal(await codeOf(browser.post(`${LOCAL}/recovery-codes`)), 200)
  t.equal((await signInAt(new Browser(app), 'b', { subject: 'carol-1' })).headers.location, '/')

  const carol = { email: 'carol@example.com', password: 'correct horse' }
  for (const [path, body] of [
    ['forgot-password', { email: 'nobody@example.com' }], ['register', carol], ['verify-email', {}], ['change-email', { email: carol.email }]
  ] as const) t.equal(await codeOf(browser.post(`${LOCAL}/${path}`, body)), 'busy', path)
  t.equal(await app.auth.findUser({ email: carol.email }), null)
  t.equal(await codeOf(bob.post(`${LOCAL}/totp/enroll`)), 'busy')
  t.equal(await codeOf(bob.post(`${LOCAL}/passkeys/options`, { for: 'register' })), 'busy')

  release()
  await mails.next('reset-password')
  while ((await ask()).statusCode !== 202);
  await optionsAt(bob, 'register')
  t.match(await mails.next('enrolment'), { to: BOB.email }, 'the code was not noted as sent before')
  const dropped = lines.map(line => JSON.parse(line)).filter(({ code, msg }) => code === 'busy' && msg === 'a mail could not be sent')
  t.match(dropped.map(({ kind }) => kind), ['recovery-code-used', 'factor-added', 'identity-linked', 'recovery-codes-renewed'])
})

t.test('attack 137: a full queue of mails refuses a registration that begins by mail, and a sign-in that mails a link, for each address', async t => {
  const release = deferred()
  const sendMail = async () => release.promise
  const start = async (verify: 'first' | 'required') => {
    const { app, browser } = await startMailApp(t, {}, { sendMail, mails: { unknownAddress: true }, registration: { verify } })
    if (verify === 'required') t.equal(await codeOf(browser.post(`${LOCAL}/register`, ADA)), 202)
    while ((await browser.post(`${LOCAL}/forgot-password`, { email: 'nobody@example.com' })).statusCode === 202);
    return new Browser(app)
  }
  const [first, required] = await Promise.all([start('first'), start('required')])

  for (const { email } of [ADA, BOB]) t.equal(await codeOf(first.post(`${LOCAL}/register`, { email })), 'busy')
  t.equal(await codeOf(required.post(`${LOCAL}/login`, ADA)), 'busy')
  t.equal(await codeOf(required.post(`${LOCAL}/login`, BOB)), 'invalid')
  release.resolve()
})

t.test('attack 137: while too many passwords wait, only what brings a password is refused, and nothing of it is counted', async t => {
  const { app, browser, ada, device, requireFactor } = await startWithAda(t, { rateLimit: { reauthenticate: 4, mail: 4, code: 4 } })
  const [byCode, byPasskey] = [await waitingBrowser(t, app), await waitingBrowser(t, app)]
  const last = new Browser(app)
  t.intercept(hashing, 'refusalFor', { value: () => new AuthError('busy', { retryAfter: 3 }) })

  const { password } = ADA
  for (const [path, body] of [
    ['reauthenticate', { password }], ['change-email', { email: 'ada@new.example', current: password }], ['delete-account', { current: password }],
    ['change-email/confirm', { token: 'a.b.c', password }]
  ] as const) for (let i = 0; i < 5; i++) t.equal(await codeOf(browser.post(`${LOCAL}/${path}`, body)), 'busy', path)

  t.equal(await codeOf(byCode.post(`${LOCAL}/second-factor`, { code: nextCode(t, ada.secret) })), 200)
  t.equal(await codeOf(finishBy(byPasskey, device)), 200)
  t.equal(await codeOf(signInBy(last, device)), 200)
  for (let i = 0; i < 5; i++) t.equal(await codeOf(proveBy(browser, device)), 204)
  const filledIn = { code: nextCode(t, ada.secret), password, response: '' }
  t.equal(await codeOf(browser.post(`${LOCAL}/reauthenticate`, filledIn)), 204, 'a password manager has filled in the password')
  t.equal(await codeOf(browser.post(`${LOCAL}/change-email`, { email: 'ada@new.example', current: '' })), 202)
  t.equal(await codeOf(browser.post(`${LOCAL}/change-email/confirm`, { token: 'a.b.c' })), 'invalid_token')
  t.equal((await signInAt(new Browser(app), 'a', { subject: 'bob-1' })).headers.location, '/')
  requireFactor()
  t.equal(await codeOf(last.post(`${LOCAL}/delete-account`)), 204)
})

t.test('attack 137: while too many passwords wait, a registration begins', async t => {
  const { browser, mails } = await startMailApp(t, { rateLimit: { register: 2, code: 1 } }, { registration: { verify: 'first' } })
  const busy = t.intercept(hashing, 'refusalFor', { value: () => new AuthError('busy', { retryAfter: 3 }) })

  t.equal(await codeOf(browser.post(`${LOCAL}/register`, { email: ADA.email })), 202)
  const { token } = await mails.next('register')
  const register = async () => codeOf(browser.post(`${LOCAL}/register`, { token, password: ADA.password }))
  for (let i = 0; i < 3; i++) t.equal(await register(), 'busy')
  busy.restore()
  t.equal(await register(), 201, 'none of these was counted')
})

t.test('attack 137: what people behind one address have sent, and the pages that they have opened, refuse no code, passkey or provider', async t => {
  const { app, browser, ada, device } = await startWithAda(t, { rateLimit: {} })
  const [byCode, byPasskey] = [await waitingBrowser(t, app), await waitingBrowser(t, app)]
  const send = async (count: number, request: () => Promise<unknown>): Promise<unknown> => {
    let last
    for (let i = 0; i < count; i++) last = await request()
    return last
  }
  const visitor = new Browser(app)
  const code = async () => codeOf(visitor.post(`${LOCAL}/second-factor`, { code: '123456' }))
  const link = async () => codeOf(visitor.post(`${LOCAL}/verify-email`, { token: 'a.b.c' }))

  const link61 = await send(OFFICE, link)
  const passwords300 = await send(300, code)
  for (const page of ['second-factor', 'totp', 'reset-password?token=a.b.c']) await send(OFFICE, () => byCode.get(`${LOCAL}/${page}`))
  // As the script of the sign-in page does: each person has it open for fifteen minutes.
  await send(5 * OFFICE, () => visitor.post(`${LOCAL}/passkeys/options`, { for: 'login' }))

  t.strictSame([link61, passwords300], ['rate_limited', 'invalid_state'])
  t.equal(await codeOf(byCode.post(`${LOCAL}/second-factor`, { code: nextCode(t, ada.secret) })), 200)
  t.equal(await codeOf(finishBy(byPasskey, device)), 200)
  t.equal(await codeOf(signInBy(new Browser(app), device)), 200)
  t.equal(await codeOf(proveBy(browser, device)), 204)
  t.equal(await codeOf(addAt(browser, newDevice())), 201)
  for (let person = 0; person < OFFICE; person++) {
    t.equal((await signInAt(new Browser(app), 'a', { subject: `person-${person}` })).headers.location, '/')
  }
})

t.test('attack 137: codes and passkeys share a limit that refuses neither passwords nor providers, challenges have another one', async t => {
  const { app, browser, ada, device } = await startWithAda(t, { rateLimit: { factor: 9, challenge: 7 } })
  const [byCode, byPasskey] = [await waitingBrowser(t, app), await waitingBrowser(t, app)]
  t.equal(await codeOf(byCode.post(`${LOCAL}/second-factor`, { code: nextCode(t, ada.secret) })), 200)
  t.equal(await codeOf(finishBy(byPasskey, device)), 200)
  t.equal(await codeOf(browser.post(`${LOCAL}/reauthenticate`, { code: nextCode(t, ada.secret) })), 204)
  const visitor = new Browser(app)
  for (let i = 0; i < 3; i++) t.equal(await codeOf(signInBy(visitor, device)), 200)

  t.equal(await codeOf(visitor.post(`${LOCAL}/second-factor`, { code: '123456' })), 'rate_limited')
  t.equal(await codeOf(visitor.post(`${LOCAL}/totp/enroll`)), 'rate_limited')
  t.equal(await codeOf(visitor.post(`${LOCAL}/passkeys/login`, { response: device.get({ challenge: 'a' }) })), 'rate_limited')
  for (let i = 0; i < 2; i++) t.equal(typeof (await optionsAt(visitor, 'login')).challenge, 'string')
  t.equal(await codeOf(visitor.post(`${LOCAL}/passkeys/options`, { for: 'login' })), 'rate_limited')
  t.equal(await codeOf(new Browser(app).post(`${LOCAL}/login`, ADA)), 'second_factor_required')
  t.equal((await signInAt(visitor, 'a', { subject: 'bob-1' })).headers.location, '/')
  t.equal((await principalIn(visitor))?.provider, 'a')
})
