/** As a property of attack 194: what an impersonation may do is a list, and all else changes nothing. */
import SqliteDatabase from 'better-sqlite3'
import type { FastifyInstance, FastifyRequest, LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import { type AuthPluginOptions, SqlAuthStore } from '../../lib/index.js'
import { en } from '../../lib/pages.js'
import { SESSION_SECRET, principalIn, startApp } from '../helpers/app.js'
import { eventsOf } from '../helpers/audit-events.js'
import { Browser } from '../helpers/browser.js'
import { OwnProvider, callbackOf, leaveFor } from '../helpers/own-provider.js'
import { SESSION_STORES } from '../helpers/session-stores.js'
import { actsOfLastApp, wholeApp } from '../helpers/whole-app.js'

const PASSWORD = 'correct horse'

/** What impersonations may do: look, go away, and sign in, which ends them. */
const SERVED = [
  'GET /auth/local/jwks.json', 'GET /auth/local/passkeys/script.js', 'GET /auth/own/callback', 'GET /auth/own/login',
  'GET /auth/pages/account', 'GET /auth/pages/factors', 'GET /auth/pages/sign-in', 'GET /auth/session',
  'GET /auth/connections/:id/callback', 'GET /auth/connections/:id/login', 'POST /auth/connections/:id/login',
  'POST /auth/connections/start', 'POST /auth/local/impersonation/end', 'POST /auth/local/login', 'POST /auth/local/revoke', 'POST /auth/logout',
  'POST /auth/own/login'
]

/** What programs ask, whose cookies are not read. */
const WITHOUT_SESSION = [
  ...['device', 'revoke', 'token'].map(name => `POST /auth/oauth/${name}`), 'POST /auth/connections/:id/backchannel-logout'
]

/** Tables whose rows an impersonation leaves as they are; the session itself is that of the support. */
const TABLES = ['users', 'credentials', 'provider_links', 'factors', 'pending', 'grants', 'clients'].map(name => `svc_auth_${name}`)

/** A provider that proves when the user authenticated. */
class ProvingProvider extends OwnProvider {
  readonly provesAuthTime = true
}

interface World {
  app: FastifyInstance
  /** In which the support sees the application as Ada. */
  browser: Browser
  sue: string
  ada: string
  rows: () => unknown
  mails: unknown[]
}

async function impersonating (t: Test, options: AuthPluginOptions = {}): Promise<World> {
  const database = new SqliteDatabase(':memory:')
  t.teardown(() => database.close())
  const mails: unknown[] = []
  const app = await startApp(t, {
    ...wholeApp(mail => { mails.push(mail) }),
    store: new SqlAuthStore(database),
    providers: [new ProvingProvider('own')],
    impersonation: { allow: ({ actor }) => actor.claims.role === 'support' },
    ...options
  }, {}, app => {
    const { auth } = app
    app.post<{ Body: { userId: string } }>('/support', async request => auth.impersonate(request, request.body.userId, { reason: 'a ticket' }))
    app.post<{ Body: { act: string, userId: string } }>('/call', async request => calls[request.body.act]?.(app, request, request.body.userId))
  })
  const [browser, other] = [new Browser(app), new Browser(app)]
  const register = async (browser: Browser, name: string): Promise<string> =>
    (await browser.post('/auth/local/register', { email: `${name}@example.com`, password: PASSWORD })).json().userId
  const [sue, ada] = [await register(browser, 'sue'), await register(other, 'ada')]
  await app.auth.grant(sue, { role: 'support' })
  const begun = await browser.post('/support', { userId: ada })
  t.equal(begun.statusCode, 200, begun.body)
  await app.auth.mailsSent()
  const existing = database.prepare("select name from sqlite_master where type = 'table'").pluck().all()
  const rows = (): unknown => TABLES.filter(table => existing.includes(table)).map(table => database.prepare(`select * from ${table}`).all())
  return { app, browser, sue, ada, rows, mails }
}

/** What handlers of the application call for a request, with its user. */
const calls: Readonly<Record<string, (app: FastifyInstance, request: FastifyRequest, userId: string) => unknown>> = {
  createUser: ({ auth }, request) => auth.createUser({ email: 'new@example.com' }, { request }),
  updateUser: ({ auth }, request, userId) => auth.updateUser(userId, { name: 'Mallory' }, { request }),
  setPassword: ({ auth }, request, userId) => auth.setPassword(userId, 'another password', { request }),
  'setPassword, keeping the session': ({ auth }, request, userId) => auth.setPassword(userId, 'another password', { except: request }),
  block: ({ auth }, request, userId) => auth.block(userId, { request }),
  unblock: ({ auth }, request, userId) => auth.unblock(userId, { request }),
  signOutEverywhere: ({ auth }, request, userId) => auth.signOutEverywhere(userId, { request }),
  'signOutEverywhere, keeping the session': ({ auth }, request, userId) => auth.signOutEverywhere(userId, { except: request }),
  resetFactors: ({ auth }, request, userId) => auth.resetFactors(userId, { request }),
  grant: ({ auth }, request, userId) => auth.grant(userId, { role: 'support' }, { request }),
  withdraw: ({ auth }, request, userId) => auth.withdraw(userId, ['role'], { request }),
  unlink: ({ auth }, request, userId) => auth.unlink(userId, 'local', { request }),
  deleteUser: ({ auth }, request, userId) => auth.deleteUser(userId, { request }),
  endSession: ({ auth }, request, userId) => auth.endSession(userId, 'x'.repeat(32), { request }),
  endGrant: ({ auth }, request, userId) => auth.endGrant(userId, 'x'.repeat(32), { request }),
  signInUrl: ({ auth }, request) => auth.signInUrl('own', { link: true, request }),
  impersonate: ({ auth }, request, userId) => auth.impersonate(request, userId, { reason: 'a ticket' })
}

/** Asserts that an answer is the refusal, as JSON, on a page or by a redirect to one. */
function assertRefused (t: Test, { statusCode, headers: { location }, body }: LightMyRequestResponse, asked: string): void {
  if (statusCode === 302 || statusCode === 303) t.match(location, /[?&]error=impersonating(&|$)/, asked)
  else if (body.startsWith('<')) t.ok(statusCode === 403 && body.includes(en.errors.impersonating), `${asked}: ${statusCode}`)
  else t.match(JSON.parse(body), { statusCode: 403, code: 'impersonating' }, asked)
}

t.test('attack 194: every act is refused in an impersonation unless it is in this list, and changes nothing', async t => {
  const { app, browser, ada, rows, mails } = await impersonating(t)
  const [before, sent] = [rows(), mails.length]
  const acts = actsOfLastApp()
  const fields = { email: 'mallory@example.com', password: PASSWORD, current: PASSWORD, token: 'x', code: '123456', id: 'x'.repeat(32), remember: 'on' }
  const refused: string[] = []
  for (const act of acts) {
    if (SERVED.includes(act) || WITHOUT_SESSION.includes(act)) continue
    refused.push(act)
    const [method, url = ''] = act.split(' ')
    if (method === 'GET') {
      assertRefused(t, await browser.get(url, { accept: 'text/html' }), `${act} of a browser`)
      assertRefused(t, await browser.get(url, { accept: 'application/json' }), `${act} of a script`)
    } else {
      assertRefused(t, await browser.submit(url, fields), `${act} as a form`)
      assertRefused(t, await browser.submit(url, fields, { referer: 'https://app.example/auth/pages/account' }), `${act} of a page`)
      assertRefused(t, await browser.post(url, fields), `${act} as JSON`)
    }
  }
  t.ok(refused.length > 35, `${refused.length} are refused`)
  t.strictSame(SERVED.filter(act => !acts.includes(act)), [], 'the list has no other')
  t.strictSame(WITHOUT_SESSION.filter(act => !acts.includes(act)), [], 'nor those without a session')
  t.strictSame(rows(), before)
  await app.auth.mailsSent()
  t.equal(mails.length, sent, 'no mail is sent')
  t.match(await principalIn(browser), { userId: ada, impersonator: /./ })
})

t.test('attack 194: what app.auth changes for a request is refused, and events of the application carry both users', async t => {
  const { browser, ada, rows } = await impersonating(t)
  const before = rows()
  for (const act of Object.keys(calls)) assertRefused(t, await browser.post('/call', { act, userId: ada }), act)
  t.strictSame(rows(), before)
})

t.test('attack 194: what starts or ends more than a sign-in is refused at the routes that serve it', async t => {
  const { browser, sue, ada, rows } = await impersonating(t)
  const before = rows()
  for (const what of ['link=true', 'reauthenticate=true']) {
    assertRefused(t, await browser.get(`/auth/own/login?${what}`, { accept: 'text/html' }), `GET ${what}`)
    assertRefused(t, await browser.post('/auth/own/login', Object.fromEntries(new URLSearchParams(what))), `POST ${what}`)
  }
  assertRefused(t, await browser.post('/auth/logout', { everywhere: true }), 'everywhere')
  for (const path of ['/auth/pages/account', '/auth/pages/factors', '/auth/session', '/auth/pages/sign-in']) {
    t.equal((await browser.get(path)).statusCode, 200, path)
  }
  t.strictSame(rows(), before)

  const callback = await leaveFor(browser, '/auth/own/login', { subject: 'ada-at-own', email: 'ada@elsewhere.example' })
  await browser.get(callback)
  const principal = await principalIn(browser)
  t.match(principal, { provider: 'own', impersonator: undefined }, 'a sign-in ends it')
  t.notOk([sue, ada].includes(String(principal?.userId)), 'and joins nothing to the user who was shown')
})

t.test('attack 195: what is linked or authenticated again before an impersonation is not finished in it', async t => {
  const { app, browser, sue, ada } = await impersonating(t)
  await browser.post('/auth/local/impersonation/end')
  const { url } = (await browser.post('/auth/own/login', { link: 'true' })).json()
  await browser.post('/support', { userId: ada })

  await browser.get(callbackOf(url, { subject: 'sue-at-own' }, '/auth/own/callback'))

  for (const userId of [sue, ada]) t.strictSame((await app.auth.links(userId)).map(({ provider }) => provider), ['local'])
})

t.test('attack 195: events name the actor and the user who is shown', async t => {
  const { browser, sue, ada } = await impersonating(t)
  const events = eventsOf(t, 'revoke')
  await browser.post('/auth/logout')
  t.match(events, [{ userId: sue, actor: sue, impersonating: ada }])
  t.equal(await principalIn(browser), null, 'the session of the actor has ended')
})

t.test('pages have the bar that ends an impersonation, and forms that act for the user who is shown', async t => {
  const { browser } = await impersonating(t)
  const { body } = await browser.get('/auth/pages/account', { 'accept-language': 'fr' })
  t.match(body, '<form class="svc-auth-impersonation" method="post" action="/auth/local/impersonation/end" lang="fr" aria-label="')
  t.match((await browser.get('/auth/pages/confirm', { accept: 'text/html' })).body, 'svc-auth-impersonation', 'the page of a refusal, too')
  const answer = await browser.submit('/auth/local/impersonation/end', {})
  t.strictSame([answer.statusCode, answer.headers.location], [303, '/'])
  t.notMatch((await browser.get('/auth/pages/account')).body, '<form class="svc-auth-impersonation"')
})

t.test('a mail tells the user, where the application asks for it', async t => {
  const { app, browser, ada, mails } = await impersonating(t, {
    impersonation: { allow: ({ actor }) => actor.claims.role === 'support', notify: true }
  })
  await app.auth.mailsSent()
  t.strictSame(mails.filter(mail => Object(mail).kind === 'impersonated'), [], 'not to an address that is not confirmed')
  await browser.post('/auth/local/impersonation/end')
  await app.auth.updateUser(ada, { emailVerified: true })
  await browser.post('/support', { userId: ada })
  await app.auth.mailsSent()
  t.match(mails.filter(mail => Object(mail).kind === 'impersonated'), [{ to: 'ada@example.com', about: { ip: null } }])
})

for (const [kept, sessions] of SESSION_STORES) {
  t.test(`attack 193: of two cookies an impersonation is that of its own session, with ${kept}`, async t => {
    const { browser, sue, ada } = await impersonating(t, { session: { secret: SESSION_SECRET, store: sessions() } })
    const [cookie] = browser.cookies.values()
    const own = new Browser(browser.app)
    await own.post('/auth/local/login', { email: 'sue@example.com', password: PASSWORD })
    const [other] = own.cookies.values()
    const principal = async (...cookies: unknown[]): Promise<unknown> =>
      (await new Browser(browser.app).get('/me', { cookie: cookies.map(value => `svc_session=${String(value)}`).join('; ') })).json().principal
    t.match(await principal(cookie, other), { userId: ada, impersonator: sue })
    t.match(await principal(other, cookie), { userId: sue, impersonator: undefined })
  })
}
