import { STATUS_CODES } from 'node:http'
import { isDeepStrictEqual } from 'node:util'
import type { FastifyReply, FastifyRequest, RawServerBase, RouteGenericInterface, onSendHookHandler } from 'fastify'
import { secondFactorAt } from '../authentication.js'
import { isUserId } from '../base/uuid.js'
import { type CheckedName, type Claims, isPlainObject } from '../claims.js'
import { AuthError, OptionsError, assertKnownOptions } from '../errors.js'
import { authTimeOf, verifyToken } from '../flows/local.js'
import { factorsOfUser, isRecent, methodsOf } from '../flows/methods.js'
import { presentPrincipal, presentStatus } from '../current-user/refresh.js'
import type { FactorRules } from '../flows/sign-in-rules.js'
import type { LocalIdentityProvider } from '../local-identity-provider.js'
import { type TokenClaims, type TokenUse, assertUse } from '../tokens/token-claims.js'
import type { RedirectPages } from '../http/redirect-pages.js'
import type { ExternalProvider } from '../providers/provider.js'
import { type Principal, recordIn, showVerifiedEmail } from '../session/record.js'
import type { AccountStatus } from '../accounts/account.js'
import { Accounts } from '../accounts/accounts.js'
import type { AuthStore } from '../accounts/auth-store.js'

/** A request on any server of Node.js: HTTP/1, HTTPS, HTTP/2 with or without TLS. */
export type AnyRequest = FastifyRequest<RouteGenericInterface, RawServerBase>

/** The reply to such a request. */
export type AnyReply = FastifyReply<RouteGenericInterface, RawServerBase>

/**
 * A `preHandler` that lets a request pass, redirects a browser to the login page, or throws an
 * AuthError for the error handler of the application. Handlers for a single kind of server are
 * guards too.
 */
export type Guard = Bivariant<(request: AnyRequest, reply: AnyReply) => Promise<void>>

/** A function with bivariant parameters, as TypeScript has them for methods only. */
export type Bivariant<F extends (...args: never[]) => unknown> =
  { method (...args: Parameters<F>): ReturnType<F> }['method']

/**
 * The claims that a guard requires; where a claim is an array, one of its members. Once the
 * application declares claims, only these.
 */
export type RequiredClaims = { readonly [C in keyof Claims as CheckedName<C>]?: ValueOrMember<Claims[C]> }

type ValueOrMember<V> = V | (V extends ReadonlyArray<infer Member> ? Member : never)

/** Matches the b64token of RFC 6750 section 2.1; the name of the scheme is case-insensitive. */
const BEARER = /^Bearer +([A-Za-z0-9._~+/-]+=*)$/i

/** The options of the plugin that guards use. */
export interface GuardSettings {
  readonly store: AuthStore
  readonly factors: FactorRules | null
  readonly local: LocalIdentityProvider | null
  readonly pages: RedirectPages
  readonly providers: readonly ExternalProvider[]
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The names of the headers that guards have read, as `Vary` has them. */
    svcAuthVary?: string
  }
}

/** Makes a guard that reads these headers: what it lets pass is private, a refusal not stored. */
function reading (headers: string, guard: Guard): Guard {
  return async (request: AnyRequest, reply: AnyReply) => {
    request.svcAuthVary = merged(request.svcAuthVary, headers)
    try {
      await guard(request, reply)
      if (!reply.hasHeader('Cache-Control')) reply.header('Cache-Control', 'private')
    } catch (error) {
      reply.header('Cache-Control', 'no-store')
      throw error
    }
  }
}

/** An `onSend` hook that names in `Vary` what guards have read: a handler replaces the header. */
export const varyByGuards: onSendHookHandler = (request, reply, payload, done) => {
  const { svcAuthVary: headers } = request
  if (headers !== undefined) reply.header('Vary', merged(reply.getHeader('Vary'), headers))
  done(null, payload)
}

function merged (vary: unknown, headers: string): string {
  if (vary === undefined) return headers
  const names = [vary, headers].join(',').matchAll(/[^\s,]+/g)
  const named = new Map(Array.from(names, ([name]) => [name.toLowerCase(), name]))
  return named.has('*') ? '*' : [...named.values()].join(', ')
}

/** See {@link Auth.requireUser}. */
export function requireUser (settings: GuardSettings): Guard {
  return reading('Cookie', async (request: FastifyRequest, reply: FastifyReply) => {
    if (await presentPrincipal(request, settings.store) === null) await askToSignIn(request, reply, settings)
  })
}

/** See {@link Auth.requireClaims}. */
export function requireClaims (required: RequiredClaims, settings: GuardSettings): Guard {
  if (!isPlainObject(required)) {
    throw new OptionsError("requireClaims takes an object of claims, such as { role: 'admin' }")
  }
  const entries = Object.entries(required)
  return reading('Cookie', async (request: FastifyRequest, reply: FastifyReply) => {
    const principal = await presentPrincipal(request, settings.store)
    if (principal === null) return askToSignIn(request, reply, settings)
    if (!entries.every(([name, value]) => hasClaim(principal.claims, name, value))) throw new AuthError('forbidden')
  })
}

/**
 * See {@link Auth.requireVerified}. The identity by which the user signed in may have reported
 * another address, unverified: therefore the claim `email` is replaced.
 */
export function requireVerified (settings: GuardSettings): Guard {
  const { store } = settings
  return reading('Cookie', async (request: FastifyRequest, reply: FastifyReply) => {
    const { token } = request
    if (token === null) {
      const status = await presentStatus(request, store)
      if (status === null) return askToSignIn(request, reply, settings)
      return showVerifiedEmail(request, verifiedEmailIn(status))
    }
    // The subject of a token need not be a user.
    const status = isUserId(token.sub) ? await new Accounts(store).status(token.sub) : null
    request.token = { ...token, email: verifiedEmailIn(status), email_verified: true }
  })
}

function verifiedEmailIn (status: AccountStatus | null): string {
  if (!status?.verifiedEmail) throw new AuthError('unverified')
  return status.verifiedEmail
}

/** What the guard `requireRecent` requires. */
export interface RecentProof {
  /** The maximum number of seconds since the user authenticated. */
  within: number
  /** Whether they must have authenticated by a second factor within that time; default false. */
  secondFactor?: boolean
}

/** See {@link Auth.requireRecent}. */
export function requireRecent (required: RecentProof, settings: GuardSettings): Guard {
  const { within, secondFactor = false }: { within?: unknown, secondFactor?: unknown } = Object(required)
  if (typeof within !== 'number' || !(within > 0 && within < Infinity) || typeof secondFactor !== 'boolean') {
    throw new OptionsError('requireRecent takes { within, secondFactor }: a number of seconds such as 600, ' +
      'and whether a second factor is required')
  }
  assertKnownOptions('requireRecent', required, ['within', 'secondFactor'])
  if (secondFactor && settings.factors === null) {
    throw new OptionsError('requireRecent with secondFactor needs the option secondFactor or passkeys of the plugin')
  }
  return recentGuard({ within, secondFactor }, settings)
}

/** See {@link Auth.requireSecondFactor}. */
export function requireSecondFactor (settings: GuardSettings): Guard {
  return recentGuard({ within: Infinity, secondFactor: true }, settings)
}

function recentGuard ({ within, secondFactor }: Required<RecentProof>, settings: GuardSettings): Guard {
  return reading('Cookie', async (request: FastifyRequest, reply: FastifyReply) => {
    if (request.token !== null) {
      const authTime = authTimeOf(request.token, { secondFactor })
      if (authTime !== null && isWithin(authTime * 1000, within)) return
      const maxAge = within === Infinity ? '' : `, max_age=${within}`
      reply.header('WWW-Authenticate', `Bearer error="insufficient_user_authentication"${maxAge}`)
      throw new AuthError('reauthenticate', { statusCode: 401 })
    }
    const principal = await presentPrincipal(request, settings.store)
    if (principal === null) return askToSignIn(request, reply, settings)
    // The session may have ended meanwhile.
    const { at = 0, methods = [] } = recordIn(request.session) ?? {}
    const provenAt = secondFactor ? secondFactorAt(methods) : at
    if (provenAt !== null && isWithin(provenAt, within)) return
    return askToReauthenticate(request, reply, principal, { ...settings, needsFactor: secondFactor })
  })
}

function isWithin (at: number, within: number): boolean {
  return within === Infinity || isRecent(at, within)
}

/** See {@link Auth.requireBearer}. */
export function requireBearer ({ local, store }: GuardSettings): Guard {
  return bearerGuard(local, async (local, token) => verifyToken(local, store, token))
}

/** See {@link Auth.requireBearerFor}. */
export function requireBearerFor (use: TokenUse, { local }: GuardSettings): Guard {
  assertUse(use)
  if (Object.keys(use).length === 0) {
    throw new OptionsError("requireBearerFor takes { purpose }, { audience } or both, such as { audience: 'reports' }")
  }
  return bearerGuard(local, async (local, token) => local.verifyIdToken(token, use))
}

/** See {@link Auth.anyOf}. */
export function anyOf (...guards: Guard[]): Guard {
  if (guards.length === 0 || !guards.every(guard => typeof guard === 'function')) {
    throw new OptionsError('anyOf takes guards, such as anyOf(app.auth.requireUser, app.auth.requireBearer)')
  }
  return reading('Cookie, Authorization', guards.reduceRight((next, guard) => async (request, reply) => {
    if (!await passes(guard, request, reply)) await next(request, reply)
  }))
}

/** Requests whose current guard is not the last one: it must throw its refusal and send nothing. */
const undecided = new WeakSet<object>()

/** Runs a guard that is not the last one. A refusal leaves request and reply unchanged. */
async function passes (guard: Guard, request: AnyRequest, reply: AnyReply): Promise<boolean> {
  const { token } = request
  const headers = reply.getHeaders()
  const isInner = undecided.has(request)
  undecided.add(request)
  try {
    await guard(request, reply)
    return true
  } catch (error) {
    if (!isRefusal(error)) throw error
    request.token = token
    for (const name of Object.keys(reply.getHeaders())) reply.removeHeader(name)
    reply.headers(headers)
    return false
  } finally {
    if (!isInner) undecided.delete(request)
  }
}

/**
 * Whether an error is a refusal. Guards of the application may throw other errors, such as those of
 * http-errors.
 */
function isRefusal (error: unknown): boolean {
  const { statusCode }: { statusCode?: unknown } = Object(error)
  return typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500
}

function bearerGuard (
  local: LocalIdentityProvider | null, verify: (local: LocalIdentityProvider, token: string) => Promise<TokenClaims>
): Guard {
  return reading('Authorization', async (request: FastifyRequest, reply: FastifyReply) => {
    try {
      const [, token] = BEARER.exec(authorizationOf(request)) ?? []
      if (token === undefined || local === null) throw new AuthError('invalid_token')
      request.token = await verify(local, token)
    } catch (error) {
      if (error instanceof AuthError && error.code === 'invalid_token') {
        reply.header('WWW-Authenticate', 'Bearer error="invalid_token"')
      }
      throw error
    }
  })
}

/**
 * Returns the header `Authorization`, and nothing when a request has several: Node.js takes the
 * first, and a proxy may have checked another one (RFC 9110 section 5.3).
 */
function authorizationOf ({ raw, headers }: FastifyRequest): string {
  // An injected request need not have raw headers.
  const names = (raw.rawHeaders ?? []).filter((_text, index) => index % 2 === 0)
  const count = names.filter(name => name.toLowerCase() === 'authorization').length
  return count > 1 ? '' : headers.authorization ?? ''
}

/**
 * Redirects a page request to the page for reauthentication, or answers which methods the user has
 * for one. Like {@link askToSignIn} it never resolves.
 *
 * @param settings `needsFactor`: whether only a second factor suffices; a user who has none is
 *   redirected to the page on which they set one up
 * @throws AuthError `reauthenticate` where another guard may decide, `second_factor_missing`
 */
async function askToReauthenticate (
  request: FastifyRequest,
  reply: FastifyReply,
  { userId }: Principal,
  settings: GuardSettings & { needsFactor: boolean }
): Promise<never> {
  const { store, factors, providers, pages, needsFactor } = settings
  const kinds = needsFactor ? await factorsOfUser(store, factors, userId) : null
  const isMissing = kinds?.length === 0
  const refusal = new AuthError(isMissing ? 'second_factor_missing' : 'reauthenticate')
  if (reply.sent || undecided.has(request)) throw refusal
  if (!pages.redirect(request, reply, isMissing ? 'secondFactor' : 'reauthenticate', kinds !== null && !isMissing)) {
    if (isMissing) throw refusal
    const methods = kinds ?? await methodsOf({ store, factors }, userId, providers)
    const { statusCode, code, message } = refusal
    // Sent here: the error handler of an application answers with the four usual members alone.
    reply.code(statusCode).header('Cache-Control', 'no-store')
      .send({ statusCode, code, error: STATUS_CODES[statusCode], message, methods })
  }
  return new Promise(() => {})
}

/**
 * Redirects a page request to the login page. The promise never resolves: once a guard resolves,
 * Fastify runs the handler, even after a redirect was sent or the client has disconnected.
 *
 * @throws AuthError `unauthenticated` for other requests
 */
async function askToSignIn (
  request: FastifyRequest, reply: FastifyReply, { pages }: Pick<GuardSettings, 'pages'>
): Promise<never> {
  const isAnswered = reply.sent || undecided.has(request)
  if (isAnswered || !pages.redirect(request, reply, 'login')) throw new AuthError('unauthenticated')
  return new Promise(() => {})
}

function hasClaim (claims: Claims, name: string, value: unknown): boolean {
  const claim = Object.hasOwn(claims, name) ? claims[name] : undefined
  if (claim === undefined) return false
  if (isDeepStrictEqual(claim, value)) return true
  return Array.isArray(claim) && claim.some(member => isDeepStrictEqual(member, value))
}
