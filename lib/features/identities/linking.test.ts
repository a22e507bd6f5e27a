import t, { type Test } from 'tap'
import { Accounts, AuthError, type AuthStore, type Identity, MemoryAuthStore, SignInRefused, type User } from '../../index.js'
import type { LinkingPolicy } from '../../hooks.js'
import type { AccountQuery, Rule, UniqueKeys } from '../../accounts/auth-store.js'
import { userOfIdentity as find } from './linking.js'
import { NO_FACTORS } from '../../../test/helpers/no-factors.js'
import { SOME_STORES } from '../../../test/helpers/stores.js'

const EMAIL = 'ada@example.com'

const verified = (subject: string, email = EMAIL): Identity => ({
  subject,
  claims: { sub: subject, email, email_verified: true, name: 'Ada' },
  emailVerified: true
})
const unverified = (subject: string, email = EMAIL): Identity => ({ subject, claims: { sub: subject, email }, emailVerified: false })
const anonymous = (subject: string): Identity => ({ subject, claims: { sub: subject }, emailVerified: false })

/** The user of an identity. */
async function userOfIdentity (store: AuthStore, provider: string, identity: Identity, linking: LinkingPolicy = 'verified-email'): Promise<User> {
  return (await find({ accounts: new Accounts(store), linking, ...NO_FACTORS }, {}, { provider, ...identity })).user
}

async function localUser (store: AuthStore): Promise<string> {
  const userId = '00000000-0000-4000-8000-000000000001'
  await new Accounts(store).createUser({
    userId,
    email: EMAIL,
    emailVerified: false,
    name: null,
    claims: {},
    link: { provider: 'local', subject: EMAIL, claims: { sub: userId } },
    passwordHash: 'x'
  })
  return userId
}

async function refused (t: Test, attempt: Promise<unknown>): Promise<void> {
  await t.rejects(attempt, { name: 'AuthError', code: 'account_exists', statusCode: 409 })
}

const identities: Record<string, (subject: string) => Identity> = {
  verified,
  unverified,
  absent: anonymous
}

const policies: Record<string, LinkingPolicy> = {
  'verified-email': 'verified-email',
  never: 'never',
  approves: () => true,
  declines: async () => false
}

/** Who is there already. Each resolves to the user who has the address, if there is one. */
const existing: Record<string, (store: AuthStore) => Promise<string | undefined>> = {
  'no user': async () => undefined,
  'a user with the address, verified': async store => (await userOfIdentity(store, 'other', verified('0'))).userId,
  'a local account with the address': localUser,
  'a local account that proved the address by linking': async store => {
    const userId = await localUser(store)
    await new Accounts(store).addLink(userId, { provider: 'other', subject: '0', claims: { sub: '0', email: EMAIL }, verifiedEmail: EMAIL })
    return userId
  },
  'a user with the address and another subject at this provider': async store => (await userOfIdentity(store, 'a', verified('0'))).userId,
  'several users whose providers only claim the address': async store => {
    for (const provider of ['other', 'another']) await userOfIdentity(store, provider, unverified('0'))
    return undefined
  }
}

/** What becomes of an identity that is unknown yet, by the policies in their order. */
const OUTCOMES = `
  no user                                                      | verified   | user, e-mail    | user, e-mail    | user, e-mail    | user, e-mail
  no user                                                      | unverified | user, no e-mail | user, no e-mail | user, no e-mail | user, no e-mail
  no user                                                      | absent     | user, no e-mail | user, no e-mail | user, no e-mail | user, no e-mail
  a user with the address, verified                            | verified   | joins           | account_exists  | joins           | account_exists
  a user with the address, verified                            | unverified | account_exists  | account_exists  | joins           | account_exists
  a user with the address, verified                            | absent     | user, no e-mail | user, no e-mail | user, no e-mail | user, no e-mail
  a local account with the address                             | verified   | account_exists  | account_exists  | account_exists  | account_exists
  a local account with the address                             | unverified | account_exists  | account_exists  | account_exists  | account_exists
  a local account with the address                             | absent     | user, no e-mail | user, no e-mail | user, no e-mail | user, no e-mail
  a local account that proved the address by linking           | verified   | joins           | account_exists  | joins           | account_exists
  a local account that proved the address by linking           | unverified | account_exists  | account_exists  | joins           | account_exists
  a local account that proved the address by linking           | absent     | user, no e-mail | user, no e-mail | user, no e-mail | user, no e-mail
  a user with the address and another subject at this provider | verified   | account_exists  | account_exists  | account_exists  | account_exists
  a user with the address and another subject at this provider | unverified | account_exists  | account_exists  | account_exists  | account_exists
  a user with the address and another subject at this provider | absent     | user, no e-mail | user, no e-mail | user, no e-mail | user, no e-mail
  several users whose providers only claim the address         | verified   | user, e-mail    | user, e-mail    | user, e-mail    | user, e-mail
  several users whose providers only claim the address         | unverified | user, no e-mail | user, no e-mail | user, no e-mail | user, no e-mail
  several users whose providers only claim the address         | absent     | user, no e-mail | user, no e-mail | user, no e-mail | user, no e-mail
`.trim().split('\n').map(row => row.split('|').map(cell => cell.trim()))

/** What became of an identity. */
async function outcome (store: AuthStore, linking: LinkingPolicy, identity: Identity, owner: string | undefined): Promise<string> {
  try {
    const { user, isNew } = await find({ accounts: new Accounts(store), linking, ...NO_FACTORS }, {}, { provider: 'a', ...identity })
    if (user.userId === owner) return isNew === 'link' ? 'joins' : 'known'
    if (isNew !== 'user') return 'another user'
    return user.email === null ? 'user, no e-mail' : 'user, e-mail'
  } catch (error) {
    return error instanceof AuthError ? error.code : String(error)
  }
}

for (const [kind, newStore] of Object.entries(SOME_STORES)) {
  t.test(`the rules hold on ${kind}`, async t => {
    for (const [who = '', email = '', ...outcomes] of OUTCOMES) {
      for (const [index, [name, policy]] of Object.entries(policies).entries()) {
        t.test(`${who}; an unknown identity, e-mail ${email}; linking ${name}: ${outcomes[index]}`, async t => {
          const store = await newStore(t)
          const owner = await existing[who]?.(store)
          const identity = identities[email]?.('1') ?? anonymous('1')

          const first = await outcome(store, policy, identity, owner)

          t.equal(first, outcomes[index])
          const again = await outcome(store, policy, identity, owner)
          t.equal(again, first === 'account_exists' ? first : first === 'joins' ? 'known' : 'another user', 'a second sign-in ends where the first did')
        })
      }
    }

    t.test('a known identity is its user, whatever its e-mail, the policy, and the current user of the address', async t => {
      for (const [name, policy] of Object.entries(policies)) {
        for (const identity of Object.values(identities)) {
          const store = await newStore(t)
          const known = await userOfIdentity(store, 'a', anonymous('1'))
          const owner = await userOfIdentity(store, 'other', verified('0'))

          const user = await userOfIdentity(store, 'a', identity('1'), policy)

          t.equal(user.userId, known.userId, name)
          t.equal((await store.findUser({ email: EMAIL }))?.userId, owner.userId)
        }
      }
    })

    t.test('a rule receives the user with the address and the identity, and is asked about no other', async t => {
      const store = await newStore(t)
      const asked: unknown[] = []
      const rule: LinkingPolicy = (...question) => {
        asked.push(question)
        return false
      }
      const ada = await userOfIdentity(store, 'a', verified('1'), rule)
      await userOfIdentity(store, 'a', verified('1'), rule)
      await userOfIdentity(store, 'b', anonymous('2'), rule)
      t.strictSame(asked, [])

      await refused(t, userOfIdentity(store, 'b', unverified('3'), rule))

      t.strictSame(asked, [[ada, { provider: 'b', ...unverified('3') }]])
    })

    t.test('only true is a yes', async t => {
      for (const answer of [1, 'true', {}, undefined, null]) {
        const store = await newStore(t)
        await userOfIdentity(store, 'a', verified('1'))
        await refused(t, userOfIdentity(store, 'b', verified('2'), (() => answer) as never))
      }
    })

    t.test('a rule that fails signs no user in', async t => {
      const store = await newStore(t)
      const ada = await userOfIdentity(store, 'a', verified('1'))

      await t.rejects(
        userOfIdentity(store, 'b', verified('2'), async () => { throw new Error('the directory is down') }),
        { code: 'internal_error', statusCode: 500, cause: { message: 'the directory is down' } }
      )
      await t.rejects(
        userOfIdentity(store, 'b', verified('2'), async () => { throw new SignInRefused('not_ours') }),
        { name: 'SignInRefused', code: 'not_ours' }
      )
      await t.rejects(userOfIdentity(store, 'b', verified('2'), () => { throw new AuthError('forbidden') }), { code: 'forbidden', statusCode: 403 })

      t.equal((await store.links(ada.userId)).length, 1)
    })

    t.test('attack 20: a rule makes room for the owner of an address by deleting the user who only registered it', async t => {
      const store = await newStore(t)
      const squatter = await localUser(store)
      await new Accounts(store).grant(squatter, { role: 'admin' })

      const owner = await userOfIdentity(store, 'a', verified('1'), async existing => {
        if (!existing.emailVerified) await new Accounts(store).deleteUser(existing.userId)
        return true
      })

      t.not(owner.userId, squatter)
      t.strictSame(owner.claims, {}, 'nothing is inherited')
      t.equal(owner.email, EMAIL)
      t.equal(await store.findCredential(EMAIL), null)
    })

    t.test('an unknown identity becomes a user, a known one stays that user', async t => {
      const store = await newStore(t)
      const first = await userOfIdentity(store, 'a', verified('1'))
      const second = await userOfIdentity(store, 'a', verified('1'))
      t.match(first, { email: EMAIL, emailVerified: true, name: 'Ada', claims: {} })
      t.equal(second.userId, first.userId)
    })

    t.test('equal subjects at two providers are two users', async t => {
      const store = await newStore(t)
      const users = [await userOfIdentity(store, 'a', anonymous('1')), await userOfIdentity(store, 'b', anonymous('1'))]
      t.not(users[0]?.userId, users[1]?.userId)
    })

    t.test('an identity with the same verified e-mail joins the user, in whatever spelling', async t => {
      const store = await newStore(t)
      const first = await userOfIdentity(store, 'a', verified('1'))
      const second = await userOfIdentity(store, 'b', verified('2', ' ADA@Example.com'))
      t.equal(second.userId, first.userId)
      t.strictSame((await store.links(first.userId)).map(({ provider, subject }) => [provider, subject]), [['a', '1'], ['b', '2']])
    })

    t.test('another subject at the same provider does not join, whichever user has the address now', async t => {
      const store = await newStore(t)
      await userOfIdentity(store, 'a', verified('1'))
      await refused(t, userOfIdentity(store, 'a', verified('2')))
    })

    t.test('an unverified e-mail joins no user, and belongs to no user', async t => {
      const store = await newStore(t)
      const squatter = await userOfIdentity(store, 'a', unverified('1'))
      const owner = await userOfIdentity(store, 'b', verified('2'))
      t.not(owner.userId, squatter.userId)
      t.equal(squatter.email, null)
      await refused(t, userOfIdentity(store, 'c', unverified('3')))
      t.equal((await userOfIdentity(store, 'a', unverified('1'))).userId, squatter.userId, 'the first still signs in as himself')
    })

    t.test('a user who registered the e-mail with a password is not joined: the address was never proven', async t => {
      const store = await newStore(t)
      const userId = await localUser(store)
      await refused(t, userOfIdentity(store, 'a', verified('1')))
      t.equal((await store.links(userId)).length, 1)
    })

    t.test('a changed e-mail is taken over, unless it belongs to another user', async t => {
      const store = await newStore(t)
      const ada = await userOfIdentity(store, 'a', verified('1'))
      const eve = await userOfIdentity(store, 'a', verified('2', 'eve@example.com'))
      t.equal((await userOfIdentity(store, 'a', verified('1', 'new@example.com'))).email, 'new@example.com')
      const unchanged = await userOfIdentity(store, 'a', verified('2', 'new@example.com'))
      t.strictSame([unchanged.userId, unchanged.email], [eve.userId, 'eve@example.com'])
      t.equal((await store.findUser({ email: 'new@example.com' }))?.userId, ada.userId)
    })

    t.test('an invalid e-mail counts as absent', async t => {
      const store = await newStore(t)
      t.equal((await userOfIdentity(store, 'a', verified('1', 'nobody'))).email, null)
    })

    t.test('two hundred first sign-ins of one identity at once end as one user with one link', async t => {
      const store = await newStore(t)
      const users = await Promise.all(Array.from({ length: 200 }, () => userOfIdentity(store, 'a', verified('1'))))
      const ids = new Set(users.map(({ userId }) => userId))
      t.equal(ids.size, 1)
      t.equal((await store.links([...ids][0] ?? '')).length, 1)
    })

    t.test('first sign-ins of two identities with one verified e-mail at once end as one user', async t => {
      const store = await newStore(t)
      const users = await Promise.all(Array.from({ length: 40 }, (_, index) => userOfIdentity(store, `p${index % 4}`, verified(`s${index % 4}`))))
      const ids = new Set(users.map(({ userId }) => userId))
      t.equal(ids.size, 1)
      t.equal((await store.links([...ids][0] ?? '')).length, 4)
    })
  })
}

t.test('a sign-in that always comes second gives up in the end', async t => {
  // Links are added by the id of the user, who always had another change meanwhile.
  class ContendedStore extends MemoryAuthStore {
    override async change<T> (find: AccountQuery, keys: UniqueKeys, rule: Rule<T>): Promise<T> {
      return 'userId' in find ? rule(null, { ofEmail: null, ofLink: null }).result : super.change(find, keys, rule)
    }
  }
  const store = new ContendedStore()
  await userOfIdentity(store, 'other', verified('0'))
  const failure = await userOfIdentity(store, 'a', verified('1')).catch((error: unknown) => error)
  t.ok(failure instanceof AuthError)
  t.match(failure, { code: 'unavailable' })
})
