import t, { type Test } from 'tap'
import { type AuthPluginOptions, MemoryAuthStore } from '../../index.js'
import type { LinkingPolicy } from '../../hooks.js'
import { localProvider, startApp, userIdIn } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { OwnProvider, type AdmittedUser, linkAt, signInAt } from '../../../test/helpers/own-provider.js'

const ADDRESS = 'victim@example.com'
const VICTIM: AdmittedUser = { subject: 'victim-1', email: ADDRESS }

const POLICIES: Record<string, LinkingPolicy> = {
  'verified-email': 'verified-email',
  never: 'never',
  'a rule that always says yes': () => true,
  'a rule that always says no': () => false
}

async function start (t: Test, options: AuthPluginOptions) {
  const store = new MemoryAuthStore()
  const app = await startApp(t, {
    baseUrl: 'https://app.example',
    providers: ['a', 'b', 'lax'].map(name => new OwnProvider(name)),
    local: localProvider(),
    store,
    ...options
  })
  return { app, store, attacker: new Browser(app), victim: new Browser(app) }
}

for (const [name, linking] of Object.entries(POLICIES)) {
  t.test(`linking: ${name}`, async t => {
    t.test('attack 19: an attacker who has the address unverified at a provider shares no account with its owner', async t => {
      const { app, attacker, victim } = await start(t, { linking })
      await signInAt(attacker, 'lax', { subject: 'attacker-1', email: ADDRESS, emailVerified: false })

      await signInAt(victim, 'a', VICTIM)

      t.ok(await userIdIn(victim))
      t.not(await userIdIn(victim), await userIdIn(attacker))
      const again = new Browser(app)
      await signInAt(again, 'lax', { subject: 'attacker-1', email: ADDRESS, emailVerified: false })
      t.not(await userIdIn(again), await userIdIn(victim))
    })
  })
}

t.test('an owner who registered with a password links the identity explicitly and stays one user', async t => {
  const { app, victim } = await start(t, {})
  await victim.post('/auth/local/register', { email: ADDRESS, password: 'the owner knows it' })
  const userId = await userIdIn(victim)

  await linkAt(victim, 'a', VICTIM)

  t.match(await app.auth.findUser({ email: ADDRESS }), { userId, emailVerified: true })
  const elsewhere = new Browser(app)
  await signInAt(elsewhere, 'b', { subject: 'victim-at-b', email: ADDRESS })
  t.equal(await userIdIn(elsewhere), userId, 'the address is proven now')
})

t.test('attack 21: the next owner of an address does not get the account of a user whose provider no longer vouches for it', async t => {
  const reports: Record<string, AdmittedUser> = {
    'as unverified': { ...VICTIM, emailVerified: false },
    'no more': { subject: 'victim-1' },
    'no more, but that of another user': { ...VICTIM, email: 'taken@example.com' }
  }
  for (const [report, person] of Object.entries(reports)) {
    for (const linking of ['verified-email', () => true] as const) {
      const { app, attacker, victim } = await start(t, { linking })
      await signInAt(new Browser(app), 'b', { subject: 'other-1', email: 'taken@example.com' })
      await signInAt(victim, 'a', VICTIM)
      const userId = await userIdIn(victim)

      await signInAt(victim, 'a', person)
      const heir = await signInAt(attacker, 'b', { subject: 'heir-1', email: ADDRESS })

      t.equal(heir.headers.location, '/account?error=account_exists', `the address is reported ${report}`)
      t.equal(await userIdIn(attacker), null)
      t.match(await app.auth.findUser({ email: ADDRESS }), { userId, emailVerified: false })
    }
  }
})

t.test('attack 21: the next owner of an address does not get the account of a user who has unlinked the provider that vouched for it', async t => {
  const { app, attacker, victim } = await start(t, {})
  await victim.post('/auth/local/register', { email: ADDRESS, password: 'the owner knows it' })
  await linkAt(victim, 'a', VICTIM)
  const userId = await userIdIn(victim) ?? ''
  t.match(await app.auth.findUser({ email: ADDRESS }), { emailVerified: true })

  await app.auth.unlink(userId, 'a')

  t.equal((await signInAt(attacker, 'b', { subject: 'heir-1', email: ADDRESS })).headers.location, '/account?error=account_exists')
  t.match(await app.auth.findUser({ email: ADDRESS }), { userId, emailVerified: false })
})

t.test('a user whose second provider still vouches for the address is joined by a third one', async t => {
  const { app, victim } = await start(t, {})
  await signInAt(victim, 'a', VICTIM)
  await signInAt(victim, 'b', { subject: 'victim-at-b', email: ADDRESS })
  const userId = await userIdIn(victim) ?? ''

  await app.auth.unlink(userId, 'a')

  const elsewhere = new Browser(app)
  await signInAt(elsewhere, 'lax', { subject: 'victim-at-lax', email: ADDRESS })
  t.equal(await userIdIn(elsewhere), userId)
})
