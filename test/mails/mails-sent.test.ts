import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { type Mail, MemoryAuthStore, type SendMail } from '../../lib/index.js'
import { startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { stopTime } from '../helpers/clock.js'
import { deferred } from '../helpers/deferred.js'
import { startFactorApp } from '../helpers/factor-app.js'
import { ADA, type MailApp, confirmAddress, registerAt, startMailApp } from '../helpers/mail-app.js'

const FORGOT = '/auth/local/forgot-password'

/** A mail server that a test answers for. */
class HeldServer {
  readonly held = deferred()
  readonly reached = deferred()
  readonly sent: Array<Mail['kind']> = []
  readonly sendMail: SendMail = async ({ kind }) => {
    this.reached.resolve()
    await this.held.promise
    this.sent.push(kind)
  }
}

/** Whether a promise is settled once what is ready has run. */
async function isSettled (promise: Promise<unknown>): Promise<boolean> {
  let settled = false
  promise.then(() => { settled = true }, () => { settled = true })
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
  return settled
}

async function start (t: Test): Promise<MailApp & { server: HeldServer }> {
  const server = new HeldServer()
  return { ...await startMailApp(t, {}, { sendMail: server.sendMail }), server }
}

t.test('mailsSent resolves when the mail of an answer is sent, and not before', async t => {
  const { app, browser, server } = await start(t)
  await browser.post('/auth/local/register', ADA)
  const sent = app.auth.mailsSent()
  await server.reached.promise
  t.equal(await isSettled(sent), false)
  t.strictSame(server.sent, [])

  server.held.resolve()
  t.equal(await sent, undefined)
  t.strictSame(server.sent, ['verify-email'])
})

t.test('mailsSent waits for the mails of all answers so far, and for no later one', async t => {
  const { app, server } = await start(t)
  for (const name of ['ada', 'grace', 'barbara']) {
    await new Browser(app).post('/auth/local/register', { email: `${name}@example.com`, password: ADA.password })
  }
  const sent = app.auth.mailsSent()
  await server.reached.promise
  server.held.resolve()
  await sent
  t.equal(server.sent.length, 3)

  const later = new HeldServer()
  const { app: other, browser } = await startMailApp(t, {}, { sendMail: later.sendMail })
  const none = other.auth.mailsSent()
  await browser.post('/auth/local/register', ADA)
  await later.reached.promise
  t.equal(await isSettled(none), true)
  later.held.resolve()
})

t.test('mailsSent resolves after a mail that failed, one that is not sent, and one that the mail server never takes', async t => {
  const failing = await startMailApp(t, {}, { sendMail: async () => { throw new Error('connect ECONNREFUSED') } })
  await failing.browser.post('/auth/local/register', ADA)
  t.equal(await failing.app.auth.mailsSent(), undefined)

  const { app, browser, mails } = await startMailApp(t)
  await browser.post(FORGOT, { email: 'nobody@example.com' })
  t.equal(await app.auth.mailsSent(), undefined)
  t.strictSame(mails.all, [])

  const hanging = await start(t)
  await hanging.browser.post('/auth/local/register', ADA)
  const letPass = stopTime(t)
  const sent = hanging.app.auth.mailsSent()
  await hanging.server.reached.promise
  letPass(29_999)
  t.equal(await isSettled(sent), false)
  letPass(1)
  t.equal(await sent, undefined)
  hanging.server.held.resolve()
})

t.test('mailsSent waits for a notice about what the application changes', async t => {
  const { app, browser, mails } = await startFactorApp(t)
  const token = await registerAt({ app, browser, mails })
  await confirmAddress(browser, token)
  const user = await app.auth.findUser({ email: ADA.email })
  await app.auth.resetFactors(user?.userId ?? '')
  await app.auth.mailsSent()
  t.match(mails.all.at(-1), { kind: 'factor-removed' })
})

t.test('mailsSent resolves at once without mails, and without sendMail', async t => {
  const { app } = await startMailApp(t)
  const without: FastifyInstance = await startApp(t, { store: new MemoryAuthStore() })
  t.strictSame(await Promise.all([app.auth.mailsSent(), without.auth.mailsSent()]), [undefined, undefined])
})
