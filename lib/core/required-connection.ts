/** Users of a domain who must sign in by the connection of their organization. */
import type { FastifyRequest } from 'fastify'
import type { User } from '../accounts/account.js'
import type { AuthenticationMethod } from '../authentication.js'
import { AuthError } from '../errors.js'
import { endSession } from '../session/lifecycle.js'
import type { AuthContext, RequiredConnection } from './context.js'
import type { Findings } from './findings.js'
import { emailOf } from './linking.js'

type WithRule = Pick<AuthContext, 'connectionRule'>

/** Whom the rule is asked about: an address, and its user, who may be excepted; null for none. */
type Asked = Readonly<Pick<User, 'email'> & { userId: string | null }>

/**
 * Refuses what signs a user in by another method than the connection that their address requires,
 * and what lets them leave it. It is asked by each sign-in, and by the acts that change how a user
 * signs in.
 *
 * @param via the provider by which they sign in; absent for another method
 * @throws AuthError `sso_required`, whose `details` have the way to go
 */
export async function refuseOtherWays (auth: WithRule, asked: Asked, via?: string): Promise<void> {
  const required = await requiredOf(auth, asked)
  if (required !== null && required.provider !== via) throw ssoRequired(required)
}

/**
 * As {@link refuseOtherWays}, for a form that anyone sends with any address: the answer is the same
 * for an excepted user, who would be known by it.
 *
 * @returns `isServed`: whether the form does its work for a user; `refuse`: what it answers then
 */
export async function otherWaysTo (
  { connectionRule }: WithRule, email: string
): Promise<{ isServed: (user: Pick<User, 'userId'> | null) => boolean, refuse: () => void }> {
  const required = await connectionRule?.requiredFor(email) ?? null
  return {
    isServed: user => required === null || isExcepted(required, user && user.userId),
    refuse () { if (required !== null) throw ssoRequired(required) }
  }
}

/** As {@link refuseOtherWays}, of a sign-in. One by the application is the operator's to decide. */
export async function refuseOtherSignIn (
  auth: WithRule, { user, identity, held, newUser }: Pick<Findings, 'user' | 'identity' | 'newUser'> &
    Partial<Pick<Findings, 'held'>>,
  method: AuthenticationMethod | undefined
): Promise<void> {
  if (auth.connectionRule === null || method === 'application') return
  const { userId } = user
  // Another method has an identity too: that of the first link of the user.
  const via = method === 'provider' ? identity.provider : undefined
  const claimed = emailOf(identity.claims)
  const email = user.email ?? newUser?.email ?? claimed
  await refuseOtherWays(auth, { email, userId }, via)
  const moved = held === 'moves' && identity.emailVerified && claimed !== email ? claimed : null
  await refuseOtherWays(auth, { email: moved, userId }, via)
}

/**
 * Ends a session that was just written by a connection whose removal did not find it, or by a user
 * who was created while their domain began to require another one. Of other users the generation
 * has changed.
 *
 * @throws AuthError `invalid_state`, `sso_required`
 */
export async function refuseOvertaken (
  auth: WithRule & Pick<AuthContext, 'accounts'>, request: FastifyRequest,
  findings: Pick<Findings, 'user' | 'identity' | 'isNew' | 'newUser'>, method: AuthenticationMethod | undefined
): Promise<void> {
  const { accounts, connectionRule } = auth
  if (connectionRule === null) return
  const { user, identity: { provider }, isNew, newUser } = findings
  try {
    if (!await connectionRule.isOpen(provider)) {
      await accounts.leaveProvider(user.userId, provider)
      throw new AuthError('invalid_state')
    }
    if (isNew === 'user' || newUser !== undefined) await refuseOtherSignIn(auth, findings, method)
  } catch (error) {
    await endSession(request)
    throw error
  }
}

/**
 * Whether keys, grants and tokens of a user are good: where their address requires a connection,
 * only for a time after their last sign-in by it.
 */
export async function followsConnection (auth: WithRule, user: Pick<User, 'userId' | 'email' | 'connection'>) {
  const required = await requiredOf(auth, user)
  return required === null || isFollowed(required, user)
}

/** Refuses to issue what {@link followsConnection} would refuse: `sso_required`. */
export async function assertFollowsConnection (
  auth: WithRule, user: Pick<User, 'userId' | 'email' | 'connection'>
): Promise<void> {
  const required = await requiredOf(auth, user)
  if (required !== null && !isFollowed(required, user)) throw ssoRequired(required)
}

async function requiredOf ({ connectionRule }: WithRule, { email, userId }: Asked): Promise<RequiredConnection | null> {
  const required = connectionRule === null || email === null ? null : await connectionRule.requiredFor(email)
  return required === null || isExcepted(required, userId) ? null : required
}

function isExcepted ({ except }: RequiredConnection, userId: string | null): boolean {
  return userId !== null && except.includes(userId)
}

function isFollowed ({ provider, lifetime }: RequiredConnection, { connection }: Pick<User, 'connection'>): boolean {
  return connection?.provider === provider && connection.at.getTime() > Date.now() - lifetime
}

function ssoRequired ({ provider, label, loginPath }: RequiredConnection): AuthError {
  return new AuthError('sso_required', { details: { provider, label, url: loginPath } })
}
