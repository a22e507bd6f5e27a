import { getHashes } from 'node:crypto'
import type { FastifySessionOptions, SessionStore } from '@fastify/session'
import { OptionsError } from '../errors.js'
import {
  type Checked, type ChecksOf, boolean, callable, hasMethods, matching, mustBe, optional, table, wholeNumber
} from '../option-checks.js'
import { secretsOf } from '../secrets.js'
import type { AuthStore } from '../accounts/auth-store.js'
import type { Site } from '../core/site.js'
import { type SessionRows, capabilitiesOf } from './store.js'
import { DAY_MS } from '../base/values.js'

type OptionsOfSession = Omit<FastifySessionOptions, 'store' | 'cookie'>
type OptionsOfCookie = Pick<
  NonNullable<FastifySessionOptions['cookie']>,
  'expires' | 'path' | 'domain' | 'secure' | 'httpOnly' | 'sameSite' | 'partitioned'
>

/** The options of the session cookie. */
export type SessionCookieOptions = { [Name in keyof OptionsOfCookie]?: OptionsOfCookie[Name] | undefined } & {
  /** Milliseconds; default seven days. Null: until the browser is closed, seven days at most. */
  maxAge?: number | null | undefined
}

/**
 * Options of @fastify/session; `secret` comes from the setting SVC_SESSION_SECRET unless given, one
 * or several separated by blanks.
 */
export type SessionOptions = { [Name in keyof OptionsOfSession]?: OptionsOfSession[Name] | undefined } & {
  /** The cookie; default `HttpOnly`, `SameSite=Lax`, `Secure` on https, for seven days. */
  cookie?: SessionCookieOptions | undefined
  /**
   * Where sessions are kept; default the store of users if it keeps sessions, as `SqlAuthStore`
   * does, else the memory of the process. `'memory'`, or an express-session compatible store, such
   * as one for Redis.
   */
  store?: 'memory' | NonNullable<FastifySessionOptions['store']> | undefined
  /**
   * Lets users choose at the sign-in, by the field `remember`, how long their session lasts: these
   * days, or until the browser is closed and a day at most; default as the cookie says.
   */
  remember?: RememberOptions | undefined
}

/** How long the session of a user lasts who asked to be remembered. */
export interface RememberOptions {
  /** The days from the sign-in, 1 to 400, however often the user visits. */
  days: number
}

export interface OwnSession {
  /** The options of @fastify/session with their defaults; `store` is a store of the application. */
  readonly options: FastifySessionOptions & Required<Pick<FastifySessionOptions, 'cookieName' | 'cookie' | 'rolling'>>
  /** Keeps the sessions where the options have no store. */
  readonly rows: SessionRows
  /** Whether the application chose to keep them in memory. */
  readonly isMemoryChosen: boolean
  /** The lifetime of a remembered session in milliseconds; null where none is remembered. */
  readonly remember: number | null
}

const COOKIE = {
  maxAge: optional(mustBe('a number of milliseconds above 0, such as 7 * 24 * 60 * 60 * 1000 for seven days, or null',
    (value): value is number | null => value === null || (Number.isFinite(value) && Number(value) > 0))),
  expires: optional(mustBe('a Date',
    (value): value is Date => value instanceof Date && !Number.isNaN(value.getTime()))),
  path: optional(mustBe('a path, such as /', value => typeof value === 'string'), '/'),
  domain: optional(matching('the name of a host, such as app.example', /^[\w.-]+$/)),
  secure: optional(mustBe("true, false or 'auto'", value => typeof value === 'boolean' || value === 'auto')),
  httpOnly: optional(boolean, true),
  sameSite: optional(mustBe("'lax', 'strict', 'none' or a boolean", value =>
    value === 'lax' || value === 'strict' || value === 'none' || typeof value === 'boolean'), 'lax'),
  partitioned: optional(boolean)
} satisfies ChecksOf<SessionCookieOptions>

const checkedOptions = table({
  secret: sessionSecret,
  // Browsers keep no cookie for longer than 400 days.
  remember: optional(table({ days: wholeNumber(1, 400) } satisfies ChecksOf<RememberOptions>), null),
  cookie: table(COOKIE),
  store: optional(mustBe("'memory' or a store of sessions, an object with get, set and destroy, such as " +
    'new RedisStore({ client }); the store of users is the option store',
  (value): value is NonNullable<SessionOptions['store']> =>
    value === 'memory' || hasMethods<SessionStore>('get', 'set', 'destroy')(value))),
  // RFC 6265 section 4.1.1.
  cookieName: optional(matching(
    'a name of letters, digits and hyphens, such as __Host-session', /^[!#$%&'*+.^`|~\w-]+$/), 'svc_session'),
  cookiePrefix: optional(mustBe('text', value => typeof value === 'string')),
  algorithm: optional(mustBe('the name of a hash function that Node.js has, such as sha256',
    (value): value is string => getHashes().some(name => name === value))),
  saveUninitialized: optional(boolean, false),
  rolling: optional(boolean, false),
  idGenerator: optional(callable<NonNullable<SessionOptions['idGenerator']>>())
} satisfies ChecksOf<SessionOptions>, 'an object of options for @fastify/session')

/**
 * Checks the options of the session that the plugin registers.
 *
 * @param stores `users`: the store of users, which keeps the sessions too if it can; `inMemory`
 *   makes one that keeps them otherwise
 * @param prefix the path in front of all routes
 */
export function checkedSession (
  session: unknown, { users, inMemory }: { users: AuthStore, inMemory: () => SessionRows }, site: Site, prefix: string
): OwnSession {
  const { store, remember, cookie, secret, ...others } = checkedOptions(session, 'session')
  const options = {
    ...others,
    secret,
    cookie: cookieOf(cookie, site.baseUrl),
    ...(store !== undefined && store !== 'memory' && { store })
  }
  assertAccepted(options, [prefix, site.publicPath(prefix)])
  const { sessions, entries } = capabilitiesOf(users)
  const isKept = store !== 'memory' && sessions !== null && entries !== null
  return Object.freeze({
    options,
    rows: isKept ? { sessions, entries } : inMemory(),
    isMemoryChosen: store === 'memory',
    remember: remember === null ? null : remember.days * DAY_MS
  })
}

function cookieOf (
  { maxAge, expires, secure, ...others }: Checked<typeof COOKIE>, baseUrl: string | null
): OwnSession['options']['cookie'] {
  const lifetime = maxAge === undefined && expires === undefined ? 7 * DAY_MS : maxAge
  return {
    secure: secure ?? (baseUrl === null ? 'auto' : baseUrl.startsWith('https:')),
    ...lifetime != null && { maxAge: lifetime },
    ...expires !== undefined && { expires },
    ...others
  }
}

/** Refuses a cookie that browsers would not accept, or not send to the routes. */
function assertAccepted ({ cookieName, cookie }: OwnSession['options'], routes: readonly string[]): void {
  const { path, domain, secure, sameSite } = cookie
  const uncovered = routes.find(prefix => !isPathAbove(path, prefix))
  if (uncovered !== undefined) {
    throw new OptionsError(`session.cookie.path must cover the routes under ${uncovered}; leave it out for "/"`)
  }
  const prefix = /^__(?:Host|Secure)-/i.exec(cookieName)?.[0]
  // RFC 6265bis section 4.1.3.
  if (prefix?.toLowerCase() === '__host-' && (domain !== undefined || path !== '/')) {
    throw new OptionsError('session.cookieName begins with __Host-, so browsers accept the cookie only without ' +
      'session.cookie.domain and with the path "/"; leave both out, or choose another name')
  }
  if (secure === false && (prefix !== undefined || sameSite === 'none')) {
    const reason = prefix === undefined
      ? "session.cookie.sameSite is 'none'"
      : `session.cookieName begins with ${prefix}`
    throw new OptionsError(`${reason}, so browsers accept the cookie only over https; set baseUrl to an https: URL ` +
      'and leave out session.cookie.secure')
  }
}

function isPathAbove (path: unknown, prefix: string): boolean {
  if (typeof path !== 'string' || !path.startsWith('/')) return false
  return `${prefix}/`.startsWith(path.endsWith('/') ? path : `${path}/`)
}

/** Checks the secret, unless it is an object that signs, which @fastify/session takes too. */
function sessionSecret (secret: unknown, option: string): FastifySessionOptions['secret'] {
  const isSigner = hasMethods<Exclude<FastifySessionOptions['secret'], string | string[]>>('sign', 'unsign')
  return isSigner(secret) ? secret : secretsOf(secret, option, 'SVC_SESSION_SECRET')
}
