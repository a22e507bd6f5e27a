/** Attack 122: an unverified address in the claims of a user whose own address is verified. */
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { type AuthStore, MemoryAuthStore, type Principal, type TokenClaims } from '../../lib/index.js'
import { SESSION_SECRET, localProvider, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { OwnProvider, linkAt, signInAt } from '../helpers/own-provider.js'
import { SOME_SESSION_STORES, type SessionStores } from '../helpers/session-stores.js'
import { SOME_STORES } from '../helpers/stores.js'

const MALLORY = { email: 'mallory@example.com', password: 'correct horse' }
const BOSS = 'boss@example.com'
/** The identity of the attacker at a provider that lets its users choose an address, as Entra tenants do. */
const TENANT = { subject: 'mallory', email: BOSS, emailVerified: false }

interface Setting {
  app: FastifyInstance
  /** The browser of the attacker, signed in by the identity with the foreign address. */
  browser: Browser
  userId: string
}

interface Seen {
  principal: Principal | null
  user: Principal
  token: TokenClaims | null
}

async function start (t: Test, store: AuthStore, sessions: SessionStores = undefined): Promise<Setting> {
  const app = await startApp(t, {
    baseUrl: 'https://app.example',
    providers: [new OwnProvider('tenant'), new OwnProvider('other')],
    local: localProvider(),
    store,
    session: { secret: SESSION_SECRET, store: sessions }
  }, {}, app => {
    const { auth } = app
    const { refresh, requireBearer, requireClaims, requireUser, requireVerified } = auth
    const guards = {
      '/open': requireUser,
      '/verified': requireVerified,
      '/refreshed': [requireVerified, refresh],
      '/either': auth.anyOf(requireVerified, requireUser)
    }
    for (const [url, preHandler] of Object.entries(guards)) {
      app.get(url, { preHandler }, async request => ({ principal: request.principal, user: auth.user(request) }))
    }
    app.get('/token', { preHandler: [requireBearer, requireVerified] }, async request => ({ token: request.token }))
    app.get('/boss', { preHandler: [requireVerified, requireClaims({ email: BOSS })] }, async () => 'passed')
    app.get('/handler', { preHandler: requireVerified }, async request => {
      await auth.grant(auth.user(request).userId, { seen: true })
      return { principal: await auth.refresh(request), user: request.principal }
    })
    app.post<{ Params: { userId: string } }>('/become/:userId', { preHandler: requireVerified }, async request => {
      await auth.signIn(request, request.params.userId)
      return { principal: request.principal }
    })
  })
  const { userId } = await app.auth.createUser({ ...MALLORY, emailVerified: true })
  const browser = new Browser(app)
  await browser.post('/auth/local/login', MALLORY)
  await linkAt(browser, 'tenant', TENANT)
  await signInAt(browser, 'tenant', TENANT)
  return { app, browser, userId }
}

for (const [name, open] of Object.entries(SOME_STORES)) {
  t.test(`attack 122: behind requireVerified the claim email is the verified address, with users in ${name}`, async t => {
    const { browser, userId } = await start(t, await open(t))
    const seen = async (url: string): Promise<Seen> => (await browser.get(url)).json()
    t.match(await seen('/open'), { principal: { userId, provider: 'tenant', claims: { email: BOSS } } })

    for (const url of ['/verified', '/refreshed', '/either', '/handler']) {
      const { principal, user } = await seen(url)
      const claims = { sub: TENANT.subject, email: MALLORY.email, email_verified: true }
      t.hasStrict(principal, { userId, provider: 'tenant', claims }, url)
      t.strictSame(user, principal, url)
    }
    t.equal((await browser.get('/boss')).statusCode, 403, 'for a guard behind it too')
    t.match(await seen('/open'), { principal: { claims: { email: BOSS } } }, 'the session is as it was')
  })
}

for (const [kind, createSessions] of SOME_SESSION_STORES) {
  t.test(`attack 122: the verified address is written into no session, with ${kind}`, async t => {
    const { app, browser } = await start(t, new MemoryAuthStore(), createSessions())

    t.equal((await browser.get('/verified')).json().principal.claims.email, MALLORY.email)
    t.equal((await browser.get('/open')).json().principal.claims.email, BOSS)

    const { userId } = await app.auth.createUser({ email: 'grace@example.com' })
    const { principal } = (await browser.post(`/become/${userId}`)).json()
    t.match(principal, { userId, claims: { email: 'grace@example.com' } }, 'another user has their own')
    t.not(principal.claims.email_verified, true)
  })
}

t.test('attack 122: behind requireBearer the claim email of the token is the verified address', async t => {
  const { browser } = await start(t, new MemoryAuthStore())
  const { token } = (await browser.post('/auth/local/token')).json()

  const seen = (await browser.get('/token', { authorization: `Bearer ${token}` })).json()

  t.hasStrict(seen.token, { sub: (await browser.get('/open')).json().user.userId, email: MALLORY.email, email_verified: true })
})

t.test('attack 122: a user without a verified address does not pass, whatever the identity says', async t => {
  const { app } = await start(t, new MemoryAuthStore())
  const browser = new Browser(app)
  await signInAt(browser, 'tenant', { subject: 'grace', email: 'grace@example.com', emailVerified: false })

  t.strictSame((await browser.get('/verified')).json().code, 'email_missing')
})
