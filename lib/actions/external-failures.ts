import type { FastifyReply, FastifyRequest } from 'fastify'
import { digestOf } from '../base/digest.js'
import { type AuthContext, hasFactors } from '../context.js'
import { currentPrincipal } from '../current-user/current.js'
import { wantsHtml } from '../http/accept.js'
import { providerFailure } from '../providers/failures.js'
import type { PendingSignIn } from '../session/pending-sign-ins.js'
import { recordIn } from '../session/record.js'
import { answerFailure, nextAuthenticationStep } from '../web/answers.js'

/** Ends the state of a linking, a consent or a reauthentication: a spent one is told so. */
export const NO_SIGN_IN = '-act'

export interface Failure { error: unknown, request: FastifyRequest, reply: FastifyReply }

/** A sign-in that is not finished; `next` is null where this browser has not started it. */
export type SpentSignIn = Pick<PendingSignIn, 'state' | 'startedOn'> & { next: string | null }

/** Answers a failure on the page of the start, or where the authentication that lacks is asked. */
export async function failAtProvider (
  auth: AuthContext,
  provider: string,
  { error, request, reply }: Failure,
  { startedOn, next }: { startedOn: string | null, next: string | null }
): Promise<FastifyReply> {
  const step = await nextAuthenticationStep(auth, request, error, { next, needing: startedOn })
  const after = next === auth.site.publicPath('/') ? null : next
  const page = startedOn ?? (auth.pages.login(request) && auth.pages.loginWith(request, after))
  return answerFailure(request, reply, error, { page, step, signInAt: provider })
}

/**
 * Answers a callback whose sign-in is used, too old, unknown or refused, as a reload or another tab
 * sends it. Nothing changes: where the session came by this very callback the user goes on, and
 * another user sees who they are.
 */
export async function answerSpent (
  auth: AuthContext,
  provider: string,
  failure: Failure,
  { state, startedOn, next: asked }: SpentSignIn
): Promise<FastifyReply> {
  const { request, reply } = failure
  // The one that the browser has kept is not checked.
  const next = auth.pages.asked(request, asked)
  const isSignIn = wantsHtml(request) && !state.endsWith(NO_SIGN_IN)
  const target = isSignIn ? await targetOfSession(auth, request, digestOf(state)) : null
  if (target !== null) return reply.redirect(target, 302)
  const principal = isSignIn ? await currentPrincipal(auth, request) : null
  const hasPage = startedOn !== null || auth.pages.login(request) !== null
  if (!isSignIn || (principal === null && hasPage)) return failAtProvider(auth, provider, failure, { startedOn, next })
  const { showSpent } = await import('./pages/spent.js')
  return showSpent(auth, failure, { provider, principal, next })
}

/** Where the callback has led by which the session of a request came; null for another session. */
async function targetOfSession (auth: AuthContext, request: FastifyRequest, state: string): Promise<string | null> {
  const record = recordIn(request.session)
  if (record?.callback?.state === state) return record.callback.next
  if (record !== null || !hasFactors(auth)) return null
  const { pendingSecondFactor } = await import('../sign-in/second-factor.js')
  const { callback } = (await pendingSecondFactor(auth, request))?.kept ?? {}
  return callback?.state === state ? auth.pages.forStep(request, 'step', callback.next) : null
}

/** Turns every error of a provider, also of one of the application, into a failure of it. */
export async function callProvider<T> (ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw providerFailure(error)
  }
}
