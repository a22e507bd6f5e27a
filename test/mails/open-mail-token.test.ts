import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Fastify from 'fastify'
import t from 'tap'
import authPlugin, { MemoryAuthStore } from '../../lib/index.js'
import { mailbox } from '../../lib/testing.js'
import { SESSION_SECRET, localProvider } from '../helpers/app.js'
import { ADA, BASE_URL, NEW_PASSWORD, registerAt, resetTokenOf, startMailApp } from '../helpers/mail-app.js'
import { ecKey } from '../helpers/signing-key.js'

const MINUTE = 60_000
const RESET = '/auth/local/reset-password'

t.test('the token of a link says what it is for, its address and when it expires', async t => {
  const start = await startMailApp(t)
  const { auth } = start.app
  const before = Date.now()
  const verify = await registerAt(start)
  const reset = await resetTokenOf(start)

  t.match(await auth.openMailToken(verify), { valid: true, kind: 'verify-email', email: ADA.email })
  const opened = await auth.openMailToken(reset)
  t.match(opened, { valid: true, kind: 'reset-password', email: ADA.email })
  t.ok(opened.valid && Math.abs(opened.expiresAt.getTime() - before - 30 * MINUTE) < 5 * MINUTE)
})

t.test('with a signing key, dataSecret signs the tokens of links, for routes and pages of the application', async t => {
  const dataSecret = 'the data secret of this test, 32 +'
  const start = await startMailApp(t, { dataSecret }, { secret: undefined, signingKey: ecKey() })
  await registerAt(start)
  const token = await resetTokenOf(start)

  const other = await startMailApp(t, { dataSecret: `${dataSecret}.`, store: start.app.auth.store }, { secret: undefined, signingKey: ecKey() })
  t.match(await other.app.auth.openMailToken(token), { valid: false, reason: 'invalid' })
  t.match((await other.browser.post(RESET, { token, password: NEW_PASSWORD })).json(), { code: 'invalid_token' })
  const twin = await startMailApp(t, { dataSecret: [`${dataSecret}.`, dataSecret], store: start.app.auth.store }, { secret: undefined, signingKey: ecKey() })
  t.match(await twin.app.auth.openMailToken(token), { valid: true, kind: 'reset-password', email: ADA.email })
  t.equal((await twin.browser.post(RESET, { token, password: NEW_PASSWORD })).statusCode, 204)
})

t.test('the token of a link to a new address says the new one', async t => {
  const start = await startMailApp(t)
  await registerAt(start)
  await start.browser.post('/auth/local/change-email', { email: 'ada@new.example' })
  const { token } = await start.mails.next('change-email')

  t.match(await start.app.auth.openMailToken(token), { valid: true, kind: 'change-email', email: 'ada@new.example' })
})

t.test('the token of a link to register says the address, and that it was used', async t => {
  const { app, browser, mails } = await startMailApp(t, {}, { registration: { verify: 'first' } })
  await browser.post('/auth/local/register', { email: ADA.email })
  const { token } = await mails.next('register')

  t.match(await app.auth.openMailToken(token), { valid: true, kind: 'register', email: ADA.email })
  await browser.post('/auth/local/register', { token, password: ADA.password })
  t.strictSame(await app.auth.openMailToken(token), { valid: false, kind: 'register', reason: 'used' })
})

t.test('opening a token uses nothing', async t => {
  const start = await startMailApp(t)
  await registerAt(start)
  const token = await resetTokenOf(start)
  await start.app.auth.openMailToken(token)
  await start.app.auth.openMailToken(token)

  t.match(await start.browser.post(RESET, { token, password: NEW_PASSWORD }), { statusCode: 204 })
  t.strictSame(await start.app.auth.openMailToken(token), { valid: false, kind: 'reset-password', reason: 'used' })
})

t.test('a token that is too old, and one that is none, say so', async t => {
  const start = await startMailApp(t)
  await registerAt(start)
  const token = await resetTokenOf(start)
  const { auth, localIdp } = start.app

  for (const other of ['', 'a.b.c', `${token}x`, await localIdp?.issueIdToken(randomUUID()) ?? '', 'é'.repeat(20_000), 42 as never]) {
    t.strictSame(await auth.openMailToken(other), { valid: false, kind: null, reason: 'invalid' })
  }
  const now = Date.now()
  t.intercept(Date, 'now', { value: () => now + 32 * MINUTE })
  t.strictSame(await auth.openMailToken(token), { valid: false, kind: 'reset-password', reason: 'expired' })
})

t.test('without sendMail, openMailToken says what is missing', async t => {
  const { app } = await startMailApp(t, {}, { sendMail: undefined })
  await t.rejects(app.auth.openMailToken('token'), { name: 'OptionsError', message: /openMailToken needs the option sendMail/ })
})

t.test('a store that fails is no reason to call a token used', async t => {
  const start = await startMailApp(t)
  await registerAt(start)
  const token = await resetTokenOf(start)
  t.intercept(start.app.auth.store, 'findUser', { value: async () => { throw new Error('down') } })
  await t.rejects(start.app.auth.openMailToken(token), { code: 'unavailable', cause: { message: 'down' } })
})

t.test('a mail names the user, with the name only at an address that they have confirmed', async t => {
  const start = await startMailApp(t, {}, { mails: { unknownAddress: true } })
  const { app, browser, mails } = start
  await browser.post('/auth/local/register', { ...ADA, name: 'Buy at evil.example' })
  const unconfirmed = await mails.next('verify-email')
  const userId = (await app.auth.findUser({ email: ADA.email }))?.userId ?? ''
  t.match(unconfirmed, { userId, name: null })

  const user = await app.auth.createUser({ email: 'bob@example.com', name: 'Bob', emailVerified: true, password: ADA.password })
  await browser.post('/auth/local/forgot-password', { email: 'nobody@example.com' })
  await browser.post('/auth/local/login', { email: 'bob@example.com', password: ADA.password })
  await browser.post('/auth/local/change-email', { email: 'bob@new.example' })
  t.match(await mails.next('change-email'), { userId: user.userId, name: null, to: 'bob@new.example' })
  t.match(await mails.next('email-change-requested'), { userId: user.userId, name: 'Bob', to: 'bob@example.com' })
  t.match(await mails.next('unknown-address'), { userId: null, name: null })
})

t.test('a mail that a request on a Unix socket caused has no address of a client', async t => {
  const { sendMail, next } = mailbox()
  const app = Fastify()
  t.teardown(() => app.close())
  const store = new MemoryAuthStore()
  await app.register(authPlugin, { baseUrl: BASE_URL, store, local: localProvider({ sendMail }), session: { secret: SESSION_SECRET } })
  await app.auth.createUser({ email: ADA.email, password: ADA.password })
  // The path of a socket has at most 107 bytes.
  const directory = await mkdtemp(join(tmpdir(), 'socket-'))
  t.teardown(() => rm(directory, { recursive: true }))
  const path = join(directory, 'http')
  await app.listen({ path })
  await new Promise<void>((resolve, reject) => {
    request({ socketPath: path, path: '/auth/local/forgot-password', method: 'POST', headers: { 'content-type': 'application/json' } }, response => {
      response.resume().on('end', resolve)
    }).on('error', reject).end(JSON.stringify({ email: ADA.email }))
  })

  t.match(await next('reset-password'), { about: { ip: null } })
})
