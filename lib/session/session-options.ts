import { getHashes } from 'node:crypto'
import type { FastifySessionOptions } from '@fastify/session'
import { withoutUndefined } from '../base/defaults.js'
import { isPlainObject } from '../claims.js'
import { OptionsError, assertKnownOptions } from '../errors.js'
import { secretsOf } from '../secrets.js'
import type { AuthStore } from '../accounts/auth-store.js'
import { MemoryAuthStore, sessionRowsOf } from '../store/memory.js'
import type { SessionRows } from '../store/capabilities.js'

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

/** Options of @fastify/session that the plugin passes on. */
export type PassedSessionOptions = { [Name in keyof OptionsOfSession]?: OptionsOfSession[Name] | undefined }

/** Options of @fastify/session; `secret` comes from the setting SVC_SESSION_SECRET unless given. */
export type SessionOptions = PassedSessionOptions & {
  /** The cookie; default `HttpOnly`, `SameSite=Lax`, `Secure` on https, for seven days. */
  cookie?: SessionCookieOptions | undefined
  /**
   * Where sessions are kept; default the database of `SqlAuthStore`, else the memory of the
   * process. `'memory'`, or an express-session compatible store, such as one for Redis.
   */
  store?: 'memory' | NonNullable<FastifySessionOptions['store']> | undefined
  /**
   * Lets users choose at the sign-in, by the field `remember`, how long their session lasts;
   * default as the cookie says.
   */
  remember?: RememberOptions | undefined
}

/** How long a session lasts that a user asked to be remembered in. */
export interface RememberOptions {
  /** The days from the sign-in, 1 to 400, however often the user visits. */
  days: number
}

/** The session that the plugin registers. */
export interface OwnSession {
  /** The options of @fastify/session with their defaults; `store` is a store of the application. */
  readonly options: FastifySessionOptions & Required<Pick<FastifySessionOptions, 'cookieName' | 'cookie' | 'rolling'>>
  /** Keeps the sessions where the options have no store. */
  readonly rows: SessionRows
  /** Whether the application chose to keep them in memory. */
  readonly isMemoryChosen: boolean
}

/** What the session is for. */
export interface SessionSurroundings {
  /** The store of users, which keeps the sessions too if it can. */
  readonly users: AuthStore
  /** The path of the routes as the application sees it, and as browsers see it. */
  readonly routes: readonly string[]
  /** The public URL of the application; null without one. */
  readonly baseUrl: string | null
}

const DAY_MS = 24 * 60 * 60 * 1000

const LIFETIME_MS = 7 * DAY_MS

/**
 * Checks the options of the session that the plugin registers.
 *
 * @throws OptionsError naming the option
 */
export function checkedSession (session: unknown, around: SessionSurroundings): OwnSession {
  const given: unknown = session ?? {}
  if (!isSessionOptions(given)) throw new OptionsError('session must be an object of options for @fastify/session')
  assertKnownOptions('session', given, Object.keys(MEMBERS))
  assertMembers('session', given, MEMBERS)
  const { store, remember: _, cookie: cookieOptions = {}, secret, ...others } = given
  assertKnownOptions('session.cookie', cookieOptions, Object.keys(COOKIE_MEMBERS))
  assertMembers('session.cookie', cookieOptions, COOKIE_MEMBERS)
  const options = {
    cookieName: 'svc_session',
    saveUninitialized: false,
    rolling: false,
    ...withoutUndefined(others),
    cookie: cookieOf(cookieOptions, around.baseUrl),
    secret: sessionSecret(secret),
    ...(store !== undefined && store !== 'memory' && { store })
  }
  assertAccepted(options, around.routes)
  return Object.freeze({
    options,
    rows: sessionRowsOf(store === 'memory' ? new MemoryAuthStore() : around.users),
    isMemoryChosen: store === 'memory'
  })
}

/** Browsers keep no cookie for longer than so many days. */
const MAX_DAYS = 400

/** Returns the lifetime of a remembered session in milliseconds. */
export function checkedRemember (remember: unknown): number | null {
  if (remember === undefined) return null
  const { days, ...others }: { days?: unknown } = Object(remember)
  const isDays = Number.isInteger(days) && Number(days) >= 1 && Number(days) <= MAX_DAYS
  if (!isDays || Object.keys(others).length > 0) {
    throw new OptionsError(`session.remember must be { days }, a whole number from 1 to ${MAX_DAYS}`)
  }
  return Number(days) * DAY_MS
}

function cookieOf (
  { maxAge, expires, ...others }: SessionCookieOptions,
  baseUrl: string | null
): OwnSession['options']['cookie'] {
  const lifetime = maxAge === undefined && expires === undefined ? LIFETIME_MS : maxAge
  return {
    path: '/',
    httpOnly: true,
    sameSite: 'lax',
    secure: baseUrl === null ? 'auto' : baseUrl.startsWith('https:'),
    ...lifetime != null && { maxAge: lifetime },
    ...withoutUndefined({ expires }),
    ...withoutUndefined(others)
  }
}

/** What a value must be, for the message, and whether it is that. */
type Check = readonly [expected: string, is: (value: unknown) => boolean]

const BOOLEAN: Check = ['true or false', value => typeof value === 'boolean']
const TEXT: Check = ['text', value => typeof value === 'string']
const ANYTHING: Check = ['', () => true]

const MEMBERS: Record<keyof SessionOptions, Check> = {
  secret: ANYTHING,
  remember: ANYTHING,
  cookie: ANYTHING,
  store: ["'memory' or a store of sessions, an object with get, set and destroy, such as new RedisStore({ client }); " +
    'the store of users is the option store', isSessionStore],
  // RFC 6265 section 4.1.1.
  cookieName: ['a name of letters, digits and hyphens, such as __Host-session', value =>
    /^[!#$%&'*+.^`|~\w-]+$/.test(String(value)) && typeof value === 'string'],
  cookiePrefix: TEXT,
  algorithm: ['the name of a hash function that Node.js has, such as sha256', value =>
    typeof value === 'string' && getHashes().includes(value)],
  saveUninitialized: BOOLEAN,
  rolling: BOOLEAN,
  idGenerator: ['a function', value => typeof value === 'function']
}

const COOKIE_MEMBERS: Record<keyof SessionCookieOptions, Check> = {
  maxAge: ['a number of milliseconds above 0, such as 7 * 24 * 60 * 60 * 1000 for seven days, or null', value =>
    value === null || (Number.isFinite(value) && Number(value) > 0)],
  expires: ['a Date', value => value instanceof Date && !Number.isNaN(value.getTime())],
  path: ANYTHING,
  domain: ['the name of a host, such as app.example', value => typeof value === 'string' && /^[\w.-]+$/.test(value)],
  secure: ["true, false or 'auto'", value => typeof value === 'boolean' || value === 'auto'],
  httpOnly: BOOLEAN,
  sameSite: ["'lax', 'strict', 'none' or a boolean", value =>
    typeof value === 'boolean' || ['lax', 'strict', 'none'].includes(String(value))],
  partitioned: BOOLEAN
}

function assertMembers (owner: string, given: object, checks: Record<string, Check>): void {
  for (const [name, value] of Object.entries(withoutUndefined(given))) {
    const [expected, is] = checks[name] ?? ANYTHING
    if (!is(value)) throw new OptionsError(`${owner}.${name} must be ${expected}`)
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
function sessionSecret (secret: SessionOptions['secret']): FastifySessionOptions['secret'] {
  const isSigner = typeof secret === 'object' && secret !== null && 'sign' in secret && 'unsign' in secret
  return isSigner ? secret : secretsOf(secret, 'session.secret', 'SVC_SESSION_SECRET')
}

function isSessionStore (value: unknown): boolean {
  const { get, set, destroy }: Record<string, unknown> = Object(value)
  return value === 'memory' || [get, set, destroy].every(method => typeof method === 'function')
}

function isSessionOptions (value: unknown): value is SessionOptions {
  const { cookie = {} }: { cookie?: unknown } = Object(value)
  return [value, cookie].every(isPlainObject)
}
