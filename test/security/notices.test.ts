/**
 * As a property of attack 209: no act and no call of `app.auth` changes by what a user signs in without a mail to the
 * user. What is new is in one of the two lists, or these tests fail.
 *
 * @see OWASP ASVS 5.0 6.3.7
 */
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import type { Account } from '../../lib/accounts/account.js'
import { ApiKeys } from '../../lib/api-keys.js'
import { Connections } from '../../lib/connections.js'
import authPlugin, { type AuthStore, type Mail, SqlAuthStore } from '../../lib/index.js'
import { OAuthServer } from '../../lib/oauth-server.js'
import { Pages } from '../../lib/pages.js'
import { Passkeys } from '../../lib/passkeys.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { mailbox } from '../../lib/testing.js'
import { SESSION_SECRET, localProvider, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { DATA_SECRET, enrolAda, nextCode, waitAt } from '../helpers/factor-app.js'
import { ADA, BASE_URL, type MailApp, NEW_PASSWORD, confirmAddress, registerAt, resetTokenOf } from '../helpers/mail-app.js'
import { Client } from '../helpers/oauth-app.js'
import { OwnProvider, linkAt, signInAt } from '../helpers/own-provider.js'
import { addAt, newDevice } from '../helpers/passkey-app.js'

/** By what a user signs in, and its address. */
function credentialsOf ({ email, passwordHash, links, factors }: Account): string {
  return JSON.stringify([
    email, passwordHash, links.map(({ provider, subject }) => [provider, subject]),
    factors.map(({ id, kind, data }) => [id, kind, kind === 'recovery' && data])
  ])
}

/** Notes the users whose credentials a store changes. */
function watched (store: AuthStore): { store: AuthStore, changed: string[] } {
  const changed: string[] = []
  const { change } = store
  store.change = async (find, keys, rule) => {
    let of: string | null = null
    const result = await change.call(store, find, keys, (account, holders) => {
      const decision = rule(account, holders)
      const after = decision.account
      const before = [account, holders.ofEmail, holders.ofLink].find(one => one?.userId === after?.userId)
      of = before != null && after != null && credentialsOf(before) !== credentialsOf(after) ? after.userId : null
      return decision
    }).finally(() => { if (of !== null) changed.push(of) })
    return result as never
  }
  return { store, changed }
}

const CLIENTS = [{ client_id: 'cli', client_name: 'CLI', redirect_uris: ['http://127.0.0.1/callback'] }]

interface World extends MailApp {
  readonly t: Test
  readonly changed: string[]
  /** What the application mounts, such as `POST /auth/local/login`; callbacks are the acts that come by GET. */
  readonly routes: string[]
}

async function start (t: Test): Promise<World> {
  const { store, changed } = watched(new SqlAuthStore(':memory:'))
  const mails = mailbox()
  const routes: string[] = []
  const app: FastifyInstance = Fastify()
  t.teardown(() => app.close())
  app.addHook('onRoute', ({ method, path }) => {
    const isAct = (verb: string): boolean => verb === 'POST' || (verb === 'GET' && path.endsWith('/callback'))
    for (const verb of [method].flat()) if (isAct(verb) && !path.includes('*')) routes.push(`${verb} ${path}`)
  })
  await app.register(authPlugin, {
    baseUrl: BASE_URL,
    store,
    session: { secret: SESSION_SECRET },
    dataSecret: DATA_SECRET,
    providers: [new OwnProvider('a'), new OwnProvider('b')],
    local: localProvider({ sendMail: mails.sendMail, mails: { limits: false }, signInByMail: true }),
    pages: new Pages({ name: 'Shop' }),
    secondFactor: new SecondFactor({ issuer: 'Shop' }),
    passkeys: new Passkeys({ name: 'Shop' }),
    apiKeys: new ApiKeys({ prefix: 'shop', scopes: { read: 'Read', introspect: 'Check tokens' }, selfService: true }),
    oauthServer: new OAuthServer({
      resources: { [`${BASE_URL}/mcp`]: { scopes: { read: 'Read' } } }, registration: true, clients: CLIENTS, device: { clients: ['cli'] }
    }),
    connections: new Connections(),
    notices: { newBrowser: true }
  })
  app.get('/me', async request => ({ principal: request.principal }))
  await app.ready()
  return { t, app, mails, browser: new Browser(app), changed, routes }
}

/** Ada, signed in, with a password and a confirmed address. */
async function signUp (world: World): Promise<string> {
  const token = await registerAt(world)
  await confirmAddress(world.browser, token)
  return String(await userIdIn(world.browser))
}

interface Change {
  /** What must have been mailed. */
  readonly notice: Mail['kind']
  /** Whether the credential is not in the account, but in a table of its own. */
  readonly isElsewhere?: boolean
  readonly run: (world: World) => Promise<unknown>
}

const BY = { actor: 'test' }

/** The acts and calls that change credentials. */
const CHANGES: Record<string, Change> = {
  'POST /auth/local/change-password': {
    notice: 'password-changed',
    async run (world) {
      await signUp(world)
      return world.browser.post('/auth/local/change-password', { current: ADA.password, password: NEW_PASSWORD })
    }
  },
  'POST /auth/local/set-password': {
    notice: 'password-changed',
    async run ({ browser }) {
      await signInAt(browser, 'a', { subject: 'ada', email: ADA.email })
      return browser.post('/auth/local/set-password', { password: NEW_PASSWORD })
    }
  },
  'POST /auth/local/reset-password': {
    notice: 'password-changed',
    async run (world) {
      await signUp(world)
      return world.browser.post('/auth/local/reset-password', { token: await resetTokenOf(world), password: NEW_PASSWORD })
    }
  },
  'POST /auth/local/change-email/confirm': {
    notice: 'email-changed',
    async run (world) {
      const { browser, mails } = world
      await signUp(world)
      await browser.post('/auth/local/change-email', { email: 'new@example.com', current: ADA.password })
      return browser.post('/auth/local/change-email/confirm', { token: (await mails.next('change-email')).token })
    }
  },
  'POST /auth/local/verify-email': {
    notice: 'email-proven',
    async run (world) {
      const token = await registerAt(world)
      return world.browser.post('/auth/local/verify-email', { token, existing: 'remove' })
    }
  },
  'POST /auth/local/mail-login/confirm': {
    notice: 'email-proven',
    async run (world) {
      await registerAt(world)
      const browser = new Browser(world.app)
      await browser.post('/auth/local/mail-login', { email: ADA.email })
      return browser.post('/auth/local/mail-login/confirm', { code: (await world.mails.next('sign-in')).code, existing: 'remove' })
    }
  },
  'POST /auth/pages/unlink': {
    notice: 'identity-unlinked',
    async run (world) {
      await signUp(world)
      await linkAt(world.browser, 'a', { subject: 'ada' })
      return world.browser.post('/auth/pages/unlink', { provider: 'a' })
    }
  },
  'GET /auth/a/callback': {
    notice: 'identity-linked',
    async run (world) {
      await signUp(world)
      return linkAt(world.browser, 'a', { subject: 'ada' })
    }
  },
  'GET /auth/b/callback': {
    notice: 'identity-linked',
    async run (world) {
      await signUp(world)
      return signInAt(new Browser(world.app), 'b', { subject: 'ada', email: ADA.email })
    }
  },
  'POST /auth/local/totp/confirm': { notice: 'factor-added', run: async world => enrolAda(world.t, world) },
  'POST /auth/local/totp/remove': {
    notice: 'factor-removed',
    async run (world) {
      await enrolAda(world.t, world)
      return world.browser.post('/auth/local/totp/remove')
    }
  },
  'POST /auth/local/recovery-codes': {
    notice: 'recovery-codes-renewed',
    async run (world) {
      await enrolAda(world.t, world)
      return world.browser.post('/auth/local/recovery-codes')
    }
  },
  'POST /auth/local/second-factor': {
    notice: 'recovery-code-used',
    async run (world) {
      const { recoveryCodes } = await enrolAda(world.t, world)
      const browser = new Browser(world.app)
      await waitAt(world.t, browser)
      return browser.post('/auth/local/second-factor', { code: recoveryCodes[0] })
    }
  },
  'POST /auth/local/reauthenticate': {
    notice: 'recovery-code-used',
    async run (world) {
      const { recoveryCodes } = await enrolAda(world.t, world)
      return world.browser.post('/auth/local/reauthenticate', { code: recoveryCodes[0] })
    }
  },
  'POST /auth/local/passkeys/register': {
    notice: 'factor-added',
    async run (world) {
      await signUp(world)
      return addAt(world.browser, newDevice())
    }
  },
  'POST /auth/local/passkeys/remove': {
    notice: 'factor-removed',
    async run (world) {
      await signUp(world)
      const { id } = (await addAt(world.browser, newDevice())).json()
      return world.browser.post('/auth/local/passkeys/remove', { id })
    }
  },
  'POST /auth/local/keys': {
    notice: 'key-created',
    isElsewhere: true,
    async run (world) {
      await signUp(world)
      return world.browser.post('/auth/local/keys', { name: 'Laptop', scopes: ['read'] })
    }
  },
  'POST /auth/oauth/authorize': {
    notice: 'application-connected',
    isElsewhere: true,
    async run (world) {
      await signUp(world)
      return new Client(world.app, 'cli', 'http://127.0.0.1/callback').authorize(world.browser, { scope: 'read' })
    }
  },
  createKey: {
    notice: 'key-created',
    isElsewhere: true,
    run: async world => world.app.auth.createKey({ userId: await signUp(world), name: 'Laptop', scopes: ['read'] }, BY)
  },
  setPassword: {
    notice: 'password-changed', run: async world => world.app.auth.setPassword(await signUp(world), NEW_PASSWORD)
  },
  unlink: {
    notice: 'identity-unlinked',
    async run (world) {
      const userId = await signUp(world)
      await linkAt(world.browser, 'a', { subject: 'ada' })
      return world.app.auth.unlink(userId, 'a')
    }
  },
  updateUser: {
    notice: 'email-changed',
    run: async world => world.app.auth.updateUser(await signUp(world), { email: 'new@example.com' })
  },
  resetFactors: {
    notice: 'factor-removed', run: async world => world.app.auth.resetFactors((await enrolAda(world.t, world)).userId)
  }
}

/** The acts and calls that change no credential of a user who exists, or end the account. */
const OTHERS: readonly string[] = [
  // The mails are the first step of a change, and of a sign-in.
  ...['change-email', 'forgot-password', 'mail-login', 'totp/enroll', 'passkeys/options'].map(act => `POST /auth/local/${act}`),
  // Creates a user, or deletes one.
  ...['register', 'delete-account'].map(act => `POST /auth/local/${act}`), 'createUser', 'onCreateUser', 'deleteUser', 'signInGuest',
  // Signs in or out.
  ...['login', 'token', 'verify-token', 'revoke', 'sessions/end', 'passkeys/login'].map(act => `POST /auth/local/${act}`),
  ...['a', 'b'].flatMap(provider => [`POST /auth/${provider}/login`, `POST /auth/${provider}/callback`]),
  'POST /auth/logout', 'signIn', 'signOut', 'signOutEverywhere', 'endSession',
  // A name; what ends access; claims.
  'POST /auth/pages/name', 'POST /auth/local/passkeys/rename', 'POST /auth/local/keys/end', 'endKey', 'endGrant',
  'POST /auth/local/grants/end', 'block', 'unblock', 'grant', 'withdraw',
  // A device gets its grant by the function that the consent asks. The others are asked by clients.
  'POST /auth/device', 'POST /auth/oauth/token', 'POST /auth/oauth/revoke', 'POST /auth/oauth/introspect',
  'POST /auth/oauth/register', 'POST /auth/oauth/device',
  // Nothing is changed.
  'findUser', 'links', 'users', 'countUsers', 'checkPassword', 'factors', 'sessions', 'keys', 'grants', 'openMailToken', 'mailsSent',
  'signInUrl', 'user', 'refresh', 'caller', 'anyOf', 'refuseCrossOrigin', 'prefix',
  ...['User', 'Verified', 'SecondFactor', 'Claims', 'Recent', 'Bearer', 'BearerFor', 'Caller'].map(guard => `require${guard}`),
  // Who is removed from a connection is told: lib/features/connections/connections.test.ts.
  'connections', 'POST /auth/connections/start',
  ...['login', 'callback', 'backchannel-logout'].map(act => `POST /auth/connections/:id/${act}`), 'GET /auth/connections/:id/callback',
  // An impersonation changes no credential; it has a notice of its own, which is optional.
  'impersonate', 'stopImpersonating', 'impersonationBar',
  // No methods, or for the class alone.
  'constructor', 'store', 'accounts', 'channel', 'canSignIn', 'sessionsEnded', 'emailChanged', 'sourceOf', 'existingUser'
]

function namesIn (value: object): string[] {
  const names = new Set<string>()
  for (let part = value; part !== Object.prototype; part = Object.getPrototypeOf(part)) {
    for (const name of Object.getOwnPropertyNames(part)) names.add(name)
  }
  return [...names]
}

t.test('attack 209: each act and each member of app.auth is said to change credentials, or to change none', async t => {
  const { app, routes } = await start(t)
  const all = [...new Set(routes), ...namesIn(app.auth)]
  const said = [...Object.keys(CHANGES), ...OTHERS]
  t.strictSame(all.filter(name => !said.includes(name)), [])
  t.strictSame(said.filter(name => !all.includes(name)), [])
})

for (const [name, { notice, isElsewhere = false, run }] of Object.entries(CHANGES)) {
  t.test(`attack 209: ${name} changes a credential, and its user gets the mail ${notice}`, async t => {
    const world = await start(t)
    await run(world)
    await world.app.close()
    const { mails: { all }, changed } = world
    t.ok(isElsewhere || changed.length > 0, 'the credential was changed')
    t.ok(all.some(({ kind }) => kind === notice), all.map(({ kind }) => kind).join())
    const links = ['register', 'verify-email', 'reset-password', 'change-email', 'sign-in', 'enrolment']
    const notices = all.filter(({ kind }) => !links.includes(kind) && kind !== 'email-change-requested')
    for (const userId of new Set(changed)) {
      const count = changed.filter(other => other === userId).length
      t.ok(notices.filter(mail => mail.userId === userId).length >= count, 'each change has a notice, also those before')
    }
  })
}

t.test('the code of an authenticator app changes nothing, and nobody is told', async t => {
  const world = await start(t)
  const { secret } = await enrolAda(t, world)
  const browser = new Browser(world.app, world.browser.cookies)
  const before = world.changed.length
  await browser.post('/auth/local/reauthenticate', { code: nextCode(t, secret) })
  await world.app.auth.mailsSent()
  t.equal(world.changed.length, before)
  t.strictSame(world.mails.all.map(({ kind }) => kind).filter(kind => kind !== 'verify-email'), ['factor-added'])
})

t.test('the owner of an address who releases it is nobody\'s user: there is no confirmed address to tell', async t => {
  const world = await start(t)
  const token = await registerAt(world)
  await linkAt(world.browser, 'a', { subject: 'ada' })
  const { statusCode } = await new Browser(world.app).post('/auth/local/verify-email', { token, not_me: true, email: ADA.email })
  t.equal(statusCode, 204)
  await world.app.auth.mailsSent()
  t.equal(world.changed.length, 2)
  t.strictSame(world.mails.all.map(({ kind }) => kind), ['verify-email'])
})
