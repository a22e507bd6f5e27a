/** How the routes of recovery answer browsers: pages of the plugin, or those of the application. */
import t from 'tap'
import { Browser } from '../../test/helpers/browser.js'
import {
  ADA, type MailApp, NEW_PASSWORD, confirmAddress, formsOn, registerAt, resetTokenOf, startMailApp
} from '../../test/helpers/mail-app.js'

const RESET = '/auth/local/reset-password'
const VERIFY = '/auth/local/verify-email'
const AS_BROWSER = { accept: 'text/html' }

async function startWithReset (...options: Parameters<typeof startMailApp>): Promise<MailApp & { token: string }> {
  const start = await startMailApp(...options)
  await registerAt(start)
  return { ...start, browser: new Browser(start.app), token: await resetTokenOf(start) }
}

t.test('the link of a reset shows a form with the token and the address, however often it is opened', async t => {
  const { browser, token } = await startWithReset(t)

  for (let i = 0; i < 5; i++) {
    t.equal((await browser.send({ method: 'HEAD', url: `${RESET}?token=${token}` })).statusCode, 200)
    const { statusCode, body, headers } = await browser.get(`${RESET}?token=${token}`, AS_BROWSER)
    t.equal(statusCode, 200)
    t.strictSame(formsOn(body), [{ action: RESET, fields: { token } }])
    t.match(body, /value="ada@example.com" autocomplete="username" hidden/)
    t.match(body, /name="password" autocomplete="new-password"/)
    t.match(headers['content-security-policy'], "default-src 'none'")
  }
  t.equal((await browser.submit(RESET, { token, password: NEW_PASSWORD })).statusCode, 303, 'the link still works')
})

t.test('a form on the page of the plugin that fails is shown again with the sentence, and nothing is redirected', async t => {
  const { browser, token } = await startWithReset(t)

  const weak = await browser.submit(RESET, { token, password: 'short' })
  t.strictSame([weak.statusCode, weak.headers.location], [400, undefined])
  t.match(weak.body, /<p class="error" data-part="error" role="alert" id="failure">This password is too short/)
  t.strictSame(formsOn(weak.body), [{ action: RESET, fields: { token } }])

  const done = await browser.submit(RESET, { token, password: NEW_PASSWORD })
  t.strictSame([done.statusCode, done.headers.location], [303, '/'])

  for (const answer of [
    await browser.submit(RESET, { token, password: 'another one' }),
    await browser.get(`${RESET}?token=${token}`, AS_BROWSER),
    await browser.get(`${RESET}?token=x`, AS_BROWSER)
  ]) {
    t.strictSame([answer.statusCode, answer.headers.location], [401, undefined])
    t.strictSame(formsOn(answer.body), [])
    t.match(answer.body, /<p class="error" data-part="error" role="alert" id="failure">This link has expired.*ask for a new one\./s)
  }
  const missing = await browser.submit(RESET, { password: NEW_PASSWORD })
  t.strictSame([missing.statusCode, formsOn(missing.body)], [400, []])
  t.match(missing.headers['content-type'], 'text/html')
  t.equal((await browser.get(RESET, AS_BROWSER)).statusCode, 400)
})

t.test('after a reset browsers go to next, else to the login page', async t => {
  for (const [fields, location] of [[{}, '/login'], [{ next: '/welcome' }, '/welcome'], [{ next: '//evil.example' }, '/login']] as const) {
    const { browser, token } = await startWithReset(t, { loginPage: '/login' })

    const { headers } = await browser.submit(RESET, { token, password: NEW_PASSWORD, ...fields })

    t.equal(headers.location, location)
  }
})

t.test('a failure goes to error_next if the form has one', async t => {
  const { browser, token } = await startWithReset(t)

  const { statusCode, headers } = await browser.submit(RESET, { token, password: 'short', error_next: '/new-password' })

  t.strictSame([statusCode, headers.location], [303, '/new-password?error=weak_password'])
})

t.test('a JSON client gets failures of a link as JSON', async t => {
  const { browser, token } = await startWithReset(t)

  const weak = await browser.post(RESET, { token, password: 'short' })
  const stale = await browser.get(`${RESET}?token=x`, { accept: 'application/json' })

  t.match([weak.json(), stale.json()], [{ statusCode: 400, code: 'weak_password' }, { statusCode: 401, code: 'invalid_token' }])
})

t.test('the pages of the application take the place of those of the plugin', async t => {
  const { browser, token } = await startWithReset(
    t,
    { baseUrl: 'https://app.example/shop' },
    { pages: { resetPassword: '/new-password?theme=dark', verifyEmail: '/confirm' } }
  )

  const opened = await browser.get(`${RESET}?token=${token}`, AS_BROWSER)
  t.strictSame([opened.statusCode, opened.headers.location], [302, `/shop/new-password?theme=dark&token=${token}`])
  t.equal((await browser.get(`${VERIFY}?token=${token}`, AS_BROWSER)).headers.location, `/shop/confirm?token=${token}`)
  const failed = await browser.submit(RESET, { token, password: 'short' }, { referer: 'https://app.example/shop/new-password' })
  t.strictSame([failed.statusCode, failed.headers.location], [303, '/shop/new-password?error=weak_password'])
})

t.test('the forms of the plugin are sent to the path below that of baseUrl', async t => {
  const { browser, token } = await startWithReset(t, { baseUrl: 'https://app.example/shop' })

  const { body } = await browser.get(`${RESET}?token=${token}`)

  t.strictSame(formsOn(body).map(({ action }) => action), [`/shop${RESET}`])
})

t.test('the page that confirms an address asks for the password where the user is not signed in', async t => {
  const start = await startMailApp(t)
  const token = await registerAt(start)
  const url = `${VERIFY}?token=${token}`

  const elsewhere = await new Browser(start.app).get(url, AS_BROWSER)
  const signedIn = await start.browser.get(url, AS_BROWSER)

  for (const { statusCode, body } of [elsewhere, signedIn]) {
    t.equal(statusCode, 200)
    t.match(body, `created with this e-mail address on ${new Intl.DateTimeFormat('en', { dateStyle: 'long', timeZone: 'UTC' }).format()} (UTC).`)
    t.strictSame(formsOn(body).map(({ fields }) => fields), [{ token }, { token, not_me: 'true' }])
  }
  t.match(elsewhere.body, /autocomplete="current-password"/)
  t.notMatch(signedIn.body, /password/)
})

t.test('the page of an address that is verified has one form', async t => {
  const start = await startMailApp(t)
  const token = await registerAt(start)
  await confirmAddress(start.browser, token)
  await start.browser.post(VERIFY)
  const { token: another } = await start.mails.next('verify-email')

  const { body } = await start.browser.get(`${VERIFY}?token=${another}`)

  t.strictSame(formsOn(body).map(({ fields }) => fields), [{ token: another }])
})

t.test('after an address is confirmed, a signed-in browser goes to the root and another one to the login page', async t => {
  const start = await startMailApp(t, { loginPage: '/login' })
  const [token, other] = [await registerAt(start), new Browser(start.app)]
  const { keep: existing } = (await start.browser.post(VERIFY, { token })).json()

  const signedIn = await start.browser.submit(VERIFY, { token, existing })
  await start.browser.post(VERIFY)
  const { token: another } = await start.mails.next('verify-email')
  const elsewhere = await other.submit(VERIFY, { token: another, password: ADA.password })

  t.strictSame([signedIn.statusCode, signedIn.headers.location], [303, '/'])
  t.strictSame([elsewhere.statusCode, elsewhere.headers.location], [303, '/login'])
})

t.test('the forms that ask for mails go to next, and on failure to the page that they are on', async t => {
  const start = await startMailApp(t)
  await registerAt(start)
  const { app, browser } = start
  const from = (page: string) => ({ referer: `https://app.example${page}` })
  const locations = [
    await browser.submit('/auth/local/forgot-password', { email: ADA.email, next: '/sent' }, from('/forgot')),
    await browser.submit('/auth/local/forgot-password', { email: 'nobody' }, from('/forgot')),
    await browser.submit(VERIFY, { next: '/sent' }, from('/account')),
    await new Browser(app).submit(VERIFY, { next: '/sent' }, from('/account'))
  ].map(({ statusCode, headers }) => [statusCode, headers.location])

  t.strictSame(locations, [
    [303, '/sent'], [303, '/forgot?error=invalid_email'], [303, '/sent'], [303, '/account?error=unauthenticated']
  ])
})

t.test('limits: beyond 30 requests for a mail from one address comes 429, for each address alike', async t => {
  const { app, browser } = await startMailApp(t, { rateLimit: {} })
  const codes = []
  for (let i = 0; i < 31; i++) codes.push((await browser.post('/auth/local/forgot-password', { email: `user${i}@example.com` })).statusCode)

  t.strictSame(codes, [...Array.from({ length: 30 }, () => 202), 429])
  t.equal((await new Browser(app).post(VERIFY)).statusCode, 429, 'the count is the same')
})

t.test('limits: beyond 60 tokens from one address comes 429, on the page of the plugin too', async t => {
  const { browser } = await startMailApp(t, { rateLimit: {} })
  for (let i = 0; i < 30; i++) {
    t.equal((await browser.post(RESET, { token: 'x', password: NEW_PASSWORD })).statusCode, 401)
    t.equal((await browser.post(VERIFY, { token: 'x' })).statusCode, 401)
  }

  t.equal((await browser.post(VERIFY, { token: 'x' })).statusCode, 429)
  const refused = await browser.submit(RESET, { token: 'x', password: NEW_PASSWORD })
  t.strictSame([refused.statusCode, refused.headers['retry-after'] !== undefined], [429, true])
  t.match(refused.body, /<p class="error" data-part="error" role="alert" id="failure">Too many attempts/)
})

t.test('limits: a password beside a link counts as a sign-in to the account of the link', async t => {
  const start = await startMailApp(t, { rateLimit: { account: 3 } })
  const token = await registerAt(start)
  const other = new Browser(start.app)
  for (let i = 0; i < 3; i++) {
    const { json } = await other.post(VERIFY, { token, password: 'wrong password', email: `user${i}@example.com` })
    t.equal(json().code, 'invalid')
  }

  t.equal((await other.post(VERIFY, { token, password: ADA.password, email: 'x@example.com' })).json().code, 'rate_limited')
  t.equal((await other.post('/auth/local/login', ADA)).json().code, 'rate_limited')
})
