import t from 'tap'
import { Accounts, type AuthStore, MemoryAuthStore } from '../../index.js'
import { Pages, en } from '../../pages.js'
import { localProvider, startApp } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { advanceClock } from '../../../test/helpers/clock.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }

async function start (store: AuthStore = new MemoryAuthStore()) {
  const app = await startApp(t, { local: localProvider(), store, loginPage: '/login' }, {}, app => {
    const { anyOf, requireBearer, requireUser, requireVerified } = app.auth
    app.get('/page', { preHandler: requireVerified }, async () => 'passed')
    app.get('/machine', { preHandler: [requireBearer, requireVerified] }, async () => 'passed')
    app.get('/either', { preHandler: anyOf(requireVerified, requireUser) }, async () => 'passed')
  })
  const browser = new Browser(app)
  const { userId } = (await browser.post('/auth/local/register', ADA)).json()
  return { app, browser, userId }
}

t.test('requireVerified lets users pass once their address is confirmed, with one question to the store', async t => {
  const store = new MemoryAuthStore()
  const { app, browser, userId } = await start(store)

  const refused = await browser.get('/page')
  t.strictSame([refused.statusCode, refused.json().code], [403, 'unverified'])
  t.equal((await browser.get('/either')).statusCode, 200)

  await new Accounts(store).verifyEmail({ userId, email: ADA.email, generation: 0 })
  await browser.post('/auth/local/login', ADA)
  let questions = 0
  for (const name of ['status', 'findUser', 'links'] as const) {
    const ask: (...args: never[]) => unknown = store[name].bind(store)
    t.intercept(store, name, { value: (...args: never[]) => { questions++; return ask(...args) } })
  }
  t.strictSame([(await browser.get('/page')).statusCode, questions], [200, 1])

  await app.auth.signOutEverywhere(userId)
  t.equal((await browser.get('/page')).statusCode, 401, 'a session that has ended')
})

t.test('requireVerified redirects visitors to the login page, and answers scripts 401', async t => {
  const { app } = await start()

  const page = await new Browser(app).get('/page', { accept: 'text/html' })

  t.strictSame([page.statusCode, page.headers.location], [302, '/login?next=%2Fpage'])
  t.equal((await new Browser(app).get('/page')).statusCode, 401)
})

t.test('requireVerified redirects a user without a confirmed address to the account page, which says why', async t => {
  const app = await startApp(t, { local: localProvider(), pages: new Pages({ name: 'Shop' }) }, {}, app => {
    app.get('/page', { preHandler: app.auth.requireVerified }, async () => 'passed')
    app.get('/either', { preHandler: app.auth.anyOf(app.auth.requireVerified, app.auth.requireUser) }, async () => 'passed')
  })
  const browser = new Browser(app)
  await browser.post('/auth/local/register', ADA)

  const page = await browser.get('/page', { accept: 'text/html' })

  t.strictSame([page.statusCode, page.headers.location], [302, '/auth/pages/account?error=unverified&next=%2Fpage'])
  t.match((await browser.get(String(page.headers.location))).body, en.errors.unverified)
  t.equal((await browser.get('/page')).json().code, 'unverified', 'a script')
  t.equal((await browser.get('/either', { accept: 'text/html' })).body, 'passed')
})

t.test('requireVerified in front of the account page itself answers 403', async t => {
  const app = await startApp(t, { local: localProvider(), accountPage: '/account' }, {}, app => {
    app.get('/account', { preHandler: app.auth.requireVerified }, async () => 'passed')
  })
  const browser = new Browser(app)
  await browser.post('/auth/local/register', ADA)

  t.equal((await browser.get('/account', { accept: 'text/html' })).statusCode, 403)
})

t.test('behind requireBearer the user of the token counts', async t => {
  const store = new MemoryAuthStore()
  const { browser, userId } = await start(store)
  const statusWith = async (token: string) => (await browser.get('/machine', { authorization: `Bearer ${token}` })).statusCode
  const token = await localProvider().issueIdToken(userId)

  t.equal(await statusWith(token), 403)
  await new Accounts(store).verifyEmail({ userId, email: ADA.email, generation: 0 })
  t.equal(await statusWith(token), 401, 'the first proof has ended it')
  advanceClock(t, 2000)
  t.equal(await statusWith(await localProvider().issueIdToken(userId)), 200)
  t.equal(await statusWith(await localProvider().issueIdToken('a-program')), 403)
})
