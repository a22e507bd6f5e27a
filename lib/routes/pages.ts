import type { FastifyRequest } from 'fastify'
import { wantsHtml } from '../http/accept.js'
import { ownOrigin } from '../http/own-origin.js'
import { publicPath, sameOriginPath, startsLinking, withParameter } from '../http/redirects.js'
import type { ResolvedOptions } from '../options.js'
import { principalOf } from '../session/record.js'

type PageOptions = Pick<ResolvedOptions, 'baseUrl' | 'prefix' | 'providers' | 'loginPage' | 'reauthenticatePage'>

/**
 * Chooses the pages that browsers are redirected to: paths of this application, as browsers see
 * them.
 */
export class Pages {
  readonly #baseUrl: string | null
  readonly #loginPage: string | null
  readonly #reauthenticatePage: string | null

  constructor ({ baseUrl, prefix, providers, loginPage, reauthenticatePage }: PageOptions) {
    const startsSignIn = providers.some(({ name }) => loginPage?.startsWith(publicPath(`${prefix}/${name}/`, baseUrl)))
    this.#baseUrl = baseUrl
    // A login page that starts a sign-in itself shows no errors.
    this.#loginPage = startsSignIn ? null : loginPage
    this.#reauthenticatePage = reauthenticatePage
  }

  /**
   * Returns the page after a success: `next` if it is on this origin, else the root of the
   * application.
   */
  afterSuccess (request: FastifyRequest, next: unknown): string {
    return this.asked(request, next) ?? publicPath('/', this.#baseUrl)
  }

  /**
   * Returns the page after a link in a mail was redeemed: `next` if it is on this origin, else, for
   * a browser in which no user is signed in, the login page, else the root of the application.
   */
  afterLink (request: FastifyRequest, next: unknown): string {
    const loginPage = principalOf(request) === null ? this.#loginPage : null
    return this.asked(request, next) ?? loginPage ?? this.afterSuccess(request, next)
  }

  /**
   * Returns the page that shows an error: `error_next`, else the page in `Referer`, else the login
   * page.
   */
  forError (request: FastifyRequest, errorNext?: unknown): string | null {
    return this.ofStart(request, errorNext) ?? this.login(request)
  }

  /**
   * Returns the page on which this request starts a sign-in: `error_next`, else the page in
   * `Referer`.
   */
  ofStart (request: FastifyRequest, errorNext: unknown): string | null {
    return this.asked(request, errorNext) ?? this.asked(request, request.headers.referer)
  }

  /** Returns the application's login page; null for a request that does not ask for a page. */
  login (request: FastifyRequest): string | null {
    return wantsHtml(request) ? this.#loginPage : null
  }

  /**
   * Returns the application's page for a further proof, with `next` set to the page that needs it;
   * null without one, and for a request that does not ask for a page.
   */
  forProof (request: FastifyRequest, next: string | null): string | null {
    const page = wantsHtml(request) ? this.#reauthenticatePage : null
    return page === null || next === null ? page : withParameter(page, 'next', next)
  }

  /**
   * Returns a path that a request names if it is one of this application; null for one that would
   * link an identity, which needs a click of the user.
   */
  asked (request: FastifyRequest, target: unknown): string | null {
    const path = sameOriginPath(target, ownOrigin(request, this.#baseUrl))
    return path === null || startsLinking(path) ? null : path
  }
}
