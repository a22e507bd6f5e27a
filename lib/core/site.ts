import type { FastifyRequest } from 'fastify'
import Negotiator from 'negotiator'
import { digestOf } from '../base/values.js'
import { AuthError } from '../errors.js'
import { ANY_ORIGIN, redirectTarget, sameOriginPath } from './redirects.js'

/** What forms send besides their own fields, as it came: a schema need not have checked it. */
interface SentFields extends Readonly<Record<string, unknown>> {
  readonly next?: unknown
  readonly error_next?: unknown
  /** The word of what the page after a success says. */
  readonly done?: unknown
  readonly token?: unknown
  /** See {@link shownTo}. */
  readonly shown_to?: unknown
}

/** Returns the fields of a form, or the same as JSON; none where no body was read. */
export function sentFields ({ body }: Pick<FastifyRequest, 'body'>): SentFields {
  return Object(body)
}

/** Whether a client prefers JSON: by Accept (RFC 9110 section 12.5.1), else by a JSON body. */
export function wantsJson (request: FastifyRequest): boolean {
  const prefersJson = new Negotiator(request).mediaType(['text/html', 'application/json']) === 'application/json'
  const sendsJson = /^application\/json *(?:;|$)/i.test(request.headers['content-type'] ?? '')
  return prefersJson || (!wantsHtml(request) && sendsJson)
}

/** Whether a request asks for a page: scripts and sockets accept anything, without preference. */
export function wantsHtml (request: FastifyRequest): boolean {
  return new Negotiator(request).mediaType(['application/json', 'text/html']) === 'text/html'
}

/** Adds names of headers to the header `Vary`, each once (RFC 9110 section 12.5.5). */
export function mergedVary (vary: unknown, headers: string): string {
  if (vary === undefined) return headers
  const names = [vary, headers].join(',').matchAll(/[^\s,]+/g)
  const named = new Map(Array.from(names, ([name]) => [name.toLowerCase(), name]))
  return named.has('*') ? '*' : [...named.values()].join(', ')
}

/**
 * Names the user to whom a page was shown, as its forms send it in `shown_to`. Otherwise the form
 * of a page that is still open would act for the user who signs in next on this machine.
 */
export function shownTo (userId: string): string {
  return digestOf(userId).slice(0, 16)
}

const HIDDEN_PAGE = 'The browser does not say which page the request came from, ' +
  'as with Referrer-Policy: no-referrer over http:; ' +
  'send the pages of this application with Referrer-Policy: same-origin.'

/** Routes at the root of the application. */
export const CHANGE_PASSWORD = '/.well-known/change-password'
export const RELATED_ORIGINS = '/.well-known/webauthn'

/** Whether the method of a request is safe (RFC 9110 section 9.2.1). */
export function isRead ({ method }: FastifyRequest): boolean {
  return ['GET', 'HEAD', 'OPTIONS', 'TRACE'].includes(method)
}

/**
 * Refuses a GET by which a page of another site loads a resource, such as an image or a frame, or
 * prefetches a page. Such requests would use up the attempts of the user who visits that page.
 *
 * @see Fetch Metadata (W3C) section 2
 */
export async function refuseForeignResource (request: FastifyRequest): Promise<void> {
  const {
    'sec-fetch-site': site,
    'sec-fetch-dest': destination = 'document',
    'sec-fetch-mode': mode,
    'sec-purpose': purpose
  } = request.headers
  const isForeign = site === 'cross-site' || site === 'same-site'
  // A navigation that a service worker forwards has no destination. A provider on the same site may
  // sign users in silently, in a frame.
  const isPage = destination === 'document' ||
    (destination === 'empty' && mode === 'navigate') ||
    (destination === 'iframe' && site === 'same-site')
  if (isForeign && (!isPage || purpose !== undefined)) throw new AuthError('cross_origin')
}

/** The application as browsers see it: its origin, and the path in front of its own paths. */
export class Site {
  /** The public URL of the application; null to take the origin from the request. */
  readonly baseUrl: string | null
  /** The path of `baseUrl`, without a slash at its end. */
  readonly #base: string
  /** Other origins whose pages are as good as the application's. */
  readonly trustedOrigins: ReadonlySet<string>

  constructor (baseUrl: string | null, trustedOrigins: ReadonlySet<string>) {
    this.baseUrl = baseUrl
    this.#base = baseUrl === null ? '' : new URL(baseUrl).pathname.replace(/\/$/, '')
    this.trustedOrigins = trustedOrigins
  }

  /**
   * The referrer policy of responses. Over plain http browsers send no Fetch Metadata, and with
   * `no-referrer` a null `Origin`, so that forms would be refused.
   */
  get referrerPolicy (): 'no-referrer' | 'same-origin' {
    return this.baseUrl?.startsWith('http:') === true ? 'same-origin' : 'no-referrer'
  }

  /** The application's own origin: of `baseUrl`, else of the request. */
  originOf (request: FastifyRequest): string {
    const url = this.baseUrl ?? `${request.protocol}://${request.host}`
    if (!URL.canParse(url)) throw new AuthError('invalid_request', { message: 'The Host header names no host.' })
    return new URL(url).origin
  }

  /** A path as browsers see it: below the path of `baseUrl`, which a proxy may remove. */
  publicPath (path: string): string {
    const isPublic = path === this.#base || ['/', '?', '#'].some(delimiter => path.startsWith(this.#base + delimiter))
    return isPublic ? path : this.#base + path
  }

  /** The path of a route as browsers see it: always below the path of `baseUrl`. */
  routePath (path: string): string {
    return this.#base + path
  }

  /** The path of a request as the browser knows it; null for a target that is not a path. */
  pathOf (request: FastifyRequest): string | null {
    // Not `url`, which `rewriteUrl` may have changed.
    const path = sameOriginPath(request.originalUrl, ANY_ORIGIN)
    return path === null ? null : this.publicPath(path)
  }

  /** As the function {@link redirectTarget}, for this site. */
  redirectTarget (request: FastifyRequest, target: unknown): string | null {
    return redirectTarget(target, this.originOf(request), this.trustedOrigins)
  }

  /**
   * Refuses a request that changes something and that a browser sent from a page of another origin,
   * a sibling subdomain included. A request with neither `Sec-Fetch-Site` nor `Origin` passes: it
   * does not come from a browser, so no page can forge it with the cookie of a user.
   *
   * @see Fetch Metadata (W3C) section 2.2; OWASP CSRF prevention cheat sheet
   */
  refuseCrossOrigin (request: FastifyRequest): void {
    if (isRead(request)) return
    const { origin } = request.headers
    if (origin !== undefined && this.trustedOrigins.has(origin)) return

    const site = request.headers['sec-fetch-site']
    if (site === undefined && origin === 'null') throw new AuthError('cross_origin', { message: HIDDEN_PAGE })
    const isOwn = site === undefined
      ? origin === undefined || origin === this.originOf(request)
      : site === 'same-origin' || site === 'none'
    if (!isOwn) throw new AuthError('cross_origin')
  }
}
