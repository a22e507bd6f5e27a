import type { FastifySessionOptions } from '@fastify/session'
import type { RegisterOptions } from 'fastify'
import { isPlainObject } from './claims.js'
import { OptionsError, unknownOption } from './errors.js'
import type { LinkHook, LinkingPolicy, LinkingRule, SignInHook, SignInRules } from './flows/sign-in-rules.js'
import { SignedRequests } from './flows/signed-requests.js'
import { LocalIdentityProvider } from './local/identity-provider.js'
import type { OriginRules } from './http/own-origin.js'
import { assertProviderName } from './providers/provider-options.js'
import type { ExternalProvider } from './providers/provider.js'
import { ANY_ORIGIN, publicPath, sameOriginPath } from './http/redirects.js'
import { secretsOf } from './secrets.js'
import { MemoryAuthStore } from './store/memory.js'
import { type AuthStore, STORE_METHODS } from './store/store.js'

/** Options of @fastify/session; `secret` comes from the setting SVC_SESSION_SECRET unless given. */
export type SessionOptions = Partial<FastifySessionOptions>

/** What `register` takes beside the plugin. */
export interface AuthPluginOptions {
  /** The public URL of the application, such as `https://app.example`; required once a provider is registered. */
  baseUrl?: string | undefined
  /** External identity providers; each gets a login and a callback route. */
  providers?: readonly ExternalProvider[] | undefined
  /** The built-in identity provider: passwords and tokens. Its routes are mounted when it is given. */
  local?: LocalIdentityProvider | undefined
  /** Where users, links and claims are kept; default in memory, lost on restart. */
  store?: AuthStore | undefined
  /** The session that the plugin registers; must be absent when the application has registered @fastify/session itself. */
  session?: SessionOptions | undefined
  /** The path in front of all routes; default `/auth`. */
  prefix?: string
  /** When an unknown identity joins the user who has its e-mail; default `verified-email`: when both sides have it verified. */
  linking?: LinkingPolicy | undefined
  /** Called before each sign-in is written into the session; may grant claims, and refuse. */
  onSignIn?: SignInHook | undefined
  /** Called before an identity is added to the account of a signed-in user who asked for it; may refuse. */
  onLink?: LinkHook | undefined
  /** The application's own page for signing in, such as `/login`: browsers are sent there by guards (with `next`) and with errors that have no other page. */
  loginPage?: string | undefined
  /** Origins besides the application's own whose pages may send POST requests, such as `https://admin.app.example`. */
  trustedOrigins?: readonly string[] | undefined
  /** How often an address may try to sign in, register and come back from a provider; `false` for as often as it likes. */
  rateLimit?: false | RateLimitOptions | undefined
}

/** How often something may be tried. Of an IPv6 address the /64 counts as the address, for its owner has all of it. */
export interface RateLimitOptions {
  /** Milliseconds in which attempts are counted; default 900000 (15 minutes). */
  timeWindow?: number
  /** How many times the limits of one address an IPv6 network (/48) has; default 10. */
  network?: number
  /** Sign-ins by password from one address; default 300. */
  login?: number
  /** Sign-ins by password from one address with one e-mail; default 20. Other addresses have counts of their own, so nobody locks the owner out. */
  account?: number
  /** Sign-ins started at a provider from one address; default 300. They have a count of their own: pages of other sites can start them. */
  start?: number
  /** Registrations from one address; default 60. */
  register?: number
  /** Returns from a provider from one address; default 300. */
  callback?: number
  /** A store class as @fastify/rate-limit takes it, for several machines; default this process's memory. */
  store?: new (options: object) => RateLimitStore
}

/** Counts that several machines share, of the kind that @fastify/rate-limit uses. */
export interface RateLimitStore {
  /** Counts one more; `ttl` is the number of milliseconds after which the count begins anew. */
  incr (key: string, callback: (error: Error | null, result?: { current: number, ttl: number }) => void, timeWindow: number, max: number): void
  /** The store for one route: each has counts of its own. */
  child (options: object): RateLimitStore
}

export type Limited = 'login' | 'account' | 'start' | 'register' | 'callback'

export type ResolvedRateLimits = Readonly<Record<Limited | 'timeWindow' | 'network', number> & Pick<RateLimitOptions, 'store'>>

/** The options after the check: nothing is missing. */
export interface ResolvedOptions extends SignInRules, OriginRules {
  /** Without a trailing slash; null when it was not given. */
  readonly baseUrl: string | null
  readonly providers: readonly ExternalProvider[]
  readonly local: LocalIdentityProvider | null
  /** Null when the application has a session of its own. */
  readonly session: FastifySessionOptions | null
  /** With that of the context in which the plugin is registered. */
  readonly prefix: string
  /** A path of this application as browsers see it: under that of `baseUrl`. */
  readonly loginPage: string | null
  /** Signs what `app.auth.signInUrl` asks of a provider. */
  readonly signedRequests: SignedRequests
  /** Null for no limits. */
  readonly rateLimit: ResolvedRateLimits | null
}

/** What the plugin finds where it is registered. */
export interface Surroundings {
  /** Whether the application has registered @fastify/session itself. */
  session?: boolean
  /** Whether it has registered @fastify/rate-limit itself. */
  rateLimit?: boolean
  /** The prefix of the context, which is in front of all of its routes. */
  prefix?: string
}

/** Fastify itself takes the last two. */
const KNOWN_OPTIONS = ['baseUrl', 'providers', 'local', 'store', 'session', 'prefix', 'trustedOrigins', 'linking', 'onSignIn', 'onLink', 'loginPage', 'rateLimit', 'logLevel', 'logSerializers']

const OF_A_PROVIDER = 'it is one of a provider, such as providers: [new GoogleProvider({ clientId, clientSecret })]'

/** Where the options are that people look for among these. */
const ELSEWHERE: ReadonlyMap<string, string> = new Map([
  ['secret', 'that of the session is session: { secret }, that of tokens local: new LocalIdentityProvider({ secret })'],
  ['cookie', 'it is one of the session: session: { cookie }'],
  ['cookieName', 'it is one of the session: session: { cookieName }'],
  ['clientId', OF_A_PROVIDER],
  ['clientSecret', OF_A_PROVIDER],
  ['registration', 'it is one of the local provider: local: new LocalIdentityProvider({ registration })']
])

export const DEFAULT_PREFIX = '/auth'

const MINUTE_MS = 60_000
const DEFAULT_RATE_LIMITS = { timeWindow: 15 * MINUTE_MS, network: 10, login: 300, account: 20, start: 300, register: 60, callback: 300 }

const PREFIX = /^(\/(?!\.{1,2}(\/|$))[A-Za-z0-9_~.-]+)+$/

/**
 * Checks what was passed to `register`.
 *
 * @param around where the plugin is registered
 * @throws OptionsError naming the option, what was expected and what to do
 */
export function resolveOptions (options: AuthPluginOptions & RegisterOptions, around: Surroundings = {}): ResolvedOptions {
  for (const name of Object.keys(options)) {
    if (!KNOWN_OPTIONS.includes(name)) throw unknownOption('fastify-svc-auth', name, whereIs(name))
  }
  const providers = checkedProviders(options.providers ?? [])
  const prefix = checkedPrefix(options.prefix ?? DEFAULT_PREFIX, around.prefix ?? '')
  const baseUrl = checkedBaseUrl(options.baseUrl, providers)
  const session = around.session === true
    ? noSession(options.session)
    : checkedSession(options.session, [prefix, publicPath(prefix, baseUrl)])
  return Object.freeze({
    baseUrl,
    providers,
    local: checkedLocal(options.local),
    store: checkedStore(options.store ?? new MemoryAuthStore()),
    session,
    signedRequests: new SignedRequests(session?.secret),
    prefix,
    trustedOrigins: checkedTrustedOrigins(options.trustedOrigins ?? []),
    linking: checkedLinking(options.linking ?? 'verified-email'),
    onSignIn: checkedHook<SignInHook>(options.onSignIn, 'onSignIn must be a function ({ request, principal, identity, tokens, created }) => void'),
    onLink: checkedHook<LinkHook>(options.onLink, 'onLink must be a function ({ request, userId, identity, tokens }) => void'),
    loginPage: checkedLoginPage(options.loginPage, baseUrl),
    rateLimit: checkedRateLimit(options.rateLimit ?? {}, around.rateLimit === true)
  })
}

function whereIs (name: string): string {
  const meant = KNOWN_OPTIONS.find(option => spelling(option) === spelling(name))
  if (meant !== undefined) return `it is called ${meant}`
  return ELSEWHERE.get(name) ?? `expected one of ${KNOWN_OPTIONS.join(', ')}`
}

/** The same for baseUrl, baseURL and base_url, for providers and provider. */
function spelling (name: string): string {
  return name.toLowerCase().replaceAll('_', '').replace(/s$/, '')
}

function checkedBaseUrl (baseUrl: unknown, providers: readonly ExternalProvider[]): string | null {
  if (baseUrl === undefined) {
    if (providers.length === 0) return null
    throw new OptionsError('baseUrl is required once a provider is registered: providers send people back to it; set it to the public URL of the application, such as https://app.example')
  }
  const expected = 'baseUrl must be the public http: or https: URL of the application without user info, query or hash, such as https://app.example'
  if (typeof baseUrl !== 'string' || !URL.canParse(baseUrl)) throw new OptionsError(expected)
  const { protocol, username, password, search, hash, origin, pathname } = new URL(baseUrl)
  if (!['http:', 'https:'].includes(protocol) || [username, password, search, hash].some(part => part !== '')) throw new OptionsError(expected)
  return origin + pathname.replace(/(?<!\/)\/+$/, '')
}

function checkedProviders (providers: unknown): readonly ExternalProvider[] {
  if (!Array.isArray(providers)) throw new OptionsError('providers must be a list of providers, such as [new OidcProvider({ ... })]')
  const names = new Set<string>()
  for (const provider of providers as unknown[]) {
    if (typeof provider === 'function') throw new OptionsError(`providers must hold objects of a provider class, and not the class: new ${provider.name}({ clientId, clientSecret })`)
    if (provider instanceof LocalIdentityProvider) throw new OptionsError('providers must hold objects of a provider class for external providers; the LocalIdentityProvider is the option local')
    if (!isProvider(provider)) throw new OptionsError('providers must hold objects of a provider class, such as new GoogleProvider({ clientId, clientSecret }), or with name, authorizationUrl and authenticate')
    assertProviderName(provider.name)
    if (names.has(provider.name)) throw new OptionsError(`providers must have different names, but two are called "${provider.name}"`)
    names.add(provider.name)
  }
  return Object.freeze([...providers])
}

function checkedLocal (local: unknown): LocalIdentityProvider | null {
  if (local === undefined) return null
  if (!(local instanceof LocalIdentityProvider)) throw new OptionsError('local must be a LocalIdentityProvider: new LocalIdentityProvider({ ... })')
  return local
}

function checkedStore (store: unknown): AuthStore {
  if (!isStore(store)) throw new OptionsError('store must be an AuthStore, such as new SqlAuthStore(); where sessions are kept is session.store')
  return store
}

function noSession (session: unknown): null {
  if (session === undefined) return null
  throw new OptionsError('session must be absent: the application has registered @fastify/session itself, and that session is used')
}

/** @param routes the path of the routes as the application sees it, and as browsers do */
function checkedSession (session: unknown, routes: readonly string[]): FastifySessionOptions {
  const options = session ?? {}
  if (!isSessionOptions(options)) throw new OptionsError('session must be an object of options for @fastify/session')
  if (options.store !== undefined && !isSessionStore(options.store)) {
    throw new OptionsError('session.store must be a store for sessions, an object with get, set and destroy, such as new RedisStore({ client }); where users are kept is the option store')
  }
  const { path = '/' } = options.cookie ?? {}
  const uncovered = routes.find(prefix => !isPathAbove(path, prefix))
  if (uncovered !== undefined) {
    throw new OptionsError(`session.cookie.path must cover the routes under ${uncovered}; leave it out for "/"`)
  }
  return { ...options, secret: sessionSecret(options.secret) }
}

function isPathAbove (path: unknown, prefix: string): boolean {
  return typeof path === 'string' && path.startsWith('/') && `${prefix}/`.startsWith(path.endsWith('/') ? path : `${path}/`)
}

/** @fastify/session takes an object that signs too; what secret that has cannot be seen. */
function sessionSecret (secret: SessionOptions['secret']): FastifySessionOptions['secret'] {
  const isSigner = typeof secret === 'object' && secret !== null && 'sign' in secret && 'unsign' in secret
  return isSigner ? secret : secretsOf(secret, 'session.secret', 'SVC_SESSION_SECRET')
}

function checkedPrefix (prefix: unknown, ofContext: string): string {
  if (typeof prefix !== 'string' || !PREFIX.test(prefix)) throw new OptionsError('prefix must be a path such as /auth: it begins with a slash and does not end with one')
  const path = ofContext.replace(/\/$/, '') + prefix
  if (!PREFIX.test(path)) throw new OptionsError(`prefix must be a path also with that of the context in front, and ${path} is none of letters, digits, ~ . _ and - only, without parameters; register fastify-svc-auth outside of that context`)
  return path
}

function checkedTrustedOrigins (origins: unknown): ReadonlySet<string> {
  const isOrigin = (origin: unknown) => typeof origin === 'string' && URL.canParse(origin) && new URL(origin).origin === origin
  if (!Array.isArray(origins) || !origins.every(isOrigin)) {
    throw new OptionsError('trustedOrigins must be a list of origins such as https://admin.app.example: scheme, host and port, no path and no trailing slash')
  }
  return new Set<string>(origins)
}

function checkedLinking (linking: unknown): LinkingPolicy {
  if (linking === 'verified-email' || linking === 'never' || isFunction<LinkingRule>(linking)) return linking
  throw new OptionsError("linking must be 'verified-email', 'never' or a function (existing, identity) => boolean")
}

function checkedHook<Hook extends (...args: never[]) => unknown> (hook: unknown, expected: string): Hook | null {
  if (hook === undefined) return null
  if (!isFunction<Hook>(hook)) throw new OptionsError(expected)
  return hook
}

function checkedLoginPage (page: unknown, baseUrl: string | null): string | null {
  if (page === undefined) return null
  const path = sameOriginPath(page, ANY_ORIGIN)
  if (path === null || path !== page) throw new OptionsError('loginPage must be a path of this application, such as /login')
  return publicPath(path, baseUrl)
}

function checkedRateLimit (rateLimit: unknown, hasRateLimit: boolean): ResolvedRateLimits | null {
  if (rateLimit === false) return null
  if (!isRateLimit(rateLimit)) {
    throw new OptionsError('rateLimit must be false or { timeWindow: milliseconds, network, login, account, start, register, callback: whole numbers from 1, store: a class with incr and child }')
  }
  if (hasRateLimit && rateLimit.store !== undefined) {
    throw new OptionsError('rateLimit.store must be absent: the application has registered @fastify/rate-limit itself, and its store is used')
  }
  return Object.freeze({ ...DEFAULT_RATE_LIMITS, ...rateLimit })
}

function isProvider (value: unknown): value is ExternalProvider {
  return hasMethods(value, ['authorizationUrl', 'authenticate'])
}

function isStore (value: unknown): value is AuthStore {
  return hasMethods(value, STORE_METHODS)
}

function isSessionStore (value: unknown): boolean {
  return hasMethods(value, ['get', 'set', 'destroy'])
}

function isRateLimit (value: unknown): value is RateLimitOptions {
  if (!isPlainObject(value)) return false
  const { store, ...numbers } = value
  return (store === undefined || isCountStore(store)) &&
    Object.entries(numbers).every(([name, number]) => Object.hasOwn(DEFAULT_RATE_LIMITS, name) && Number.isSafeInteger(number) && Number(number) >= 1)
}

function isCountStore (value: unknown): boolean {
  const prototype: unknown = typeof value === 'function' ? value.prototype : undefined
  return hasMethods(prototype, ['incr', 'child'])
}

/** Whether it is an object that has them all. */
function hasMethods (value: unknown, names: readonly string[]): boolean {
  return typeof value === 'object' && value !== null && names.every(name => typeof Reflect.get(value, name) === 'function')
}

function isSessionOptions (value: unknown): value is SessionOptions {
  return isPlainObject(value) && (value.cookie === undefined || isPlainObject(value.cookie))
}

function isFunction<F extends (...args: never[]) => unknown> (value: unknown): value is F {
  return typeof value === 'function'
}
