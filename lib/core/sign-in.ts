import type { FastifyRequest } from 'fastify'
import { type AccountLink, type Link, type User, isBlocked } from '../accounts/account.js'
import { noteSubject } from '../audit.js'
import type { Proof } from '../authentication.js'
import type { AuthContext } from './context.js'
import { AuthError } from '../errors.js'
import type { ProviderIdentity } from '../hooks.js'
import type { Principal } from '../session/record.js'
import { completeSignIn } from './complete-sign-in.js'
import { auditJoin, emailOf, writeHeld } from './linking.js'
import type { Findings } from './findings.js'
import { assertCanAsk } from './methods.js'
import { refuseOtherSignIn } from './required-connection.js'

/**
 * Signs in a user who has authenticated by a first factor, whatever that was. Each sign-in passes
 * here: a block refuses it, and so does a connection by which the user must sign in; a second
 * factor that is due makes it wait.
 *
 * @throws what the hook throws; AuthError `blocked`, `second_factor_required` when the sign-in
 * waits, `sso_required`, `unauthenticated` when the hook deleted the user, `invalid_state` when the
 * user signed out meanwhile, `unavailable`
 */
export async function signIn (auth: AuthContext, request: FastifyRequest, authenticated: Findings): Promise<Principal> {
  const { user, isNew, identity, method, skipsFactor = false } = authenticated
  noteSubject(request, user.userId)
  if (isNew === 'link') auditJoin(request, user, identity)
  if (isBlocked(user)) throw new AuthError('blocked')
  // A new user was asked about before there was one, and is once more when the session is written.
  if (isNew !== 'user') await refuseOtherSignIn(auth, authenticated, method)

  let proof: Proof = { method, at: Date.now() }
  if (!skipsFactor) assertCanAsk(auth, user)
  for (const check of auth.signInChecks) proof = await check(auth, request, authenticated, proof)
  // A guest stays one where the application refuses the sign-in.
  if (authenticated.held === 'promotes') {
    const write = async () => writeHeld(auth, request, authenticated)
    return completeSignIn(auth, request, { ...authenticated, write }, [proof])
  }
  // No factor is due: it stays, also where the application refuses the sign-in.
  const present = await writeHeld(auth, request, authenticated)
  return completeSignIn(auth, request, { ...authenticated, user: present }, [proof])
}

/**
 * Signs in a user that the application has authenticated.
 *
 * @param how `generation`: the one that the user must still have, else `invalid_state`
 * @throws AuthError `unknown_user`, and what {@link signIn} throws
 */
export async function signInUser (
  auth: AuthContext,
  request: FastifyRequest,
  { userId, generation, remember, skipsFactor }:
  { userId: string, generation?: number, remember: boolean, skipsFactor: boolean }
): Promise<Principal> {
  const { accounts } = auth
  const [user, links] = await Promise.all([accounts.findUser({ userId }), accounts.links(userId)])
  if (generation !== undefined && user?.generation !== generation) throw new AuthError('invalid_state')
  if (user === null) throw new AuthError('unknown_user')
  if (user.guest) throw new AuthError('forbidden', { message: 'A guest is signed in by nothing but signInGuest.' })
  const identity = identityOfUser(user, links)
  return signIn(auth, request, { ...withoutWrites(user), identity, method: 'application', remember, skipsFactor })
}

/** A user whose sign-in without a provider writes nothing but the session. */
export function withoutWrites (user: User): Pick<Findings, 'user' | 'isNew' | 'held' | 'tokens' | 'outbox'> {
  return { user, isNew: false, held: null, tokens: null, outbox: null }
}

/**
 * Returns the identity by which a user is signed in without a provider: of their link `local`, else
 * of their first link by the provider's name.
 *
 * @throws AuthError `unknown_user` when they are gone
 */
export function identityOfUser (user: User, links: readonly Link[]): ProviderIdentity {
  const link = links.find(({ provider }) => provider === 'local') ?? links[0]
  if (link === undefined) throw new AuthError('unknown_user')
  if (link.provider === 'local') return localIdentity(user, link)
  const { provider, subject, claims } = link
  return { provider, subject, claims, emailVerified: user.emailVerified && emailOf(claims) === user.email }
}

/** Returns the identity of a local account: its e-mail is verified once the user confirmed it. */
export function localIdentity (user: User, { subject, claims }: AccountLink): ProviderIdentity {
  return { provider: 'local', subject, claims, emailVerified: user.emailVerified && user.email === subject }
}
