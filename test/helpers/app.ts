import Fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import type { Test } from 'tap'
import authPlugin, { type AuthPluginOptions, LocalIdentityProvider, type LocalIdentityProviderOptions, type Principal } from '../../lib/index.js'
import type { Browser } from './browser.js'

export const SESSION_SECRET = 'the-session-secret-of-the-tests-32+'
export const LOCAL_SECRET = 'the-local-secret-of-the-tests-32-and-more'

/** A cheap hash: what tests need is that it is one. */
export const CHEAP_ARGON2 = { memoryCost: 8, timeCost: 1, parallelism: 1 }

export function localProvider (options: LocalIdentityProviderOptions = {}): LocalIdentityProvider {
  return new LocalIdentityProvider({ secret: LOCAL_SECRET, argon2: CHEAP_ARGON2, ...options })
}

/** An application with the plugin, a `/me` that shows the principal, and whatever else `extend` adds; closed at the end of the test. */
export async function startApp (
  t: Test,
  options: AuthPluginOptions = {},
  server: FastifyServerOptions = {},
  extend: (app: FastifyInstance) => void = () => {}
): Promise<FastifyInstance> {
  const app: FastifyInstance = Fastify(server)
  t.teardown(() => app.close())
  await app.register(authPlugin, { session: { secret: SESSION_SECRET }, ...options })
  app.get('/me', async request => ({ principal: request.principal }))
  extend(app)
  await app.ready()
  return app
}

/** Who is signed in in a browser, according to `/me`. */
export async function principalIn (browser: Browser): Promise<Principal | null> {
  const response = await browser.get('/me')
  if (response.statusCode !== 200) throw new Error(`/me answered ${response.statusCode}`)
  return response.json().principal
}

export async function userIdIn (browser: Browser): Promise<string | null> {
  return (await principalIn(browser))?.userId ?? null
}
