import { setImmediate } from 'node:timers/promises'
import fp from 'fastify-plugin'
import type { FastifyInstance } from 'fastify'
import { Auth } from './app-auth/auth.js'
import { OptionsError } from './errors.js'
import { hashing } from './local/hashing.js'
import type { LocalIdentityProvider } from './local/identity-provider.js'
import type { TokenClaims } from './local/token-claims.js'
import { type AuthPluginOptions, DEFAULT_PREFIX, resolveOptions } from './options.js'
import { mountExternalRoutes } from './routes/external.js'
import { mountLocalRoutes } from './routes/local.js'
import { documentRoutes } from './routes/openapi.js'
import { setUpRateLimits } from './routes/limits.js'
import { checkRequests, mountNotFound, setUpScope } from './routes/scope.js'
import { mountSessionRoutes } from './routes/session.js'
import { type Principal, principalOf } from './session/record.js'
import { registerSession } from './session/register.js'
import { SqlAuthStore } from './store/sql.js'

declare module 'fastify' {
  interface FastifyInstance {
    /** Users and their claims, guards, events. */
    auth: Auth
    /** The names of the external providers, in the order in which they were given. */
    authProviders: readonly string[]
    /** The option `local`, or null. */
    localIdp: LocalIdentityProvider | null
  }

  interface FastifyRequest {
    /** Who is signed in, or null. */
    readonly principal: Principal | null
    /** The claims of the Bearer token, behind the guard `requireBearer`; null elsewhere. */
    token: TokenClaims | null
  }
}

async function authPlugin (app: FastifyInstance, given: AuthPluginOptions): Promise<void> {
  if (typeof app?.hasDecorator !== 'function') throw new OptionsError('fastify-svc-auth is not called but registered: await app.register(authPlugin, { ... })')
  if (app.hasDecorator('auth')) throw new OptionsError('this application has app.auth already; register fastify-svc-auth once, and no other plugin that decorates "auth": @fastify/auth does, so register that in another context, or use app.auth.anyOf in its place')
  const hasSession = app.hasPlugin('@fastify/session')
  if (!hasSession && app.hasRequestDecorator('session')) {
    throw new OptionsError('this application has request.session already, and not of @fastify/session; take away the plugin that decorates "session", such as @fastify/secure-session, or register it in another context')
  }
  const options = resolveOptions(given, { session: hasSession, rateLimit: app.hasDecorator('createRateLimit'), prefix: app.prefix })
  const { providers, local, store, session, baseUrl } = options
  if (baseUrl !== null) warnOfPlainBaseUrl(app, baseUrl)

  if (session !== null) await registerSession(app, session, baseUrl === null ? 'auto' : baseUrl.startsWith('https:'))

  const auth = new Auth(options, app.log)
  app.decorate('auth', auth)
  app.decorate('authProviders', Object.freeze(providers.map(provider => provider.name)))
  app.decorate('localIdp', local)
  app.decorateRequest('principal', { getter () { return principalOf(this) } })
  app.decorateRequest('token', null)

  await app.register(async scope => {
    const compilations = await setUpScope(scope, options)
    documentRoutes(scope)
    mountNotFound(scope)
    await scope.register(async routes => {
      checkRequests(routes, options)
      const limits = await setUpRateLimits(routes, options.rateLimit)
      for (const provider of providers) mountExternalRoutes(routes, provider, options, limits)
      if (local !== null) mountLocalRoutes(routes, local, options, limits)
      mountSessionRoutes(routes, auth.channel, options)
    })
    if (local === null) return
    afterReady(scope, () => [() => hashing.preload(), () => store instanceof SqlAuthStore && store.preload(), ...compilations])
  }, { prefix: given.prefix ?? DEFAULT_PREFIX })

  app.addHook('onClose', async () => { await store.close() })
}

/**
 * Does in the background, when the application is ready, what its first registration or login would
 * otherwise wait for.
 */
function afterReady (app: FastifyInstance, steps: () => ReadonlyArray<() => unknown>): void {
  const work = async (): Promise<void> => {
    for (const step of steps()) {
      // First the start itself and the requests that came meanwhile.
      await setImmediate()
      try {
        await step()
      } catch {
        // The request that needs it meets the failure too, and answers.
      }
    }
  }
  app.addHook('onReady', async () => { work() })
}

/** Nothing but a warning: a network of one's own may be one that is trusted. */
function warnOfPlainBaseUrl (app: FastifyInstance, baseUrl: string): void {
  const { protocol, hostname } = new URL(baseUrl)
  if (process.env.NODE_ENV !== 'production' || protocol === 'https:' || ['localhost', '127.0.0.1', '[::1]'].includes(hostname)) return
  app.log.warn('baseUrl is an http: URL, so passwords and session cookies can be read on their way. Set it to the https: URL under which people find the application.')
}

/**
 * Sign-in for a Fastify application: one `register`. It mounts the routes of the providers that were given, and decorates `app.auth`,
 * `app.authProviders`, `app.localIdp`, `request.principal` and `request.token`.
 *
 * @throws OptionsError naming the option that is wrong
 *
 * @example
 * ```ts
 * await app.register(authPlugin, { baseUrl: 'https://app.example', providers: providersFromEnv(), store: new SqlAuthStore() })
 * app.get('/me', { preHandler: app.auth.requireUser }, async request => request.principal)
 * ```
 */
export default fp(authPlugin, { name: 'fastify-svc-auth', fastify: '^5.8.5' })
