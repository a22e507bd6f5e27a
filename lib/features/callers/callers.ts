/** One guard for all callers: signed-in users, tokens, API keys, and clients with a grant. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { User } from '../../accounts/account.js'
import { noteOwnToken } from '../../audit.js'
import { lazily } from '../../base/concurrency.js'
import { type Claims, mergeClaims } from '../../claims.js'
import type { AuthContext } from '../../core/context.js'
import { currentRecord, currentStatus } from '../../core/current-user.js'
import { type AnyRequest, type Guard, reading } from '../../core/guard.js'
import { admitGuest } from '../../core/guests.js'
import { isScope } from '../../core/scopes.js'
import { AuthError, OptionsError } from '../../errors.js'
import { type ChecksOf, boolean, checkedOptions, listOf, optional, text } from '../../option-checks.js'
import { type AuthenticationState, ReadRecord, authenticationOf } from '../../session/record.js'
import { askAt, authTimeOf } from '../app-auth/guards.js'
import { PREFIXES } from '../oauth-server/prefixes.js'
import { type Challenge, bearerTokenOf, challengeOf, challengeRefused } from '../tokens/bearer.js'
import { resourcePublisher } from '../tokens/metadata.js'
import { type TokenClaims, scopesIn } from '../tokens/token-claims.js'
import { verifyTokenOfUser } from '../tokens/user-tokens.js'

declare module '../app-auth/auth.js' {
  interface Auth extends CallerMembers {}
}

/**
 * What a caller presents: the cookie of a session, a token of `POST /auth/local/token`, an API key,
 * or an access token of the authorization server.
 */
export type CallerKind = 'session' | 'token' | 'key' | 'grant'

/** Who calls, as `app.auth.caller` returns it. */
export interface AuthenticatedCaller {
  /** What the caller presented. */
  by: CallerKind
  /** Names the caller, for limits of the application: the user, else what they presented. */
  id: string
  /** Null for a key of an owner, and for a token whose subject is not a user. */
  userId: string | null
  /** The owner of an API key that is not of a user. */
  owner: string | null
  /** The client of a grant. */
  clientId: string | null
  /** What the caller may do; null for a session, which may do all that its user may. */
  scopes: readonly string[] | null
  /** Those that the user has now; of the token where its subject is not a user. */
  claims: Claims
  /** When the user authenticated, and whether by a second factor; null for a key and a guest. */
  authentication: Pick<AuthenticationState, 'at' | 'secondFactor'> | null
}

/** Which callers {@link CallerMembers.requireCaller} lets pass. */
export interface CallerUse {
  /** What they may present. */
  by: readonly CallerKind[]
  /** The scopes that all of them must have but sessions. */
  scopes?: readonly string[] | undefined
  /** The URL of the resource that grants must be for; default the only one of `oauthServer`. */
  resource?: string | undefined
  /** Whether a session may be that of a guest; default false. */
  guests?: boolean | undefined
}

/** What callers add to `app.auth`. */
export interface CallerMembers {
  /**
   * Makes a `preHandler` that lets some callers pass, whatever they present. A request with the
   * header `Authorization` is judged by that alone. Redirects other page requests to the option
   * `loginPage` where sessions may pass; else answers 401 with `WWW-Authenticate`, and 403
   * `insufficient_scope` to a caller that lacks a scope. Behind it `request.token` has the claims
   * of what is not a session.
   *
   * @throws OptionsError for a kind whose option is not given
   *
   * @example
   * ```ts
   * const { requireCaller } = app.auth
   * const callers = requireCaller({ by: ['session', 'key'], scopes: ['orders:read'] })
   * app.get('/orders', { preHandler: callers }, async request =>
   *   ordersOf(app.auth.caller(request)))
   * ```
   */
  readonly requireCaller: (use: CallerUse) => Guard

  /**
   * Returns who calls, for handlers and hooks behind {@link requireCaller}.
   *
   * @throws AuthError `unauthenticated` elsewhere
   */
  readonly caller: (request: AnyRequest) => AuthenticatedCaller
}

const KINDS: readonly unknown[] = ['session', 'token', 'key', 'grant'] satisfies CallerKind[]

const CALLER_USE = {
  by: listOf("a list of 'session', 'token', 'key' and 'grant'", (kind): kind is CallerKind => KINDS.includes(kind)),
  scopes: optional(listOf("a list of scopes, such as ['orders:read']", isScope), []),
  resource: optional(text),
  guests: optional(boolean, false)
} satisfies ChecksOf<CallerUse>

/** Loaded with the first request that has one. */
const oauthServer = lazily(async () => import('../oauth-server/token.js'))
const apiKeys = lazily(async () => import('../api-keys/find-key.js'))

const callers = new WeakMap<object, AuthenticatedCaller>()

export function callerMembers (auth: AuthContext): CallerMembers {
  return {
    requireCaller: use => requireCaller(auth, use),
    caller (request) {
      const caller = callers.get(request)
      if (caller === undefined) throw new AuthError('unauthenticated')
      return caller
    }
  }
}

interface Verified {
  readonly caller: Omit<AuthenticatedCaller, 'by' | 'authentication'>
  readonly token: TokenClaims
}

type Verify = (auth: AuthContext, token: string, request: FastifyRequest, resource: string) => Promise<Verified>

const VERIFY: Readonly<Record<Exclude<CallerKind, 'session'>, Verify>> = {
  async token (auth, text) {
    const { claims, user } = await verifyTokenOfUser(auth, text)
    const { sub } = claims
    const id = user === null ? `subject:${sub}` : `user:${sub}`
    const scopes = scopesIn(claims)
    const userId = user && user.userId
    return {
      caller: { id, userId, owner: null, clientId: null, scopes, claims: user === null ? claims : claimsOf(user) },
      token: noteOwnToken(claims)
    }
  },

  async key (auth, text, { headers, log }) {
    const part = auth.parts.apiKeys
    if (headers.origin !== undefined && part?.browsers === false) {
      throw new AuthError('cross_origin', { message: 'An API key is not accepted from a page of a browser.' })
    }
    const key = part && await (await apiKeys()).findKey(auth, part, text, log)
    if (key === null) throw new AuthError('invalid_token')
    const { id, userId, owner, scopes, user, createdAt, expiresAt } = key
    const sub = userId ?? String(owner)
    const claims = user === null ? { sub } : claimsOf(user)
    return {
      caller: { id: `key:${id}`, userId, owner, clientId: null, scopes, claims },
      // So that other guards judge the key, and events name its owner: not the user of a cookie.
      token: noteOwnToken({
        iss: 'api-key',
        sub,
        jti: id,
        scope: scopes.join(' '),
        iat: Math.floor(createdAt / 1000),
        exp: expiresAt === null ? Infinity : Math.floor(expiresAt / 1000)
      })
    }
  },

  async grant (auth, text, { log }, resource) {
    const { parts } = auth
    if (parts.oauthServer === null) throw new AuthError('invalid_token')
    const { claims, grantId, clientId, user } =
      await (await oauthServer()).verifyAccess(auth, parts.oauthServer, text, { resource, log })
    const scopes = scopesIn(claims)
    return {
      caller: { id: `grant:${grantId}`, userId: user.userId, owner: null, clientId, scopes, claims: claimsOf(user) },
      token: claims
    }
  }
}

function requireCaller (auth: AuthContext, use: CallerUse): Guard {
  const { by, scopes, resource: named, guests } =
    checkedOptions('requireCaller', use, CALLER_USE, "{ by: ['session', 'key'] }")
  assertGiven(auth, by)
  const resource = by.includes('grant') ? resourceOf(auth, named) : null
  const challenge = challengeFor(auth, resource, scopes)
  const takesSessions = by.includes('session')
  const takesTokens = by.some(kind => kind !== 'session')

  const headers = takesSessions ? 'Cookie, Authorization' : 'Authorization'
  return reading(headers, async (request: FastifyRequest, reply: FastifyReply) => {
    if (request.headers.authorization === undefined && takesSessions) {
      const caller = await callerOfSession(auth, request, guests)
      if (caller !== null) {
        callers.set(request, caller)
        return
      }
      if (takesTokens) reply.header('WWW-Authenticate', challengeOf(challenge))
      return askAt(auth, request, reply, { to: 'login', code: 'unauthenticated' })
    }
    const text = bearerTokenOf(request)
    try {
      const kind = text === undefined ? null : kindOf(auth, text)
      if (text === undefined || kind === null || !by.includes(kind)) throw new AuthError('invalid_token')
      const { caller, token } = await VERIFY[kind](auth, text, request, String(resource?.url))
      if (!scopes.every(scope => caller.scopes?.includes(scope))) throw new AuthError('insufficient_scope')
      request.token = token
      callers.set(request, { by: kind, ...caller, authentication: authenticationIn(token) })
    } catch (error) {
      if (takesTokens) challengeRefused(request, reply, challenge, error)
      throw error
    }
  })
}

/** One look says what a token is; whether it is good, the one who made it. */
function kindOf (
  { parts: { apiKeys } }: Pick<AuthContext, 'parts'>, text: string
): Exclude<CallerKind, 'session'> | null {
  if (apiKeys !== null && text.startsWith(`${apiKeys.prefix}_`)) return 'key'
  if (text.startsWith(PREFIXES.access)) return 'grant'
  return text.split('.').length === 3 ? 'token' : null
}

async function callerOfSession (
  auth: AuthContext, request: FastifyRequest, guests: boolean
): Promise<AuthenticatedCaller | null> {
  const guest = guests ? await admitGuest(auth, request) : null
  if (guest === null && await currentStatus(auth, request) === null) return null
  const { principal: { userId, claims } } = guest ?? await currentRecord(auth, request)
  return {
    by: 'session',
    id: `user:${userId}`,
    userId,
    owner: null,
    clientId: null,
    scopes: null,
    claims: guest === null ? claims : ReadRecord.fresh(request.session).presentClaims?.() ?? claims,
    authentication: authenticationOf(request)
  }
}

/** What is known of a user who has not signed in for this request. */
function claimsOf ({ userId, email, emailVerified, name, claims }: User): Claims {
  return mergeClaims({
    sub: userId, ...(email !== null && { email, email_verified: emailVerified }), ...(name !== null && { name })
  }, claims)
}

/** What a token says, read as the other guards read it. */
function authenticationIn (token: TokenClaims): AuthenticatedCaller['authentication'] {
  const time = authTimeOf(token, { secondFactor: false })
  return time === null
    ? null
    : { at: new Date(time * 1000), secondFactor: authTimeOf(token, { secondFactor: true }) !== null }
}

function assertGiven ({ parts: { apiKeys, oauthServer }, local }: AuthContext, by: readonly CallerKind[]): void {
  if (by.length === 0) throw new OptionsError("requireCaller: by must name a kind of caller, such as 'session'")
  const options = { token: { local }, key: { apiKeys }, grant: { oauthServer }, session: {} }
  for (const kind of by) {
    const [option, given] = Object.entries(options[kind])[0] ?? []
    if (given === null) throw new OptionsError(`requireCaller by '${kind}' needs the option ${option} of the plugin`)
  }
}

function resourceOf ({ parts: { oauthServer } }: Pick<AuthContext, 'parts'>, named: string | undefined) {
  const resources = [...oauthServer?.resources.values() ?? []]
  const [only] = resources.length === 1 ? resources : []
  const found = named === undefined ? only : resources.find(({ url }) => url === named)
  if (found !== undefined) return found
  throw new OptionsError(`requireCaller: resource must be one of ${resources.map(({ url }) => url).join(', ')}`)
}

/** What the challenge tells all callers; its one scheme is that of all but sessions. */
function challengeFor (
  auth: AuthContext, resource: ReturnType<typeof resourceOf> | null, scopes: readonly string[]
): Challenge {
  const { oauthServer } = auth.parts
  if (resource === null || oauthServer === null) return { asked: scopes }
  const asked = [...resource.scopes.keys()]
  const metadata = { authorization_servers: [oauthServer.issuer] }
  return { asked, metadataUrl: resourcePublisher(auth)(resource.url, asked, metadata) }
}
