import t, { type Test } from 'tap'
import { type AuthPluginOptions, MemoryAuthStore } from '../../lib/index.js'
import type { LinkingPolicy } from '../../lib/hooks.js'
import { localProvider, startApp, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { OwnProvider, type AdmittedUser, linkAt, signInAt } from '../helpers/own-provider.js'

const ADDRESS = 'victim@example.com'
const ATTACKERS_PASSWORD = { email: ADDRESS, password: 'the attacker knows it' }
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
  }, {}, app => {
    app.get('/guarded', { preHandler: [app.auth.refresh, app.auth.requireUser] }, async request => request.principal)
  })
  return { app, store, attacker: new Browser(app), victim: new Browser(app) }
}

for (const [name, linking] of Object.entries(POLICIES)) {
  t.test(`linking: ${name}`, async t => {
    t.test('attack 19: an attacker who registered an address with a password shares no account with its owner', async t => {
      const { attacker, victim } = await start(t, { linking })
      await attacker.post('/auth/local/register', ATTACKERS_PASSWORD)

      t.equal((await signInAt(victim, 'a', VICTIM)).headers.location, '/account?error=account_exists')

      t.equal(await userIdIn(victim), null)
      t.ok(await userIdIn(attacker))
    })

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

    t.test('attack 19: an attacker who linked an identity to the registered account shares no account with the owner', async t => {
      const { app, attacker, victim } = await start(t, { linking })
      await attacker.post('/auth/local/register', ATTACKERS_PASSWORD)
      await linkAt(attacker, 'b', { subject: 'attacker-1', email: 'attacker@example.com' })

      t.equal((await signInAt(victim, 'a', VICTIM)).headers.location, '/account?error=account_exists')

      t.match(await app.auth.findUser({ email: ADDRESS }), { emailVerified: false }, 'another address proves nothing about this one')
    })

    t.test('attack 21: a new owner of a recycled address at a provider does not get the account of the old one', async t => {
      const { attacker, victim } = await start(t, { linking })
      await signInAt(victim, 'a', VICTIM)

      t.equal((await signInAt(attacker, 'a', { subject: 'heir-1', email: ADDRESS })).headers.location, '/account?error=account_exists')
    })
  })
}

t.test('attack 19: an existing owner keeps the account when another client registers the address', async t => {
  const { attacker, victim } = await start(t, {})
  await signInAt(victim, 'a', VICTIM)

  t.equal((await attacker.post('/auth/local/register', ATTACKERS_PASSWORD)).json().code, 'exists')
  t.equal((await attacker.post('/auth/local/login', ATTACKERS_PASSWORD)).json().code, 'invalid')
})

t.test('attack 20: the owner signs in when the application makes room, and nothing of the squatter is left', async t => {
  const { app, attacker, victim } = await start(t, {
    linking: async (existing, identity) => {
      if (identity.emailVerified && !existing.emailVerified) await app.auth.deleteUser(existing.userId)
      return identity.emailVerified
    }
  })
  await attacker.post('/auth/local/register', ATTACKERS_PASSWORD)
  const squatterId = await userIdIn(attacker) ?? ''
  await linkAt(attacker, 'b', { subject: 'attacker-1', email: 'attacker@example.com' })
  await app.auth.grant(squatterId, { role: 'admin' })

  t.equal((await signInAt(victim, 'a', VICTIM)).headers.location, '/')

  const victimId = await userIdIn(victim) ?? ''
  t.not(victimId, squatterId)
  t.match((await victim.get('/guarded')).json(), { userId: victimId, claims: { email: ADDRESS } })
  t.notOk('role' in (await victim.get('/guarded')).json().claims)
  t.equal((await attacker.post('/auth/local/token')).statusCode, 401)
  t.equal((await attacker.get('/guarded')).statusCode, 401)
  t.equal(await userIdIn(attacker), null)
  t.equal((await attacker.post('/auth/local/login', ATTACKERS_PASSWORD)).json().code, 'invalid')
  await signInAt(attacker, 'b', { subject: 'attacker-1', email: 'attacker@example.com' })
  t.not(await userIdIn(attacker), victimId)
})

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
