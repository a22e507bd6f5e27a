import type { FastifyRequest } from 'fastify'
import { AuthError } from '../errors.js'
import type { ResolvedOptions } from '../options.js'

/** The application's own origin: that of `baseUrl`; without one, that of the request. */
export function ownOrigin (request: FastifyRequest, baseUrl: string | null): string {
  const url = baseUrl ?? `${request.protocol}://${request.host}`
  if (!URL.canParse(url)) throw new AuthError('invalid_request', { message: 'The Host header names no host.' })
  return new URL(url).origin
}

/**
 * Refuses a POST that a browser sent from a page of another origin; a sibling subdomain is another origin too. What sends neither
 * header is no browser, and has no cookie that somebody else could make it use.
 *
 * @throws AuthError `cross_origin`
 * @see Fetch Metadata (W3C) section 2.2; OWASP CSRF prevention cheat sheet
 */
export function refuseCrossOrigin (request: FastifyRequest, { baseUrl, trustedOrigins }: ResolvedOptions): void {
  const { origin } = request.headers
  if (origin !== undefined && trustedOrigins.has(origin)) return

  const site = request.headers['sec-fetch-site']
  const isOwn = site === undefined
    ? origin === undefined || origin === ownOrigin(request, baseUrl)
    : site === 'same-origin' || site === 'none'
  if (!isOwn) throw new AuthError('cross_origin')
}
