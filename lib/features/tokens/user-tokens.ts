import type { FastifyRequest } from 'fastify'
import type { AccountStatus, User } from '../../accounts/account.js'
import { amrOf, secondFactorAt } from '../../authentication.js'
import { isUserId } from '../../base/values.js'
import { type AuthContext, needed } from '../../core/context.js'
import { currentRecord } from '../../core/current-user.js'
import { assertFollowsConnection, followsConnection } from '../../core/required-connection.js'
import { FACTOR_TIME } from '../app-auth/guards.js'
import { AuthError } from '../../errors.js'
import type { TokenClaims, TokenUse } from './token-claims.js'
import { withoutReservedClaims } from './token-issuer.js'

/** The claim with the generation of the session: the token ends with it, whatever clocks say. */
const GENERATION = 'svc_generation'

/**
 * Issues a token for the signed-in user, with the claims that the store has now and, as
 * `auth_time`, when the user last authenticated.
 *
 * @throws AuthError `unauthenticated` for an anonymous session and for one that a refresh would end
 */
export async function issueToken (auth: AuthContext, request: FastifyRequest): Promise<string> {
  const { principal: { userId, claims }, generation, at, methods } = await currentRecord(auth, request)
  const user = auth.connectionRule === null ? null : await auth.accounts.findUser({ userId })
  if (user !== null) await assertFollowsConnection(auth, user)
  // The provider or the application may have given claims of these names.
  const { amr: _amr, [FACTOR_TIME]: _factorTime, ...others } = withoutReservedClaims(claims)
  const amr = amrOf(methods)
  const factorAt = secondFactorAt(methods)
  return needed(auth.local, 'local').issueIdToken(userId, {
    ...others,
    auth_time: Math.floor(at / 1000),
    ...(amr.length > 0 && { amr }),
    ...(factorAt !== null && { [FACTOR_TIME]: Math.floor(factorAt / 1000) }),
    [GENERATION]: generation
  })
}

type VerifyContext = Pick<AuthContext, 'local' | 'accounts' | 'connectionRule'>

/** Verifies a token of this use; without the option `local` none is valid. */
export async function verifyTokenFor (
  { local }: Pick<AuthContext, 'local'>, token: string, use: TokenUse = {}
): Promise<TokenClaims> {
  if (local === null) throw new AuthError('invalid_token')
  return local.verifyIdToken(token, use)
}

/**
 * Verifies a token without a purpose or audience. Refuses it when its user was deleted, or their
 * sessions were ended since it was issued. A subject that is not a user id, such as the name of a
 * program, is not looked up.
 */
export async function verifyToken (
  auth: VerifyContext, token: string
): Promise<TokenClaims> {
  const { accounts, connectionRule } = auth
  const claims = await verifyTokenFor(auth, token)
  if (!isUserId(claims.sub)) return claims
  assertCurrent(claims, await accounts.status(claims.sub))
  // The status does not say how they have signed in.
  if (connectionRule !== null) await assertFollowed(auth, await accounts.findUser({ userId: claims.sub }))
  return claims
}

/** Verifies a token like {@link verifyToken}, and reads its user; null for another subject. */
export async function verifyTokenOfUser (
  auth: VerifyContext, token: string
): Promise<{ claims: TokenClaims, user: User | null }> {
  const { accounts } = auth
  const claims = await verifyTokenFor(auth, token)
  if (!isUserId(claims.sub)) return { claims, user: null }
  const user = await accounts.findUser({ userId: claims.sub })
  // Without a generation its time counts, which a user does not tell.
  const status = typeof claims[GENERATION] === 'number' ? user : await accounts.status(claims.sub)
  assertCurrent(claims, status && { signedOutAt: 0, ...status })
  await assertFollowed(auth, user)
  return { claims, user }
}

/** Refuses the token of a user who has not signed in lately by the connection that they must. */
async function assertFollowed (auth: VerifyContext, user: User | null): Promise<void> {
  if (user === null || !await followsConnection(auth, user)) throw new AuthError('invalid_token')
}

function assertCurrent (
  { iat, [GENERATION]: generation }: TokenClaims, status: Pick<AccountStatus, 'generation' | 'signedOutAt'> | null
): void {
  if (status === null) throw new AuthError('invalid_token')
  // A token of another library need not say when it was issued.
  const isOver = typeof generation === 'number'
    ? generation !== status.generation
    : (iat ?? 0) <= status.signedOutAt
  if (isOver) throw new AuthError('invalid_token')
}
