import type { RegisterOptions } from 'fastify'
import { VERSION, otherVersion } from './base/values.js'
import { OptionsError } from './errors.js'
import type { CreateUserHook, DeleteHook, GuestHook, LinkHook, LinkingPolicy, SignInHook } from './hooks.js'
import { BoundedMap } from './base/values.js'
import { SignedRequests } from './features/identities/signed-requests.js'
import { RedirectPages } from './core/redirect-pages.js'
import { isPath, trustedUrl } from './core/redirects.js'
import { isSecureOrLocal, isSecureUrl } from './core/fetching.js'
import { CHANGE_PASSWORD, Site } from './core/site.js'
import { LocalIdentityProvider } from './features/local/local-identity-provider.js'
import { canRegister, hasPasswords } from './features/local/offers.js'
import {
  type Check, type ChecksOf, anything, assertKnownOptions, callable, checkedMembers, hasMethods, listOf, matching,
  mustBe, optional
} from './option-checks.js'
import { assertProviderName } from './providers/provider-options.js'
import type { ExternalProvider } from './providers/provider.js'
import { type RateLimitOptions, checkedRateLimit } from './core/limits.js'
import { Accounts } from './accounts/accounts.js'
import type { AuthStore } from './accounts/auth-store.js'
import { Sealer } from './sealed.js'
import { dataSecretsOf, requiredDataSecrets } from './secrets.js'
import { type SessionOptions, checkedSession } from './session/session-options.js'
import { MemoryAuthStore } from './engines/memory/memory.js'
import { assertCapabilities, capabilitiesOf } from './session/store.js'
import { FEATURE_OPTIONS, type FeatureOptions, pagesOf, partsOf } from './features/options.js'

/** The options of the plugin, which `register` takes. */
export interface AuthPluginOptions<Tx = unknown> extends FeatureOptions {
  /** The public URL, as `https://app.example`; providers, `sendMail` and passkeys need it. */
  baseUrl?: string | undefined
  /** External identity providers; a login and a callback route are mounted for each. */
  providers?: readonly ExternalProvider[] | undefined
  /** The built-in identity provider, whose routes are then mounted: passwords and tokens. */
  local?: LocalIdentityProvider | undefined
  /** The store of users, links and claims; default in memory, lost on restart. */
  store?: AuthStore<Tx> | undefined
  /** The plugin's session; absent when the application has registered @fastify/session itself. */
  session?: SessionOptions | undefined
  /**
   * Encrypts second factors, what waits for them, and ID tokens (`signOut`); signs the cookies of
   * trusted browsers and, with a `signingKey`, the links in mails. 32 characters or more; default
   * SVC_AUTH_DATA_SECRET, several separated by blanks. The first encrypts and signs, all decrypt.
   */
  dataSecret?: string | readonly string[] | undefined
  /** The path in front of all routes; default `/auth`. */
  prefix?: string | undefined
  /** When an unknown identity is linked to the user with its e-mail; default `verified-email`. */
  linking?: LinkingPolicy | undefined
  /** Called in the transaction that creates a user; may write rows by `tx`, give claims, refuse. */
  onCreateUser?: CreateUserHook<Tx> | undefined
  /** Called before each sign-in is written into the session; may grant claims, or refuse. */
  onSignIn?: SignInHook | undefined
  /** Called before an identity is linked to the signed-in user who asked for it; may refuse. */
  onLink?: LinkHook | undefined
  /** Called before a user deletes their account, not by `deleteUser`; may remove rows or refuse. */
  onDelete?: DeleteHook | undefined
  /** Called when a guest signs in as a user who exists; see {@link GuestHook}. */
  onGuest?: GuestHook | undefined
  /**
   * The application's own sign-in page, such as `/login`, or a URL of an origin in
   * `trustedOrigins`. Guards (with `next`), and errors that no other page can show, redirect to it.
   */
  loginPage?: string | undefined
  /** The application's page for registering, such as `/join`, to which the sign-in page links. */
  registerPage?: string | undefined
  /** The application's page that sends to `/auth/local/forgot-password`, such as `/forgot`. */
  forgotPasswordPage?: string | undefined
  /** The application's page on which a signed-in user changes their account, such as `/account`. */
  accountPage?: string | undefined
  /**
   * The application's page on which a signed-in user reauthenticates, such as `/confirm`. The guard
   * `requireRecent`, and routes that require a recent authentication, redirect to it with `next`.
   */
  reauthenticatePage?: string | undefined
  /** The application's page that asks for second factors and sets them up: `/second-factor`. */
  secondFactorPage?: string | undefined
  /** The page to which `/.well-known/change-password` redirects, such as `/account/password`. */
  changePasswordPage?: string | undefined
  /** Origins that may send POST requests and be redirected to, as `https://admin.app.example`. */
  trustedOrigins?: readonly string[] | undefined
  /** Limits of attempts for each address and user; `false` for none. */
  rateLimit?: boolean | RateLimitOptions | undefined
}

/** The options, and the options that Fastify takes for any plugin. */
export type GivenOptions<Tx = unknown> = AuthPluginOptions<Tx> & Omit<RegisterOptions, 'prefix'>

const OF_A_PROVIDER = 'it is an option of a provider, ' +
  'such as providers: [new GoogleProvider({ clientId, clientSecret })]'

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

/** The options; the last two are Fastify's. */
const OPTIONS = {
  baseUrl: optional(publicUrl, null),
  providers: optional(externalProviders, []),
  local: optional(mustBe('a LocalIdentityProvider: new LocalIdentityProvider({ ... })', isLocal), null),
  store: authStore,
  session: anything,
  dataSecret: dataSecretsOf,
  prefix: optional(
    matching('a path such as /auth: it begins with a slash and does not end with one', PREFIX), DEFAULT_PREFIX),
  trustedOrigins: optional(listOf('a list of origins such as https://admin.app.example: ' +
    'https: (http: for this machine alone), host and port, without wildcard, path or trailing slash', isOrigin), []),
  linking: optional(
    mustBe("'verified-email', 'never' or a function (existing, identity) => boolean", (value): value is LinkingPolicy =>
      value === 'verified-email' || value === 'never' || typeof value === 'function'), 'verified-email'),
  onCreateUser: optional(
    callable<CreateUserHook>('({ user, method, identity, request, tx }) => { claims } or nothing'), null),
  onSignIn: optional(callable<SignInHook>('({ request, principal, identity, tokens, created }) => void'), null),
  onLink: optional(callable<LinkHook>('({ request, userId, identity, tokens }) => void'), null),
  onDelete: optional(callable<DeleteHook>('({ request, userId }) => void'), null),
  onGuest: optional(callable<GuestHook>('({ request, guest, user }) => void'), null),
  loginPage: anything,
  registerPage: anything,
  forgotPasswordPage: anything,
  accountPage: anything,
  reauthenticatePage: anything,
  secondFactorPage: anything,
  changePasswordPage: anything,
  ...FEATURE_OPTIONS,
  rateLimit: checkedRateLimit,
  logLevel: anything,
  logSerializers: anything
} satisfies ChecksOf<GivenOptions>

export type ResolvedOptions = ReturnType<typeof resolveOptions>

/**
 * Checks the options that were passed to `register` and fills in the defaults.
 *
 * @param around `session`, `rateLimit`: whether the application has registered @fastify/session and
 *   @fastify/rate-limit itself; `prefix`: of the context, which precedes all of its routes
 * @returns what `AuthContext` has of them, and what the plugin makes the rest of
 */
export function resolveOptions (
  options: GivenOptions, around: { session?: boolean, rateLimit?: boolean, prefix?: string } = {}
) {
  assertKnownOptions('fastify-svc-auth', options, Object.keys(OPTIONS), name => ELSEWHERE.get(name))
  assertOneVersion(options)
  const given = checkedMembers(options, OPTIONS)
  const {
    baseUrl, dataSecret: dataSecrets, linking, local, onCreateUser, onDelete, onGuest, onLink, onSignIn, providers,
    store
  } = given
  const { prefix: context = '' } = around
  const prefix = prefixIn(context, given.prefix)
  const mailTokens = local?.mail == null ? null : local.mailTokens(dataSecrets)
  if (around.rateLimit === true && given.rateLimit?.store !== undefined) {
    throw new OptionsError('rateLimit.store must be absent: ' +
      'the application has registered @fastify/rate-limit itself, and its store is used')
  }
  if (given.rateLimit === null && local?.signInByMail != null) {
    throw new OptionsError('rateLimit must not be false with signInByMail of the LocalIdentityProvider, because the ' +
      'codes in mails could be guessed')
  }
  if (given.passkeys === null && local?.registration?.passkey === true) {
    throw new OptionsError('passkeys is required with registration.passkey of the LocalIdentityProvider: ' +
      "new Passkeys({ name: 'Shop' }) of fastify-svc-auth/passkeys")
  }
  const site = new Site(baseUrl, new Set(given.trustedOrigins))
  if (baseUrl === null && providers.length > 0) {
    throw baseUrlRequired('once a provider is registered, because providers redirect users back to it')
  }
  if (baseUrl === null && mailTokens !== null) {
    throw baseUrlRequired('with sendMail of the LocalIdentityProvider, because the links in mails begin with it')
  }
  const session = around.session === true
    ? noSession(given.session)
    : checkedSession(given.session, { users: store, inMemory: () => new MemoryAuthStore() }, site, prefix)

  const page = pageOn(site)
  const { changePasswordPage, ...pages } = checkedMembers(options, {
    loginPage: page,
    registerPage: page,
    forgotPasswordPage: page,
    accountPage: page,
    reauthenticatePage: page,
    secondFactorPage: page,
    changePasswordPage: page
  })
  const mailPages = { register: page, resetPassword: page, verifyEmail: page, changeEmail: page, mailLogin: page }
  if (changePasswordPage !== null) assertAtRoot('changePasswordPage', CHANGE_PASSWORD, context)
  const layout = given.pages?.look.of(site, prefix) ?? null
  const providerLabels = new BoundedMap<string>(1000)
  const parts = partsOf(given, {
    site,
    dataSecrets,
    featureTables: capabilitiesOf(store).featureTables,
    mails: local?.mail == null || mailTokens === null
      ? null
      : { tokens: mailTokens, notices: local.mail.choices.notices },
    cookieName: session?.options.cookieName ?? 'svc_session',
    hasPages: layout !== null,
    providerLabels,
    factorPage: pages.secondFactorPage,
    pathOf: route => site.routePath(`${prefix}/${route}`),
    isAtRoot: isAtRoot(context),
    assertAtRoot (option, route) { assertAtRoot(option, route, context) }
  })
  const listedSessions = session === null || session.options.store !== undefined ? null : session.rows.sessions
  if (parts.guests !== null && listedSessions === null) {
    throw new OptionsError('guests needs the sessions of the plugin, without session.store: a guest lives as long as ' +
      'their session')
  }
  const { secondFactor = null, step = null } = pagesOf(parts)
  const routePath = (part: unknown, path: string): string | null =>
    part == null ? null : site.routePath(`${prefix}/${path}`)
  const account = pages.accountPage ?? routePath(layout, 'pages/account')
  const sendsLinks = local?.mail != null && local.accountRoutes.forgotPassword
  return Object.freeze({
    accounts: new Accounts(store),
    changePasswordPage: changePasswordPage ?? (isAtRoot(context) && hasPasswords({ local }) ? account : null),
    dataSecrets,
    layout,
    linking,
    listedSessions,
    local,
    mailPages: local?.mail == null ? null : checkedMembers(local.mail.pages, mailPages, 'local.pages.'),
    mailTokens,
    parts,
    onCreateUser,
    onDelete,
    onGuest,
    onLink,
    onSignIn,
    redirects: new RedirectPages(site, {
      login: pages.loginPage ?? routePath(layout, 'pages/sign-in'),
      reauthenticate: pages.reauthenticatePage ?? routePath(layout, 'pages/confirm'),
      secondFactor: pages.secondFactorPage ?? secondFactor,
      step: pages.secondFactorPage ?? step,
      register: pages.registerPage ?? routePath(canRegister({ local }) ? layout : null, 'pages/register'),
      forgotPassword: pages.forgotPasswordPage ?? routePath(sendsLinks ? layout : null, 'pages/forgot-password'),
      account
    }, [...providers.map(({ name }) => name), 'connections'].map(path => `${prefix}/${path}/`)),
    prefix,
    providers,
    providerLabels,
    rateLimit: given.rateLimit,
    remember: session?.remember ?? null,
    /** Seals what waits, and the secrets of users; null without a data secret. */
    sealer: dataSecrets && new Sealer(dataSecrets, 'second factor'),
    session,
    signOutSecrets: providers.some(({ signOut }) => signOut === true)
      ? requiredDataSecrets(dataSecrets, 'with signOut of a provider, because it encrypts ID tokens in sessions')
      : null,
    signedRequests: new SignedRequests(session?.options.secret),
    site,
    store
  })
}

function publicUrl (value: unknown, option: string): string {
  const check = mustBe('the public http: or https: URL of the application ' +
    'without user info, query or hash, such as https://app.example',
  (value): value is string => isSecureUrl(value, true) && new URL(value).search === '')
  const { origin, pathname } = new URL(check(value, option))
  return origin + pathname.replace(/(?<!\/)\/+$/, '')
}

function externalProviders (value: unknown, option: string): readonly ExternalProvider[] {
  const providers: readonly unknown[] =
    mustBe('a list of providers, such as [new OidcProvider({ ... })]', Array.isArray)(value, option)
  const names = new Set<string>()
  return Object.freeze(providers.map(provider => {
    assertProvider(provider)
    assertProviderName(provider.name)
    if (names.has(provider.name)) {
      throw new OptionsError(`providers must have different names, but two are called "${provider.name}"`)
    }
    names.add(provider.name)
    return provider
  }))
}

function assertProvider (provider: unknown): asserts provider is ExternalProvider {
  const expected = 'providers must hold objects of a provider class'
  if (typeof provider === 'function') {
    throw new OptionsError(`${expected}, and not the class: new ${provider.name}({ clientId, clientSecret })`)
  }
  if (isLocal(provider)) {
    throw new OptionsError(`${expected} for external providers; the LocalIdentityProvider is the option local`)
  }
  const { signOut, backChannelLogout }: Partial<ExternalProvider> = Object(provider)
  const isProvider = hasMethods<ExternalProvider>(
    'authorizationUrl',
    'authenticate',
    ...signOut === true ? ['endSessionUrl' as const] : [],
    ...backChannelLogout === true ? ['verifyLogoutToken' as const] : []
  )
  if (!isProvider(provider)) {
    throw new OptionsError(`${expected}, such as new GoogleProvider({ clientId, clientSecret }), ` +
      'or with name, authorizationUrl and authenticate, endSessionUrl where signOut is true, ' +
      'and verifyLogoutToken where backChannelLogout is')
  }
}

function authStore (value: unknown, option: string): AuthStore {
  if (value === undefined) return new MemoryAuthStore()
  const isStore = hasMethods<AuthStore>(
    'findUser', 'links', 'factors', 'findCredential', 'status', 'users', 'countUsers', 'insert', 'change', 'close')
  const expected = 'an AuthStore, such as new SqlAuthStore(); the store of sessions is session.store'
  const store = mustBe(expected, isStore)(value, option)
  assertCapabilities(capabilitiesOf(store))
  return store
}

function baseUrlRequired (need: string): OptionsError {
  return new OptionsError(
    `baseUrl is required ${need}; set it to the public URL of the application, such as https://app.example`)
}

function noSession (session: unknown): null {
  if (session === undefined) return null
  throw new OptionsError('session must be absent: ' +
    'the application has registered @fastify/session itself, and that session is used')
}

function prefixIn (context: string, prefix: string): string {
  const path = context.replace(/\/$/, '') + prefix
  if (PREFIX.test(path)) return path
  throw new OptionsError('prefix must be a path of letters, digits, ~ . _ and -, without parameters, also behind ' +
    `the prefix of the context, but together they are ${path}; register fastify-svc-auth outside that context`)
}

/** The check of a page of the application, which becomes the page as browsers see it. */
function pageOn (site: Site): Check<string | null> {
  const check = mustBe('a path of this application, such as /login, or a URL of an origin in trustedOrigins',
    (page): page is string => isPath(page) || trustedUrl(page, site.trustedOrigins) !== null)
  return optional((value, option) => {
    const page = check(value, option)
    return trustedUrl(page, site.trustedOrigins) ?? site.publicPath(page)
  }, null)
}

function isAtRoot (prefix: string): boolean {
  return ['', '/'].includes(prefix)
}

/** Refuses an option whose route must be at the root of the application. */
function assertAtRoot (option: string, route: string, prefix: string): void {
  if (isAtRoot(prefix)) return
  throw new OptionsError(`${option} needs the route ${route}, which would be under the ` +
    `prefix ${prefix} of the context; register fastify-svc-auth outside that context`)
}

/** Refuses what another version of this package has made, which may lack what this one needs. */
function assertOneVersion (options: object): void {
  for (const [name, value] of Object.entries(options)) {
    const other = otherVersion(value)
    if (other === null) continue
    throw new OptionsError(`${name} is of fastify-svc-auth ${other}, but the plugin of ${VERSION}: the application ` +
      'has two versions of the package; install one (npm ls fastify-svc-auth shows which package needs which)')
  }
}

function isOrigin (value: unknown): value is string {
  return isSecureOrLocal(value) && !value.includes('*') && new URL(value).origin === value
}

function isLocal (value: unknown): value is LocalIdentityProvider {
  return value instanceof LocalIdentityProvider
}
