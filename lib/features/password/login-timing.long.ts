/** Whether the time of a refused login tells more than that it was refused, with the default cost of passwords. */
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { startApp } from '../../../test/helpers/app.js'
import { STORES } from '../../../test/helpers/stores.js'
import { assertSameTime, timed } from '../../../test/helpers/turns.js'
import { Accounts } from '../../accounts/accounts.js'
import { type AuthStore, LocalIdentityProvider } from '../../index.js'

const ROUNDS = 40

const GUESS = 'not the password of anybody'

/** The addresses are of one length. */
const REFUSED = {
  'a known e-mail with a wrong password': { email: 'known-1@example.com', password: GUESS },
  'an unknown e-mail': { email: 'nobody1@example.com', password: GUESS },
  'the e-mail of an external identity': { email: 'outside@example.com', password: GUESS },
  'a known e-mail with 2,000 bytes': { email: 'known-1@example.com', password: 'x'.repeat(2000) },
  'a known e-mail with NUL in the password': { email: 'known-1@example.com', password: `${GUESS}\0` },
  'a stored hash that cannot be read': { email: 'damaged@example.com', password: GUESS }
}

for (const [kind, open] of Object.entries(STORES)) {
  t.test(`attack 40: the time of a refused login does not tell why it was refused, with users in ${kind}`, async t => {
    const store = await open(t)
    const local = new LocalIdentityProvider({ secret: randomUUID() })
    const app = await startApp(t, { local, store, rateLimit: false })
    const password = await local.rehashPassword(randomUUID())
    await addUser(store, 'local', 'known-1@example.com', password)
    await addUser(store, 'local', 'damaged@example.com', password.slice(0, -10))
    await addUser(store, 'elsewhere', 'outside@example.com')

    await assertSameTime(t, REFUSED, ROUNDS, async payload => timed(async () => {
      const { statusCode, body } = await app.inject({ method: 'POST', url: '/auth/local/login', payload })
      if (statusCode !== 401) t.fail(`a login of ${payload.email} was answered ${statusCode} ${body}`)
    }))
  })
}

async function addUser (store: AuthStore, provider: string, email: string, passwordHash?: string): Promise<void> {
  const userId = randomUUID()
  const link = { provider, subject: email, claims: { sub: userId, email } }
  const user = { userId, email, emailVerified: true, name: null, claims: {}, link }
  await new Accounts(store).createUser({ ...user, ...(passwordHash !== undefined && { passwordHash }) })
}
