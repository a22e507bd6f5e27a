import t from 'tap'
import { Accounts } from '../../lib/accounts/accounts.js'
import { MemoryAuthStore } from '../../lib/store/memory.js'
import { authStoreContract } from '../../lib/testing.js'

t.test('MemoryAuthStore', async t => {
  authStoreContract(t.test, () => new MemoryAuthStore())

  t.test('users can be read after the store was closed', async t => {
    const store = new MemoryAuthStore()
    await new Accounts(store).createUser({
      userId: '1',
      email: 'ada@example.com',
      emailVerified: true,
      name: null,
      claims: {},
      link: { provider: 'dev', subject: '1', claims: { sub: '1' } }
    })

    await store.close()

    t.hasStrict(await store.findUser({ email: 'ada@example.com' }), { userId: '1' })
  })
})
