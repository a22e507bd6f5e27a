import { isDeepStrictEqual } from 'node:util'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isOwnToken, noteOwnToken } from '../../audit.js'
import { secondFactorAt } from '../../authentication.js'
import { isUserId } from '../../base/values.js'
import { type CheckedName, type Claims, isPlainObject } from '../../claims.js'
import type { AuthContext } from '../../core/context.js'
import { currentPrincipal, currentStatus, methodNamesOf } from '../../core/current-user.js'
import { admitGuest } from '../../core/guests.js'
import { isRecent } from '../recent.js'
import { AuthError, type AuthErrorCode, OptionsError } from '../../errors.js'
import { type ChecksOf, boolean, checkedOptions, mustBe, optional } from '../../option-checks.js'
import { type Principal, principalOf, recordIn, showVerifiedEmail } from '../../session/record.js'
import { factorsOfUser, hasFactors } from '../../core/methods.js'
import { type AnyReply, type AnyRequest, type Guard, reading } from '../../core/guard.js'

/** What guards ask for. */
type GuardContext =
  Pick<AuthContext, 'accounts' | 'mayAct' | 'methods' | 'offered' | 'parts' | 'providers' | 'redirects'>

/**
 * The claims that a guard requires; where a claim is an array, one of its members. Once the
 * application declares claims, only these.
 */
export type RequiredClaims = { readonly [C in keyof Claims as CheckedName<C>]?: ValueOrMember<Claims[C]> }

type ValueOrMember<V> = V | (V extends ReadonlyArray<infer Member> ? Member : never)

/** Whom a guard lets pass besides signed-in users. */
export interface GuardOptions {
  /** Whether guests pass; default false. */
  guests?: boolean | undefined
}

const GUARD_OPTIONS = { guests: optional(boolean, false) } satisfies ChecksOf<GuardOptions>

export function requireClaims (auth: GuardContext, required: RequiredClaims, options: GuardOptions = {}): Guard {
  if (!isPlainObject(required)) {
    throw new OptionsError("requireClaims takes an object of claims, such as { role: 'admin' }")
  }
  const entries = Object.entries(required)
  const { guests } = checkedOptions('requireClaims', options, GUARD_OPTIONS, '{ guests: true }')
  return reading('Cookie', async (request: FastifyRequest, reply: FastifyReply) => {
    const guest = guests ? await admitGuest(auth, request) : null
    const principal = guest?.principal ?? await currentPrincipal(auth, request)
    if (principal === null) return askAt(auth, request, reply, { to: 'login', code: 'unauthenticated' })
    if (!entries.every(([name, value]) => hasClaim(principal.claims, name, value))) throw new AuthError('forbidden')
  })
}

/**
 * See {@link Auth.requireVerified}. The identity by which the user signed in may have reported
 * another address, unverified: therefore the claim `email` is replaced.
 */
export function requireVerified (auth: GuardContext): Guard {
  return reading('Cookie', async (request: FastifyRequest, reply: FastifyReply) => {
    const { token } = request
    if (token === null) {
      const status = await currentStatus(auth, request)
      if (status === null) return askAt(auth, request, reply, { to: 'login', code: 'unauthenticated' })
      if (status.verifiedEmail === null) {
        return askAt(auth, request, reply, { to: 'account', code: await lackOf(auth, principalOf(request)?.userId) })
      }
      return showVerifiedEmail(request, status.verifiedEmail)
    }
    // The subject of a token need not be a user, and one of another server is not a user here.
    const status = isOwnToken(token) && isUserId(token.sub) ? await auth.accounts.status(token.sub) : null
    const { verifiedEmail: email = null } = status ?? {}
    if (email === null) throw new AuthError(await lackOf(auth, status === null ? undefined : token.sub))
    request.token = noteOwnToken({ ...token, email, email_verified: true })
  })
}

/** What a user without a verified e-mail lacks. Asked for a refusal alone. */
async function lackOf ({ accounts }: GuardContext, userId?: string): Promise<'unverified' | 'email_missing'> {
  const user = userId === undefined ? null : await accounts.findUser({ userId })
  return user?.email === null ? 'email_missing' : 'unverified'
}

/** What the guard `requireRecent` requires. */
export interface RecentProof {
  /** The maximum number of seconds since the user authenticated. */
  within: number
  /** Whether they must have authenticated by a second factor within that time; default false. */
  secondFactor?: boolean
  /**
   * Whether it lets impersonations pass, by how the user authenticated who has started it; default
   * false: they are answered 403 `impersonating`.
   */
  impersonated?: boolean
}

const RECENT_PROOF = {
  within: mustBe('a number of seconds, such as 600', (value): value is number =>
    Number.isFinite(value) && Number(value) > 0),
  secondFactor: optional(boolean, false),
  impersonated: optional(boolean, false)
} satisfies ChecksOf<RecentProof>

export function requireRecent (auth: GuardContext, required: RecentProof): Guard {
  const proof = checkedOptions('requireRecent', required, RECENT_PROOF, '{ within: 600 }')
  if (proof.secondFactor && !hasFactors(auth)) {
    throw new OptionsError('requireRecent with secondFactor needs the option secondFactor or passkeys of the plugin')
  }
  return recentGuard(auth, proof)
}

export function requireSecondFactor (auth: GuardContext): Guard {
  return recentGuard(auth, { within: Infinity, secondFactor: true, impersonated: false })
}

function recentGuard (auth: GuardContext, { within, secondFactor, impersonated }: Required<RecentProof>): Guard {
  return reading('Cookie', async (request: FastifyRequest, reply: FastifyReply) => {
    if (request.token !== null) {
      const authTime = authTimeOf(request.token, { secondFactor })
      if (authTime !== null && isWithin(authTime * 1000, within)) return
      const maxAge = within === Infinity ? '' : `, max_age=${within}`
      reply.header('WWW-Authenticate', `Bearer error="insufficient_user_authentication"${maxAge}`)
      throw new AuthError('reauthenticate', { statusCode: 401 })
    }
    const principal = await currentPrincipal(auth, request)
    if (principal === null) return askAt(auth, request, reply, { to: 'login', code: 'unauthenticated' })
    const isShown = principal.impersonator !== undefined
    if (isShown && !impersonated) throw new AuthError('impersonating')
    // The session may have ended meanwhile.
    const { at = 0, methods = [] } = recordIn(request.session) ?? {}
    const provenAt = secondFactor ? secondFactorAt(methods) : at
    if (provenAt !== null && isWithin(provenAt, within)) return
    // The one who is shown is not there to authenticate.
    if (isShown) throw new AuthError('impersonating')
    return askToReauthenticate(auth, request, reply, { principal, needsFactor: secondFactor })
  })
}

/** The claim of a token with the time of the last second factor; `auth_time` counts any factor. */
export const FACTOR_TIME = 'svc_factor_time'

/** Returns when the user of a token authenticated, in seconds since the epoch; null if unknown. */
export function authTimeOf (
  { auth_time: authTime, amr, [FACTOR_TIME]: factorTime = authTime }: Readonly<Record<string, unknown>>,
  how: { secondFactor: boolean }
): number | null {
  const isMultiFactor = Array.isArray(amr) && amr.includes('mfa')
  const time = how.secondFactor ? isMultiFactor ? factorTime : null : authTime
  return typeof time === 'number' ? time : null
}

function isWithin (at: number, within: number): boolean {
  return within === Infinity || isRecent(at, within)
}

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

/** Guards of the application may throw refusals of other libraries, such as http-errors. */
function isRefusal (error: unknown): boolean {
  const { statusCode }: { statusCode?: unknown } = Object(error)
  return typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500
}

/**
 * Redirects a page request to the page for reauthentication, as {@link askAt} does.
 *
 * @param how `needsFactor`: whether only a second factor suffices; a user who has none is
 *   redirected to the page on which they set one up
 * @throws AuthError `reauthenticate`, with the methods that the user has; `second_factor_missing`
 */
async function askToReauthenticate (
  auth: GuardContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { principal: { userId }, needsFactor }: { principal: Principal, needsFactor: boolean }
): Promise<never> {
  const { redirects } = auth
  const kinds = needsFactor ? await factorsOfUser(auth, userId) : null
  if (kinds?.length === 0) return askAt(auth, request, reply, { to: 'secondFactor', code: 'second_factor_missing' })
  if (reply.sent || undecided.has(request)) throw new AuthError('reauthenticate')
  if (!redirects.redirect(request, reply, 'reauthenticate', { needsFactor })) {
    request.svcAuthDetails = { methods: kinds ?? await methodNamesOf(auth, userId) }
    throw new AuthError('reauthenticate', { details: request.svcAuthDetails })
  }
  return new Promise(() => {})
}

/**
 * Redirects a page request to a page where the user continues. The promise never resolves: once a
 * guard resolves, Fastify runs the handler, even after a redirect was sent or the client has
 * disconnected.
 *
 * @throws AuthError with the code for other requests, and without such a page
 */
export async function askAt (
  { redirects }: Pick<GuardContext, 'redirects'>, request: FastifyRequest, reply: FastifyReply,
  { to, code }: { to: 'login' | 'account' | 'secondFactor', code: AuthErrorCode }
): Promise<never> {
  const isAnswered = reply.sent || undecided.has(request)
  // The others say what the user lacks.
  const error = to !== 'login' && code
  if (isAnswered || !redirects.redirect(request, reply, to, { error })) throw new AuthError(code)
  return new Promise(() => {})
}

function hasClaim (claims: Claims, name: string, value: unknown): boolean {
  const claim = Object.hasOwn(claims, name) ? claims[name] : undefined
  if (claim === undefined) return false
  if (isDeepStrictEqual(claim, value)) return true
  return Array.isArray(claim) && claim.some(member => isDeepStrictEqual(member, value))
}
