import type { LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import { type AuthPluginOptions, type LocalIdentityProviderOptions } from '../../lib/index.js'
import { Pages } from '../../lib/pages.js'
import { SESSION_SECRET, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { enrolAt, nextCode, startFactorApp } from '../helpers/factor-app.js'
import { ADA, BASE_URL, type MailApp, registerAt, startMailApp } from '../helpers/mail-app.js'
import { OwnProvider, leaveFor } from '../helpers/own-provider.js'
import { startTwoApps } from '../helpers/shared-apps.js'

const DAY = 24 * 60 * 60 * 1000
const REGISTER = '/auth/local/register'

async function start (
  t: Test,
  local: LocalIdentityProviderOptions = {},
  session: AuthPluginOptions['session'] = { remember: { days: 30 } }
): Promise<MailApp> {
  return startMailApp(t, { session: { secret: SESSION_SECRET, ...session } }, local)
}

/** The days for which the browser keeps the cookie of an answer; zero until it is closed. */
function daysOf ({ cookies }: LightMyRequestResponse): number {
  const cookie = cookies.find(({ name }) => name === 'svc_session')
  if (cookie === undefined) throw new Error('there is no cookie')
  return cookie.expires === undefined ? 0 : Math.round((Number(cookie.expires) - Date.now()) / DAY)
}

t.test('a registration takes the field as a login does, from forms and from JSON', async t => {
  const { app } = await start(t, { sendMail: undefined })
  const register = async (remember: object, index: number) =>
    new Browser(app).post(REGISTER, { ...ADA, email: `${index}@example.com`, ...remember })
  const choices = [{}, { remember: false }, { remember: '' }, { remember: true }, { remember: 'on' }]

  const answers = await Promise.all(choices.map(register))

  t.strictSame(answers.map(daysOf), [0, 0, 0, 30, 30])
  const refused = await register({ remember: ['on'] }, 9)
  t.match([refused.statusCode, refused.json().code], [400, 'invalid_request'])
})

t.test('a registration that confirms the address first takes the field with the token, and its page has a checkbox', async t => {
  const { app, browser, mails } = await start(t, { registration: { verify: 'first' } })
  await browser.post(REGISTER, { email: ADA.email })
  const { token } = await mails.next('register')

  const page = await browser.get(`${REGISTER}?token=${token}`)
  t.match(page.body, 'type="checkbox" name="remember">Keep me signed in')
  const answer = await browser.submit(REGISTER, { token, password: ADA.password, remember: 'on' })

  t.equal(daysOf(answer), 30)
  t.equal(daysOf(await new Browser(app).post('/auth/local/login', ADA)), 0)
})

t.test('the page of a registration has no checkbox without the option', async t => {
  const { browser, mails } = await start(t, { registration: { verify: 'first' } }, {})
  await browser.post(REGISTER, { email: ADA.email })
  const { token } = await mails.next('register')

  t.notMatch((await browser.get(`${REGISTER}?token=${token}`)).body, 'type="checkbox"')
})

t.test('app.auth.signIn takes the choice, and refuses an option that it does not know', async t => {
  const [app] = await startTwoApps(t, { options: { session: { secret: SESSION_SECRET, remember: { days: 30 } } } })
  const { userId } = await app.auth.createUser(ADA)
  const signIn = async (options?: object) => new Browser(app).post(`/sign-in/${userId}`, options)

  t.equal(daysOf(await signIn({ remember: true })), 30)
  t.equal(daysOf(await signIn()), 0)
  t.match((await signIn({ rememberMe: true })).json(), { code: 'invalid_options', message: /^signIn has no option "rememberMe"/ })
})

t.test('the checkbox of the sign-in page reaches each way of signing in', async t => {
  const session = { secret: SESSION_SECRET, remember: { days: 30 } }
  const options = { session, rateLimit: {}, providers: [new OwnProvider('a')], pages: new Pages({ name: 'Shop' }) }
  const { app, browser, mails } = await startMailApp(t, options, { signInByMail: true })
  const { body } = await browser.get('/auth/pages/sign-in?next=/cart')
  const links = Array.from(body.matchAll(/<a class="button plain" [^>]*href="(\/auth\/a\/login[^"]*)"/g), ([, href = '']) => href.replaceAll('&#38;', '&'))
  t.match(links, [/login\?next=%2Fcart&error_next=[^&]*$/, /&remember=on$/], 'of two links the style shows the one that the checkbox chooses')
  t.match(body, /\.remembered,body:has\(\[name=remember\]:checked\) \.once\{display:none\}/)

  for (const [index, link] of links.entries()) {
    const visitor = new Browser(app)
    t.equal(daysOf(await visitor.get(await leaveFor(visitor, link, { subject: 'ada' }))), index * 30)
  }
  const visitor = new Browser(app)
  await visitor.submit('/auth/local/mail-login', { email: ADA.email, remember: 'on' })
  const { code } = await mails.next('sign-in')
  t.equal(daysOf(await visitor.submit('/auth/local/mail-login/confirm', { code: String(code) })), 30)
  const { body: alone } = await new Browser(await startApp(t, { ...options, baseUrl: BASE_URL })).get('/auth/pages/sign-in')
  t.match(alone, /type="checkbox" name="remember">/, 'also without passwords')
})

t.test('the choice survives a second step', async t => {
  const made = await startFactorApp(t, {}, { session: { secret: SESSION_SECRET, remember: { days: 30 } }, pages: new Pages({ name: 'Shop' }) })
  await registerAt(made)
  const { secret } = await enrolAt(t, made.browser)
  for (const [fields, days] of [[{ remember: 'on' }, 30], [{}, 0]] as const) {
    const visitor = new Browser(made.app)
    t.equal((await visitor.submit('/auth/local/login', { ...ADA, ...fields })).headers.location, '/auth/local/second-factor')
    t.equal(daysOf(await visitor.submit('/auth/local/second-factor', { code: nextCode(t, secret) })), days)
  }
})
