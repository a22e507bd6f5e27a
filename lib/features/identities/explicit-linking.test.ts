import t, { type Test } from 'tap'
import { type AuthPluginOptions, AuthError, type Linking, MemoryAuthStore, SignInRefused } from '../../index.js'
import { SESSION_SECRET, localProvider, startApp, userIdIn } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { FROM_OWN_PAGE, OwnProvider, type AdmittedUser, leaveFor, linkAt, signInAt } from '../../../test/helpers/own-provider.js'
import { SOME_SESSION_STORES } from '../../../test/helpers/session-stores.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }
const ADA_AT_A: AdmittedUser = { subject: 'ada-1', email: 'ada@elsewhere.example' }

/** Ada, who registered with a password, and her browser. */
async function withAda (t: Test, options: AuthPluginOptions = {}) {
  const store = new MemoryAuthStore()
  const app = await startApp(t, {
    baseUrl: 'https://app.example',
    providers: [new OwnProvider('a'), new OwnProvider('b')],
    local: localProvider(),
    store,
    ...options
  })
  const browser = new Browser(app)
  const { userId }: { userId: string } = (await browser.post('/auth/local/register', ADA)).json()
  const waysIn = async (id = userId) => (await store.links(id)).map(({ provider, subject }) => `${provider} ${subject}`)
  return { app, store, browser, userId, waysIn }
}

for (const [name, createSessions] of SOME_SESSION_STORES) {
  t.test(`the rules hold with ${name}`, async t => {
    const options = { session: { secret: SESSION_SECRET, store: createSessions() } }

    t.test('a signed-in user adds an identity to the account, and stays signed in', async t => {
      const { browser, userId, waysIn } = await withAda(t, options)
      const before = (await browser.get('/me')).json().principal

      const landing = await browser.get(await leaveFor(browser, '/auth/a/login?link=true&next=/account', ADA_AT_A))

      t.equal(landing.statusCode, 302)
      t.equal(landing.headers.location, '/account')
      t.strictSame(await waysIn(), ['a ada-1', 'local ada@example.com'])
      t.strictSame((await browser.get('/me')).json().principal, before)
      const elsewhere = new Browser(browser.app)
      await signInAt(elsewhere, 'a', ADA_AT_A)
      t.equal(await userIdIn(elsewhere), userId, 'from then on it is a way in')
    })

    t.test('attack 34: a plain sign-in that is under way links nothing to a user who signs in meanwhile', async t => {
      const { browser, userId, waysIn } = await withAda(t, options)
      const callback = await leaveFor(browser, '/auth/a/login', ADA_AT_A)
      await browser.post('/auth/local/login', ADA)

      await browser.get(callback)

      t.strictSame(await waysIn(), ['local ada@example.com'])
      t.not(await userIdIn(browser), userId)
    })
  })
}

t.test('an identity that the user has already stays linked, with its current claims', async t => {
  const { browser, store, waysIn } = await withAda(t)
  await linkAt(browser, 'a', ADA_AT_A)

  t.equal((await linkAt(browser, 'a', { ...ADA_AT_A, email: 'new@elsewhere.example' })).headers.location, '/')

  t.strictSame(await waysIn(), ['a ada-1', 'local ada@example.com'])
  t.match((await store.links((await store.findUser({ provider: 'a', subject: 'ada-1' }))?.userId ?? ''))[0]?.claims, { email: 'new@elsewhere.example' })
})

t.test('a second identity at one provider is refused, with a sentence that says what to do', async t => {
  const { browser, waysIn } = await withAda(t)
  await linkAt(browser, 'a', ADA_AT_A)

  const callback = await leaveFor(browser, '/auth/a/login?link=true', { subject: 'ada-2' })
  const landing = await browser.get(callback, { accept: 'application/json' })

  t.equal(landing.statusCode, 409)
  t.strictSame(landing.json(), {
    statusCode: 409,
    code: 'already_linked',
    error: 'Conflict',
    message: 'Your account has another identity at this provider; unlink that one first.'
  })
  t.strictSame(await waysIn(), ['a ada-1', 'local ada@example.com'])
})

t.test('eight tabs that link one identity at once make one link', async t => {
  const { browser, waysIn } = await withAda(t)
  const callbacks: string[] = []
  for (let tab = 0; tab < 8; tab++) callbacks.push(await leaveFor(browser, '/auth/a/login?link=true', ADA_AT_A))

  const landings = await Promise.all(callbacks.map(callback => browser.get(callback)))

  t.strictSame(landings.map(({ headers }) => headers.location), callbacks.map(() => '/'))
  t.strictSame(await waysIn(), ['a ada-1', 'local ada@example.com'])
})

t.test('a user who was deleted meanwhile gets nothing back by linking', async t => {
  const { app, browser, userId } = await withAda(t)
  const callback = await leaveFor(browser, '/auth/a/login?link=true', ADA_AT_A)
  await app.auth.deleteUser(userId)

  t.equal((await browser.get(callback)).headers.location, '/account?error=unauthenticated')
  t.equal(await app.auth.findUser({ provider: 'a', subject: 'ada-1' }), null)
})

t.test('an anonymous user cannot link, and is not signed in by trying', async t => {
  const { app } = await withAda(t)

  const response = await new Browser(app).get('/auth/a/login?link=true', FROM_OWN_PAGE)

  t.equal(response.headers.location, '/account?error=unauthenticated')
})

t.test('attack 37: a session that a refresh would end links nothing', async t => {
  const { app, browser, userId, waysIn } = await withAda(t)
  await linkAt(browser, 'a', ADA_AT_A)
  const stolen = new Browser(app)
  await signInAt(stolen, 'a', ADA_AT_A)
  const started = await leaveFor(stolen, '/auth/b/login?link=true', { subject: 'evil' })

  await app.auth.unlink(userId, 'a')

  t.equal((await stolen.get(started)).headers.location, '/account?error=unauthenticated')
  t.equal((await stolen.get('/auth/b/login?link=true', FROM_OWN_PAGE)).headers.location, '/account?error=unauthenticated')
  t.strictSame(await waysIn(), ['local ada@example.com'])
})

t.test('an address that a provider vouches for is verified by linking it; another one leaves the user\'s as it is', async t => {
  const { app, browser, userId } = await withAda(t)

  await linkAt(browser, 'a', ADA_AT_A)
  t.match(await app.auth.findUser({ userId }), { email: 'ada@example.com', emailVerified: false })

  await linkAt(browser, 'b', { subject: 'ada-at-b', email: 'Ada@Example.com' })
  t.match(await app.auth.findUser({ userId }), { email: 'ada@example.com', emailVerified: true })
})

t.test('identities are unlinked until one link remains', async t => {
  const { app, browser, userId, waysIn } = await withAda(t)
  await linkAt(browser, 'a', ADA_AT_A)

  await app.auth.unlink(userId, 'local')

  t.strictSame(await waysIn(), ['a ada-1'])
  t.match((await new Browser(app).post('/auth/local/login', ADA)).json(), { code: 'invalid' }, 'the password went with it')
  await t.rejects(app.auth.unlink(userId, 'a'), { code: 'last_link' })
})

t.test('the hook onLink is told who links what, with the tokens of the provider, each time', async t => {
  const told: Linking[] = []
  const { browser, userId, waysIn } = await withAda(t, { onLink: async linking => { told.push(linking) } })

  await linkAt(browser, 'a', ADA_AT_A)
  await linkAt(browser, 'a', ADA_AT_A)

  const tokens = { accessToken: 'the-access-token', refreshToken: 'the-refresh-token', idToken: 'the.id.token', expiresIn: 60, scope: 'openid' }
  const identity = { provider: 'a', subject: 'ada-1', claims: { sub: 'ada-1', email: 'ada@elsewhere.example' }, emailVerified: true }
  t.strictSame(told.map(({ request: _, ...rest }) => rest), [{ userId, identity, tokens }, { userId, identity, tokens }])
  t.match(told[0]?.request.url, /^\/auth\/a\/callback/)
  t.strictSame(await waysIn(), ['a ada-1', 'local ada@example.com'])
})

t.test('the hook onLink refuses with its code, a mistake in it is an internal error, and nothing is linked', async t => {
  const failures = [
    ['not_ours', new SignInRefused('not_ours')],
    ['forbidden', new AuthError('forbidden')],
    ['internal_error', new Error('the directory is down')]
  ] as const
  for (const [code, failure] of failures) {
    const { browser, userId, waysIn } = await withAda(t, { onLink: () => { throw failure } })

    t.equal((await linkAt(browser, 'a', ADA_AT_A)).headers.location, `/account?error=${code}`)

    t.strictSame(await waysIn(), ['local ada@example.com'])
    t.equal(await userIdIn(browser), userId, 'the session stays')
  }
})

t.test('the hook onLink is not asked about an identity that cannot be linked', async t => {
  const told: Linking[] = []
  const { app, browser, waysIn } = await withAda(t, { onLink: linking => { told.push(linking) } })
  await signInAt(new Browser(app), 'a', { subject: 'bob-1' })

  t.equal((await linkAt(browser, 'a', { subject: 'bob-1' })).headers.location, '/account?error=already_linked')
  await linkAt(browser, 'a', ADA_AT_A)
  t.equal((await linkAt(browser, 'a', { subject: 'ada-2' })).headers.location, '/account?error=already_linked')

  t.strictSame(told.map(({ identity }) => identity.subject), ['ada-1'])
  t.strictSame(await waysIn(), ['a ada-1', 'local ada@example.com'])
})

t.test('attack 23: a user who signs out while the hook onLink thinks adds no identity', async t => {
  const { browser, waysIn } = await withAda(t, {
    onLink: async () => { await new Browser(browser.app, browser.cookies).post('/auth/local/revoke') }
  })

  t.equal((await linkAt(browser, 'a', ADA_AT_A)).headers.location, '/account?error=invalid_state')

  t.strictSame(await waysIn(), ['local ada@example.com'])
})
