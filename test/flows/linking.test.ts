import t, { type Test } from 'tap'
import { AuthError, type AuthStore, MemoryAuthStore, SqlAuthStore } from '../../lib/index.js'
import { userOfIdentity } from '../../lib/flows/sign-in.js'
import type { Identity } from '../../lib/providers/provider.js'

const EMAIL = 'ada@example.com'

const verified = (subject: string, email = EMAIL): Identity => ({ subject, claims: { sub: subject, email, email_verified: true, name: 'Ada' }, emailVerified: true })
const unverified = (subject: string, email = EMAIL): Identity => ({ subject, claims: { sub: subject, email }, emailVerified: false })
const anonymous = (subject: string): Identity => ({ subject, claims: { sub: subject }, emailVerified: false })

async function localUser (store: AuthStore): Promise<string> {
  const userId = '00000000-0000-4000-8000-000000000001'
  await store.createUser({ userId, email: EMAIL, emailVerified: false, name: null, claims: {}, link: { provider: 'local', subject: EMAIL, claims: { sub: userId } }, passwordHash: 'x' })
  return userId
}

async function refused (t: Test, attempt: Promise<unknown>): Promise<void> {
  await t.rejects(attempt, { name: 'AuthError', code: 'account_exists', statusCode: 409 })
}

for (const Store of [MemoryAuthStore, SqlAuthStore]) {
  t.test(`with ${Store.name}`, async t => {
    const newStore = (t: Test): AuthStore => {
      const store = new Store(':memory:')
      t.teardown(() => store.close())
      return store
    }

    t.test('an unknown identity becomes a user, a known one stays that user', async t => {
      const store = newStore(t)
      const first = await userOfIdentity(store, 'a', verified('1'))
      const second = await userOfIdentity(store, 'a', verified('1'))
      t.match(first, { email: EMAIL, emailVerified: true, name: 'Ada', claims: {} })
      t.equal(second.userId, first.userId)
    })

    t.test('equal subjects at two providers are two users', async t => {
      const store = newStore(t)
      const users = [await userOfIdentity(store, 'a', anonymous('1')), await userOfIdentity(store, 'b', anonymous('1'))]
      t.not(users[0]?.userId, users[1]?.userId)
    })

    t.test('an identity with the same verified e-mail joins the user, in whatever spelling', async t => {
      const store = newStore(t)
      const first = await userOfIdentity(store, 'a', verified('1'))
      const second = await userOfIdentity(store, 'b', verified('2', ' ADA@Example.com'))
      t.equal(second.userId, first.userId)
      t.strictSame((await store.links(first.userId)).map(({ provider, subject }) => [provider, subject]), [['a', '1'], ['b', '2']])
    })

    t.test('another subject at the same provider does not, whoever has the address now', async t => {
      const store = newStore(t)
      await userOfIdentity(store, 'a', verified('1'))
      await refused(t, userOfIdentity(store, 'a', verified('2')))
    })

    t.test('an unverified e-mail joins nobody, and belongs to nobody', async t => {
      const store = newStore(t)
      const squatter = await userOfIdentity(store, 'a', unverified('1'))
      const owner = await userOfIdentity(store, 'b', verified('2'))
      t.not(owner.userId, squatter.userId)
      t.equal(squatter.email, null)
      await refused(t, userOfIdentity(store, 'c', unverified('3')))
      t.equal((await userOfIdentity(store, 'a', unverified('1'))).userId, squatter.userId, 'the first still signs in as himself')
    })

    t.test('who registered the e-mail with a password is not joined: the address was never proven to be his', async t => {
      const store = newStore(t)
      const userId = await localUser(store)
      await refused(t, userOfIdentity(store, 'a', verified('1')))
      t.equal((await store.links(userId)).length, 1)
    })

    t.test('a changed e-mail is taken over, unless it is somebody else\'s', async t => {
      const store = newStore(t)
      const ada = await userOfIdentity(store, 'a', verified('1'))
      const eve = await userOfIdentity(store, 'a', verified('2', 'eve@example.com'))
      t.equal((await userOfIdentity(store, 'a', verified('1', 'new@example.com'))).email, 'new@example.com')
      const unchanged = await userOfIdentity(store, 'a', verified('2', 'new@example.com'))
      t.strictSame([unchanged.userId, unchanged.email], [eve.userId, 'eve@example.com'])
      t.equal((await store.findUser({ email: 'new@example.com' }))?.userId, ada.userId)
    })

    t.test('an e-mail that is no address is none', async t => {
      const store = newStore(t)
      t.equal((await userOfIdentity(store, 'a', verified('1', 'nobody'))).email, null)
    })

    t.test('two hundred first sign-ins of one identity at once end as one user with one link', async t => {
      const store = newStore(t)
      const users = await Promise.all(Array.from({ length: 200 }, () => userOfIdentity(store, 'a', verified('1'))))
      const ids = new Set(users.map(({ userId }) => userId))
      t.equal(ids.size, 1)
      t.equal((await store.links([...ids][0] ?? '')).length, 1)
    })

    t.test('first sign-ins of two identities with one verified e-mail at once end as one user', async t => {
      const store = newStore(t)
      const users = await Promise.all(Array.from({ length: 40 }, (_, index) => userOfIdentity(store, `p${index % 4}`, verified(`s${index % 4}`))))
      const ids = new Set(users.map(({ userId }) => userId))
      t.equal(ids.size, 1)
      t.equal((await store.links([...ids][0] ?? '')).length, 4)
    })
  })
}

t.test('a sign-in that always comes second gives up in the end', async t => {
  class ContendedStore extends MemoryAuthStore {
    override async createUser (): Promise<null> { return null }
  }
  const failure = await userOfIdentity(new ContendedStore(), 'a', anonymous('1')).catch((error: unknown) => error)
  t.ok(failure instanceof AuthError)
  t.match(failure, { code: 'unavailable' })
})
