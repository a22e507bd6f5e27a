import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import Fastify from 'fastify'
import type { Test } from 'tap'
import authPlugin, { type AuthStore, type AuthorizationClaims, SqlAuthStore } from '../../lib/index.js'
import { SESSION_SECRET, localProvider } from '../helpers/app.js'
import { OwnProvider } from '../helpers/own-provider.js'
import type { SessionStores } from '../helpers/session-stores.js'

/** An application with passwords, two providers and a route that grants, which listens on this machine. */
export interface AccountsApp {
  origin: string
  close (): Promise<unknown>
}

export async function startAccountsApp (store: AuthStore, sessions?: SessionStores): Promise<AccountsApp> {
  const app = Fastify()
  await app.register(authPlugin, {
    // Not https, for the session cookie travels over http here.
    baseUrl: 'http://app.example',
    local: localProvider(),
    providers: [new OwnProvider('mine'), new OwnProvider('other')],
    store,
    session: { secret: SESSION_SECRET, store: sessions },
    rateLimit: false
  })
  app.get('/me', async request => ({ principal: request.principal }))
  app.post<{ Body: AuthorizationClaims }>(
    '/grants',
    { preHandler: app.auth.requireUser },
    async request => app.auth.grant(String(request.principal?.userId), request.body)
  )
  const origin = await app.listen({ host: '127.0.0.1', port: 0 })
  return { origin, close: async () => app.close() }
}

/** The same in a process of its own, with a store on a database. */
export async function forkAccountsApp (t: Test, target: string): Promise<AccountsApp> {
  const child = fork(fileURLToPath(import.meta.url), [target], { execArgv: process.execArgv })
  const exited = once(child, 'exit')
  const [origin]: unknown[] = await Promise.race([once(child, 'message'), exited.then(([code]) => { throw new Error(`the application ended with ${code}`) })])
  const close = async () => {
    if (child.connected) child.disconnect()
    await exited
  }
  t.teardown(close)
  return { origin: String(origin), close }
}

// As a program: an application on the database of its first argument, which ends when it is let go.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const app = await startAccountsApp(new SqlAuthStore(process.argv[2]))
  process.once('disconnect', () => app.close())
  process.send?.(app.origin)
}
