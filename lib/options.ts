import type { RegisterOptions } from 'fastify'
import type { FactorRules } from './context.js'
import { CHANGE_PASSWORD, RELATED_ORIGINS } from './actions/well-known.js'
import { OptionsError, unknownOption } from './errors.js'
import type { Passkeys } from './factors/passkeys.js'
import type { SecondFactor, SecondFactorRules } from './factors/second-factor.js'
import type {
  DeleteHook, LinkHook, LinkingPolicy, LinkingRule, SignInHook
} from './hooks.js'
import { SignedRequests } from './http/signed-requests.js'
import { RedirectPages } from './http/redirect-pages.js'
import { ANY_ORIGIN, sameOriginPath, trustedUrl } from './http/redirects.js'
import { Site } from './http/site.js'
import { LocalIdentityProvider } from './local-identity-provider.js'
import type { MailPages } from './mails/mail.js'
import type { MailTokens } from './mails/mail-tokens.js'
import type { PageLayout } from './pages/page-layout.js'
import type { Pages } from './pages/pages.js'
import { assertProviderName } from './providers/provider-options.js'
import type { ExternalProvider } from './providers/provider.js'
import { type RateLimitOptions, type ResolvedRateLimits, checkedRateLimit } from './rate-limits.js'
import { Accounts } from './accounts/accounts.js'
import type { AuthStore } from './accounts/auth-store.js'
import { type Secrets, dataSecretsOf, requiredDataSecrets } from './secrets.js'
import { type OwnSession, type SessionOptions, checkedRemember, checkedSession } from './session/session-options.js'
import { MemoryAuthStore } from './store/memory.js'
import { assertCapabilities, capabilitiesOf } from './store/capabilities.js'
import type { StoredSessions } from './store/sessions.js'

/** The options of the plugin, which `register` takes. */
export interface AuthPluginOptions {
  /**
   * The public URL of the application, such as `https://app.example`; required once a provider is
   * registered.
   */
  baseUrl?: string | undefined
  /** External identity providers; a login and a callback route are mounted for each. */
  providers?: readonly ExternalProvider[] | undefined
  /**
   * The built-in identity provider: passwords and tokens. Without it none of its routes is mounted.
   */
  local?: LocalIdentityProvider | undefined
  /** The store of users, links and claims; default in memory, lost on restart. */
  store?: AuthStore | undefined
  /**
   * The session that the plugin registers; must be absent when the application has registered
   * @fastify/session itself.
   */
  session?: SessionOptions | undefined
  /**
   * Encrypts second factors and what waits for them, signs the cookies of trusted browsers, and the
   * links in mails with a `signingKey`: 32 characters or more, default SVC_AUTH_DATA_SECRET, which
   * may hold several, separated by blanks. The first encrypts and signs, all decrypt and verify.
   */
  dataSecret?: string | readonly string[] | undefined
  /** The path in front of all routes; default `/auth`. */
  prefix?: string | undefined
  /**
   * When an unknown identity is linked to the user with the same e-mail; default `verified-email`:
   * when it is verified on both sides.
   */
  linking?: LinkingPolicy | undefined
  /**
   * Called before each sign-in is written into the session; may grant claims or refuse the sign-in.
   */
  onSignIn?: SignInHook | undefined
  /**
   * Called before an identity is linked to the signed-in user who asked for it; may refuse the
   * link.
   */
  onLink?: LinkHook | undefined
  /**
   * Called before a user deletes their account: may remove the application's rows, or refuse.
   * `app.auth.deleteUser` does not call it.
   */
  onDelete?: DeleteHook | undefined
  /**
   * The application's own sign-in page, such as `/login`, or a URL of an origin in
   * `trustedOrigins`. Guards redirect browsers to it (with
   * `next`), and so do errors that no other page can show.
   */
  loginPage?: string | undefined
  /**
   * The application's page on which a signed-in user reauthenticates, such as
   * `/confirm`. The guard `requireRecent` redirects browsers to it, with `next`, and so do routes
   * of the plugin without a recent authentication, or without a recent second factor.
   */
  reauthenticatePage?: string | undefined
  /**
   * Second factors: `new SecondFactor({ issuer })` of `fastify-svc-auth/second-factor`. They need a
   * `dataSecret`.
   */
  secondFactor?: SecondFactor | undefined
  /**
   * Passkeys: `new Passkeys({ name })` of `fastify-svc-auth/passkeys`. They need `baseUrl` and the
   * package `@simplewebauthn/server`; the code for lost ones also a `dataSecret` and `sendMail`.
   */
  passkeys?: Passkeys | undefined
  /**
   * The application's page for second factors, such as `/second-factor`, in place of those of the
   * plugin: a visitor whose sign-in waits authenticates there, and a signed-in user sets a factor
   * up.
   */
  secondFactorPage?: string | undefined
  /**
   * The application's page on which a user changes the password, such as `/account/password`.
   * `GET /.well-known/change-password` redirects password managers to it.
   */
  changePasswordPage?: string | undefined
  /**
   * The plugin's pages for signing in and for the account: `new Pages({ name })` of
   * `fastify-svc-auth/pages`. The options for pages of the application come first.
   */
  pages?: Pages | undefined
  /**
   * Other origins whose pages are as good as those of the application, such as
   * `https://admin.app.example`: they may send POST requests, and redirects may lead to them.
   */
  trustedOrigins?: readonly string[] | undefined
  /**
   * Limits of sign-ins, registrations and returns from a provider for each address; `false` for
   * none.
   */
  rateLimit?: false | RateLimitOptions | undefined
}

/** The application in which the plugin is registered. */
export interface Surroundings {
  /** Whether the application has registered @fastify/session itself. */
  session?: boolean
  /** Whether the application has registered @fastify/rate-limit itself. */
  rateLimit?: boolean
  /** The prefix of the context, which precedes all of its routes. */
  prefix?: string
}

/** The options with those that Fastify takes for any plugin. */
export type GivenOptions = AuthPluginOptions & Omit<RegisterOptions, 'prefix'>

/** The names of the options. The last two are Fastify's. */
const KNOWN_OPTIONS = [
  'baseUrl', 'providers', 'local', 'store', 'session', 'dataSecret', 'prefix', 'trustedOrigins', 'linking', 'onSignIn',
  'onLink', 'onDelete', 'loginPage', 'reauthenticatePage', 'secondFactor', 'secondFactorPage', 'passkeys',
  'changePasswordPage', 'pages', 'rateLimit', 'logLevel', 'logSerializers'
]

const OF_A_PROVIDER = 'it is an option of a provider, ' +
  'such as providers: [new GoogleProvider({ clientId, clientSecret })]'

/** Hints for options that belong elsewhere. */
const ELSEWHERE: ReadonlyMap<string, string> = new Map([
  ['secret', 'the secret of sessions is session: { secret }, ' +
    'that of tokens local: new LocalIdentityProvider({ secret })'],
  ['cookie', 'it is an option of the session: session: { cookie }'],
  ['cookieName', 'it is an option of the session: session: { cookieName }'],
  ['clientId', OF_A_PROVIDER],
  ['clientSecret', OF_A_PROVIDER],
  ['registration', 'it is an option of the local provider: local: new LocalIdentityProvider({ registration })']
])

export const DEFAULT_PREFIX = '/auth'

const PREFIX = /^(\/(?!\.{1,2}(\/|$))[A-Za-z0-9_~.-]+)+$/

/** The options after the check, with their defaults. */
export class ResolvedOptions {
  readonly linking: LinkingPolicy
  readonly onSignIn: SignInHook | null
  readonly onLink: LinkHook | null
  readonly onDelete: DeleteHook | null
  readonly remember: number | null
  /** The limits of attempts; null for none. */
  readonly rateLimit: ResolvedRateLimits | null
  /**
   * The path in front of all routes, with the prefix of the context in which the plugin is
   * registered.
   */
  readonly prefix: string
  readonly providers: readonly ExternalProvider[]
  readonly local: LocalIdentityProvider | null
  /** The secrets of `dataSecret` or its setting, the newest first; null without any. */
  readonly dataSecrets: Secrets | null
  /** Issues and verifies the tokens in the links of mails; null without mails. */
  readonly mailTokens: MailTokens | null
  readonly store: AuthStore
  readonly accounts: Accounts
  /** The application as browsers see it: `baseUrl` without a trailing slash, `trustedOrigins`. */
  readonly site: Site
  /** The plugin's own session; null when the application has registered @fastify/session itself. */
  readonly session: OwnSession | null
  /** The sessions beside the users; null where a session store of the application has them. */
  readonly listedSessions: StoredSessions | null
  /** Signs and verifies the requests of `app.auth.signInUrl`. */
  readonly signedRequests: SignedRequests
  /** The pages that browsers are redirected to. */
  readonly pages: RedirectPages
  /** The second factors and passkeys that this process can ask for. */
  readonly factors: FactorRules
  /** How the plugin's own pages look; null without the option `pages`. */
  readonly look: PageLayout | null
  /** The page for changing the password as browsers see it. */
  readonly changePasswordPage: string | null
  /** Pages of the application for links in mails, as browsers see them; null without mails. */
  readonly mailPages: Readonly<Record<keyof MailPages, string | null>> | null

  /**
   * Checks the options that were passed to `register` and fills in the defaults.
   *
   * @param around the application in which the plugin is registered
   * @throws OptionsError naming the option, what was expected and what to do
   */
  constructor (options: GivenOptions, around: Surroundings = {}) {
    for (const name of Object.keys(options)) {
      if (!KNOWN_OPTIONS.includes(name)) throw unknownOption('fastify-svc-auth', name, hintFor(name))
    }
    this.linking = checkedLinking(options.linking ?? 'verified-email')
    this.onSignIn = checkedHook(
      options.onSignIn,
      'onSignIn must be a function ({ request, principal, identity, tokens, created }) => void'
    )
    this.onLink = checkedHook(
      options.onLink,
      'onLink must be a function ({ request, userId, identity, tokens }) => void'
    )
    this.onDelete = checkedHook(options.onDelete, 'onDelete must be a function ({ request, userId }) => void')
    this.remember = checkedRemember(options.session?.remember)
    this.prefix = checkedPrefix(options.prefix ?? DEFAULT_PREFIX, around.prefix ?? '')
    this.local = checkedLocal(options.local)
    this.dataSecrets = dataSecretsOf(options.dataSecret)
    this.mailTokens = this.local?.mail == null ? null : this.local.mailTokens(this.dataSecrets)
    this.providers = checkedProviders(options.providers ?? [])
    this.rateLimit = checkedRateLimit(options.rateLimit ?? {}, around.rateLimit === true)
    const baseUrl = checkedBaseUrl(options.baseUrl, this.providers.length > 0)
    const trustedOrigins = checkedTrustedOrigins(options.trustedOrigins ?? [])
    this.store = checkedStore(options.store ?? new MemoryAuthStore())
    this.accounts = new Accounts(this.store)
    this.site = new Site(baseUrl, trustedOrigins)
    this.session = around.session === true
      ? noSession(options.session)
      : checkedSession(options.session, {
        users: this.store,
        routes: [this.prefix, this.site.publicPath(this.prefix)],
        baseUrl
      })
    const isOfApplication = this.session === null || this.session.options.store !== undefined
    this.listedSessions = isOfApplication ? null : this.session.rows.sessions
    this.signedRequests = new SignedRequests(this.session?.options.secret)
    this.factors = this.#factorRules(options)
    if (this.factors.passkeys?.hasRelatedOrigins === true) {
      assertAtRoot('relatedOrigins of Passkeys', RELATED_ORIGINS, around.prefix ?? '')
    }
    this.look = checkedPages(options.pages)?.redirectingTo(trustedOrigins) ?? null
    const ownPage = (name: string): string | null => {
      return this.look === null ? null : this.site.routePath(`${this.prefix}/pages/${name}`)
    }
    this.changePasswordPage =
      checkedChangePasswordPage(options.changePasswordPage, this.site, around.prefix ?? '') ??
      (['', '/'].includes(around.prefix ?? '') ? ownPage('account') : null)
    this.mailPages = checkedMailPages(this.local, this.site)
    const login = checkedPage('loginPage', options.loginPage, this.site) ?? ownPage('sign-in')
    const reauthenticate =
      checkedPage('reauthenticatePage', options.reauthenticatePage, this.site) ?? ownPage('confirm')
    const signInPaths = this.providers.map(({ name }) => `${this.prefix}/${name}/`)
    const factorPage = checkedPage('secondFactorPage', options.secondFactorPage, this.site)
    const routePath = (option: unknown, path: string): string | null => {
      return option == null ? null : this.site.routePath(`${this.prefix}/${path}`)
    }
    this.pages = new RedirectPages(this.site, {
      login,
      reauthenticate,
      secondFactor: factorPage ?? (this.look === null
        ? routePath(this.factors.secondFactor, 'local/totp')
        : routePath(this.factors.secondFactor ?? this.factors.passkeys, 'pages/factors')),
      step: factorPage ?? routePath(this.factors.sealer, 'local/second-factor')
    }, signInPaths)
    Object.freeze(this)
  }

  #factorRules ({ secondFactor, passkeys }: AuthPluginOptions): FactorRules {
    if (passkeys !== undefined && !hasMethods<Passkeys>(passkeys, ['resolve'])) {
      throw new OptionsError("passkeys must be new Passkeys({ name: 'Shop' }) of fastify-svc-auth/passkeys")
    }
    const rules = secondFactor === undefined ? null : this.#secondFactorRules(secondFactor)
    return Object.freeze({
      secondFactor: rules,
      passkeys: passkeys?.resolve(this.site) ?? null,
      sealer: rules?.sealer ?? (this.dataSecrets && passkeys?.sealerOf(this.dataSecrets)) ?? null
    })
  }

  #secondFactorRules (secondFactor: unknown): SecondFactorRules {
    if (!hasMethods<SecondFactor>(secondFactor, ['rulesWith'])) {
      throw new OptionsError("secondFactor must be new SecondFactor({ issuer: 'Shop' }) " +
        'of fastify-svc-auth/second-factor')
    }
    const secrets = requiredDataSecrets(this.dataSecrets, 'with secondFactor, because it seals the secrets of users')
    const cookieName = this.session?.options.cookieName ?? 'svc_session'
    // svc_session and svc_trusted; the prefix __Host- stays.
    return secondFactor.rulesWith(secrets, `${cookieName.replace(/_?session$/, '')}_trusted`)
  }
}

function hintFor (name: string): string {
  const [meant] = KNOWN_OPTIONS.filter(option => spelling(option) === spelling(name))
  if (meant !== undefined) return `it is called ${meant}`
  return ELSEWHERE.get(name) ?? `expected one of ${KNOWN_OPTIONS.join(', ')}`
}

/** Returns the same for baseUrl, baseURL and base_url, and for providers and provider. */
function spelling (name: string): string {
  return name.toLowerCase().replaceAll('_', '').replace(/s$/, '')
}

function checkedBaseUrl (baseUrl: unknown, isRequired: boolean): string | null {
  if (baseUrl === undefined) {
    if (!isRequired) return null
    throw new OptionsError('baseUrl is required once a provider is registered, because providers redirect users ' +
      'back to it; set it to the public URL of the application, such as https://app.example')
  }
  const expected = 'baseUrl must be the public http: or https: URL of the application ' +
    'without user info, query or hash, such as https://app.example'
  if (typeof baseUrl !== 'string' || !URL.canParse(baseUrl)) throw new OptionsError(expected)
  const { protocol, username, password, search, hash, origin, pathname } = new URL(baseUrl)
  if (!['http:', 'https:'].includes(protocol) || `${username}${password}${search}${hash}` !== '') {
    throw new OptionsError(expected)
  }
  return origin + pathname.replace(/(?<!\/)\/+$/, '')
}

function checkedProviders (providers: unknown): readonly ExternalProvider[] {
  if (!Array.isArray(providers)) {
    throw new OptionsError('providers must be a list of providers, such as [new OidcProvider({ ... })]')
  }
  const names = new Set<string>()
  for (const provider of providers as unknown[]) {
    assertProvider(provider)
    assertProviderName(provider.name)
    if (names.has(provider.name)) {
      throw new OptionsError(`providers must have different names, but two are called "${provider.name}"`)
    }
    names.add(provider.name)
  }
  return Object.freeze([...providers])
}

function assertProvider (provider: unknown): asserts provider is ExternalProvider {
  const expected = 'providers must hold objects of a provider class'
  if (typeof provider === 'function') {
    throw new OptionsError(`${expected}, and not the class: new ${provider.name}({ clientId, clientSecret })`)
  }
  if (provider instanceof LocalIdentityProvider) {
    throw new OptionsError(`${expected} for external providers; the LocalIdentityProvider is the option local`)
  }
  if (!hasMethods<ExternalProvider>(provider, ['authorizationUrl', 'authenticate'])) {
    throw new OptionsError(`${expected}, such as new GoogleProvider({ clientId, clientSecret }), ` +
      'or with name, authorizationUrl and authenticate')
  }
}

function checkedLocal (local: unknown): LocalIdentityProvider | null {
  if (local === undefined) return null
  if (!(local instanceof LocalIdentityProvider)) {
    throw new OptionsError('local must be a LocalIdentityProvider: new LocalIdentityProvider({ ... })')
  }
  return local
}

/** Checks what the mails of the local provider need of the plugin. */
function checkedMailPages (
  local: LocalIdentityProvider | null,
  site: Site
): ResolvedOptions['mailPages'] {
  if (local?.mail == null) return null
  if (site.baseUrl === null) {
    throw new OptionsError('baseUrl is required with sendMail of the LocalIdentityProvider, because the links in ' +
      'mails begin with it; set it to the public URL of the application, such as https://app.example')
  }
  const { pages } = local.mail
  const page = (name: keyof MailPages): string | null => checkedPage(`local.pages.${name}`, pages[name], site)
  return Object.freeze({
    register: page('register'),
    resetPassword: page('resetPassword'),
    verifyEmail: page('verifyEmail'),
    changeEmail: page('changeEmail')
  })
}

function checkedPages (pages: unknown): PageLayout | null {
  if (pages === undefined) return null
  const { look }: Partial<Pages> = Object(pages)
  if (look === undefined) {
    throw new OptionsError("pages must be new Pages({ name: 'Shop' }) of fastify-svc-auth/pages; " +
      'pages for the links in mails are an option of the LocalIdentityProvider')
  }
  return look
}

function checkedStore (store: unknown): AuthStore {
  const methods = [
    'findUser', 'links', 'factors', 'findCredential', 'status', 'users', 'insert', 'change', 'close'
  ] as const
  if (!hasMethods<AuthStore>(store, methods)) {
    throw new OptionsError('store must be an AuthStore, such as new SqlAuthStore(); ' +
      'the store of sessions is session.store')
  }
  assertCapabilities(capabilitiesOf(store))
  return store
}

function noSession (session: unknown): null {
  if (session === undefined) return null
  throw new OptionsError('session must be absent: ' +
    'the application has registered @fastify/session itself, and that session is used')
}

function checkedPrefix (prefix: unknown, ofContext: string): string {
  if (typeof prefix !== 'string' || !PREFIX.test(prefix)) {
    throw new OptionsError('prefix must be a path such as /auth: it begins with a slash and does not end with one')
  }
  const path = ofContext.replace(/\/$/, '') + prefix
  if (!PREFIX.test(path)) {
    throw new OptionsError('prefix must be a path of letters, digits, ~ . _ and -, without parameters, also behind ' +
      `the prefix of the context, but together they are ${path}; register fastify-svc-auth outside that context`)
  }
  return path
}

function checkedTrustedOrigins (origins: unknown): ReadonlySet<string> {
  if (!Array.isArray(origins) || !origins.every(isOrigin)) {
    throw new OptionsError('trustedOrigins must be a list of origins such as https://admin.app.example: ' +
      'https: (http: for this machine alone), host and port, without wildcard, path or trailing slash')
  }
  return new Set<string>(origins)
}

function isOrigin (value: unknown): boolean {
  if (typeof value !== 'string' || value.includes('*') || !URL.canParse(value)) return false
  const { origin, protocol, hostname } = new URL(value)
  return origin === value && (protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname)))
}

/** Whether a host is this machine, as browsers know it without asking (RFC 6761 section 6.3). */
function isLoopback (hostname: string): boolean {
  return /^(?:(?:.+\.)?localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname)
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

function checkedPage (name: string, page: unknown, site: Site): string | null {
  if (page === undefined) return null
  const url = trustedUrl(page, site.trustedOrigins)
  if (url !== null) return url
  const path = sameOriginPath(page, ANY_ORIGIN)
  if (path === null || path !== page) {
    throw new OptionsError(`${name} must be a path of this application, such as /login, ` +
      'or a URL of an origin in trustedOrigins')
  }
  return site.publicPath(path)
}

/** @param prefix of the context, in which no route can be at the root of the origin */
function checkedChangePasswordPage (page: unknown, site: Site, prefix: string): string | null {
  const path = checkedPage('changePasswordPage', page, site)
  if (path !== null) assertAtRoot('changePasswordPage', CHANGE_PASSWORD, prefix)
  return path
}

/** Refuses an option whose route must be at the root of the application. */
function assertAtRoot (option: string, route: string, prefix: string): void {
  if (['', '/'].includes(prefix)) return
  throw new OptionsError(`${option} needs the route ${route}, which would be under the ` +
    `prefix ${prefix} of the context; register fastify-svc-auth outside that context`)
}

/** Whether a value is an object with all of these methods. */
function hasMethods<T> (value: unknown, names: ReadonlyArray<keyof T>): value is T {
  if (typeof value !== 'object' || value === null) return false
  return names.every(name => typeof Reflect.get(value, name) === 'function')
}

function isFunction<F extends (...args: never[]) => unknown> (value: unknown): value is F {
  return typeof value === 'function'
}
