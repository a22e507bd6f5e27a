import type { FastifyRequest } from 'fastify'
import { audit } from '../audit.js'
import type { AuthenticationMethod, Proof } from '../authentication.js'
import { mergeClaims } from '../claims.js'
import { AuthError } from '../errors.js'
import type { ProviderTokens, SignedProof } from '../providers/provider.js'
import { chosenLifetime } from '../session/lifetime.js'
import { enterSession } from '../session/principal.js'
import type { Principal } from '../session/record.js'
import type { Accounts } from '../accounts/accounts.js'
import type { UserOfIdentity } from './linking.js'
import { currentPrincipal } from './refresh.js'
import {
  type ProviderIdentity, type SignIn, type SignInHook, type SignInRules, answerOfApplication
} from './sign-in-rules.js'

/** A user who has authenticated by a first factor. */
export interface AuthenticatedUser extends UserOfIdentity {
  identity: ProviderIdentity
  /** How they authenticated. */
  method: AuthenticationMethod
  /** Null without an external provider. */
  tokens: ProviderTokens | null
  /** What a signed ID token says about how they authenticated there; absent without one. */
  signed?: SignedProof | undefined
  /** Whether they asked to be remembered. */
  remember: boolean
  /** Whether the application spares them the second factor. */
  skipsFactor?: boolean
}

/**
 * Completes the sign-in of a user who has authenticated by all that it needs: admits them, then
 * enters them into the session.
 *
 * @param proofs how they authenticated, in order
 * @throws what the hook throws; AuthError `unauthenticated` when the hook deleted the user,
 * `invalid_state` when the user signed out meanwhile, `unavailable`
 */
export async function completeSignIn (
  request: FastifyRequest,
  rules: SignInRules,
  authenticated: Omit<AuthenticatedUser, 'method'>,
  proofs: readonly Proof[]
): Promise<Principal> {
  const admitted = await admit(request, rules, { ...authenticated, proofs })
  await enter(request, rules, admitted)
  return admitted.principal
}

/** The principal of a user who signs in, before the hook has granted claims. */
export function principalFor ({ user, identity }: Pick<AuthenticatedUser, 'user' | 'identity'>): Principal {
  const { provider, claims } = identity
  return { userId: user.userId, provider, claims: mergeClaims(claims, user.claims) }
}

/** A user who may sign in. */
interface AdmittedUser {
  principal: Principal
  proofs: readonly Proof[]
  remember: boolean
  /**
   * The user's generation as it was read with the credential. A sign-in that a change of the
   * password overtakes therefore writes a session that has ended.
   */
  generation: number
  /** Whether the user stays new until they are signed in. */
  isNew: boolean
  /** Whether this sign-in created the user. */
  isCreated: boolean
}

/** Asks the application whether the user may sign in, and with which claims. */
async function admit (
  request: FastifyRequest,
  { store, accounts, onSignIn }: SignInRules,
  { proofs, ...authenticated }: Omit<AuthenticatedUser, 'method'> & Pick<AdmittedUser, 'proofs'>
): Promise<AdmittedUser> {
  const { user, isNew, identity, tokens, remember } = authenticated
  const principal = principalFor(authenticated)
  const { generation = 0, isNew: created = false } = user
  const admitted = { principal, proofs, remember, generation, isNew: created, isCreated: isNew === 'user' }
  if (onSignIn === null) return admitted
  await askHook(accounts, onSignIn, { request, principal, identity, tokens, created })

  return undoneOnFailure(request, accounts, admitted, async () => {
    // Read again, because the hook may have granted claims.
    const present = await currentPrincipal(store, principal)
    if (present === null) throw new AuthError('unauthenticated')
    return { ...admitted, principal: present }
  })
}

/** Writes the session. A user who was created for this sign-in stays new until then. */
async function enter (
  request: FastifyRequest,
  { accounts, remember }: SignInRules,
  admitted: AdmittedUser
): Promise<void> {
  const { principal, proofs, generation, isNew } = admitted
  const { userId, provider } = principal
  const record = { principal, generation, at: Date.now(), methods: proofs }
  const lifetime = remember === null ? null : chosenLifetime(remember, admitted.remember)
  const confirm = async (isAdmitted: boolean): Promise<void> => {
    if (isAdmitted || (isNew && await accounts.admitUser(userId))) audit('registration', { userId, provider }, request)
  }
  const entry = { lifetime, admits: isNew, confirm }
  await undoneOnFailure(request, accounts, admitted, () => enterSession(request, record, entry))
  const methods = proofs.map(({ method }) => method)
  const by = methods.includes('application') ? 'application' : 'provider'
  audit('sign-in', { userId, provider, by, methods }, request)
}

/** Asks the application. Deletes a new user that it refuses. */
async function askHook (accounts: Accounts, onSignIn: SignInHook, signIn: SignIn): Promise<void> {
  try {
    await answerOfApplication(() => onSignIn(signIn))
  } catch (error) {
    if (signIn.created) await deleteNewUser(signIn.request, accounts, signIn.principal.userId)
    throw error
  }
}

/**
 * Runs a step of a sign-in and, if it fails, deletes a user who was created for the sign-in.
 * Otherwise the registration fails, and the next attempt reports that the e-mail is taken.
 */
async function undoneOnFailure<T> (
  request: FastifyRequest,
  accounts: Accounts,
  { principal, isCreated }: AdmittedUser,
  step: () => Promise<T>
): Promise<T> {
  try {
    return await step()
  } catch (error) {
    if (isCreated) await deleteNewUser(request, accounts, principal.userId)
    throw error
  }
}

/**
 * Deletes a new user who was not signed in. A user signed in by another request meanwhile is not
 * new and stays.
 */
async function deleteNewUser (request: FastifyRequest, accounts: Accounts, userId: string): Promise<void> {
  try {
    await accounts.deleteNewUser(userId)
  } catch (error) {
    request.log.warn({ err: error, userId }, 'a new user who was not signed in could not be deleted')
  }
}
