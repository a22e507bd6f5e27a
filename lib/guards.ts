import { isDeepStrictEqual } from 'node:util'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { AuthorizationClaims, Claims } from './claims.js'
import { AuthError } from './errors.js'
import type { LocalIdentityProvider } from './local/identity-provider.js'
import { principalOf } from './session/principal.js'

/** A `preHandler` that lets a request pass or throws an AuthError, which the application's error handler answers. */
export type Guard = (request: FastifyRequest, reply: FastifyReply) => Promise<void>

/** The b64token of RFC 6750 section 2.1; the scheme's name is case-insensitive. */
const BEARER = /^Bearer +([A-Za-z0-9._~+/-]+=*)$/i

/** Lets signed-in users pass; others get 401 `unauthenticated`. */
export const requireUser: Guard = async request => {
  if (principalOf(request) === null) throw new AuthError('unauthenticated')
}

/**
 * Lets users with certain claims pass; anonymous ones get 401 `unauthenticated`, others 403 `forbidden`.
 *
 * @param required every claim must equal the given value or, where the claim is an array, include it
 */
export function requireClaims (required: AuthorizationClaims): Guard {
  const entries = Object.entries(required)
  return async request => {
    const principal = principalOf(request)
    if (principal === null) throw new AuthError('unauthenticated')
    if (!entries.every(([name, value]) => hasClaim(principal.claims, name, value))) throw new AuthError('forbidden')
  }
}

/**
 * Lets requests with a local JWT in `Authorization: Bearer` pass and puts its claims into `request.token`; others get 401
 * `invalid_token` with `WWW-Authenticate` (RFC 6750 section 3).
 */
export function requireBearer (local: LocalIdentityProvider | null): Guard {
  return async (request, reply) => {
    try {
      const [, token] = BEARER.exec(request.headers.authorization ?? '') ?? []
      if (token === undefined || local === null) throw new AuthError('invalid_token')
      request.token = await local.verifyIdToken(token)
    } catch (error) {
      reply.header('WWW-Authenticate', 'Bearer error="invalid_token"')
      throw error
    }
  }
}

function hasClaim (claims: Claims, name: string, value: unknown): boolean {
  const claim = Object.hasOwn(claims, name) ? claims[name] : undefined
  if (claim === undefined) return false
  return isDeepStrictEqual(claim, value) || (Array.isArray(claim) && claim.some(member => isDeepStrictEqual(member, value)))
}
