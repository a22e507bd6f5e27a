/** A user, such as one of the support, sees the application as another user does. */
import type { FastifyRequest } from 'fastify'
import type { Feature } from '../../core/feature.js'
import type { AnyRequest, Bivariant } from '../../core/guard.js'
import type { Principal } from '../../session/record.js'
import { type ImpersonationBarOptions, type ImpersonateOptions, ruleOf } from './options.js'

declare module '../app-auth/auth.js' {
  interface Auth extends ImpersonationMembers {}
}

/** What the option `impersonation` adds to `app.auth`. */
export interface ImpersonationMembers {
  /**
   * Shows the application to the signed-in user of a request as another user sees it: `principal`
   * is that user, `principal.impersonator` the id of the one who asks. The session gets a new id,
   * and nothing of what the application has kept in it. It ends after the time, by a sign-in or
   * {@link stopImpersonating}, with the session, and when one of the two users is signed out
   * everywhere, blocked or deleted, or the application no longer allows it.
   *
   * @returns the principal of the user who is shown
   * @throws AuthError `forbidden` for oneself and where the rule does not allow it, `blocked` and
   *   `unknown_user` of the other user, `impersonating` in an impersonation, `unauthenticated`,
   *   `invalid_request` without a reason; OptionsError without the option `impersonation`
   *
   * @example
   * ```ts
   * await app.auth.impersonate(request, userId, { reason: 'ticket 4711' })
   * return reply.redirect('/')
   * ```
   */
  readonly impersonate: Bivariant<
    (request: AnyRequest, userId: string, options: ImpersonateOptions) => Promise<Principal>
  >

  /**
   * Ends the impersonation of a request, whose session goes on as that of the user who has started
   * it, under a new id. Does nothing in another session.
   *
   * @returns the principal of that user; null when no user is signed in
   */
  readonly stopImpersonating: Bivariant<(request: AnyRequest) => Promise<Principal | null>>

  /**
   * Makes the bar with which a page says as whom the user sees it, and ends it: HTML with the class
   * `svc-auth-impersonation`, without a style. The empty text outside of impersonations.
   */
  readonly impersonationBar: Bivariant<(request: AnyRequest, options?: ImpersonationBarOptions) => Promise<string>>
}

/** What it does is loaded when it is asked for. */
export const IMPERSONATION: Feature = {
  acts: async ({ parts }) => parts.impersonation === null ? [] : [(await import('./acts.js')).end],
  actingRule: ({ parts: { impersonation } }) => impersonation && ruleOf(impersonation),
  api (auth, log): ImpersonationMembers {
    const load = () => import('./acts.js')
    return {
      impersonate: async (request: FastifyRequest, userId: string, options: ImpersonateOptions) =>
        (await load()).impersonate(auth, request, { userId, options, log }),
      stopImpersonating: async (request: FastifyRequest) => (await load()).stopImpersonating(request),
      impersonationBar: async (request: FastifyRequest, options: ImpersonationBarOptions = {}) =>
        (await load()).impersonationBar(auth, request, options)
    }
  }
}
