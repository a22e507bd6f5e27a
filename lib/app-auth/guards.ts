import { isDeepStrictEqual } from 'node:util'
import type { FastifyReply, FastifyRequest, RawServerBase, RouteGenericInterface } from 'fastify'
import { wantsHtml } from '../http/accept.js'
import { type CheckedName, type Claims, isPlainObject } from '../claims.js'
import { AuthError, OptionsError } from '../errors.js'
import { verifyToken } from '../flows/local.js'
import { presentPrincipal } from '../flows/refresh.js'
import type { LocalIdentityProvider } from '../local/identity-provider.js'
import { type TokenClaims, type TokenUse, assertUse } from '../local/token-claims.js'
import { isRead } from '../http/own-origin.js'
import { ANY_ORIGIN, publicPath, sameOriginPath, withParameter } from '../http/redirects.js'
import type { AuthStore } from '../store/store.js'

/** A request on any of Node's servers: HTTP/1, HTTPS, HTTP/2 with or without TLS. */
export type AnyRequest = FastifyRequest<RouteGenericInterface, RawServerBase>

/** The reply to such a request. */
export type AnyReply = FastifyReply<RouteGenericInterface, RawServerBase>

/**
 * A `preHandler` that lets a request pass, sends a browser to the login page, or throws an AuthError, which the application's error
 * handler answers. It stands on an application on any server; one for requests of a single kind of server is a guard too.
 */
export type Guard = Bivariant<(request: AnyRequest, reply: AnyReply) => Promise<void>>

/** TypeScript compares the parameters of a method in both directions, and those of a function in one. */
export type Bivariant<F extends (...args: never[]) => unknown> = { method (...args: Parameters<F>): ReturnType<F> }['method']

/** The claims that a guard asks for; where a claim is an array, one of its members. Once the application declares claims, no others. */
export type RequiredClaims = { readonly [C in keyof Claims as CheckedName<C>]?: ValueOrMember<Claims[C]> }

type ValueOrMember<V> = V | (V extends ReadonlyArray<infer Member> ? Member : never)

/** The b64token of RFC 6750 section 2.1; the scheme's name is case-insensitive. */
const BEARER = /^Bearer +([A-Za-z0-9._~+/-]+=*)$/i

/** What guards know of the application. */
export interface GuardSettings {
  readonly store: AuthStore
  readonly local: LocalIdentityProvider | null
  /** As browsers see it. */
  readonly loginPage: string | null
  readonly baseUrl: string | null
}

/** Lets signed-in users pass; others go to the login page or get 401 `unauthenticated`. */
export function requireUser (settings: GuardSettings): Guard {
  return async (request: FastifyRequest, reply: FastifyReply) => {
    if (await presentPrincipal(request, settings.store) === null) await askToSignIn(request, reply, settings)
  }
}

/**
 * Lets users with certain claims pass; anonymous ones go to the login page or get 401 `unauthenticated`, others get 403 `forbidden`.
 *
 * @param required every claim must equal the given value or, where the claim is an array, include it
 * @throws OptionsError for anything but an object
 */
export function requireClaims (required: RequiredClaims, settings: GuardSettings): Guard {
  if (!isPlainObject(required)) throw new OptionsError("requireClaims takes an object of claims, such as { role: 'admin' }")
  const entries = Object.entries(required)
  return async (request: FastifyRequest, reply: FastifyReply) => {
    const principal = await presentPrincipal(request, settings.store)
    if (principal === null) await askToSignIn(request, reply, settings)
    else if (!entries.every(([name, value]) => hasClaim(principal.claims, name, value))) throw new AuthError('forbidden')
  }
}

/**
 * Lets requests with a user's token in `Authorization: Bearer` pass and puts its claims into `request.token`; others get 401
 * `invalid_token` with `WWW-Authenticate` (RFC 6750 section 3).
 */
export function requireBearer ({ local, store }: GuardSettings): Guard {
  return bearerGuard(local, async (local, token) => verifyToken(local, store, token))
}

/**
 * Like {@link requireBearer}, for tokens that were made for one use.
 *
 * @throws OptionsError when the use names neither purpose nor audience
 */
export function requireBearerFor (use: TokenUse, { local }: GuardSettings): Guard {
  assertUse(use)
  if (Object.keys(use).length === 0) throw new OptionsError("requireBearerFor takes { purpose }, { audience } or both, such as { audience: 'reports' }")
  return bearerGuard(local, async (local, token) => local.verifyIdToken(token, use))
}

/**
 * Lets requests pass that one of several guards lets pass. They are asked in turn, and the last one answers a request that all of them
 * refuse. A failure that is not a refusal, such as a store that does not answer, is thrown at once.
 *
 * @throws OptionsError for anything but guards
 */
export function anyOf (...guards: Guard[]): Guard {
  if (guards.length === 0 || !guards.every(guard => typeof guard === 'function')) {
    throw new OptionsError('anyOf takes guards, such as anyOf(app.auth.requireUser, app.auth.requireBearer)')
  }
  return guards.reduceRight((next, guard) => async (request: AnyRequest, reply: AnyReply) => {
    if (!await passes(guard, request, reply)) await next(request, reply)
  })
}

/** Requests whose guard is not the last one to be asked: it throws its refusal, and sends nothing. */
const undecided = new WeakSet<object>()

/** Asks a guard that is not the last one. A refusal leaves no trace on request and reply. */
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

/** An application's own guard may throw errors of its own, such as those of http-errors. */
function isRefusal (error: unknown): boolean {
  const { statusCode }: { statusCode?: unknown } = Object(error)
  return typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500
}

function bearerGuard (local: LocalIdentityProvider | null, verify: (local: LocalIdentityProvider, token: string) => Promise<TokenClaims>): Guard {
  return async (request: FastifyRequest, reply: FastifyReply) => {
    try {
      const [, token] = BEARER.exec(authorizationOf(request)) ?? []
      if (token === undefined || local === null) throw new AuthError('invalid_token')
      request.token = await verify(local, token)
    } catch (error) {
      if (error instanceof AuthError && error.code === 'invalid_token') reply.header('WWW-Authenticate', 'Bearer error="invalid_token"')
      throw error
    }
  }
}

/** Of several headers Node takes the first, and what is in front may have looked at another one (RFC 9110 section 5.3): none counts. */
function authorizationOf ({ raw, headers }: FastifyRequest): string {
  // Requests that a test injects need not have come over a wire.
  const names = (raw.rawHeaders ?? []).filter((text, index) => index % 2 === 0 && text.toLowerCase() === 'authorization')
  return names.length > 1 ? '' : headers.authorization ?? ''
}

/**
 * Redirects a page request to the login page, with `next` set to the page if the request reads. The
 * promise never resolves: once a guard resolves, Fastify runs the handler, even after a redirect was
 * sent or the client has gone away.
 *
 * @throws AuthError `unauthenticated` for other requests
 */
async function askToSignIn (
  request: FastifyRequest,
  reply: FastifyReply,
  { loginPage, baseUrl }: GuardSettings
): Promise<never> {
  // `request.url` is what `rewriteUrl` made of the URL that the browser knows.
  const path = sameOriginPath(request.originalUrl, ANY_ORIGIN)
  const here = path === null ? null : publicPath(path, baseUrl)
  const isLoginPage = loginPage !== null && here !== null && pathnameOf(here) === pathnameOf(loginPage)
  const isAnswered = reply.sent || undecided.has(request)
  if (loginPage === null || isLoginPage || !wantsHtml(request) || isAnswered) throw new AuthError('unauthenticated')

  // The content of a form is lost, and the URL that it was sent to need not be a page.
  const page = here !== null && isRead(request) ? withParameter(loginPage, 'next', here) : loginPage
  reply.header('Cache-Control', 'no-store').redirect(page, isRead(request) ? 302 : 303)
  return new Promise(() => {})
}

function pathnameOf (path: string): string {
  return new URL(path, ANY_ORIGIN).pathname
}

function hasClaim (claims: Claims, name: string, value: unknown): boolean {
  const claim = Object.hasOwn(claims, name) ? claims[name] : undefined
  if (claim === undefined) return false
  return isDeepStrictEqual(claim, value) || (Array.isArray(claim) && claim.some(member => isDeepStrictEqual(member, value)))
}
