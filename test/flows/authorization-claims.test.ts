import t, { type Test } from 'tap'
import { type AuthStore, MemoryAuthStore, SqlAuthStore } from '../../lib/index.js'
import { localProvider, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { OwnProvider, linkAt, signInAt } from '../helpers/own-provider.js'
import { SOME_STORES } from '../helpers/stores.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }

async function start (t: Test, store: AuthStore) {
  return startApp(t, { baseUrl: 'https://app.example', providers: [new OwnProvider('a'), new OwnProvider('b')], local: localProvider(), store })
}

async function claimsIn (browser: Browser): Promise<Record<string, unknown>> {
  return (await browser.get('/me')).json().principal.claims
}

for (const [kind, newStore] of Object.entries(SOME_STORES)) {
  t.test(`on ${kind}, authorization claims lie over the identity claims of each provider, and of the password`, async t => {
    const app = await start(t, await newStore(t))
    const [browser, atA, atB] = [new Browser(app), new Browser(app), new Browser(app)]
    const { userId }: { userId: string } = (await browser.post('/auth/local/register', ADA)).json()
    await linkAt(browser, 'a', { subject: 'ada-a', claims: { role: 'guest', tenant: 'a' } })
    await linkAt(browser, 'b', { subject: 'ada-b', claims: { role: ['owner'], plan: { name: 'free' } } })

    t.strictSame(await app.auth.grant(userId, { role: 'admin' }), { role: 'admin' }, 'what a provider says is not granted')

    await browser.post('/auth/local/login', ADA)
    t.strictSame(await claimsIn(browser), { sub: userId, email: ADA.email, role: 'admin' })
    await signInAt(atA, 'a', { subject: 'ada-a', claims: { role: 'guest', tenant: 'a2', sudo: true } })
    t.strictSame(await claimsIn(atA), { sub: 'ada-a', role: 'admin', tenant: 'a2', sudo: true })
    await signInAt(atB, 'b', { subject: 'ada-b' })
    t.strictSame(await claimsIn(atB), { sub: 'ada-b', role: 'admin' }, 'what one provider says is not said by another')
    t.strictSame((await app.auth.findUser({ userId }))?.claims, { role: 'admin' }, 'nothing that a provider says becomes an authorization claim')

    t.strictSame(await app.auth.withdraw(userId, ['role', 'tenant', 'sub', 'email']), {})
    await signInAt(atA, 'a', { subject: 'ada-a', claims: { role: 'guest' } })
    t.strictSame(await claimsIn(atA), { sub: 'ada-a', role: 'guest' }, 'what is withdrawn uncovers what the provider says')
  })
}

t.test('authorization claims and links outlive the application', async t => {
  const file = `${t.testdir()}/users.db`
  const before = await start(t, new SqlAuthStore(file))
  const browser = new Browser(before)
  await signInAt(browser, 'a', { subject: 'ada-a' })
  const { userId } = (await browser.get('/me')).json().principal
  await before.auth.grant(userId, { role: 'admin', teams: ['x'] })
  await before.close()

  const after = new Browser(await start(t, new SqlAuthStore(file)))
  await signInAt(after, 'a', { subject: 'ada-a' })

  t.match((await after.get('/me')).json().principal, { userId, claims: { sub: 'ada-a', role: 'admin', teams: ['x'] } })
})

t.test('attack 45: nothing that a form, a query or a provider says becomes an authorization claim', async t => {
  const app = await start(t, new MemoryAuthStore())
  const browser = new Browser(app)

  for (const field of ['claims', 'extras']) t.equal((await browser.post('/auth/local/register', { ...ADA, [field]: { role: 'admin' } })).statusCode, 400, field)
  await browser.post('/auth/local/register', { ...ADA, 'claims[role]': 'admin', 'claims.role': 'admin', tier: 1, is_admin: true })
  const local = await app.auth.findUser({ email: ADA.email })
  await signInAt(browser, 'a', { subject: '1', email: 'grace@example.com', claims: { role: 'admin', claims: { role: 'admin' } } })
  const external = await app.auth.findUser({ email: 'grace@example.com' })

  t.strictSame([local?.claims, external?.claims], [{}, {}])
})
