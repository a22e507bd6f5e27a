import fp from 'fastify-plugin'
import type { FastifyInstance } from 'fastify'
import { Auth } from './auth.js'
import { OptionsError } from './errors.js'
import type { LocalIdentityProvider } from './local/identity-provider.js'
import type { TokenClaims } from './local/token.js'
import { type AuthPluginOptions, resolveOptions } from './options.js'
import { mountExternalRoutes } from './routes/external.js'
import { mountLocalRoutes } from './routes/local.js'
import { setUpRateLimits } from './routes/rate-limits.js'
import { setUpScope } from './routes/scope.js'
import { type Principal, principalOf } from './session/principal.js'
import { registerSession } from './session/register.js'

declare module 'fastify' {
  interface FastifyInstance {
    /** Users and their claims, guards, events. */
    auth: Auth
    /** The names of the external providers, in the order in which they were given. */
    authProviders: readonly string[]
    localIdp: LocalIdentityProvider | null
  }

  interface FastifyRequest {
    /** Who is signed in, or null. */
    readonly principal: Principal | null
    /** The claims of the Bearer token, behind the guard `requireBearer`; null elsewhere. */
    token: TokenClaims | null
  }
}

/**
 * Sign-in for a Fastify application: one `register`.
 *
 * @throws OptionsError naming the option that is wrong
 */
async function authPlugin (app: FastifyInstance, given: AuthPluginOptions): Promise<void> {
  if (app.hasDecorator('auth')) throw new OptionsError('this application has app.auth already; register fastify-svc-auth once, and no other plugin that decorates "auth"')
  const options = resolveOptions(given, { session: app.hasPlugin('@fastify/session'), rateLimit: app.hasDecorator('createRateLimit') })
  const { providers, local, store, session, baseUrl, prefix } = options

  if (session !== null) await registerSession(app, session, baseUrl === null ? 'auto' : baseUrl.startsWith('https:'))

  const auth = new Auth(options, app.log)
  app.decorate('auth', auth)
  app.decorate('authProviders', Object.freeze(providers.map(provider => provider.name)))
  app.decorate('localIdp', local)
  app.decorateRequest('principal', { getter () { return principalOf(this) } })
  app.decorateRequest('token', null)

  await app.register(async scope => {
    await setUpScope(scope, options)
    const limits = await setUpRateLimits(scope, options.rateLimit)
    for (const provider of providers) mountExternalRoutes(scope, provider, options, limits)
    if (local !== null) mountLocalRoutes(scope, local, auth.channel, options, limits)
  }, { prefix })

  app.addHook('onClose', async () => { await store.close() })
}

export default fp(authPlugin, { name: 'fastify-svc-auth', fastify: '^5.8.5' })
