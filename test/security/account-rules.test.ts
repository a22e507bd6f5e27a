/** Attacks 119, 123, 126 and 127: what a session that has ended, or a provider, must not change about an account. */
import t from 'tap'
import { Accounts } from '../../lib/accounts/accounts.js'
import { MemoryAuthStore } from '../../lib/index.js'
import { localProvider, startApp, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { deferred } from '../helpers/deferred.js'
import { holdAnswers } from '../helpers/holding-store.js'
import { ADA, NEW_PASSWORD, resetTokenOf, startMailApp } from '../helpers/mail-app.js'
import { signInAt } from '../helpers/own-provider.js'
import { SOME_STORES } from '../helpers/stores.js'

const OWNER = { email: 'ceo@company.example', password: 'of the squatter' }

for (const [kind, newStore] of Object.entries(SOME_STORES)) {
  t.test(`attack 119: an address of another person is not kept by changing one's e-mail at a provider, on ${kind}`, async t => {
    const store = await newStore(t)
    const start = await startMailApp(t, { store })
    const { app, browser: squatter } = start
    await squatter.post('/auth/local/register', OWNER)
    const squatterId = await userIdIn(squatter) ?? ''
    const mine = { provider: 'a', subject: 'mine', claims: { sub: 'mine', email: 'mine@evil.example' }, verifiedEmail: 'mine@evil.example' }
    await new Accounts(store).addLink(squatterId, mine)

    await signInAt(new Browser(app), 'a', { subject: 'mine', email: 'other@evil.example' })

    t.match(await app.auth.findUser({ userId: squatterId }), { email: OWNER.email, emailVerified: false })
    const token = await resetTokenOf(start, OWNER.email)
    const owner = new Browser(app)
    t.equal((await owner.post('/auth/local/reset-password', { token, password: NEW_PASSWORD })).statusCode, 204)
    t.equal((await new Browser(app).post('/auth/local/login', OWNER)).json().code, 'invalid')
    t.equal((await owner.post('/auth/local/login', { ...OWNER, password: NEW_PASSWORD })).statusCode, 200)
    t.strictSame((await app.auth.links(squatterId)).map(({ provider }) => provider), ['local'])
  })
}

for (const [what, end] of [
  ['the owner signs out everywhere', async (accounts, userId) => accounts.changeUser(userId, { endSessions: true })],
  ['the operator blocks the user', async (accounts, userId) => accounts.changeUser(userId, { blocked: { at: new Date() }, endSessions: true })]
] as Array<[string, (accounts: Accounts, userId: string) => Promise<unknown>]>) {
  t.test(`attack 123: nothing is changed by a session that ends meanwhile, because ${what}`, async t => {
    const store = new MemoryAuthStore()
    const { app, browser } = await startMailApp(t, { store })
    const changes: Record<string, () => Promise<{ statusCode: number, json: () => { code: string } }>> = {
      'change-password': async () => browser.post('/auth/local/change-password', { password: NEW_PASSWORD }),
      'delete-account': async () => browser.post('/auth/local/delete-account', {})
    }
    for (const [name, change] of Object.entries(changes)) {
      const email = `${name}@example.com`
      await browser.post('/auth/local/register', { ...ADA, email })
      const userId = await userIdIn(browser) ?? ''
      const [write, hash] = [store.change.bind(store), (await store.findCredential(email))?.passwordHash]
      store.change = async (find, wanted, rule) => {
        store.change = write
        await end(new Accounts(store), userId)
        return write(find, wanted, rule)
      }

      const answer = await change()

      t.strictSame([answer.statusCode, answer.json().code], [401, 'unauthenticated'], name)
      t.equal((await store.findCredential(email))?.passwordHash, hash, name)
      t.ok(await app.auth.findUser({ userId }), name)
    }
  })
}

t.test('attack 126: a token is over exactly if the sessions that it came from ended', async t => {
  const store = new MemoryAuthStore()
  const { app, browser } = await startMailApp(t, { store })
  await browser.post('/auth/local/register', ADA)
  const userId = await userIdIn(browser) ?? ''
  const accounts = new Accounts(store)
  const tokenOf = async (browser: Browser): Promise<string> => (await browser.post('/auth/local/token')).json().token
  const passes = async (token: string): Promise<boolean> =>
    (await app.inject({ url: '/bearer', headers: { authorization: `Bearer ${token}` } })).statusCode === 200

  const issue = app.localIdp?.issueIdToken.bind(app.localIdp)
  if (app.localIdp === null || issue === undefined) throw new Error('there is a local identity provider')
  t.intercept(app.localIdp, 'issueIdToken', {
    value: async (...given: Parameters<typeof issue>) => {
      await accounts.changeUser(userId, { endSessions: true })
      return issue(...given)
    }
  })
  t.notOk(await passes(await tokenOf(browser)), 'one that is signed after they ended')
  t.intercept(app.localIdp, 'issueIdToken', { value: issue })

  await browser.post('/auth/local/login', ADA)
  const token = await tokenOf(browser)
  t.ok(await passes(token), 'one of the second in which they ended')
  await accounts.changeUser(userId, { endSessions: true })
  t.notOk(await passes(token))
})

t.test('attack 127: a slow refresh does not write a claim that was withdrawn meanwhile', async t => {
  const store = new MemoryAuthStore()
  const app = await startApp(t, { local: localProvider(), store }, {}, app => {
    app.get('/refresh', { preHandler: app.auth.refresh }, async ({ principal }) => principal)
    app.get('/session', async ({ principal }) => principal)
  })
  const browser = new Browser(app)
  await browser.post('/auth/local/register', ADA)
  const userId = await userIdIn(browser) ?? ''
  await app.auth.grant(userId, { role: 'admin' })
  const [asked, goOn] = [deferred(), deferred()]
  const links = store.links.bind(store)
  store.links = async userId => {
    store.links = links
    asked.resolve()
    await goOn.promise
    return links(userId)
  }

  const refreshed = browser.get('/refresh')
  await asked.promise
  await app.auth.withdraw(userId, ['role'])
  goOn.resolve()

  t.notOk('role' in (await refreshed).json().claims)
  t.notOk('role' in (await browser.get('/session')).json().claims)
})

// In memory, sessions do not refer to users: there the session is over at the first guard.
for (const [kind, newStore] of Object.entries(SOME_STORES).filter(([kind]) => kind !== 'memory')) {
  t.test(`attack 123: a sign-in or a reauthentication beside the deletion of the user is refused with 401, on ${kind}`, async t => {
    const store = await newStore(t)
    const { app, browser } = await startMailApp(t, { store })
    for (const url of ['/auth/local/login', '/auth/local/reauthenticate', '/auth/local/change-password']) {
      await browser.post('/auth/local/register', ADA)
      const userId = await userIdIn(browser) ?? ''
      const held = holdAnswers(store)
      held.holds = true

      const answer = browser.post(url, { ...ADA, current: ADA.password, password: url.includes('change') ? NEW_PASSWORD : ADA.password })
      await held.read.promise
      await app.auth.deleteUser(userId)
      held.goOn.resolve()

      t.equal((await answer).statusCode, 401, url)
      t.match((await answer).json().code, /^(?:invalid|unauthenticated)$/, url)
    }
  })
}
