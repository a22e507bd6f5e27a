import type { FastifyReply, FastifyRequest, onRequestAsyncHookHandler } from 'fastify'
import { isOwnPath, pathnameOf, withError, withParameter } from './redirects.js'
import { type Site, isRead, wantsHtml, wantsJson } from './site.js'

/**
 * Pages of the application: paths as browsers see them, or URLs of trusted origins, or null. Users
 * set a second factor up at `secondFactor`; a sign-in that waits for one continues at `step`.
 */
export type ApplicationPages = Readonly<Record<
  'login' | 'reauthenticate' | 'secondFactor' | 'step' | 'register' | 'forgotPassword' | 'account', string | null
>>

/** Chooses the pages that browsers are redirected to. */
export class RedirectPages {
  readonly application: ApplicationPages
  readonly #site: Site
  /** The login page; null for one that starts a sign-in itself. */
  readonly #login: string | null

  /** @param signInPaths the paths under which a sign-in starts at once, without a page */
  constructor (site: Site, pages: ApplicationPages, signInPaths: readonly string[]) {
    this.#site = site
    this.application = pages
    const startsSignIn = signInPaths.some(path => pages.login?.startsWith(site.publicPath(path)))
    this.#login = startsSignIn ? null : pages.login
  }

  /** Returns the page after a success: `next`, else the root of the application. */
  afterSuccess (request: FastifyRequest, next: unknown): string {
    return this.asked(request, next) ?? this.#site.publicPath('/')
  }

  /** Returns the page after a link in a mail was used: without `next` a visitor has to sign in. */
  afterLink (request: FastifyRequest, next: unknown): string {
    const login = request.principal === null || request.principal.guest ? this.#login : null
    return this.asked(request, next) ?? login ?? this.afterSuccess(request, next)
  }

  /** Returns the page that shows an error: the page of the start, else the login page. */
  forError (request: FastifyRequest, errorNext?: unknown): string | null {
    const page = this.ofStart(request, errorNext) ?? this.login(request)
    // A page that is broken would lead to itself again and again.
    return isRead(request) && this.isAt(request, page) ? null : page
  }

  /** Returns the page on which this request starts: `error_next`, else the page in `Referer`. */
  ofStart (request: FastifyRequest, errorNext: unknown): string | null {
    return this.asked(request, errorNext) ?? this.asked(request, request.headers.referer)
  }

  /** Returns the login page, for a request that asks for a page. */
  login (request: FastifyRequest): string | null {
    return wantsHtml(request) ? this.#login : null
  }

  /** Returns the login page with `next` set to the page that needs a user. */
  loginWith (request: FastifyRequest, next: string | null): string | null {
    return this.#withNext(request, this.#login, next)
  }

  /** Returns a page that a link leads to, with `next` set to the page after it. */
  linkTo (request: FastifyRequest, to: keyof ApplicationPages, next: string | null = null): string | null {
    return this.#withNext(request, this.application[to], next)
  }

  /** Returns the page for a further authentication; null for a request that asks for no page. */
  forStep (
    request: FastifyRequest, to: 'reauthenticate' | 'step', next: string | null, needsFactor = false
  ): string | null {
    return wantsHtml(request) ? this.#withNext(request, this.#page(to, needsFactor), next) : null
  }

  /**
   * Redirects a request for a page, with `next` set to that page if the request only reads.
   *
   * @param how `needsFactor`: whether only a second factor suffices there; `error`: what the page
   *   says that the user lacks
   * @returns false for a request that asks for no page or for this one, and where there is none
   */
  redirect (
    request: FastifyRequest, reply: FastifyReply, to: keyof ApplicationPages,
    { needsFactor = false, error }: { needsFactor?: boolean, error?: string | false } = {}
  ): boolean {
    const page = this.#page(to, needsFactor)
    if (page === null || this.isAt(request, page) || !wantsHtml(request)) return false
    // The URL to which a form was sent need not be a page.
    const next = isRead(request) ? this.#site.pathOf(request) : null
    const target = this.#withNext(request, error ? withError(page, error) : page, next)
    reply.header('Cache-Control', 'no-store').redirect(target, isRead(request) ? 302 : 303)
    return true
  }

  /** Whether a request asks for this page, which is one of this application. */
  isAt (request: FastifyRequest, page: string | null): boolean {
    const here = this.#site.pathOf(request)
    return page !== null && here !== null && isOwnPath(page) && pathnameOf(here) === pathnameOf(page)
  }

  /** Returns the target that a request names if it may be followed. */
  asked (request: FastifyRequest, target: unknown): string | null {
    return this.#site.redirectTarget(request, target)
  }

  #page (to: keyof ApplicationPages, needsFactor: boolean): string | null {
    const page = this.application[to]
    return page !== null && needsFactor ? withParameter(page, 'second_factor', 'true') : page
  }

  /** On a page of another origin, the path of this application needs its origin in front. */
  #withNext<Page extends string | null> (request: FastifyRequest, page: Page, next: string | null): Page | string {
    if (page === null || next === null) return page
    const isAbroad = !isOwnPath(page) && isOwnPath(next)
    return withParameter(page, 'next', isAbroad ? this.#site.originOf(request) + next : next)
  }
}

/** The query parameter of a navigation that was redirected already. */
const MARK = 'redirected'

/** The Host that `app.inject` sends by default. No browser does: the port of http: is left out. */
const INJECTED = 'localhost:80'

const OTHER_HOST = 'A visit on another host is redirected to baseUrl, where sign-ins end; link to that host.'
const CHANGED_HOST = 'A proxy changes Host; pass it on, or send X-Forwarded-Host and set trustProxy of Fastify.'

/**
 * Makes a hook that redirects a navigation on another host to `baseUrl`: a sign-in that ends on
 * another host than it began has no cookie. Redirects once, because a proxy may change `Host` each
 * time, and logs each case once.
 */
export function redirectToBaseUrl (site: Site): onRequestAsyncHookHandler {
  const base = site.baseUrl === null ? null : new URL(site.baseUrl)
  const warned = new Set<string>()
  return async (request, reply) => {
    const { host } = request
    if (base === null || host === INJECTED || !isNavigation(request)) return
    // With or without the port that the protocol has anyway.
    if (URL.parse(`${base.protocol}//${host}`)?.host === base.host) return
    const url = new URL(site.routePath(String(request.routeOptions.url)), base)
    url.search = request.url.replace(/^[^?]*/, '')
    const warning = url.searchParams.has(MARK) ? CHANGED_HOST : OTHER_HOST
    if (!warned.has(warning)) request.log.warn({ host, baseUrl: site.baseUrl }, warning)
    warned.add(warning)
    if (warning === CHANGED_HOST) return
    url.searchParams.set(MARK, 'true')
    return reply.redirect(url.href, 302)
  }
}

/** Whether a browser asks for a page. Over plain http it sends no Fetch Metadata. */
function isNavigation (request: FastifyRequest): boolean {
  const { 'sec-fetch-mode': mode = wantsHtml(request) ? 'navigate' : undefined } = request.headers
  return request.method === 'GET' && mode === 'navigate' && !wantsJson(request)
}
