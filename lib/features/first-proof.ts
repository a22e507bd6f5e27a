import type { FastifyRequest } from 'fastify'
import type { User } from '../accounts/account.js'
import type { ConfirmedEmail } from '../accounts/credentials.js'
import { type UnprovenMethods, choiceRequired } from '../accounts/sign-in.js'
import { audit } from '../audit.js'
import type { AuthContext } from '../core/context.js'
import { AuthError } from '../errors.js'
import { recordIn } from '../session/record.js'

export const existing = {
  type: 'string',
  maxLength: 100,
  description: 'Where an address of the account is proven for the first time, by its signed-in user or with its ' +
    'password: `remove`, or `keep` of the refusal `choice_required`, which lists what the account has'
} as const

type Found = Pick<User, 'userId' | 'generation'>

/** Whether a request has a session of a user, which has not ended. */
function isOwnSession (request: FastifyRequest, { userId, generation }: Found): boolean {
  const record = recordIn(request.session)
  return record?.principal.userId === userId && record.generation === generation
}

/** What a page lists before its user chooses: nothing but in a session of the user. */
export async function unprovenIn (
  { accounts }: AuthContext, request: FastifyRequest, user: Found | null, hasNewPassword?: boolean
): Promise<UnprovenMethods | null> {
  return user !== null && isOwnSession(request, user) ? accounts.unprovenMethods(user, hasNewPassword) : null
}

/**
 * Returns what becomes of what an account has, and uses nothing. In a session of the user they must
 * have seen it: another person may have made the account, and left its session in this browser.
 *
 * @throws AuthError `choice_required`; `unauthenticated` for a choice to keep something elsewhere
 */
export async function existingOf (
  { accounts }: AuthContext, request: FastifyRequest, user: Found,
  { existing = '', hasNewPassword, isOwner = isOwnSession(request, user) }:
  { existing?: string | undefined, hasNewPassword?: boolean, isOwner?: boolean }
): Promise<string> {
  const isRemoved = existing === 'remove' || (existing === '' && !isOwner)
  const unproven = isRemoved ? null : await accounts.unprovenMethods(user, hasNewPassword)
  if (unproven === null) return 'remove'
  if (!isOwner) throw new AuthError('unauthenticated')
  if (existing !== unproven.keep) throw choiceRequired(unproven)
  return existing
}

/** Records a first proof of an address, by what became of what the account had. */
export function auditFirstProof (
  request: FastifyRequest, { user, removed }: Pick<ConfirmedEmail, 'user' | 'removed'>, existing: string
): void {
  const { userId, claims } = user
  if (existing === 'remove') audit('recovery', { userId, removed: [...removed], claims }, request)
  else audit('verification', { userId, verified: true }, request)
}
