import { EventEmitter } from 'node:events'
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify'
import { Authorization, checkedUserId } from './authorization.js'
import type { AuthChannel, AuthEvents } from '../channel.js'
import { AuthError, OptionsError } from '../errors.js'
import { refreshPrincipal } from '../flows/refresh.js'
import { signInUser } from '../flows/sign-in.js'
import { signOut } from '../flows/sign-out.js'
import type { SignInRules } from '../flows/sign-in-rules.js'
import { type SignInUrlOptions, type SignedRequests, signInParameters } from '../flows/signed-requests.js'
import { type AnyReply, type AnyRequest, type Bivariant, type Guard, type GuardSettings, type RequiredClaims, anyOf, requireBearer, requireBearerFor, requireClaims, requireUser } from './guards.js'
import type { TokenUse } from '../local/token-claims.js'
import { type OriginRules, refuseCrossOrigin } from '../http/own-origin.js'
import type { ExternalProvider } from '../providers/provider.js'
import { type Principal, principalOf } from '../session/record.js'

/** What `app.auth` knows of the application. */
export interface AuthSettings extends SignInRules, OriginRules, GuardSettings {
  readonly baseUrl: string | null
  readonly prefix: string
  readonly providers: readonly ExternalProvider[]
  readonly signedRequests: SignedRequests
}

/** What `app.auth` is: users and their claims, guards, sessions, events. */
export class Auth extends Authorization {
  /** `auth.channel.on('revoke', userId => { ... })` */
  readonly channel: AuthChannel = new EventEmitter<AuthEvents>()

  /** A `preHandler`: lets signed-in users pass; sends others who look at pages to the option `loginPage`, else answers 401 `unauthenticated`; 503 `unavailable` when the store does not answer. */
  readonly requireUser: Guard

  /** An `onRequest` hook or `preHandler` for routes of your own that change something: 403 `cross_origin` for a POST, PUT and the like from a page of another origin. */
  readonly refuseCrossOrigin: Guard

  /** A `preHandler`: 401 `invalid_token` without a valid local JWT in `Authorization: Bearer` (RFC 6750 section 2.1); with one, `request.token` holds its claims. */
  readonly requireBearer: Guard

  readonly #settings: AuthSettings

  constructor (settings: AuthSettings, log: FastifyBaseLogger) {
    super(settings.store, log)
    this.#settings = settings
    this.requireUser = requireUser(settings)
    this.requireBearer = requireBearer(settings)
    this.refuseCrossOrigin = async (request: FastifyRequest) => { refuseCrossOrigin(request, settings) }
  }

  /**
   * Makes a `preHandler`: like {@link requireUser}, and 403 unless every claim equals the given value or is an array that includes it.
   *
   * @param required such as `{ role: 'admin' }`; an empty object asks for no more than a user
   * @throws OptionsError for anything but an object of claims
   */
  readonly requireClaims = (required: RequiredClaims): Guard => requireClaims(required, this.#settings)

  /**
   * Makes a `preHandler`: like {@link requireBearer}, for tokens of one purpose or audience and no others.
   *
   * @param use `{ purpose }`, `{ audience }` or both, to the letter as the token was issued for
   * @throws OptionsError when neither is given: such tokens would be anybody's
   * @see RFC 8725 section 3.9
   */
  readonly requireBearerFor = (use: TokenUse): Guard => requireBearerFor(use, this.#settings)

  /**
   * Makes a `preHandler`: lets a request pass that one of the guards lets pass. They are asked in turn, and the last one answers a request
   * that all of them refuse.
   *
   * @example
   * ```ts
   * app.get('/reports', { preHandler: app.auth.anyOf(app.auth.requireBearer, app.auth.requireUser) }, handler)
   * ```
   * @throws OptionsError for anything but guards
   */
  readonly anyOf = (...guards: [Guard, ...Guard[]]): Guard => anyOf(...guards)

  /**
   * The principal of a request behind a guard that asks for a user: never null.
   *
   * @throws AuthError `unauthenticated` when no user is signed in
   */
  user (request: AnyRequest): Principal
  user (request: FastifyRequest): Principal {
    const principal = principalOf(request)
    if (principal === null) throw new AuthError('unauthenticated')
    return principal
  }

  /**
   * Makes the path of a login that asks something of its provider, for a link or a redirect of the application's. It is signed, and good
   * for ten minutes.
   *
   * @param provider the name of an external provider
   * @throws OptionsError for an unknown provider, for options of the wrong form, and with a session of the application's own unless the
   * setting SVC_SESSION_SECRET is there to sign with
   *
   * @example
   * ```ts
   * return reply.redirect(app.auth.signInUrl('google', { next: '/calendar', loginHint: email, scopes: ['https://www.googleapis.com/auth/calendar.readonly'] }))
   * ```
   */
  signInUrl (provider: string, options: SignInUrlOptions = {}): string {
    const { providers, prefix, baseUrl, signedRequests } = this.#settings
    if (!providers.some(({ name }) => name === provider)) {
      throw new OptionsError(`signInUrl knows no provider "${provider}"; expected one of ${providers.map(({ name }) => name).join(', ')}`)
    }
    const asked = signInParameters(options)
    const loginUrl = `${baseUrl}${prefix}/${provider}/login`
    const url = new URL(loginUrl)
    if (options.next !== undefined) url.searchParams.set('next', options.next)
    if (Object.keys(asked).length > 0) url.searchParams.set('signed', signedRequests.sign(provider, asked))
    return url.pathname + url.search
  }

  /**
   * Brings `request.principal` up to date: claims that were granted or withdrawn meanwhile are seen from here on. Whoever was deleted
   * meanwhile, or came in by a link that he has no more, is signed out. It is a `preHandler` too, in front of a guard:
   * `preHandler: [app.auth.refresh, app.auth.requireUser]`.
   *
   * @returns the principal, or null when nobody is signed in any more
   * @throws AuthError `unavailable`
   */
  readonly refresh: Bivariant<(request: AnyRequest) => Promise<Principal | null>> = async (request: FastifyRequest) => refreshPrincipal(request, this.store)

  /**
   * Signs the user of a request out, as `POST /auth/logout` does: the session ends for good, its cookie
   * is cleared, and `revoke` is emitted. In a route of the application, {@link refuseCrossOrigin} keeps
   * other sites from signing users out.
   *
   * @throws AuthError `unavailable`
   */
  async signOut (request: AnyRequest, reply: AnyReply): Promise<void>
  async signOut (request: FastifyRequest, reply: FastifyReply): Promise<void> {
    await signOut(request, reply, this.channel)
  }

  /**
   * Signs a user in by other means than a provider, such as a link in a mail. That it is he, the caller has to be sure of. His identity
   * claims are those of his link `local`, else of his first by the provider's name.
   *
   * @param userId a UUID in lower case
   * @returns who is signed in from here on, in a session with a new id
   * @throws what the hook throws; AuthError `unknown_user`, `invalid_state` when the person signs out meanwhile, `unauthenticated` when the hook deletes the user, `unavailable`
   */
  signIn (request: AnyRequest, userId: string): Promise<Principal>
  async signIn (request: FastifyRequest, userId: string): Promise<Principal> {
    return signInUser(request, this.#settings, checkedUserId(userId))
  }
}
