import { setImmediate, setTimeout } from 'node:timers/promises'
import fp from 'fastify-plugin'
import type {
  FastifyBaseLogger, FastifyInstance, FastifyPluginAsync, FastifyTypeProvider, RawServerBase
} from 'fastify'
import { Auth } from './app-auth/auth.js'
import { varyByGuards } from './app-auth/guards.js'
import { OptionsError } from './errors.js'
import { redirectToBaseUrl } from './http/base-url.js'
import { hashing } from './passwords/hashing.js'
import type { AuthStore } from './accounts/auth-store.js'
import type { LocalIdentityProvider } from './local-identity-provider.js'
import type { TokenClaims } from './tokens/token-claims.js'
import { type AuthPluginOptions, DEFAULT_PREFIX, type GivenOptions, ResolvedOptions } from './options.js'
import type { OwnSession } from './session/session-options.js'
import { mountExternalRoutes } from './routes/external.js'
import { type Counter, setUpCounter } from './routes/counters.js'
import { setUpRateLimits } from './routes/limits.js'
import { setUpMailLimits } from './routes/mail-limits.js'
import { Mailer } from './routes/mailer.js'
import { documentRoutes } from './routes/openapi.js'
import { mountPasswordRoutes } from './routes/password.js'
import { checkRequests, mountNotFound, setUpScope } from './routes/scope.js'
import { mountSessionRoutes } from './routes/session.js'
import { acceptTasks } from './routes/tasks.js'
import { mountTokenRoutes } from './routes/tokens.js'
import { mountWellKnown } from './routes/well-known.js'
import { warnOfRepeatedCookie } from './session/cookie.js'
import {
  type AuthenticationState, type Principal, authenticationOf, principalOf
} from './session/record.js'
import { registerSession } from './session/register.js'
import { watchSession } from './session/request-sessions.js'
import { MemorySessions } from './store/memory/sessions.js'
import { SqlAuthStore } from './store/sql.js'
import { capabilitiesOf } from './store/capabilities.js'

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
    /** The signed-in user, or null. */
    readonly principal: Principal | null
    /** How and when the signed-in user authenticated, or null. */
    readonly authentication: AuthenticationState | null
    /** The claims of the Bearer token behind the guard `requireBearer`; null elsewhere. */
    token: TokenClaims | null
  }

  // Fastify's own signatures take no undefined for an option that Fastify has too, such as prefix.
  interface FastifyRegister<
    T,
    RawServer extends RawServerBase,
    TypeProviderDefault extends FastifyTypeProvider,
    LoggerDefault extends FastifyBaseLogger
  > {
    <
      Server extends RawServerBase = RawServer,
      TypeProvider extends FastifyTypeProvider = TypeProviderDefault,
      Logger extends FastifyBaseLogger = LoggerDefault
    >(
      // By the name that fastify-plugin adds, so that no other plugin is meant.
      plugin: FastifyPluginAsync<AuthPluginOptions, Server, TypeProvider, Logger> & Record<'fastifySvcAuth', unknown>,
      options: GivenOptions
    ): T
  }
}

async function authPlugin (app: FastifyInstance, given: AuthPluginOptions): Promise<void> {
  if (typeof app?.hasDecorator !== 'function') {
    throw new OptionsError('fastify-svc-auth is not called but registered: await app.register(authPlugin, { ... })')
  }
  if (app.hasDecorator('auth')) {
    throw new OptionsError('this application has app.auth already; register fastify-svc-auth once, and no other ' +
      'plugin that decorates "auth": @fastify/auth does, so register that in another context, ' +
      'or use app.auth.anyOf instead')
  }
  const hasSession = app.hasPlugin('@fastify/session')
  if (!hasSession && app.hasRequestDecorator('session')) {
    throw new OptionsError('this application has request.session already, and not of @fastify/session; remove the ' +
      'plugin that decorates "session", such as @fastify/secure-session, or register it in another context')
  }
  const options = new ResolvedOptions(given, {
    session: hasSession,
    rateLimit: app.hasDecorator('createRateLimit'),
    prefix: app.prefix
  })
  const { providers, local, store, session, site, pages } = options
  const { baseUrl } = site
  if (baseUrl !== null) warnOfPlainBaseUrl(app, baseUrl)
  if (store instanceof SqlAuthStore) store.connect(app.log)

  if (session !== null) {
    warnOfMemory(app, session)
    await registerSession(app, session)
  }

  app.addHook('onRequest', watchSession)
  app.addHook('onSend', varyByGuards)

  const auth = new Auth(options, app.log)
  app.decorate('auth', auth)
  app.decorate('authProviders', Object.freeze(providers.map(provider => provider.name)))
  app.decorate('localIdp', local)
  app.decorateRequest('principal', { getter () { return principalOf(this) } })
  app.decorateRequest('authentication', { getter () { return authenticationOf(this) } })
  app.decorateRequest('token', null)

  // Hooks run in reverse order: the store closes after the mails, which are counted in it.
  const users = applications.get(store) ?? new Set()
  applications.set(store, users)
  app.addHook('onClose', async () => {
    users.delete(app)
    if (users.size === 0) await store.close()
  })

  await mountWellKnown(app, options)

  await app.register(async scope => {
    const compilations = await setUpScope(scope, options)
    documentRoutes(scope)
    mountNotFound(scope)
    acceptTasks(auth, scope.prefix)
    await scope.register(async scope => {
      checkRequests(scope, site)
      if (session === null) scope.addHook('onRequest', warnOfRepeatedCookie)
      const counter = await setUpCounter(scope, options.rateLimit, capabilitiesOf(store).attempts)
      const mailer = mailerOf(options, counter)
      if (mailer !== null) scope.addHook('onClose', async () => mailer.close())
      const context = {
        scope,
        site,
        prefix: options.prefix,
        redirectToBaseUrl: redirectToBaseUrl(site),
        pathOf: (route: string) => site.routePath(`${options.prefix}/${route}`),
        rules: options,
        providers,
        signedRequests: options.signedRequests,
        pages,
        limits: setUpRateLimits(counter, options.rateLimit),
        onDelete: options.onDelete,
        channel: auth.channel,
        listedSessions: options.listedSessions,
        mailer,
        failurePages: new Map()
      }
      auth.noticesFrom(mailer)
      for (const provider of providers) mountExternalRoutes(context, provider)
      if (local !== null) mountPasswordRoutes(context, local)
      if (local !== null) mountTokenRoutes(context, local)
      if (mailer !== null || options.factors !== null || options.look !== null) {
        const { mountRoutesWithPages } = await import('./routes/pages.js')
        await mountRoutesWithPages(context, options)
      }
      mountSessionRoutes(context, local)
    })
    const openStore = (): unknown => store instanceof SqlAuthStore && store.report(app.log)
    const preloadHashing = (): unknown => local !== null && hashing.preload()
    const preloads = [openStore, preloadHashing, () => options.factors?.passkeys?.preload()]
    afterReady(scope, () => [...preloads, () => setTimeout(STARTUP_IDLE_MS, null, { ref: false }), ...compilations])
  }, { prefix: given.prefix ?? DEFAULT_PREFIX })
  // Last, so that a failed registration does not keep the store open.
  users.add(app)
}

/** The applications that share a store: it is closed with the last one. */
const applications = new WeakMap<AuthStore, Set<FastifyInstance>>()

/**
 * Until then a first login is served without waiting for the compilation of other routes' schemas.
 */
const STARTUP_IDLE_MS = 1000

/** Returns what sends the mails; null without the option `sendMail`. */
function mailerOf ({ local, mailTokens, site, prefix }: ResolvedOptions, counter: Counter): Mailer | null {
  if (local?.mail == null || mailTokens === null || site.baseUrl === null) return null
  const limits = setUpMailLimits(local.mail.choices.limits ? counter : null)
  return new Mailer(local.mail, mailTokens, new URL(site.routePath(`${prefix}/`), site.baseUrl), limits)
}

/**
 * Runs steps in the background once the application is ready, which its first registration or login
 * would wait for.
 */
function afterReady (app: FastifyInstance, steps: () => ReadonlyArray<() => unknown>): void {
  const work = async (): Promise<void> => {
    for (const step of steps()) {
      // Requests that came during the start are served first.
      await setImmediate()
      try {
        await step()
      } catch (error) {
        app.log.error({ err: error }, 'Requests that need this part will fail')
      }
    }
  }
  app.addHook('onReady', async () => { work() })
}

/** Warns in production about sessions in memory that were not asked for. */
function warnOfMemory (app: FastifyInstance, { options, rows, isMemoryChosen }: OwnSession): void {
  const isInMemory = options.store === undefined && rows.sessions instanceof MemorySessions && !isMemoryChosen
  if (process.env.NODE_ENV !== 'production' || !isInMemory) return
  app.log.warn('Sessions are kept in the memory of this process: ' +
    'a restart signs all users out, and other processes do not see the sessions. ' +
    'Use SqlAuthStore, whose database keeps them, or set session.store.')
}

/**
 * Warns in production about an http: URL. Not an error, because the application may be on a trusted
 * network.
 */
function warnOfPlainBaseUrl (app: FastifyInstance, baseUrl: string): void {
  const { protocol, hostname } = new URL(baseUrl)
  const isLocal = ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  if (process.env.NODE_ENV !== 'production' || protocol === 'https:' || isLocal) return
  app.log.warn('baseUrl is an http: URL, so passwords and session cookies can be read on the network. ' +
    'Set it to the https: URL of the application.')
}

const plugin = fp(authPlugin, { name: 'fastify-svc-auth', fastify: '^5.8.5' })

/**
 * Adds sign-in to a Fastify application. Mounts the routes of the providers that were given, and
 * decorates `app.auth`, `app.authProviders`, `app.localIdp`, `request.principal` and
 * `request.token`.
 *
 * @throws OptionsError naming the option that is wrong
 *
 * @example
 * ```ts
 * const providers = providersFromEnv()
 * await app.register(authPlugin, { baseUrl: 'https://app.example', providers, store: new SqlAuthStore() })
 * app.get('/me', { preHandler: app.auth.requireUser }, async request => request.principal)
 * ```
 */
const named: FastifyPluginAsync<AuthPluginOptions> & Record<'fastifySvcAuth', unknown> =
  Object.assign(plugin, { fastifySvcAuth: plugin })
export default named
