import type { FastifyBaseLogger, FastifyRequest } from 'fastify'
import { isBlocked } from '../../accounts/account.js'
import { audit } from '../../audit.js'
import { isText } from '../../claims.js'
import { refuseImpersonation, startActing, stopActing } from '../../core/acting.js'
import { principalFor } from '../../core/complete-sign-in.js'
import type { AuthContext } from '../../core/context.js'
import { current } from '../../core/current-user.js'
import { form, signedInAs } from '../../core/form.js'
import { openapiComponents } from '../../core/openapi.js'
import { impersonationBarOf } from '../../core/pages/impersonation-bar.js'
import { layoutOf } from '../../core/pages/lead-to.js'
import { identityOfUser } from '../../core/sign-in.js'
import { AuthError, OptionsError, invalidRequest } from '../../errors.js'
import { assertKnownOptions } from '../../option-checks.js'
import { type Principal, ownRecordIn, principalOf } from '../../session/record.js'
import { checkedUserId } from '../app-auth/users.js'
import type { ImpersonationBarOptions, ImpersonateOptions } from './options.js'

/** The longest reason, in characters. */
const MAX_REASON = 200

export async function impersonate (
  auth: AuthContext, request: FastifyRequest,
  { userId, options, log }: { userId: string, options: ImpersonateOptions, log: FastifyBaseLogger }
): Promise<Principal> {
  const { accounts, mayAct, parts: { impersonation } } = auth
  if (impersonation === null || mayAct === null) {
    throw new OptionsError('impersonate needs the option impersonation of the plugin')
  }
  const { reason, minutes } = checkedOptionsOf(options, impersonation.minutes)
  refuseImpersonation(request)
  // Behind a token another user may count than the one of the session.
  if (request.token !== null) throw new AuthError('unauthenticated')
  const { user: actor } = await current(auth, request)
  if (checkedUserId(userId) === actor.userId) throw new AuthError('forbidden')
  const [user, links] = await Promise.all([accounts.findUser({ userId }), accounts.links(userId)])
  if (user === null) throw new AuthError('unknown_user')
  if (isBlocked(user)) throw new AuthError('blocked')
  if (user.guest || !await mayAct(actor, user)) throw new AuthError('forbidden')

  const own = ownRecordIn(request.session)
  // The session may have ended meanwhile.
  if (own === null) throw new AuthError('unauthenticated')
  const shown = principalFor({ user, identity: identityOfUser(user, links) })
  const now = Date.now()
  const until = now + minutes * 60_000
  const times = { startedAt: now, allowedAt: now, until }
  await startActing(request, own, { user: shown, generation: user.generation, reason, ...times })
  audit('impersonation', { userId, reason, until: new Date(until) }, request)
  if (impersonation.notify) auth.mailer?.sendOfApplication('impersonated', user, log)
  return { ...shown, impersonator: actor.userId }
}

function checkedOptionsOf (options: ImpersonateOptions, most: number): { reason: string, minutes: number } {
  assertKnownOptions('impersonate', Object(options), ['reason', 'minutes'])
  const { reason, minutes = most } = Object(options)
  if (!isText(reason) || reason.trim() === '' || reason.length > MAX_REASON) {
    throw invalidRequest(`reason must be text of at most ${MAX_REASON} characters.`)
  }
  if (!Number.isInteger(minutes) || minutes < 1 || minutes > most) {
    throw invalidRequest(`minutes must be a whole number from 1 to ${most}.`)
  }
  return { reason: reason.trim(), minutes }
}

export async function stopImpersonating (request: FastifyRequest): Promise<Principal | null> {
  await stopActing(request)
  return principalOf(request)
}

export async function impersonationBar (
  auth: AuthContext, request: FastifyRequest, { next = null }: { next?: ImpersonationBarOptions['next'] | null }
): Promise<string> {
  const { principal } = request
  const action = auth.formPaths.get('local/impersonation/end')
  if (principal?.impersonator === undefined || action === undefined) return ''
  return impersonationBarOf(layoutOf(auth).textsFor(request), { principal, action, next }).source
}

/** Mounted without `local`, too. It serves an impersonation whose time is over. */
export const end = form({
  path: '/local/impersonation/end',
  operationId: 'authLocalEndImpersonation',
  summary: 'End an impersonation',
  description: 'The session goes on as that of the user who has started it. Does nothing in another session.',
  user: 'signed-in',
  fields: {},
  answers: { 200: openapiComponents.schemas.Principal },
  whileImpersonating: true
}, async (_auth, { request }) => {
  const principal = await stopImpersonating(request)
  if (principal === null) throw new AuthError('unauthenticated')
  return signedInAs(principal)
})
