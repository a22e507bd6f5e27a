import { EventEmitter } from 'node:events'
import { setImmediate, setTimeout } from 'node:timers/promises'
import type {
  FastifyBaseLogger, FastifyInstance, FastifyPluginAsync, FastifyTypeProvider, RawServerBase
} from 'fastify'
import fp from 'fastify-plugin'
import type { AuthStore } from './accounts/auth-store.js'
import { Auth } from './features/app-auth/auth.js'
import type { AuthEvents } from './audit.js'
import type { AuthContext } from './core/context.js'
import { OptionsError } from './errors.js'
import { assertAsksHook } from './hooks.js'
import {
  METHODS, SIGN_IN_CHECKS, actingRuleOf, actsOf, connectionRuleOf, featuresOf, membersOf, requirementOf
} from './features.js'
import { redirectToBaseUrl } from './core/redirect-pages.js'
import { isSecureOrLocal } from './core/fetching.js'
import type { LocalIdentityProvider } from './features/local/local-identity-provider.js'
import {
  type AuthPluginOptions, DEFAULT_PREFIX, type GivenOptions, type ResolvedOptions, resolveOptions
} from './options.js'
import { passwordQueue } from './features/password/forms.js'
import { Sealer } from './sealed.js'
import { warnOfRepeatedCookie } from './session/cookies.js'
import { type AuthenticationState, type Principal, authenticationOf, shownPrincipal } from './session/record.js'
import { registerSession } from './session/register.js'
import { watchSession } from './session/request-sessions.js'
import { MemoryEntries, MemorySessions } from './engines/memory/memory.js'
import { capabilitiesOf } from './session/store.js'
import { SqlAuthStore } from './engines/sql.js'
import { mountActs } from './core/act.js'
import { type Counter, setUpCounter, setUpRateLimits } from './core/limits.js'
import { Mailer, setUpMailLimits } from './core/mailer.js'
import { documentRoutes } from './core/openapi.js'
import { checkRequests, mountNotFound, setUpScope } from './core/scope.js'
import { answerForGuards } from './core/guard.js'

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
    /** The signed-in user, or a guest; null for another visitor. */
    readonly principal: Principal | null
    /** How and when the signed-in user authenticated, or null. */
    readonly authentication: AuthenticationState | null
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
      Logger extends FastifyBaseLogger = LoggerDefault,
      Tx = unknown
    >(
      // By the name that fastify-plugin adds, so that no other plugin is meant.
      plugin: FastifyPluginAsync<AuthPluginOptions, Server, TypeProvider, Logger> & Record<'fastifySvcAuth', unknown>,
      options: GivenOptions<Tx>
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
  // Its Ajv refuses schemas that a document needs, or removes members of a session.
  if (app.hasPlugin('@fastify/response-validation')) {
    throw new OptionsError('@fastify/response-validation would change what the routes of fastify-svc-auth answer; ' +
      'register it after fastify-svc-auth')
  }
  const options = resolveOptions(given, {
    session: hasSession,
    rateLimit: app.hasDecorator('createRateLimit'),
    prefix: app.prefix
  })
  const { local, onCreateUser, store, session } = options
  if (onCreateUser !== null) await assertAsksHook(store, onCreateUser)
  warnInProduction(app, options)
  if (store instanceof SqlAuthStore) store.connect(app.log)
  if (session !== null) await registerSession(app, session)
  app.addHook('onRequest', watchSession)
  app.addHook('onSend', answerForGuards)

  const context = await contextOf(app, options)
  const { mailer, providers } = context
  app.decorate('auth', Object.assign(new Auth(context, store, app.log), membersOf(context, app.log)))
  app.decorate('authProviders', Object.freeze(providers.map(provider => provider.name)))
  app.decorate('localIdp', local)
  app.decorateRequest('principal', { getter () { return shownPrincipal(this) } })
  app.decorateRequest('authentication', { getter () { return authenticationOf(this) } })
  app.decorateRequest('token', null)

  // Hooks run in reverse order: the store closes after the mails, which are counted in it.
  const users = applications.get(store) ?? new Set()
  applications.set(store, users)
  app.addHook('onClose', async () => {
    users.delete(app)
    if (users.size === 0) await store.close()
  })
  if (mailer !== null) app.addHook('onClose', async () => mailer.close())

  const features = featuresOf(context)
  for (const { addHooks } of features) addHooks?.(app, context)
  const acts = await actsOf(features, context)
  await app.register(async scope => {
    const compilations = await setUpScope(scope, context)
    documentRoutes(scope)
    for (const { mountDocuments } of features) await mountDocuments?.(scope, context)
    await scope.register(async scope => {
      mountNotFound(scope, context)
      await scope.register(async scope => {
        checkRequests(scope, context.site)
        if (session === null) scope.addHook('onRequest', warnOfRepeatedCookie)
        await mountActs(scope, context, acts)
      })
    }, { prefix: given.prefix ?? DEFAULT_PREFIX })
    const openStore = (): unknown => store instanceof SqlAuthStore && store.report(app.log)
    const preloads = [openStore, ...features.flatMap(({ preload }) => preload ? [() => preload(context)] : [])]
    const idle = async (): Promise<unknown> => setTimeout(STARTUP_IDLE_MS, null, { ref: false })
    afterReady(scope, () => [...preloads, idle, ...compilations])
  })
  // Last, so that a failed registration does not keep the store open.
  users.add(app)
}

async function contextOf (app: FastifyInstance, options: ResolvedOptions): Promise<AuthContext> {
  const { session, store, rateLimit, layout, dataSecrets, signOutSecrets, ...resolved } = options
  const { local, site } = resolved
  const capabilities = capabilitiesOf(store)
  const records = capabilities.entries ?? new MemoryEntries()
  for (const entries of [records, session?.rows.entries]) {
    if (entries instanceof MemoryEntries) entries.log = app.log
  }
  const counter = await setUpCounter(app, rateLimit, capabilities.attempts)
  const channel = new EventEmitter<AuthEvents>()
  // An application may have a listener for each open socket.
  channel.setMaxListeners(0)
  const mailer = mailerOf(options, counter)
  const hasSteps = mailer !== null || Object.values(resolved.parts).some(part => part !== null)
  const { prefix } = resolved
  const pageLayout = hasSteps
    ? (await import('./core/pages/lead-to.js')).layoutOf({ layout, site, prefix })
    : layout
  const context = {
    ...resolved,
    capabilities,
    records,
    channel,
    redirectToBaseUrl: redirectToBaseUrl(site),
    signOutSealer: signOutSecrets && new Sealer(signOutSecrets, 'sign-out at a provider'),
    layout: pageLayout,
    passwords: local && passwordQueue(local, pageLayout),
    hasPages: layout !== null,
    formPaths: new Map(),
    pages: new Map(),
    methods: METHODS,
    signInChecks: SIGN_IN_CHECKS,
    requiresFactor: requirementOf(resolved),
    mayAct: actingRuleOf(resolved),
    connectionRule: connectionRuleOf(resolved),
    limits: setUpRateLimits(counter, rateLimit),
    mailer
  }
  return Object.freeze({ ...context, offered: METHODS.filter(({ isOffered }) => isOffered(context)) })
}

/** The applications that share a store: it is closed with the last one. */
const applications = new WeakMap<AuthStore, Set<FastifyInstance>>()

/** Until then a first login need not wait for the compilation of other routes' schemas. */
const STARTUP_IDLE_MS = 1000

function mailerOf ({ local, mailTokens, site, prefix, redirects }: ResolvedOptions, counter: Counter): Mailer | null {
  if (local?.mail == null || mailTokens === null || site.baseUrl === null) return null
  const limits = setUpMailLimits(local.mail.choices.limits ? counter : null)
  const urlOf = (path: string): URL => new URL(path, String(site.baseUrl))
  const { account: page } = redirects.application
  const hasRows = page === site.routePath(`${prefix}/pages/account`)
  const account = page === null ? null : { url: urlOf(page).href, hasRows }
  return new Mailer(local.mail, mailTokens, { base: urlOf(site.routePath(`${prefix}/`)), account }, limits)
}

/** Runs in the background, once the application is ready, what its first login would wait for. */
function afterReady (app: FastifyInstance, steps: () => ReadonlyArray<() => unknown>): void {
  let isClosing = false
  app.addHook('preClose', async () => { isClosing = true })
  const work = async (): Promise<void> => {
    for (const step of steps()) {
      if (isClosing) return
      // Requests that came during the start are served first.
      await setImmediate()
      try {
        await step()
      } catch (error) {
        if (!isClosing) app.log.error({ err: error }, 'Requests that need this part will fail')
      }
    }
  }
  app.addHook('onReady', async () => { work() })
}

/** Warns of what may be meant, on a trusted network and in a single process, and mostly is not. */
function warnInProduction (app: FastifyInstance, { session, site: { baseUrl } }: ResolvedOptions): void {
  if (process.env.NODE_ENV !== 'production') return
  if (baseUrl !== null && !isSecureOrLocal(baseUrl)) {
    app.log.warn('baseUrl is an http: URL, so passwords and session cookies can be read on the network. ' +
      'Set it to the https: URL of the application.')
  }
  const isInMemory = session?.options.store === undefined && session?.rows.sessions instanceof MemorySessions
  if (isInMemory && !session.isMemoryChosen) {
    app.log.warn('Sessions are kept in the memory of this process: ' +
      'a restart signs all users out, and other processes do not see the sessions. ' +
      'Use SqlAuthStore, whose database keeps them, or set session.store.')
  }
}

const plugin = fp(authPlugin, { name: 'fastify-svc-auth', fastify: '^5.12.1' })

/**
 * Adds sign-in to a Fastify application: mounts the routes of its providers, and decorates
 * `app.auth`, `app.authProviders`, `app.localIdp`, `request.principal`, `request.authentication`
 * and `request.token`.
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
