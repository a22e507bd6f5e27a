/**
 * Attack 230: users of a domain whose connection is enforced sign in by nothing else, and do not leave it. As a property
 * over all acts: each is a door that refuses them, or in the list of those that may not.
 */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import { ApiKeys } from '../../lib/api-keys.js'
import { type Connection, type EnforceOptions } from '../../lib/connections.js'
import { type AuthPluginOptions, type LocalIdentityProviderOptions, SqlAuthStore } from '../../lib/index.js'
import { OAuthServer } from '../../lib/oauth-server.js'
import { totp } from '../../lib/testing.js'
import { principalIn, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { enrolAt } from '../helpers/factor-app.js'
import { type MailApp, confirmAddress, startMailApp } from '../helpers/mail-app.js'
import { Client, HTML, fieldsIn, send } from '../helpers/oauth-app.js'
import { type AdmittedUser, leaveFor, linkAt, postLogin, signInAt } from '../helpers/own-provider.js'
import { addAt, newDevice, optionsAt } from '../helpers/passkey-app.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { type Tenants, connect, proveAll, signInBy, startTenants } from '../helpers/tenants.js'
import { actsOfLastApp, wholeApp } from '../helpers/whole-app.js'

const PASSWORD = 'correct horse'
const NEW_PASSWORD = 'battery staple'
const DAY_MS = 86_400_000
const RESOURCE = 'https://app.example/mcp'
const CLIENT = 'http://127.0.0.1/callback'
const LIMITS = ['register', 'login', 'mail', 'factor', 'code', 'guest', 'challenge', 'start', 'callback', 'reauthenticate', 'token']

interface World extends MailApp {
  readonly t: Test
  readonly store: SqlAuthStore
  readonly tenants: Tenants
  /** Of the domain example.com, which is proven. */
  readonly connection: Connection
}

interface Options extends AuthPluginOptions {
  readonly store?: SqlAuthStore
  readonly hasMailLimits?: boolean
  readonly registration?: LocalIdentityProviderOptions['registration']
}

async function start (t: Test, { registration, hasMailLimits = false, store = new SqlAuthStore(':memory:'), ...options }: Options = {}): Promise<World> {
  const { local: _, ...whole } = wholeApp(() => {})
  const tenants = await startTenants(t)
  const made = await startMailApp(t, {
    ...whole,
    store,
    rateLimit: Object.fromEntries(LIMITS.map(name => [name, 100_000])),
    apiKeys: new ApiKeys({ prefix: 'shop', scopes: { read: 'Read' }, selfService: true }),
    impersonation: { allow: () => true },
    guests: {},
    oauthServer: new OAuthServer({
      resources: { [RESOURCE]: { scopes: { read: 'Read' } } },
      clients: [{ client_id: 'cli', client_name: 'CLI', redirect_uris: [CLIENT] }],
      device: { clients: ['cli'] }
    }),
    ...options
  }, { signInByMail: true, mails: { limits: hasMailLimits }, ...(registration !== undefined && { registration }) }, {}, addRoutes)
  const { app } = made
  const connection = await connect(app, tenants.tenants[0], { domains: ['example.com'] })
  await proveAll(app, tenants, connection)
  return { t, ...made, store, tenants, connection }
}

/** What asks for guests, keys, tokens and grants, and the application's own sign-in. */
function addRoutes (app: FastifyInstance): void {
  app.post('/basket', async request => app.auth.signInGuest(request))
  app.post<{ Body: { userId: string } }>('/sign-in', async request => app.auth.signIn(request, request.body.userId))
  app.get('/by-key', { preHandler: app.auth.requireCaller({ by: ['key', 'token'] }) }, async () => 'welcome')
  app.get('/resource', { preHandler: app.auth.requireBearerFor({ audience: RESOURCE }) }, async () => 'welcome')
}

/** As between the moment in which it is enforced and the end of the sessions of a user. */
async function enforceQuietly ({ app, store, connection }: World, enforce: EnforceOptions = {}): Promise<void> {
  const { users } = store
  store.users = async () => []
  await app.auth.connections.update(connection.id, { enforce })
  store.users = users
}

interface Member {
  readonly email: string
  readonly browser: Browser
  readonly userId: string
  /** The token of the link that confirms the address. */
  readonly token: string
}

let count = 0

/** A user of the domain with a password, signed in; their address is confirmed, unless they are new. */
async function member ({ app, mails }: World, { isConfirmed = true, domain = 'example.com' } = {}): Promise<Member> {
  const email = `user-${count++}@${domain}`
  const browser = new Browser(app)
  const { statusCode, body } = await browser.post('/auth/local/register', { email, password: PASSWORD })
  if (statusCode !== 201) throw new Error(body)
  const { token } = await mails.next('verify-email')
  if (isConfirmed) await confirmAddress(browser, token)
  return { email, browser, userId: String(await userIdIn(browser)), token }
}

/** A person at a provider. */
const person = ({ email }: { email: string }): AdmittedUser & { email: string } => ({ subject: email, email })

type Attempt = () => Promise<LightMyRequestResponse>

interface Door {
  /** Whether its answer is that of the address: an excepted user gets it too, and the mail. */
  readonly isOfAddress?: true
  /** Goes up to the door; what is returned goes through it. */
  readonly goTo: (world: World) => Promise<Attempt>
}

const post = (browser: Browser, path: string, fields?: unknown): Attempt => () => browser.post(`/auth/${path}`, fields)

/** The acts that refuse, with what leads there. */
const DOORS: Record<string, Door> = {
  'POST /auth/local/register': {
    isOfAddress: true,
    goTo: async ({ app }) => post(new Browser(app), 'local/register', { email: `new-${count++}@example.com`, password: PASSWORD })
  },
  'POST /auth/local/login': {
    async goTo (world) {
      const { email } = await member(world)
      return post(new Browser(world.app), 'local/login', { email, password: PASSWORD })
    }
  },
  'POST /auth/local/mail-login': {
    isOfAddress: true,
    async goTo (world) {
      const { email } = await member(world)
      return post(new Browser(world.app), 'local/mail-login', { email })
    }
  },
  'POST /auth/local/mail-login for an address without an account': {
    isOfAddress: true,
    goTo: async ({ app }) => post(new Browser(app), 'local/mail-login', { email: `new-${count++}@example.com` })
  },
  'POST /auth/local/mail-login/confirm by the code': {
    async goTo (world) {
      const { email } = await member(world)
      const browser = new Browser(world.app)
      await browser.post('/auth/local/mail-login', { email })
      return post(browser, 'local/mail-login/confirm', { code: (await world.mails.next('sign-in')).code })
    }
  },
  'POST /auth/local/mail-login/confirm by the link, which proves an address for the first time': {
    async goTo (world) {
      const { email } = await member(world, { isConfirmed: false })
      const browser = new Browser(world.app)
      await browser.post('/auth/local/mail-login', { email })
      return post(browser, 'local/mail-login/confirm', { token: (await world.mails.next('sign-in')).token, existing: 'remove' })
    }
  },
  'POST /auth/local/forgot-password': {
    isOfAddress: true,
    async goTo (world) {
      const { email } = await member(world)
      return post(new Browser(world.app), 'local/forgot-password', { email })
    }
  },
  'POST /auth/local/reset-password': {
    async goTo (world) {
      const { email } = await member(world)
      await new Browser(world.app).post('/auth/local/forgot-password', { email })
      const { token } = await world.mails.next('reset-password')
      return post(new Browser(world.app), 'local/reset-password', { token, password: NEW_PASSWORD })
    }
  },
  'POST /auth/local/verify-email for the link': {
    async goTo (world) {
      const { browser } = await member(world, { isConfirmed: false })
      return post(browser, 'local/verify-email', {})
    }
  },
  'POST /auth/local/verify-email with the token': {
    async goTo (world) {
      const { browser, token } = await member(world, { isConfirmed: false })
      return () => confirmAddress(browser, token)
    }
  },
  'POST /auth/local/change-email': {
    goTo: async world => post((await member(world)).browser, 'local/change-email', { email: `away-${count++}@elsewhere.example` })
  },
  'POST /auth/local/change-email to the domain': {
    async goTo (world) {
      const { browser } = await member(world, { domain: 'elsewhere.example' })
      return post(browser, 'local/change-email', { email: `came-${count++}@example.com` })
    }
  },
  'POST /auth/local/change-email/confirm': {
    async goTo (world) {
      const { browser } = await member(world)
      await browser.post('/auth/local/change-email', { email: `away-${count++}@elsewhere.example` })
      return post(browser, 'local/change-email/confirm', { token: (await world.mails.next('change-email')).token })
    }
  },
  'POST /auth/local/change-email/confirm to the domain': {
    async goTo (world) {
      const { browser } = await member(world, { domain: 'elsewhere.example' })
      await browser.post('/auth/local/change-email', { email: `came-${count++}@example.com` })
      return post(browser, 'local/change-email/confirm', { token: (await world.mails.next('change-email')).token })
    }
  },
  'POST /auth/local/change-password': {
    async goTo (world) {
      const { browser } = await member(world)
      return post(browser, 'local/change-password', { current: PASSWORD, password: NEW_PASSWORD })
    }
  },
  'POST /auth/local/set-password': {
    async goTo ({ app }) {
      const browser = new Browser(app)
      await signInAt(browser, 'a', person({ email: `user-${count++}@example.com` }))
      return post(browser, 'local/set-password', { password: PASSWORD })
    }
  },
  'POST /auth/pages/unlink': {
    async goTo (world) {
      const { email, browser } = await member(world)
      await linkAt(browser, 'a', person({ email }))
      return post(browser, 'pages/unlink', { provider: 'a' })
    }
  },
  'POST /auth/local/passkeys/options': {
    goTo: async world => post((await member(world)).browser, 'local/passkeys/options', { for: 'register' })
  },
  'POST /auth/local/passkeys/register': {
    async goTo (world) {
      const { browser } = await member(world)
      const response = newDevice().create(await optionsAt(browser, 'register'))
      return post(browser, 'local/passkeys/register', { response })
    }
  },
  'POST /auth/local/passkeys/login': {
    async goTo (world) {
      const { browser } = await member(world)
      const device = newDevice()
      await addAt(browser, device)
      return async () => {
        const other = new Browser(world.app)
        return other.post('/auth/local/passkeys/login', { response: device.get(await optionsAt(other, 'login')) })
      }
    }
  },
  'POST /auth/local/passkeys/login of a user who has nothing but the connection besides': {
    async goTo (world) {
      const { app, tenants: { tenants: [acme] }, connection } = world
      const [browser, device] = [new Browser(app), newDevice()]
      const email = `user-${count++}@example.com`
      acme.idp.account = { sub: email, email }
      await signInBy(browser, acme, connection)
      await addAt(browser, device)
      return async () => {
        const other = new Browser(world.app)
        return other.post('/auth/local/passkeys/login', { response: device.get(await optionsAt(other, 'login')) })
      }
    }
  },
  'POST /auth/local/second-factor': {
    async goTo (world) {
      const { email, browser } = await member(world)
      const { recoveryCodes: [code] } = await enrolAt(world.t, browser)
      const other = new Browser(world.app)
      await other.post('/auth/local/login', { email, password: PASSWORD })
      return post(other, 'local/second-factor', { code })
    }
  },
  'POST /auth/local/second-factor of a user whom the provider moves to the domain': {
    async goTo ({ t, app }) {
      const browser = new Browser(app)
      const moving = person({ email: `user-${count++}@elsewhere.example` })
      await signInAt(browser, 'a', moving)
      const { recoveryCodes: [code] } = await enrolAt(t, browser)
      const other = new Browser(app)
      await signInAt(other, 'a', { ...moving, email: `came-${count++}@example.com` })
      return post(other, 'local/second-factor', { code })
    }
  },
  'GET /auth/a/callback of a user': {
    async goTo ({ app }) {
      const known = person({ email: `user-${count++}@example.com` })
      await signInAt(new Browser(app), 'a', known)
      const browser = new Browser(app)
      const callback = await leaveFor(browser, '/auth/a/login', known)
      return () => browser.get(callback)
    }
  },
  'GET /auth/a/callback that would join a user': {
    async goTo (world) {
      const { email } = await member(world)
      const browser = new Browser(world.app)
      const callback = await leaveFor(browser, '/auth/a/login', person({ email }))
      return () => browser.get(callback)
    }
  },
  'GET /auth/a/callback of a new user': {
    isOfAddress: true,
    async goTo ({ app }) {
      const browser = new Browser(app)
      const callback = await leaveFor(browser, '/auth/a/login', person({ email: `new-${count++}@example.com` }))
      return () => browser.get(callback)
    }
  },
  'GET /auth/a/callback of a new user whose address the provider does not verify': {
    isOfAddress: true,
    async goTo ({ app }) {
      const browser = new Browser(app)
      const unverified = { ...person({ email: `new-${count++}@example.com` }), emailVerified: false }
      const callback = await leaveFor(browser, '/auth/a/login', unverified)
      return () => browser.get(callback)
    }
  },
  'GET /auth/a/callback of a guest': {
    async goTo ({ app }) {
      const browser = new Browser(app)
      await browser.post('/basket')
      const callback = await leaveFor(browser, '/auth/a/login', person({ email: `new-${count++}@example.com` }))
      return () => browser.get(callback)
    }
  },
  'GET /auth/a/callback of a user whom the provider moves to the domain': {
    async goTo ({ app }) {
      const moving = person({ email: `user-${count++}@elsewhere.example` })
      await signInAt(new Browser(app), 'a', moving)
      const browser = new Browser(app)
      const callback = await leaveFor(browser, '/auth/a/login', { ...moving, email: `came-${count++}@example.com` })
      return () => browser.get(callback)
    }
  },
  'GET /auth/a/callback that adds an identity': {
    async goTo (world) {
      const { email, browser } = await member(world)
      const callback = await leaveFor(browser, '/auth/a/login?link=true', person({ email }))
      return () => browser.get(callback)
    }
  },
  'POST /auth/a/login': {
    async goTo (world) {
      const { browser } = await member(world)
      return () => postLogin(browser, '/auth/a/login?link=true')
    }
  },
  'GET /auth/connections/:id/callback of another connection': {
    async goTo (world) {
      const { app, tenants: { tenants: [other] } } = world
      const connection = await connect(app, other, { name: 'Other' })
      const { email, browser } = await member(world)
      other.idp.account = { sub: email, email: `${email}.test` }
      const { url } = (await postLogin(browser, `${connection.loginPath}?link=true`)).json()
      const { pathname, search } = await other.idp.authorize(url)
      t.match(await browser.get(pathname + search), { headers: { location: '/' } })
      return () => {
        other.idp.account = { sub: email, email: `${email}.test` }
        return signInBy(new Browser(app), other, connection)
      }
    }
  },
  'POST /auth/connections/:id/login of another connection': {
    async goTo (world) {
      const { loginPath } = await connect(world.app, world.tenants.tenants[0], { name: 'Other' })
      const { browser } = await member(world)
      return () => postLogin(browser, `${loginPath}?link=true`)
    }
  },
  'POST /auth/local/token': { goTo: async world => post((await member(world)).browser, 'local/token') },
  'POST /auth/local/keys': {
    goTo: async world => post((await member(world)).browser, 'local/keys', { name: 'Laptop', scopes: ['read'] })
  },
  'POST /auth/oauth/authorize': {
    async goTo (world) {
      const { browser } = await member(world)
      const consent = await browser.get(new Client(world.app, 'cli', CLIENT).request({ scope: 'read' }), HTML)
      return post(browser, 'oauth/authorize', { ...fieldsIn(consent.body), decision: 'allow' })
    }
  },
  'POST /auth/device': {
    async goTo (world) {
      const { browser } = await member(world)
      const { user_code: code } = (await send(world.app, '/auth/oauth/device', { client_id: 'cli', scope: 'read' })).json()
      return post(browser, 'device', { user_code: code, decision: 'allow' })
    }
  }
}

/** The acts that may not refuse, each with why. */
const OTHERS: Record<string, readonly string[]> = {
  'begins what its callback, or its last step, refuses': [
    'GET /auth/a/login', 'GET /auth/connections/:id/login', 'POST /auth/a/callback', 'POST /auth/connections/:id/callback',
    'POST /auth/connections/start'
  ],
  'shows, and changes nothing': [
    ...['device', 'oauth/authorize', 'session', 'local/passkeys/script.js'].map(act => `GET /auth/${act}`),
    ...['account', 'confirm', 'factors', 'forgot-password', 'link-sent', 'register', 'sign-in'].map(page => `GET /auth/pages/${page}`),
    ...['change-email/confirm', 'mail-login', 'reset-password', 'second-factor', 'totp', 'verify-email'].map(page => `GET /auth/local/${page}`)
  ],
  'ends something, or leaves': [
    ...['delete-account', 'grants/end', 'impersonation/end', 'keys/end', 'revoke', 'sessions/end'].map(act => `POST /auth/local/${act}`),
    'POST /auth/logout', 'POST /auth/oauth/revoke', 'POST /auth/connections/:id/backchannel-logout'
  ],
  'authenticates within a session of the user, or is a second factor, which signs in nobody by itself': [
    ...['reauthenticate', 'recovery-codes', 'totp/enroll', 'totp/confirm', 'totp/remove'].map(act => `POST /auth/local/${act}`)
  ],
  'removes or renames what signs in no more': [
    'POST /auth/local/passkeys/remove', 'POST /auth/local/passkeys/rename', 'POST /auth/pages/name'
  ],
  'is asked by programs, whose keys, grants and tokens follow the last sign-in': [
    'POST /auth/local/verify-token', 'POST /auth/oauth/token', 'POST /auth/oauth/device'
  ]
}

const actOf = (door: string): string => door.split(' ').slice(0, 2).join(' ')

/** The code with which an answer refuses, in its body or its redirect; null for none. */
function codeOf ({ statusCode, headers: { location }, body }: LightMyRequestResponse): string | null {
  if (typeof location === 'string') return new URL(location, 'https://app.example').searchParams.get('error')
  return statusCode < 400 ? null : JSON.parse(body).code
}

async function goToAll (world: World): Promise<Array<[name: string, door: Door, attempt: Attempt]>> {
  const gone: Array<[string, Door, Attempt]> = []
  for (const [name, door] of Object.entries(DOORS)) gone.push([name, door, await door.goTo(world)])
  return gone
}

t.test('attack 230: each act is a door that refuses, or says why it need not', async t => {
  await start(t)
  const acts = actsOfLastApp().filter(act => !act.includes('/auth/b/'))
  const said = [...Object.keys(DOORS).map(actOf), ...Object.values(OTHERS).flat()]
  t.strictSame(acts.filter(act => !said.includes(act)), [])
  t.strictSame(said.filter(act => !acts.includes(act)), [])
})

const STORES: Record<string, (t: Test) => Promise<SqlAuthStore>> = {
  SQLite: async () => new SqlAuthStore(':memory:'), Postgres: async t => new SqlAuthStore(await emptyDatabase(t))
}

for (const [name, storeOf] of Object.entries(STORES)) {
  t.test(`attack 230: a user of an enforced domain gets through no door, and nothing is written (${name})`, async t => {
    await assertClosed(await start(t, { store: await storeOf(t) }))
  })
}

async function assertClosed (world: World): Promise<void> {
  const { t } = world
  const { store, connection: { provider, loginPath: url } } = world
  const doors = await goToAll(world)
  await enforceQuietly(world)
  const accounts = async () => {
    const users = await store.users({ search: null, blocked: null, order: 'id', after: null, limit: 500 })
    return Promise.all(users.map(async user => ({ user, links: await store.links(user.userId) })))
  }
  const before = await accounts()

  for (const [name, , attempt] of doors) {
    const answer = await attempt()
    t.equal(codeOf(answer), 'sso_required', name)
    if (answer.headers.location === undefined) {
      t.match([answer.statusCode, answer.json()], [403, { code: 'sso_required', provider, label: 'Acme', url }], name)
    }
  }

  t.strictSame(await accounts(), before)
}

t.test('without the rule each door is open', async t => {
  const world = await start(t)
  for (const [name, , attempt] of await goToAll(world)) {
    const answer = await attempt()
    t.ok(codeOf(answer) === null && answer.statusCode < 400, `${name}: ${answer.statusCode} ${answer.body}`)
  }
})

t.test('a named user gets through each door, and is not known by the answers to an address', async t => {
  const world = await start(t)
  const { app, store, mails } = world
  const doors = await goToAll(world)
  const users = await store.users({ search: null, blocked: null, order: 'id', after: null, limit: 500 })
  await enforceQuietly(world, { except: users.map(({ userId }) => userId) })

  for (const [name, { isOfAddress }, attempt] of doors) {
    t.equal(codeOf(await attempt()), isOfAddress ? 'sso_required' : null, name)
  }
  await app.auth.mailsSent()
  t.equal((await mails.next('reset-password')).kind, 'reset-password', 'the mail comes')
})

t.test('attack 230: when a domain lapses, or the rule ends, each door is open again', async t => {
  const world = await start(t)
  const { app, connection, tenants: { records } } = world
  const { email } = await member(world)
  const login = post(new Browser(app), 'local/login', { email, password: PASSWORD })
  await app.auth.connections.update(connection.id, { enforce: true })
  t.equal(codeOf(await login()), 'sso_required')

  await app.auth.connections.update(connection.id, { enforce: false })
  t.equal(codeOf(await login()), null)
  await app.auth.connections.update(connection.id, { enforce: true })
  t.equal(codeOf(await login()), 'sso_required')

  const rival = await connect(app, world.tenants.tenants[1], { name: 'Rival', domains: ['example.com'] })
  records.clear()
  await proveAll(app, world.tenants, rival)
  t.equal(codeOf(await login()), null, 'the domain is of a connection that is not enforced')
})

t.test('attack 230: what begins to require a connection ends the sessions of those who must', async t => {
  const world = await start(t)
  const { app, connection } = world
  const revoked: string[] = []
  app.auth.channel.on('revoke', userId => { revoked.push(userId) })
  const [ada, bob, eve] = [await member(world), await member(world), await member(world, { domain: 'elsewhere.example' })]
  const signedIn = async () => Promise.all([ada, bob, eve].map(async ({ browser }) => (await browser.get('/private')).statusCode === 200))
  revoked.length = 0

  await app.auth.connections.update(connection.id, { enforce: { except: [bob.userId] } })
  t.strictSame(await signedIn(), [false, true, true])
  t.strictSame(revoked, [ada.userId])

  await app.auth.connections.update(connection.id, { enforce: { except: [bob.userId], days: 3 } })
  t.strictSame(await signedIn(), [false, true, true], 'nobody must who did not before')
  t.strictSame(revoked, [ada.userId])

  await app.auth.connections.update(connection.id, { enforce: true })
  t.strictSame(await signedIn(), [false, false, true], 'nobody is excepted any more')
  t.strictSame(revoked, [ada.userId, bob.userId])
})

t.test('attack 230: a domain that is proven, also once more, for an enforced connection ends the sessions of its users', async t => {
  const world = await start(t)
  const { app, tenants } = world
  const { records } = tenants
  const enforced = await connect(app, tenants.tenants[0], { domains: ['late.example'], enforce: true })
  const late = await member(world, { domain: 'late.example' })
  const isSignedIn = async (browser: Browser): Promise<boolean> => (await browser.get('/private')).statusCode === 200
  t.ok(await isSignedIn(late.browser))

  await proveAll(app, tenants, enforced)
  t.notOk(await isSignedIn(late.browser))
  const again = new Browser(app)
  const login = post(again, 'local/login', { email: late.email, password: PASSWORD })
  t.equal(codeOf(await login()), 'sso_required')

  const rival = await connect(app, tenants.tenants[1], { name: 'Rival', domains: ['late.example'] })
  records.clear()
  await proveAll(app, tenants, rival)
  await login()
  t.ok(await isSignedIn(again), 'lapsed')
  records.clear()
  await proveAll(app, tenants, enforced)
  t.notOk(await isSignedIn(again), 'and proven again')
})

t.test('a user who is deleted meanwhile does not keep the sessions of others; a store that fails does', async t => {
  const world = await start(t)
  const { app, store, connection } = world
  const [gone, ada] = [await member(world), await member(world)]
  const { users, change } = store
  store.users = async query => {
    const found = await users.call(store, query)
    if (query.after === null) await app.auth.deleteUser(gone.userId).catch(() => {})
    return found
  }
  await app.auth.connections.update(connection.id, { enforce: true })
  t.equal((await ada.browser.get('/private')).statusCode, 401)
  store.change = async () => { throw new Error('the database is down') }
  await app.auth.connections.update(connection.id, { enforce: false })
  await t.rejects(app.auth.connections.update(connection.id, { enforce: true }), { code: 'unavailable' })
  store.change = change
})

t.test('users of an enforced domain sign in by its connection: who exists joins, and all go on with what they have', async t => {
  const world = await start(t)
  const { app, connection, tenants: { tenants: [acme] } } = world
  const { email, userId } = await member(world)
  await app.auth.connections.update(connection.id, { enforce: true })
  for (const [sub, address] of [['1', email], ['2', `new-${count++}@example.com`]] as const) {
    acme.idp.account = { sub, email: address }
    const browser = new Browser(app)
    t.equal(codeOf(await signInBy(browser, acme, connection)), null)
    const principal = await principalIn(browser)
    t.match(principal, { provider: connection.provider, claims: { email: address } })
    if (address === email) t.equal(principal?.userId, userId)
    t.equal(codeOf(await browser.post('/auth/local/token')), null)
    t.equal(codeOf(await browser.post('/auth/local/keys', { name: 'Laptop', scopes: ['read'] })), null)
  }
})

t.test('attack 230: keys, grants and tokens are refused some days after the last sign-in by the connection', async t => {
  const world = await start(t)
  const { app, connection, tenants: { tenants: [acme] } } = world
  const { email, userId } = await member(world)
  await app.auth.connections.update(connection.id, { enforce: { days: 2 } })
  // A token is refused that is of the second in which the sessions ended.
  advanceClock(t, 1000)
  acme.idp.account = { sub: '1', email }
  const browser = new Browser(app)
  await signInBy(browser, acme, connection)
  const { key } = await app.auth.createKey({ userId, name: 'Robot', scopes: ['read'] })
  const client = new Client(app, 'cli', CLIENT)
  const code = (await client.authorize(browser, { scope: 'read' })).get('code') ?? ''
  let tokens = (await client.redeem(code)).json()
  const refresh = async (): Promise<number> => {
    const answer = await client.refresh(tokens.refresh_token)
    if (answer.statusCode === 200) tokens = answer.json()
    return answer.statusCode
  }
  const ask = async (path: string, token: string): Promise<number> =>
    (await app.inject({ url: path, headers: { authorization: `Bearer ${token}` } })).statusCode
  const token = await app.localIdp?.issueIdToken(userId, {}, 20 * 86_400) ?? ''
  const all = async () => [
    await ask('/by-key', key), await ask('/by-key', token), await ask('/bearer', token), await ask('/resource', tokens.access_token), await refresh()
  ]

  t.strictSame(await all(), [200, 200, 200, 200, 200])
  advanceClock(t, 2 * DAY_MS)
  await refresh()
  t.strictSame(await all(), [401, 401, 401, 401, 400])
  const operated = new Browser(app)
  await operated.post('/sign-in', { userId })
  t.equal(codeOf(await operated.post('/auth/local/token')), 'sso_required')
  await signInBy(new Browser(app), acme, connection)
  t.equal(await refresh(), 200)
  t.strictSame(await all(), [200, 200, 200, 200, 200])
  await app.auth.connections.update(connection.id, { enforce: false })
  advanceClock(t, 3 * DAY_MS)
  t.strictSame((await all()).slice(0, 3), [200, 200, 200], 'without the rule they go on')
})

t.test('attack 230: a code gets no tokens, and a token opens nothing, once the user must sign in by the connection', async t => {
  const world = await start(t)
  const { app } = world
  const { browser } = await member(world)
  const client = new Client(app, 'cli', CLIENT)
  const [code, other] = [await client.authorize(browser, { scope: 'read' }), await client.authorize(browser, { scope: 'read' })]
    .map(answer => answer.get('code') ?? '')
  const authorization = `Bearer ${(await client.redeem(String(other))).json().access_token}`
  const ask = async (): Promise<number> => (await app.inject({ url: '/resource', headers: { authorization } })).statusCode
  t.equal(await ask(), 200)
  await enforceQuietly(world)
  t.match((await client.redeem(String(code))).json(), { error: 'invalid_grant' })
  t.equal(await ask(), 401)
})

t.test('a user whose address must be confirmed first gets no link', async t => {
  const world = await start(t, { registration: { verify: 'required' } })
  const { app, mails } = world
  const email = 'ada@example.com'
  await new Browser(app).post('/auth/local/register', { email, password: PASSWORD })
  await mails.next('verify-email')
  await enforceQuietly(world)
  t.equal(codeOf(await new Browser(app).post('/auth/local/login', { email, password: PASSWORD })), 'sso_required')
  t.equal(codeOf(await new Browser(app).post('/auth/local/register', { email, password: PASSWORD })), 'sso_required')
  await app.auth.mailsSent()
  t.equal(mails.all.length, 1)
})

t.test('attack 230: a registration by a link is refused before the mail, and behind it', async t => {
  const world = await start(t, { registration: { verify: 'first', passkey: true } })
  const { app, mails } = world
  const email = 'ada@example.com'
  const browser = new Browser(app)
  await browser.post('/auth/local/register', { email })
  const { token } = await mails.next('register')
  const device = newDevice()
  const options = (await browser.post('/auth/local/passkeys/options', { for: 'register', token })).json()
  await enforceQuietly(world)
  t.equal(codeOf(await browser.post('/auth/local/register', { email })), 'sso_required')
  t.equal(codeOf(await browser.post('/auth/local/register', { token, password: PASSWORD })), 'sso_required')
  t.equal(codeOf(await browser.post('/auth/local/passkeys/options', { for: 'register', token })), 'sso_required')
  t.equal(codeOf(await browser.post('/auth/local/register', { token, response: device.create(options) })), 'sso_required')
  t.equal(await app.auth.findUser({ email }), null)
})

t.test('attack 230: a stranger who registered an address before keeps the owner out, and is released by the mail', async t => {
  const world = await start(t)
  const { app, connection, tenants: { tenants: [acme] } } = world
  const { email, token } = await member(world, { isConfirmed: false })
  await enforceQuietly(world)
  acme.idp.account = { sub: '1', email }
  t.equal(codeOf(await signInBy(new Browser(app), acme, connection)), 'account_exists')
  t.equal(codeOf(await new Browser(app).post('/auth/local/verify-email', { token, not_me: 'true', email })), null)
  t.equal(codeOf(await signInBy(new Browser(app), acme, connection)), null)
})

t.test('a page says which way to go, by a button', async t => {
  const world = await start(t)
  const { email } = await member(world)
  await enforceQuietly(world)
  const { statusCode, body } = await new Browser(world.app).submit('/auth/local/login', {
    email, password: PASSWORD, error_next: '/auth/pages/sign-in'
  })
  t.equal(statusCode, 403)
  t.match(body, 'This address belongs to an organization')
  t.match(body, new RegExp(`<a class="button[^>]* href="${world.connection.loginPath}"[^>]*>Continue with Acme</a>`))
})

t.test('attack 230: a second request for a mail gets the answer of the first one, also where a mail was sent', async t => {
  const world = await start(t, { hasMailLimits: true })
  const users = [await member(world), await member(world)]
  await enforceQuietly(world, { except: users.slice(1).map(({ userId }) => userId) })
  for (const { email } of users) {
    const ask = post(new Browser(world.app), 'local/mail-login', { email })
    t.strictSame([codeOf(await ask()), codeOf(await ask())], ['sso_required', 'sso_required'])
  }
})

t.test('attack 230: a user who is created while a connection begins to be required is not signed in', async t => {
  const world = await start(t, { onSignIn: async () => enforceQuietly(world) })
  const browser = new Browser(world.app)
  t.equal(codeOf(await signInAt(browser, 'a', person({ email: 'ada@example.com' }))), 'sso_required')
  t.equal(await principalIn(browser), null)
})

t.test('attack 230: a sign-in that a removal of its connection overtakes ends', async t => {
  const world = await start(t, {
    async onSignIn ({ principal }) { if (principal.provider === world.connection.provider) await removed(world.app) }
  })
  const { connection, tenants: { tenants: [acme] } } = world
  // As if the user came after those who were listed.
  const removed = async (app: FastifyInstance): Promise<void> => {
    const { store, store: { change } } = world
    store.change = async () => false as never
    await app.auth.connections.remove(connection.id)
    store.change = change
  }
  acme.idp.account = { sub: '1', email: 'ada@example.com' }
  const browser = new Browser(world.app)
  t.equal(codeOf(await signInBy(browser, acme, connection)), 'invalid_state')
  t.equal(await principalIn(browser), null)
})

t.test('attack 230: the operator signs in whom they will, and a code of an app does not stand in', async t => {
  const world = await start(t)
  const { app } = world
  const { userId, browser } = await member(world)
  const { secret } = await enrolAt(t, browser)
  await enforceQuietly(world)
  const other = new Browser(app)
  const asked = await other.post('/sign-in', { userId })
  t.equal(codeOf(asked), 'second_factor_required')
  advanceClock(t, 60_000)
  t.equal(codeOf(await other.post('/auth/local/second-factor', { code: totp(secret) })), null)
  t.equal(await userIdIn(other), userId)
})
