import type { FastifyRequest } from 'fastify'
import { AuthError } from '../errors.js'
import { sameOriginPath } from './redirects.js'

/** Which pages may send requests that change something. */
export interface OriginRules {
  /** The public URL of the application; null for that of the request. */
  readonly baseUrl: string | null
  /** Origins besides its own. */
  readonly trustedOrigins: ReadonlySet<string>
}

/** Over plain http browsers send no Fetch Metadata, and with this policy neither Origin nor Referer says anything. */
const HIDDEN_PAGE = 'The browser does not say which page the request came from, as with Referrer-Policy: no-referrer over http:; ' +
  'send the pages of this application with Referrer-Policy: same-origin.'

/** Whether a request changes nothing (RFC 9110 section 9.2.1). */
export function isRead ({ method }: FastifyRequest): boolean {
  return ['GET', 'HEAD', 'OPTIONS', 'TRACE'].includes(method)
}

/** The application's own origin: that of `baseUrl`; without one, that of the request. */
export function ownOrigin (request: FastifyRequest, baseUrl: string | null): string {
  const url = baseUrl ?? `${request.protocol}://${request.host}`
  if (!URL.canParse(url)) throw new AuthError('invalid_request', { message: 'The Host header names no host.' })
  return new URL(url).origin
}

/**
 * Refuses a request that changes something and that a browser sent from a page of another origin; a sibling subdomain is another origin
 * too. What sends neither header is no browser, and has no cookie that somebody else could make it use.
 *
 * @throws AuthError `cross_origin`
 * @see Fetch Metadata (W3C) section 2.2; OWASP CSRF prevention cheat sheet
 */
export function refuseCrossOrigin (request: FastifyRequest, { baseUrl, trustedOrigins }: OriginRules): void {
  if (isRead(request)) return
  const { origin } = request.headers
  if (origin !== undefined && trustedOrigins.has(origin)) return

  const site = request.headers['sec-fetch-site']
  if (site === undefined && origin === 'null') throw new AuthError('cross_origin', { message: HIDDEN_PAGE })
  const isOwn = site === undefined
    ? origin === undefined || origin === ownOrigin(request, baseUrl)
    : site === 'same-origin' || site === 'none'
  if (!isOwn) throw new AuthError('cross_origin')
}

/**
 * Refuses a GET by which a page of another site loads something into itself, an image or a frame: it would use up the tries of the
 * one who looks at that page.
 *
 * @throws AuthError `cross_origin`
 * @see Fetch Metadata (W3C) section 2
 */
export function refuseForeignResource (request: FastifyRequest): void {
  const { 'sec-fetch-site': site, 'sec-fetch-dest': destination = 'document', 'sec-fetch-mode': mode, 'sec-purpose': purpose } = request.headers
  const isForeign = site === 'cross-site' || site === 'same-site'
  // A service worker that passes a navigation on has no destination; a provider beside this application may sign people in silently, in a frame.
  const isPage = destination === 'document' || (destination === 'empty' && mode === 'navigate') || (destination === 'iframe' && site === 'same-site')
  if (isForeign && (!isPage || purpose !== undefined)) throw new AuthError('cross_origin')
}

/**
 * Refuses a GET that is no navigation from a page of this application: a link elsewhere or in a mail, an image that somebody posted
 * here, a page that is loaded ahead. Typed addresses are refused with them, for a browser says the same of a link in a mail program.
 *
 * @throws AuthError `cross_origin`
 * @see Fetch Metadata (W3C) section 2
 */
export function refuseForeignNavigation (request: FastifyRequest, { baseUrl }: OriginRules): void {
  const { 'sec-fetch-site': site, 'sec-fetch-dest': destination = 'document', 'sec-purpose': purpose, referer } = request.headers
  if (site === undefined && referer === undefined) throw new AuthError('cross_origin', { message: HIDDEN_PAGE })
  const isOwn = site === undefined ? saysItIsFromHere(request, baseUrl) : site === 'same-origin'
  const isNavigation = destination === 'document' && purpose === undefined
  if (!isOwn || !isNavigation) throw new AuthError('cross_origin')
}

/** A browser without Fetch Metadata names the page that it comes from, and tells a page from an image by what it accepts. */
function saysItIsFromHere (request: FastifyRequest, baseUrl: string | null): boolean {
  const { referer, accept = 'text/html' } = request.headers
  return sameOriginPath(referer, ownOrigin(request, baseUrl)) !== null && accept.includes('text/html')
}
