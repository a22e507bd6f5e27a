import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify'
import { Authorization } from './authorization.js'
import type { Link, User } from '../../accounts/account.js'
import type { CanSignIn } from '../../accounts/identities.js'
import type { AuthStore } from '../../accounts/auth-store.js'
import { type AuditSource, type AuthChannel, announceRevoke } from '../../audit.js'
import { isAddedProvider, pathOf, routeOfProvider } from '../../core/act.js'
import type { AuthContext } from '../../core/context.js'
import { refuseImpersonation } from '../../core/acting.js'
import { refreshPrincipal } from '../../core/current-user.js'
import { AuthError, OptionsError } from '../../errors.js'
import { assertKnownOptions } from '../../option-checks.js'
import { signInUser } from '../../core/sign-in.js'
import { endOtherSessions, followRevocations, signOut } from '../../core/sign-out.js'
import { admittedGuest } from '../../core/guests.js'
import { withQuery } from '../../core/redirects.js'
import { type SignInUrlOptions, signedRequestOf } from '../identities/signed-requests.js'
import {
  type GuardOptions, type RecentProof, type RequiredClaims, anyOf, requireClaims, requireRecent, requireSecondFactor,
  requireVerified
} from './guards.js'
import { type Cause, type KeptSession, checkedUserId } from './users.js'
import { type Principal, principalOf, sessionBinding } from '../../session/record.js'
import { canSignIn } from '../../core/methods.js'
import { type UserSession, endSessionOfUser, sessionsOfUser } from '../sessions/list.js'
import type { AnyReply, AnyRequest, Bivariant, Guard } from '../../core/guard.js'
import { type OpenedMailToken, leftUnverified, openMailToken } from '../mail-links.js'

/** How {@link Auth.signIn} signs a user in. */
export interface SignInOptions {
  /** Whether the user asked to be remembered (option `session.remember`); default false. */
  remember?: boolean | undefined
  /** `skip`: the application has asked for a second factor itself. */
  secondFactor?: 'skip' | undefined
  /** The page after a second factor that is due: a path of this application. */
  next?: string | undefined
}

/**
 * The type of `app.auth`: users and their claims, guards, sessions, events. Its methods share the
 * errors of {@link Authorization}. A guard answers 503 `unavailable` without the store.
 */
export class Auth extends Authorization {
  /** Emits `revoke` when sessions of a user end: `app.auth.channel.on('revoke', userId => ...)`. */
  readonly channel: AuthChannel

  /**
   * A `preHandler` that lets signed-in users pass. Redirects other page requests to the option
   * `loginPage`; answers 401 `unauthenticated` without one and to other requests.
   */
  readonly requireUser: Guard

  /**
   * Like {@link requireUser}, and requires a verified e-mail ({@link User.emailVerified}): the
   * claim `email` is that address from then on. Other users are redirected to the option
   * `accountPage`, or answered 403 `unverified`, without any e-mail `email_missing`. Behind {@link
   * requireBearer} the user of the token counts.
   */
  readonly requireVerified: Guard

  /**
   * Like {@link requireUser}, and requires a second factor in this session: a code, a passkey, or a
   * provider that the option `trusts` names. Asks for one as {@link requireRecent} does; a user who
   * has none is redirected to the option `secondFactorPage`, or answered 403
   * `second_factor_missing`. Behind {@link requireBearer} the claim `amr` of the token counts.
   */
  readonly requireSecondFactor: Guard

  /**
   * An `onRequest` hook or `preHandler` for routes that change something. Answers 403
   * `cross_origin` to a POST, PUT or similar request from a page of another origin, unless that is
   * one of `trustedOrigins`.
   */
  readonly refuseCrossOrigin: Guard

  readonly #auth: AuthContext
  readonly #log: FastifyBaseLogger

  constructor (auth: AuthContext, store: AuthStore, log: FastifyBaseLogger) {
    super(store, log, auth.local, auth.onCreateUser)
    this.#auth = auth
    this.#log = log
    this.channel = auth.channel
    followRevocations(auth, log)
    this.requireUser = requireClaims(auth, {})
    this.requireVerified = requireVerified(auth)
    this.requireSecondFactor = requireSecondFactor(auth)
    this.refuseCrossOrigin = async (request: FastifyRequest) => { auth.site.refuseCrossOrigin(request) }
  }

  /**
   * Makes a guard like {@link requireUser} that answers 403 `forbidden` unless every claim equals
   * the given value or is an array that includes it.
   *
   * @param required such as `{ role: 'admin' }`
   * @param options `guests`: whether guests pass; with no claims required, all of them
   * @throws OptionsError when `required` is not an object of claims
   */
  readonly requireClaims = (required: RequiredClaims, options?: GuardOptions): Guard =>
    requireClaims(this.#auth, required, options)

  /**
   * Makes a guard like {@link requireUser} for changes that an open session alone must not allow:
   * the user must have authenticated within a time. Redirects browsers to the option
   * `reauthenticatePage`; answers 403 `reauthenticate` with `methods` to other requests. Behind
   * {@link requireBearer} the token's `auth_time` counts, and the answer is 401 `reauthenticate`.
   *
   * @param required `within`: seconds; with `secondFactor: true` the last second factor counts
   * @throws OptionsError when `within` is not a positive number, and for `secondFactor` without the
   *   option `secondFactor` or `passkeys`
   * @see RFC 9470
   *
   * @example
   * ```ts
   * app.post('/transfer', { preHandler: app.auth.requireRecent({ within: 600 }) }, handler)
   * ```
   */
  readonly requireRecent = (required: RecentProof): Guard => requireRecent(this.#auth, required)

  /**
   * Makes a guard that lets a request pass if one of the guards does. They run in order, and the
   * last one answers a request that all refuse. Another failure, such as an unavailable store, is
   * thrown at once.
   *
   * @example
   * ```ts
   * const { anyOf, requireBearer, requireUser } = app.auth
   * app.get('/reports', { preHandler: anyOf(requireBearer, requireUser) }, handler)
   * ```
   * @throws OptionsError when an argument is not a guard
   */
  readonly anyOf = (...guards: [Guard, ...Guard[]]): Guard => anyOf(...guards)

  /**
   * Returns the principal of a request, for handlers behind a guard.
   *
   * @throws AuthError `unauthenticated` when no user is signed in
   */
  user (request: AnyRequest): Principal
  user (request: FastifyRequest): Principal {
    const principal = principalOf(request) ?? admittedGuest(request)
    if (principal === null) throw new AuthError('unauthenticated')
    return principal
  }

  /** @hidden for `fastify-svc-auth/testing` */
  get prefix (): string {
    return this.#auth.prefix
  }

  /**
   * Returns the path of a login with parameters for its authorization request, for a link or a
   * redirect. The parameters are signed and valid for ten minutes; with `link`, in the session of
   * the request alone, where the path shows a page with the button that starts it.
   *
   * @param provider the name of an external provider, or the `provider` of a connection
   * @throws OptionsError for an unknown provider or wrong options, and without SVC_SESSION_SECRET
   *   when the application registered @fastify/session itself, or `session.secret` is an object;
   *   AuthError `unauthenticated` with `link` when no user is signed in
   *
   * @example
   * ```ts
   * const scopes = ['https://www.googleapis.com/auth/calendar.readonly']
   * const url = app.auth.signInUrl('google', { link: true, request, next: '/calendar', scopes })
   * return reply.redirect(url)
   * ```
   */
  signInUrl (provider: string, options: SignInUrlOptions = {}): string {
    const { parts, providers, signedRequests } = this.#auth
    const isConnection = parts.connections !== null && isAddedProvider(provider)
    if (!isConnection && !providers.some(({ name }) => name === provider)) {
      const names = providers.map(({ name }) => name).join(', ')
      throw new OptionsError(`signInUrl knows no provider "${provider}"; expected one of ${names}`)
    }
    const { asked, linkFor } = signedRequestOf(options)
    if (linkFor !== undefined) refuseImpersonation(linkFor)
    const content = { ...asked, ...(linkFor !== undefined && { linkFor: sessionBinding(linkFor) }) }
    const signed = Object.keys(content).length > 0 ? signedRequests.sign(provider, content) : null
    return withQuery(pathOf(this.#auth, routeOfProvider(provider, 'login')), { next: options.next ?? null, signed })
  }

  /**
   * Updates `request.principal` and the session with the claims that the store has now. Signs the
   * user out when the user, or the link by which they signed in, no longer exists, and when their
   * sessions were ended. Also a `preHandler` before a guard, such as
   * `[app.auth.refresh, app.auth.requireUser]`.
   *
   * @returns the principal, or null when no user is signed in
   */
  readonly refresh: Bivariant<(request: AnyRequest) => Promise<Principal | null>> =
    async (request: FastifyRequest) => refreshPrincipal(this.#auth, request)

  /**
   * Signs the user of a request out, as `POST /auth/logout` does: ends the session, clears its
   * cookie and emits `revoke`. In a route of the application, {@link refuseCrossOrigin} keeps other
   * sites from signing users out.
   */
  async signOut (request: AnyRequest, reply: AnyReply): Promise<void>
  async signOut (request: FastifyRequest, reply: FastifyReply): Promise<void> {
    await signOut(this.#auth, request, reply)
  }

  /**
   * Lists the open sessions of a user: at most 100, the last used ones first.
   *
   * @param list `current`: a request whose session is marked in the list
   * @throws AuthError `unsupported` when a session store of the application keeps the sessions
   */
  sessions (userId: string, list?: { current?: AnyRequest }): Promise<UserSession[]>
  async sessions (userId: string, list: { current?: FastifyRequest } = {}): Promise<UserSession[]> {
    assertKnownOptions('sessions', list, ['current'])
    return sessionsOfUser(this.#auth, checkedUserId(userId), list.current)
  }

  /**
   * Ends one session of a user, in each process at once, and emits `revoke`.
   *
   * @param id of {@link UserSession}
   * @returns false when {@link sessions} lists none with this id
   * @throws AuthError `unsupported`, as {@link sessions}
   */
  async endSession (userId: string, id: string, cause: Cause = {}): Promise<boolean> {
    const source = { ...this.sourceOf('endSession', cause), log: cause.request?.log ?? this.#log }
    return endSessionOfUser(this.#auth, { userId: checkedUserId(userId), id }, source)
  }

  /**
   * Opens the token of a link in a mail without using it, for a page of the application (option
   * `pages` of `local`): what the link is for and which address it is about, or why it cannot be
   * used.
   *
   * @param token the query parameter `token`
   * @throws OptionsError without the option `sendMail`
   *
   * @example
   * ```ts
   * const link = await app.auth.openMailToken(request.query.token)
   * if (!link.valid) return reply.view('link-expired', { reason: link.reason })
   * ```
   */
  async openMailToken (token: string): Promise<OpenedMailToken> {
    const { mailTokens } = this.#auth
    if (mailTokens === null) throw new OptionsError('openMailToken needs the option sendMail of LocalIdentityProvider')
    return openMailToken(this.#auth, mailTokens, typeof token === 'string' ? token : '')
  }

  /**
   * Resolves when the mails of the answers so far are sent or have failed, for platforms that
   * freeze the process after an answer. A request that awaits its own never ends.
   */
  async mailsSent (): Promise<void> {
    await this.#auth.mailer?.sent()
  }

  override async resetFactors (userId: string, cause: Cause = {}): Promise<User> {
    const user = await super.resetFactors(userId, cause)
    this.#auth.mailer?.sendOfApplication('factor-removed', user, this.#log)
    return user
  }

  override async setPassword (userId: string, password: string, kept: KeptSession = {}): Promise<User> {
    const user = await super.setPassword(userId, password, kept)
    this.#auth.mailer?.sendOfApplication('password-changed', user, this.#log)
    return user
  }

  protected override readonly canSignIn: CanSignIn = (...left) => canSignIn(this.#auth, ...left)

  /** Sends the link that confirms the e-mail, where the identity that is removed vouched for it. */
  override async unlink (userId: string, provider: string, kept: KeptSession = {}): Promise<Link[]> {
    const { mailer } = this.#auth
    const before = mailer && await this.existingUser(userId)
    const links = before === null ? [] : await this.links(userId)
    const left = await super.unlink(userId, provider, kept)
    if (before !== null && left.length < links.length) {
      mailer?.sendOfApplication('identity-unlinked', before, this.#log)
    }
    const unverified = before && await leftUnverified(this.accounts, before)
    if (unverified !== null) mailer?.sendOfApplication('verify-email', unverified, this.#log)
    return left
  }

  /** Keeps the session of a request, and announces that all others have ended. */
  protected override async sessionsEnded (userId: string, source: AuditSource, except?: FastifyRequest): Promise<void> {
    if (except !== undefined) return endOtherSessions(this.#auth, except, userId, source)
    announceRevoke(this.channel, userId, { ...source, log: this.#log })
  }

  /** Tells the former address and the new one, each if the user has confirmed it. */
  protected override emailChanged (beforeAndNow: readonly User[]): void {
    for (const user of beforeAndNow) this.#auth.mailer?.sendOfApplication('email-changed', user, this.#log)
  }

  /**
   * Signs a user in without a provider, for example from an e-mailed link. The caller must have
   * verified the user's identity. The identity claims come from the user's link `local`, else from
   * their first link by the provider's name. The session gets a new id.
   *
   * @throws what the hook throws; AuthError `blocked`; `second_factor_required` when one is due, to
   *   a browser with the page for it in `details.page`; `invalid_state` when the user signs out
   *   meanwhile; `unauthenticated` when the hook deletes the user
   */
  signIn (request: AnyRequest, userId: string, options?: SignInOptions): Promise<Principal>
  async signIn (request: FastifyRequest, userId: string, options: SignInOptions = {}): Promise<Principal> {
    assertKnownOptions('signIn', options, ['remember', 'secondFactor', 'next'])
    const { remember = false, secondFactor, next = null } = options
    return signInUser(this.#auth, request, {
      userId: checkedUserId(userId), remember: remember === true, skipsFactor: secondFactor === 'skip'
    }).catch((error: unknown) => {
      if (!(error instanceof AuthError && error.code === 'second_factor_required')) throw error
      const page = this.#auth.redirects.forStep(request, 'step', next)
      throw new AuthError('second_factor_required', { details: { ...error.details, page } })
    })
  }
}
