/** Guests: who they are, what they may, and how they become users. */
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin, {
  AuthError, type AuthPluginOptions, type GuestSignIn, type LocalIdentityProviderOptions, type Principal,
  SignInRefused, SqlAuthStore
} from '../../index.js'
import { Passkeys } from '../../passkeys.js'
import { SecondFactor } from '../../second-factor.js'
import { mailbox, type Mailbox } from '../../testing.js'
import { SESSION_SECRET, localProvider } from '../../../test/helpers/app.js'
import { eventsOf } from '../../../test/helpers/audit-events.js'
import { Browser } from '../../../test/helpers/browser.js'
import { DATA_SECRET, nextCode } from '../../../test/helpers/factor-app.js'
import { ADA, BASE_URL, NEW_PASSWORD } from '../../../test/helpers/mail-app.js'
import { OwnProvider, leaveFor, signInAt } from '../../../test/helpers/own-provider.js'
import { newDevice, signInBy } from '../../../test/helpers/passkey-app.js'
import { SOME_STORES } from '../../../test/helpers/stores.js'

const BOB = { subject: 'bob', email: 'bob@example.com' }
const RATE_LIMIT = { register: 1000, login: 1000, mail: 1000, factor: 1000, challenge: 1000, code: 1000, guest: 1000 }

interface Shop {
  app: FastifyInstance
  browser: Browser
  mails: Mailbox
  /** Makes the visitor of a browser a guest, whose id it returns. */
  enter: (browser?: Browser) => Promise<string>
  idOf: (browser: Browser) => Promise<string | null>
}

async function start (
  t: Test, options: AuthPluginOptions = {}, local: LocalIdentityProviderOptions = {}
): Promise<Shop> {
  const mails = mailbox()
  const app = Fastify()
  const store = options.store ?? new SqlAuthStore(':memory:')
  t.teardown(async () => {
    await app.close()
    await store.close()
  })
  await app.register(authPlugin, {
    baseUrl: BASE_URL,
    session: { secret: SESSION_SECRET },
    dataSecret: DATA_SECRET,
    providers: [new OwnProvider('a')],
    local: localProvider({ sendMail: mails.sendMail, mails: { limits: false }, ...local }),
    passkeys: new Passkeys({ name: 'Shop' }),
    rateLimit: RATE_LIMIT,
    guests: {},
    ...options,
    store
  })
  const { requireClaims, requireCaller, requireUser } = app.auth
  app.post('/basket', async request => app.auth.signInGuest(request))
  app.get('/basket', { preHandler: requireClaims({}, { guests: true }) }, async request => request.principal)
  app.get('/vip', { preHandler: requireClaims({ role: 'vip' }, { guests: true }) }, async () => 'vip')
  app.get('/shown', async request => ({ principal: request.principal }))
  app.get('/calls', { preHandler: requireCaller({ by: ['session'], guests: true }) }, async request => app.auth.caller(request))
  app.get('/private', { preHandler: requireUser }, async request => request.principal)
  await app.ready()
  const browser = new Browser(app)
  return {
    app,
    browser,
    mails,
    async enter (visitor = browser) {
      const answer = await visitor.post('/basket')
      if (answer.statusCode !== 200) throw new Error(answer.body)
      return answer.json<Principal>().userId
    },
    async idOf (visitor) {
      const answer = await visitor.get('/private')
      return answer.statusCode === 200 ? answer.json<Principal>().userId : null
    }
  }
}

/** The ways by which a visitor becomes a user whom the application does not know. */
const WAYS: Record<string, {
  options?: AuthPluginOptions
  local?: LocalIdentityProviderOptions
  /** Signs in, and returns the status of the last answer. */
  go: (shop: Shop, browser: Browser) => Promise<number>
  provider: string
}> = {
  'a registration with a password': {
    local: { registration: {} },
    go: async (_, browser) => (await browser.post('/auth/local/register', ADA)).statusCode,
    provider: 'local'
  },
  'a registration whose address is confirmed first': {
    local: { registration: { verify: 'first' } },
    async go ({ mails }, browser) {
      await browser.post('/auth/local/register', { email: ADA.email })
      const { token } = await mails.next('register')
      return (await browser.post('/auth/local/register', { token, password: ADA.password })).statusCode
    },
    provider: 'local'
  },
  'a registration with a passkey': {
    local: { registration: { passkey: true } },
    async go ({ mails }, browser) {
      await browser.post('/auth/local/register', { email: ADA.email })
      const { token } = await mails.next('register')
      const options = (await browser.post('/auth/local/passkeys/options', { for: 'register', token })).json()
      const device = newDevice()
      const { statusCode } = await browser.post('/auth/local/register', { token, response: device.create(options) })
      await browser.post('/auth/local/logout')
      return (await signInBy(browser, device)).statusCode === 200 ? statusCode : 0
    },
    provider: 'application'
  },
  'a sign-in by mail': {
    local: { registration: {}, signInByMail: true },
    async go ({ mails }, browser) {
      await browser.post('/auth/local/mail-login', { email: ADA.email })
      return (await browser.post('/auth/local/mail-login/confirm', { code: (await mails.next('sign-in')).code })).statusCode
    },
    provider: 'application'
  },
  'a sign-in at a provider': {
    go: async (_, browser) => (await signInAt(browser, 'a', { ...BOB, email: ADA.email })).statusCode,
    provider: 'a'
  }
}
for (const [kind, open] of Object.entries(SOME_STORES)) {
  for (const [way, { options, local, go, provider }] of Object.entries(WAYS)) {
    t.test(`attack 213: by ${way} the guest becomes the user, with all they had, on ${kind}`, async t => {
      const shop = await start(t, { ...options, store: await open(t) }, local)
      const { app, browser, enter, idOf } = shop
      const userId = await enter()
      await app.auth.grant(userId, { role: 'vip' })
      const [before, elsewhere] = [new Map(browser.cookies), new Browser(app)]
      const registered = eventsOf(t, 'registration')

      const status = await go(shop, browser)

      t.ok([200, 201, 302, 303].includes(status), `answered ${status}`)
      t.match((await browser.get('/private')).json(), { userId, provider, claims: { role: 'vip', email: ADA.email }, guest: undefined })
      t.match(await app.auth.findUser({ email: ADA.email }), { userId, claims: { role: 'vip' }, guest: undefined, isNew: undefined })
      t.strictSame((await app.auth.links(userId)).map(link => link.provider), [provider])
      t.match(registered, [{ userId }])
      t.equal((await new Browser(app, before).get('/basket')).statusCode, 401, 'the session of the guest has ended')
      t.equal(await idOf(elsewhere), null)
    })

    t.test(`attack 214: by ${way} in another browser nobody becomes the guest, on ${kind}`, async t => {
      const shop = await start(t, { ...options, store: await open(t) }, local)
      const { app, browser, enter } = shop
      const guestId = await enter()
      await go(shop, new Browser(app))
      t.not((await app.auth.findUser({ email: ADA.email }))?.userId, guestId)
      t.match((await browser.get('/basket')).json(), { userId: guestId, guest: true })
    })

    t.test(`where the application refuses, the guest stays one by ${way}, on ${kind}`, async t => {
      const refused: Array<{ userId: string, created: boolean }> = []
      const shop = await start(t, {
        ...options,
        store: await open(t),
        onSignIn ({ principal: { userId }, created }) {
          refused.push({ userId, created })
          throw new SignInRefused('closed')
        }
      }, local)
      const { app, browser, enter } = shop
      const userId = await enter()
      await go(shop, browser)
      t.strictSame(refused[0], { userId, created: true })
      t.match((await browser.get('/basket')).json(), { userId, guest: true })
      t.equal(await app.auth.findUser({ email: ADA.email }), null)
      t.match(await app.auth.findUser({ userId }), { guest: true, email: null })
    })
  }
}

for (const [kind, open] of Object.entries(SOME_STORES)) {
  t.test(`of many requests that promote one guest at once, one does, on ${kind}`, async t => {
    const { app, browser, enter } = await start(t, { store: await open(t) }, { registration: {} })
    const userId = await enter()
    const tabs = Array.from({ length: 6 }, () => new Browser(app, browser.cookies))
    const answers = await Promise.all(tabs.map(async (tab, index) =>
      tab.post('/auth/local/register', { ...ADA, email: `ada-${index}@example.com` })))
    const made = answers.filter(({ statusCode }) => statusCode === 201).map(answer => answer.json<Principal>().userId)
    t.ok(made.includes(userId), answers.map(answer => answer.body).join())
    t.equal(new Set(made).size, made.length, 'each other one is another user')
    t.equal((await app.auth.links(userId)).length, 1)
  })
}

t.test('attack 213: a guest who signs in as a user who exists is told to the application, and is gone then', async t => {
  const told: GuestSignIn[] = []
  let refuses = true
  const { app, browser, enter, idOf } = await start(t, {
    onGuest (signIn) {
      told.push(signIn)
      if (refuses) throw new AuthError('forbidden')
    }
  }, { registration: {} })
  const { userId } = (await new Browser(app).post('/auth/local/register', ADA)).json()
  const deleted = eventsOf(t, 'deletion')
  const guestId = await enter()

  t.equal((await browser.post('/auth/local/login', ADA)).statusCode, 403)
  t.match((await browser.get('/basket')).json(), { userId: guestId }, 'what the hook throws refuses the sign-in')
  t.notSame(await app.auth.findUser({ userId: guestId }), null)
  refuses = false
  t.equal((await browser.post('/auth/local/login', { ...ADA, password: NEW_PASSWORD })).statusCode, 401)
  t.equal(told.length, 1, 'nothing is told of a wrong password')
  t.equal((await browser.post('/auth/local/login', ADA)).statusCode, 200)

  t.match(told, [1, 2].map(() => ({ guest: { userId: guestId, guest: true }, user: { userId } })))
  t.equal(await idOf(browser), userId)
  t.equal(await app.auth.findUser({ userId: guestId }), null)
  t.match(deleted, [{ userId: guestId }])
})

t.test('a guest stays one until a second factor is given', async t => {
  const told: string[] = []
  const { app, browser, enter, idOf } = await start(t, {
    secondFactor: new SecondFactor({ issuer: 'Shop' }), onGuest ({ guest }) { told.push(guest.userId) }
  }, { registration: {} })
  const ada = new Browser(app)
  await ada.post('/auth/local/register', ADA)
  const { secret } = (await ada.post('/auth/local/totp/enroll')).json()
  await ada.post('/auth/local/totp/confirm', { code: nextCode(t, secret) })
  const guestId = await enter()

  t.match((await browser.post('/auth/local/login', ADA)).json(), { code: 'second_factor_required' })
  t.match((await browser.get('/basket')).json(), { userId: guestId })
  t.strictSame(told, [])
  t.equal((await browser.post('/auth/local/second-factor', { code: nextCode(t, secret) })).statusCode, 200)
  t.strictSame(told, [guestId])
  t.equal(await idOf(browser), await idOf(ada))
})

t.test('a guest who must set up a second factor first becomes the user with it', async t => {
  const { app, browser, enter, idOf } = await start(t, {
    secondFactor: new SecondFactor({ issuer: 'Shop', required: () => true })
  }, { registration: {} })
  const userId = await enter()

  t.match((await browser.post('/auth/local/register', ADA)).json(), { code: 'second_factor_required' })
  t.equal(await app.auth.findUser({ email: ADA.email }), null, 'nothing is written before')
  t.match((await browser.get('/basket')).json(), { userId })
  const { secret } = (await browser.post('/auth/local/totp/enroll')).json()
  const confirmed = await browser.post('/auth/local/totp/confirm', { code: nextCode(t, secret) })
  t.equal(confirmed.statusCode, 200, confirmed.body)
  t.equal(await idOf(browser), userId)
  t.match(await app.auth.findUser({ email: ADA.email }), { userId, factors: ['recovery', 'totp'], guest: undefined })
})

t.test('attack 214: a sign-in that waits at a provider makes the guest of its session the user, not one who came later', async t => {
  const { app, browser, enter, idOf } = await start(t)
  const first = await enter()
  const back = await leaveFor(browser, '/auth/a/login', BOB)
  await app.auth.deleteUser(first)
  t.ok((await browser.get(back)).statusCode < 400)
  const userId = await idOf(browser)
  t.ok(userId !== null && userId !== first)
})
