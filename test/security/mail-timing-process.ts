import { fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import Fastify from 'fastify'
import type { Test } from 'tap'
import { Accounts } from '../../lib/accounts/accounts.js'
import authPlugin, { MemoryAuthStore, SqlAuthStore } from '../../lib/index.js'
import { SESSION_SECRET, localProvider } from '../helpers/app.js'

/** What registration asks for, if it is open. */
export type Registration = 'later' | 'first' | 'closed'

/** Many times what an answer takes: one that waited for its mail would be seen on any machine. */
const SEND_MS = 20

/** So many mails as each mailbox may have. */
const UNLIMITED = 1_000_000

/** The addresses have one length; `b` has no user. */
export function addressOf (kind: 'a' | 'b' | 'c' | 'd' | 'e', number: number): string {
  return `${kind}${String(number).padStart(6, '0')}@example.com`
}

/**
 * Starts an application that sends mails slowly, in a process of its own: what it does after an answer
 * does not count. Returns its origin; it ends with the test.
 *
 * @param target of an SQL store; null for a store in memory
 * @param users how many there are with each kind of address
 */
export async function forkSlowMailer (t: Test, target: string | null, registration: Registration, users: number): Promise<string> {
  const settings = [registration, String(users), ...target === null ? [] : [target]]
  const child = fork(fileURLToPath(import.meta.url), settings, { execArgv: process.execArgv })
  const exited = once(child, 'exit')
  t.teardown(async () => {
    if (child.connected) child.disconnect()
    await exited
  })
  const [origin] = await Promise.race([once(child, 'message'), exited.then(([code]) => { throw new Error(`the application ended with ${code}`) })])
  return String(origin)
}

// As a program: an application that ends when its parent lets it go.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , registration, users, target] = process.argv
  const store = target === undefined ? new MemoryAuthStore() : new SqlAuthStore(target)
  const app = Fastify()
  await app.register(authPlugin, {
    baseUrl: 'https://app.example',
    local: localProvider({
      sendMail: async () => { await setTimeout(SEND_MS) },
      signInByMail: true,
      registration: registration === 'closed' ? false : { verify: registration === 'first' ? 'first' : 'later' }
    }),
    store,
    session: { secret: SESSION_SECRET },
    rateLimit: { mail: UNLIMITED, register: UNLIMITED }
  })
  app.get('/mails-sent', async () => app.auth.mailsSent())
  await app.ready()
  for (let number = 0; number < Number(users); number++) {
    await app.auth.createUser({ email: addressOf('a', number), emailVerified: true, password: randomUUID() })
    await app.auth.createUser({ email: addressOf('c', number), password: randomUUID() })
    const email = addressOf('d', number)
    const link = { provider: 'elsewhere', subject: email, claims: { sub: email, email } }
    await new Accounts(store).createUser({ userId: randomUUID(), email, emailVerified: true, name: null, claims: {}, link })
    const { userId } = await app.auth.createUser({ email: addressOf('e', number), emailVerified: true, password: randomUUID() })
    await app.auth.block(userId)
  }
  process.once('disconnect', () => app.close())
  process.send?.(await app.listen({ host: '127.0.0.1', port: 0 }))
}
