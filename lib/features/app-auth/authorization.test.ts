import { randomUUID } from 'node:crypto'
import t from 'tap'
import { Accounts } from '../../accounts/accounts.js'
import { Authorization } from './authorization.js'
import type { AuthorizationClaims } from '../../claims.js'
import { MemoryAuthStore } from '../../engines/memory/memory.js'
import { SqlAuthStore } from '../../engines/sql.js'
import type { User } from '../../accounts/account.js'
import type { AuthStore } from '../../accounts/auth-store.js'
import { SOME_STORES } from '../../../test/helpers/stores.js'

/** As somebody without types passes them in. */
const NO_STRINGS = [null, undefined, 1, [randomUUID()], {}] as unknown[] as string[]
const NO_IDS = [
  '',
  'ada',
  "' OR 1=1--",
  ...[' ', '\n', '\u0000', 'x', '-'].flatMap(odd => [odd + randomUUID(), randomUUID() + odd]),
  randomUUID().replaceAll('-', '')
]

/** Ada, who has two ways in, and what may be done with her. */
async function withAda (store: AuthStore): Promise<{ authorization: Authorization, ada: Pick<User, 'userId' | 'email' | 'name'> }> {
  const link = { provider: 'dev', subject: 'ada-1', claims: { sub: 'ada-1' } }
  const ada = { userId: randomUUID(), email: 'ada@xn--bcher-kva.example', emailVerified: true, name: 'Ada', claims: { role: 'member' } }
  await new Accounts(store).createUser({ ...ada, link })
  await new Accounts(store).addLink(ada.userId, { provider: 'other', subject: 'ada-2', claims: { sub: 'ada-2' }, verifiedEmail: null })
  return { authorization: new Authorization(store), ada }
}

for (const [kind, newStore] of Object.entries(SOME_STORES)) {
  t.test(`the rules hold on ${kind}`, async t => {
    t.test('granted claims are merged over those the user has', async t => {
      const { authorization, ada } = await withAda(await newStore(t))

      t.strictSame(await authorization.grant(ada.userId, { tier: 1 }), { role: 'member', tier: 1 })
      t.strictSame(await authorization.grant(ada.userId, { role: 'admin' }), { role: 'admin', tier: 1 })
      t.strictSame((await authorization.findUser({ userId: ada.userId }))?.claims, { role: 'admin', tier: 1 })
    })

    t.test('withdrawn claims are gone, and the rest is returned', async t => {
      const { authorization, ada } = await withAda(await newStore(t))
      await authorization.grant(ada.userId, { tier: 1 })

      t.strictSame(await authorization.withdraw(ada.userId, ['role', 'unknown']), { tier: 1 })
      t.strictSame((await authorization.findUser({ userId: ada.userId }))?.claims, { tier: 1 })
    })

    t.test('attack 54: identity claims, prototypes and what is not JSON cannot be granted', async t => {
      const { authorization, ada } = await withAda(await newStore(t))
      const refused: AuthorizationClaims[] = [
        { sub: 'x' },
        { role: 'admin', email_verified: true },
        JSON.parse('{"__proto__":{"admin":true}}'),
        { limit: NaN },
        { role: undefined }
      ]

      for (const claims of refused) await t.rejects(authorization.grant(ada.userId, claims), { name: 'AuthError', code: 'invalid_claims' })

      t.strictSame((await authorization.findUser({ userId: ada.userId }))?.claims, { role: 'member' })
      t.notOk('admin' in {})
    })

    t.test('names to withdraw must be a list of strings', async t => {
      const { authorization, ada } = await withAda(await newStore(t))

      for (const names of ['role', undefined, null, [1], ['role', null], { 0: 'role', length: 1 }]) {
        await t.rejects(authorization.withdraw(ada.userId, names as string[]), {
          name: 'AuthError',
          code: 'invalid_claims',
          message: 'names must be a list of the names of claims.'
        })
      }
      t.strictSame((await authorization.findUser({ userId: ada.userId }))?.claims, { role: 'member' })
    })

    t.test('a user who does not exist is unknown, and so is an id that is not a UUID', async t => {
      const { authorization } = await withAda(await newStore(t))

      const unknown = { name: 'AuthError', code: 'unknown_user', statusCode: 404 }
      for (const userId of [randomUUID(), ...NO_IDS, ...NO_STRINGS]) {
        await t.rejects(authorization.grant(userId, { role: 'admin' }), unknown)
        await t.rejects(authorization.withdraw(userId, ['role']), unknown)
        await t.rejects(authorization.links(userId), unknown)
        await t.rejects(authorization.unlink(userId, 'dev'), unknown)
        await t.rejects(authorization.deleteUser(userId), unknown)
      }
    })

    t.test('a user is found by e-mail in any spelling', async t => {
      const { authorization, ada } = await withAda(await newStore(t))

      for (const email of ['ada@xn--bcher-kva.example', ' Ada@BÜCHER.example ']) t.hasStrict(await authorization.findUser({ email }), ada)
    })

    t.test('an invalid or unknown e-mail finds no user', async t => {
      const { authorization } = await withAda(await newStore(t))

      for (const email of ['', 'ada', 'bob@example.com', 'ada@bücher.example\u0000']) t.equal(await authorization.findUser({ email }), null)
    })

    t.test('a user is found by id and by link', async t => {
      const { authorization, ada } = await withAda(await newStore(t))

      t.hasStrict(await authorization.findUser({ userId: ada.userId }), ada)
      t.hasStrict(await authorization.findUser({ provider: 'other', subject: 'ada-2' }), ada)
      t.equal(await authorization.findUser({ userId: randomUUID() }), null)
      t.equal(await authorization.findUser({ provider: 'other', subject: 'ada-1' }), null)
    })

    t.test('an invalid query is refused', async t => {
      const { authorization, ada } = await withAda(await newStore(t))

      const queries = [...NO_STRINGS, {}, [], 'ada', { userId: 5 }, { userId: null }, { email: 5 }, { provider: 'dev' }, { subject: 'ada-1' }, {
        provider: 'dev',
        subject: 5
      },
      { name: 'Ada' }, { userId: ada.userId, email: ada.email }, { userId: undefined, email: ada.email }]
      for (const query of queries) await t.rejects(authorization.findUser(query as never), { name: 'AuthError', code: 'invalid_request', statusCode: 400 })
    })

    t.test('the links of a user are listed', async t => {
      const { authorization, ada } = await withAda(await newStore(t))

      t.strictSame(await authorization.links(ada.userId), [
        { provider: 'dev', subject: 'ada-1', userId: ada.userId, claims: { sub: 'ada-1' } },
        { provider: 'other', subject: 'ada-2', userId: ada.userId, claims: { sub: 'ada-2' } }
      ])
    })

    t.test('a link is removed, but never the last one', async t => {
      const { authorization, ada } = await withAda(await newStore(t))

      t.match(await authorization.unlink(ada.userId, 'dev'), [{ provider: 'other' }])
      t.match(await authorization.unlink(ada.userId, 'nowhere'), [{ provider: 'other' }], 'one that he does not have is passed over')
      await t.rejects(authorization.unlink(ada.userId, 'other'), { name: 'AuthError', code: 'last_link', statusCode: 409 })
      t.match(await authorization.links(ada.userId), [{ provider: 'other' }])
    })

    t.test('unlinking refuses a provider name that is not a string', async t => {
      const { authorization, ada } = await withAda(await newStore(t))

      for (const provider of ['', 'de\u0000v', 'de\ud800v', ...NO_STRINGS]) {
        await t.rejects(
          authorization.unlink(ada.userId, provider),
          { name: 'AuthError', code: 'invalid_request', statusCode: 400 }
        )
      }
      t.equal((await authorization.links(ada.userId)).length, 2)
    })

    t.test('a deleted user is gone, with their links', async t => {
      const { authorization, ada } = await withAda(await newStore(t))

      await authorization.deleteUser(ada.userId)

      t.equal(await authorization.findUser({ userId: ada.userId }), null)
      t.equal(await authorization.findUser({ provider: 'dev', subject: 'ada-1' }), null)
      await t.rejects(authorization.deleteUser(ada.userId), { code: 'unknown_user' })
    })
  })
}

t.test('attack 57: what no store could keep is not even looked up', async t => {
  const store = new SqlAuthStore(':memory:', { createTables: false })
  t.teardown(() => store.close())
  const authorization = new Authorization(store)
  await t.rejects(authorization.findUser({ userId: randomUUID() }), { code: 'unavailable' }, 'this store fails whenever it is asked')

  for (const userId of NO_IDS) {
    await t.rejects(authorization.grant(userId, { role: 'admin' }), { code: 'unknown_user' })
    await t.rejects(authorization.withdraw(userId, ['role']), { code: 'unknown_user' })
    await t.rejects(authorization.links(userId), { code: 'unknown_user' })
    await t.rejects(authorization.unlink(userId, 'dev'), { code: 'unknown_user' })
    await t.rejects(authorization.deleteUser(userId), { code: 'unknown_user' })
    t.equal(await authorization.findUser({ userId }), null)
  }
  t.equal(await authorization.findUser({ email: 'nobody' }), null)
  for (const odd of ['', 'ada\u0000', 'ada\ud800']) {
    t.equal(await authorization.findUser({ provider: 'dev', subject: odd }), null)
    t.equal(await authorization.findUser({ provider: odd, subject: 'ada-1' }), null)
  }
})

t.test('attack 57: names that no store could keep are not asked to be withdrawn', async t => {
  const store = new MemoryAuthStore()
  const asked = t.capture(Accounts.prototype, 'withdraw', async () => ({}))

  await new Authorization(store).withdraw(randomUUID(), ['role', 'ro\u0000le', 'ro\ud800le', ''])

  t.strictSame(asked()[0]?.args[1], ['role', ''])
})
