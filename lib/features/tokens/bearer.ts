import type { FastifyReply, FastifyRequest } from 'fastify'
import { noteOwnToken } from '../../audit.js'
import { lazily } from '../../base/concurrency.js'
import type { AuthContext } from '../../core/context.js'
import { isScope } from '../../core/scopes.js'
import { AuthError, OptionsError } from '../../errors.js'
import { type ChecksOf, anything, checkedOptions, hasMethods, listOf, mustBe, optional } from '../../option-checks.js'
import { type ResourceMetadata, type ResourcePublisher, resourcePublisher } from './metadata.js'
import { type TokenClaims, type TokenUse, assertUsable, assertUse, scopesIn } from './token-claims.js'
import type { TokenVerifier } from './token-verifier.js'
import { verifyToken, verifyTokenFor } from './user-tokens.js'
import { type Guard, reading } from '../../core/guard.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The claims of the token behind `requireBearer` and `requireBearerFor`; null elsewhere. */
    token: TokenClaims | null
  }
}

declare module '../app-auth/auth.js' {
  interface Auth extends BearerGuards {}
}

/** What tokens add to `app.auth`. */
export interface BearerGuards {
  /**
   * A `preHandler` that requires a valid local JWT in `Authorization: Bearer` and sets
   * `request.token` to its claims. Answers 401 `invalid_token` with `WWW-Authenticate` otherwise.
   *
   * @see RFC 6750 sections 2.1 and 3
   */
  readonly requireBearer: Guard

  /**
   * Makes a guard like {@link requireBearer} that accepts only tokens of one purpose or audience;
   * with `scopes` it answers 403 `insufficient_scope` to a token that lacks one.
   *
   * @param use `{ purpose }`, `{ audience }` or both, exactly as the token was issued
   * @throws OptionsError when neither is given
   * @see RFC 8725 section 3.9, RFC 6750 section 3.1, RFC 9728
   *
   * @example
   * ```ts
   * const requireToken = app.auth.requireBearerFor({
   *   audience: 'https://app.example/mcp',
   *   scopes: ['tools:read'],
   *   metadata: { authorization_servers: ['https://login.example'] },
   *   verifier
   * })
   * ```
   */
  readonly requireBearerFor: (use: BearerUse) => Guard
}

/** What a token must be for, so that the guard `requireBearerFor` lets it pass. */
export interface BearerUse extends TokenUse {
  /** The scopes that a token must have, in its claim `scope` (RFC 9068) or `scp`. */
  scopes?: readonly string[]
  /**
   * Says in the challenge where the metadata are by which clients find the authorization server,
   * and publishes them. The audience is then the URL of the resource.
   *
   * @see RFC 9728
   */
  metadata?: ResourceMetadata
  /** Verifies the tokens, in place of the option `local`: a {@link TokenVerifier}. */
  verifier?: Pick<TokenVerifier, 'verify'>
}

const BEARER_USE = {
  purpose: anything,
  audience: anything,
  scopes: optional(listOf("a list of scopes, such as ['reports:read']", isScope), []),
  metadata: anything,
  verifier: optional(mustBe('a TokenVerifier', hasMethods<TokenVerifier>('verify')), null)
} satisfies ChecksOf<BearerUse>

/** Loaded with the first request that has one. */
const accessTokens = lazily(async () => import('../oauth-server/token.js'))

/** Matches the b64token of RFC 6750 section 2.1; the name of the scheme is case-insensitive. */
const BEARER = /^Bearer +([A-Za-z0-9._~+/-]+=*)$/i

export function bearerGuards (auth: AuthContext): BearerGuards {
  const publish = resourcePublisher(auth)
  return {
    requireBearer: bearerGuard(async token => noteOwnToken(await verifyToken(auth, token))),
    requireBearerFor: required => requireBearerFor(auth, publish, required)
  }
}

function requireBearerFor (
  auth: Pick<AuthContext, 'connectionRule' | 'local' | 'parts'>, publish: ResourcePublisher, required: BearerUse
): Guard {
  const { scopes, verifier } = checkedOptions('requireBearerFor', required, BEARER_USE, "{ audience: 'reports' }")
  const use: TokenUse = Object.fromEntries(['purpose', 'audience']
    .filter(name => Object.hasOwn(required, name)).map(name => [name, Reflect.get(required, name)]))
  assertUse(use)
  if (Object.keys(use).length === 0) {
    throw new OptionsError("requireBearerFor takes { purpose }, { audience } or both, such as { audience: 'reports' }")
  }
  const server = verifier === null ? auth.parts.oauthServer : null
  const resource = server?.resources.get(use.audience ?? '')
  const own = server && resource ? { authorization_servers: [server.issuer] } : undefined
  const { metadata = own } = required
  const all = resource === undefined ? scopes : [...resource.scopes.keys()]
  const metadataUrl = metadata === undefined ? undefined : publish(use.audience, all, metadata)
  return bearerGuard(async (token, request) => {
    if (server != null && resource !== undefined) {
      const asked = { resource: resource.url, log: request.log }
      return (await (await accessTokens()).verifyAccess(auth, server, token, asked)).claims
    }
    if (verifier === null) return noteOwnToken(await verifyTokenFor(auth, token, use))
    const claims = await verifier.verify(token)
    // A verifier may have been made for another audience.
    assertUsable(claims, use)
    return claims
  }, scopes, { asked: all, metadataUrl })
}

function bearerGuard (
  verify: (token: string, request: FastifyRequest) => Promise<TokenClaims>, scopes: readonly string[] = [],
  challenge: Challenge = { asked: scopes }
): Guard {
  return reading('Authorization', async (request: FastifyRequest, reply: FastifyReply) => {
    try {
      const token = bearerTokenOf(request)
      if (token === undefined) throw new AuthError('invalid_token')
      const claims = await verify(token, request)
      const granted = scopesIn(claims)
      if (!scopes.every(scope => granted.includes(scope))) throw new AuthError('insufficient_scope')
      request.token = claims
    } catch (error) {
      challengeRefused(request, reply, challenge, error)
      throw error
    }
  })
}

/** What a challenge tells a client about the resource. */
export interface Challenge {
  /**
   * The scopes that a client is told to ask for: those of the whole resource where they are known,
   * since many clients ask once, for exactly these, and replace what they had before.
   */
  readonly asked: readonly string[]
  readonly metadataUrl?: string | undefined
}

/**
 * Makes the header `WWW-Authenticate` of a refusal (RFC 6750 section 3, RFC 9728 section 5.1).
 *
 * @param error what was wrong with the token; undefined where none came: then there is no error to
 *   name (RFC 6750 section 3.1)
 */
export function challengeOf ({ asked, metadataUrl }: Challenge, error?: string): string {
  const parameters = { error, scope: asked.join(' ') || undefined, resource_metadata: metadataUrl }
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined)
  return `Bearer ${given.map(([name, value]) => `${name}="${value}"`).join(', ')}`.trim()
}

/** Adds the challenge to the answer where a bearer token was refused, or none came. */
export function challengeRefused (
  request: FastifyRequest, reply: FastifyReply, challenge: Challenge, refusal: unknown
): void {
  const { code = '' } = refusal instanceof AuthError ? refusal : {}
  if (!['invalid_token', 'insufficient_scope'].includes(code)) return
  const hasToken = /^Bearer\b/i.test(authorizationOf(request))
  reply.header('WWW-Authenticate', challengeOf(challenge, hasToken ? code : undefined))
}

/** Returns the bearer token of a request; undefined for a request without one. */
export function bearerTokenOf (request: FastifyRequest): string | undefined {
  return BEARER.exec(authorizationOf(request))?.[1]
}

/**
 * Returns the header `Authorization`, and nothing when a request has several: Node.js takes the
 * first, and a proxy may have checked a later one (RFC 9110 section 5.3).
 */
function authorizationOf ({ raw, headers }: FastifyRequest): string {
  // An injected request need not have raw headers.
  const names = (raw.rawHeaders ?? []).filter((_text, index) => index % 2 === 0)
  const count = names.filter(name => name.toLowerCase() === 'authorization').length
  return count > 1 ? '' : headers.authorization ?? ''
}
