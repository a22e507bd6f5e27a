import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import Fastify, { type FastifyInstance } from 'fastify'
import authPlugin, { Accounts, LocalIdentityProvider, MemoryAuthStore, SqlAuthStore } from '../../dist/index.js'
import { serve } from '../parts/serve.js'
import { type Kind, THROTTLED, addressOf } from './kinds.js'

const SEND_MS = 5
const UNLIMITED = 1_000_000

/**
 * Applications that send mails, slowly: with the usual registration, with one that confirms the
 * address first, and without any. The arguments are the database and the number of users of each kind.
 */
await serve({
  later: async (database, users) => appWith(database, Number(users), 'later'),
  first: async (database, users) => appWith(database, Number(users), 'first'),
  closed: async (database, users) => appWith(database, Number(users), null)
})

async function appWith (database: string | undefined, users: number, verify: 'later' | 'first' | null): Promise<FastifyInstance> {
  const store = database === 'memory' ? new MemoryAuthStore() : new SqlAuthStore(database)
  const app = Fastify()
  await app.register(authPlugin, {
    baseUrl: 'https://app.example',
    local: new LocalIdentityProvider({
      secret: randomUUID(),
      // The users have no password that is compared.
      argon2: { memoryCost: 8, timeCost: 1, parallelism: 1 },
      sendMail: async () => { await wait(SEND_MS) },
      signInByMail: true,
      registration: verify === null ? false : { verify }
    }),
    store,
    session: { secret: randomUUID() },
    rateLimit: { mail: UNLIMITED, register: UNLIMITED }
  })
  await app.ready()
  for (const number of [THROTTLED, ...Array(users).keys()]) {
    const addressAs = (kind: Kind): string => addressOf(kind, number)
    await app.auth.createUser({ email: addressAs('a'), emailVerified: true, password: randomUUID() })
    await app.auth.createUser({ email: addressAs('c'), password: randomUUID() })
    const blocked = await app.auth.createUser({ email: addressAs('e'), emailVerified: true, password: randomUUID() })
    await app.auth.block(blocked.userId)
    const userId = randomUUID()
    const email = addressAs('d')
    const link = { provider: 'elsewhere', subject: userId, claims: { sub: userId, email } }
    await new Accounts(store).createUser({ userId, email, emailVerified: true, name: null, claims: {}, link })
  }
  return app
}
