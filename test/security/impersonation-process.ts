import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import Fastify from 'fastify'
import type { Test } from 'tap'
import authPlugin, { type AuthPluginOptions, SqlAuthStore } from '../../lib/index.js'
import { SESSION_SECRET, localProvider } from '../helpers/app.js'

/** The options of each process: the support may see each customer. */
export function supportOptions (target: string | undefined): AuthPluginOptions {
  return {
    // Not https, because the session cookie travels over http here.
    baseUrl: 'http://app.example',
    local: localProvider(),
    store: new SqlAuthStore(target),
    session: { secret: SESSION_SECRET },
    rateLimit: false,
    impersonation: { allow: ({ actor }) => actor.claims.role === 'support' }
  }
}

// As a program: an application on the database of its first argument, which ends when it is let go.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const app = Fastify()
  await app.register(authPlugin, supportOptions(process.argv[2]))
  const { auth } = app
  app.get('/guarded', { preHandler: auth.requireUser }, async ({ principal }) => ({ principal }))
  app.get('/refreshed', { preHandler: [auth.refresh, auth.requireUser] }, async ({ principal }) => ({ principal }))
  app.post('/visits', { preHandler: auth.requireUser }, async ({ session }) => Object.assign(session, { visit: Math.random() }).visit)
  app.post<{ Body: { userId: string } }>('/support', async request => auth.impersonate(request, request.body.userId, { reason: 'a ticket' }))
  process.once('disconnect', () => app.close())
  process.send?.(await app.listen({ host: '127.0.0.1', port: 0 }))
}

/** Starts the application in a process of its own, and resolves to its origin. */
export async function forkSupport (t: Test, target: string): Promise<string> {
  const child = fork(fileURLToPath(import.meta.url), [target], { execArgv: process.execArgv })
  const exited = once(child, 'exit')
  const [origin]: unknown[] = await Promise.race([
    once(child, 'message'), exited.then(([code]) => { throw new Error(`the application ended with ${code}`) })
  ])
  t.teardown(async () => {
    if (child.connected) child.disconnect()
    await exited
  })
  return String(origin)
}
