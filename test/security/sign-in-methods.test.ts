/** Attacks 154 and 155: a user who loses their last sign-in method, and a passkey that is made or used where it must not be. */
import { randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { type AuthPluginOptions, type LocalIdentityProviderOptions, MemoryAuthStore } from '../../lib/index.js'
import { Accounts } from '../../lib/accounts/accounts.js'
import { Pages } from '../../lib/pages.js'
import { Passkeys } from '../../lib/passkeys.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { hashing } from '../../lib/features/password/hashing.js'
import { localProvider, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { DATA_SECRET, enrolAt } from '../helpers/factor-app.js'
import { ADA, BASE_URL, registerAt, confirmAddress } from '../helpers/mail-app.js'
import { OwnProvider } from '../helpers/own-provider.js'
import { addAt, newDevice, optionsAt, signInBy, startPasskeyApp } from '../helpers/passkey-app.js'

interface Process {
  providers?: string[]
  passkeys?: boolean
  local?: LocalIdentityProviderOptions
}

/** A process with these options, in which the application can sign everyone in. */
async function startProcess (t: Test, store: MemoryAuthStore, { providers = [], passkeys = false, local = {} }: Process): Promise<FastifyInstance> {
  return startApp(t, {
    baseUrl: BASE_URL,
    store,
    dataSecret: DATA_SECRET,
    rateLimit: {},
    pages: new Pages({ name: 'Shop' }),
    providers: providers.map(name => new OwnProvider(name)),
    local: localProvider({ sendMail: async () => {}, ...local }),
    ...(passkeys && { passkeys: new Passkeys({ name: 'Shop' }) })
  }, {}, app => {
    app.post<{ Params: { userId: string } }>('/become/:userId', async request => app.auth.signIn(request, request.params.userId))
  })
}

/** Makes a user with these links, and a passkey. */
async function makeUser (store: MemoryAuthStore, links: readonly string[], hasPasskey = false): Promise<string> {
  const accounts = new Accounts(store)
  const [userId, subject] = [randomUUID(), randomUUID()]
  const email = `${userId}@example.com`
  const identities = links.map(provider => {
    const own = { local: email, application: userId }[provider] ?? `${provider}-${subject}`
    return { provider, subject: own, claims: { sub: own }, verifiedEmail: null }
  })
  const [first, ...others] = identities
  if (first === undefined) throw new Error('a user has a link')
  await accounts.createUser({
    userId, email, emailVerified: true, name: null, claims: {}, link: first, ...(first.provider === 'local' && { passwordHash: 'x' })
  })
  for (const identity of others) await accounts.addLink(userId, identity)
  const passkey = { id: randomUUID(), kind: 'passkey', name: null, secret: null, data: {}, counter: 0, createdAt: 1, usedAt: null } as const
  if (hasPasskey) await accounts.changeFactors(userId, { endsSessions: false, change: () => [passkey] })
  return userId
}

const byMail = { signInByMail: true }

const REMOVALS: ReadonlyArray<readonly [what: string, links: string[], removed: string, here: Process, isRefused: boolean, hasPasskey?: boolean]> = [
  ['a provider that is registered is left', ['local', 'a'], 'local', { providers: ['a'] }, false],
  ['a provider of other processes is left', ['local', 'a'], 'local', {}, true],
  ['the other one of two providers is left', ['a', 'b'], 'a', { providers: ['a', 'b'] }, false],
  ['a password is left', ['local', 'a'], 'a', { providers: ['a'] }, false],
  ['a password is left that no route takes', ['local', 'a'], 'a', { providers: ['a'], local: { password: false } }, true],
  ['what the application alone can use is left', ['application', 'a'], 'a', { providers: ['a'] }, true],
  ['mails are left', ['application', 'a'], 'a', { providers: ['a'], local: byMail }, false],
  ['a passkey is left', ['application', 'a'], 'a', { providers: ['a'], passkeys: true }, false, true],
  ['a passkey of other processes is left', ['application', 'a'], 'a', { providers: ['a'] }, true, true],
  ['a passkey is left beside a provider of other processes', ['b', 'a'], 'a', { providers: ['a'], passkeys: true }, false, true],
  ['nothing is left, not even a link', ['a'], 'a', { providers: ['a'], passkeys: true }, true, true]
]

for (const [what, links, removed, here, isRefused, hasPasskey] of REMOVALS) {
  t.test(`attack 154: a link is ${isRefused ? 'kept' : 'removed'} where ${what}`, async t => {
    const store = new MemoryAuthStore()
    const app = await startProcess(t, store, here)
    const userId = await makeUser(store, links, hasPasskey)
    const browser = new Browser(app)
    t.equal((await browser.post(`/become/${userId}`)).statusCode, hasPasskey && here.passkeys !== true ? 503 : 200)
    if (browser.cookies.size > 0) {
      const page = await browser.get('/auth/pages/account', { accept: 'text/html' })
      t.equal(page.body.includes(`name="provider" value="${removed}"`), !isRefused, 'the page has a button for it')
      const { statusCode, body } = await browser.post('/auth/pages/unlink', { provider: removed })
      t.equal(statusCode, isRefused ? 409 : 204, body)
    }
    if (isRefused) await t.rejects(app.auth.unlink(userId, removed), { code: 'last_link' })
    else await app.auth.unlink(userId, removed)
    t.strictSame((await app.auth.links(userId)).map(({ provider }) => provider), links.filter(name => isRefused || name !== removed).sort())
  })
}

t.test('attack 154: a passkey stays where no other method is left that the process offers', async t => {
  const store = new MemoryAuthStore()
  const [app, elsewhere] = await Promise.all([[], ['a']].map(async providers => startProcess(t, store, { providers, passkeys: true })))
  if (app === undefined || elsewhere === undefined) throw new Error('two processes')
  const userId = await makeUser(store, ['a'])
  const browser = new Browser(app)
  await browser.post(`/become/${userId}`)
  const device = newDevice()
  const { id } = (await addAt(browser, device)).json()
  const signedIn = new Browser(app)
  await signInBy(signedIn, device)

  t.equal((await signedIn.post('/auth/local/passkeys/remove', { id })).json().code, 'last_link')
  const there = new Browser(elsewhere)
  await signInBy(there, device)
  t.equal((await there.post('/auth/local/passkeys/remove', { id })).statusCode, 200)
})

async function startSilent (t: Test, options: AuthPluginOptions = {}) {
  const store = new MemoryAuthStore()
  const made = await startPasskeyApp(t, { pages: new Pages({ name: 'Shop' }), store, ...options }, {}, { createOnSignIn: true })
  await confirmAddress(made.browser, await registerAt(made))
  const { userId = '' } = await made.app.auth.findUser({ email: ADA.email }) ?? {}
  return { ...made, store, userId }
}

t.test('attack 155: no passkey is made in silence for a user with a factor, although they have just used it', async t => {
  const device = newDevice()
  for (const enrol of [
    async (browser: Browser) => enrolAt(t, browser),
    async (browser: Browser) => addAt(browser, device)
  ]) {
    const { app, browser, userId } = await startSilent(t, { secondFactor: new SecondFactor({ issuer: 'Shop' }) })
    const begun = await optionsAt(browser, 'create')
    await enrol(browser)
    const factors = await app.auth.factors(userId)

    const refused = await browser.post('/auth/local/passkeys/options', { for: 'create' })
    t.match([refused.statusCode, refused.json().code], [400, 'invalid_state'])
    // A session that gets a new id loses its challenges, one that goes on does not.
    const response = newDevice().create(begun, { flags: { up: false, uv: false } })
    t.equal((await browser.post('/auth/local/passkeys/register', { response })).json().code, 'invalid_state')
    t.strictSame(await app.auth.factors(userId), factors)
  }
})

t.test('attack 155: the passkey of a blocked user is refused, and nothing of it is written', async t => {
  const { app, browser, store, userId } = await startSilent(t)
  const device = newDevice()
  await addAt(browser, device)
  await app.auth.block(userId)
  const before = await store.factors(userId)
  device.counter = 7

  t.equal((await signInBy(new Browser(app), device)).json().code, 'blocked')
  t.strictSame(await store.factors(userId), before)
})

t.test('onDelete does not run for a session that ends while the password waits', async t => {
  const asked: string[] = []
  const { app, browser, userId } = await startSilent(t, { onDelete: async ({ userId }) => { asked.push(userId) } })
  const verify = hashing.verify.bind(hashing)
  t.intercept(hashing, 'verify', {
    value: async (...args: Parameters<typeof verify>) => {
      await app.auth.signOutEverywhere(userId)
      return verify(...args)
    }
  })

  t.equal((await browser.post('/auth/local/delete-account', { current: ADA.password })).json().code, 'unauthenticated')
  t.strictSame(asked, [])
})

t.test('a session that ends meanwhile changes no name', async t => {
  const { app, browser, store, userId } = await startSilent(t)
  const change = store.change.bind(store)
  store.change = async (...args) => {
    store.change = change
    await app.auth.signOutEverywhere(userId)
    return change(...args)
  }

  t.equal((await browser.post('/auth/pages/name', { name: 'Mallory' })).json().code, 'unauthenticated')
  t.match(await app.auth.findUser({ userId }), { name: null })
})
