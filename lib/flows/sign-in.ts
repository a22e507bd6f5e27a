import type { FastifyRequest } from 'fastify'
import { audit } from '../audit.js'
import type { AuthenticationMethod } from '../authentication.js'
import { mergeClaims } from '../claims.js'
import { AuthError } from '../errors.js'
import type { ProviderTokens } from '../providers/provider.js'
import { chosenLifetime } from '../session/lifetime.js'
import { enterSession } from '../session/principal.js'
import type { Principal } from '../session/record.js'
import { isBlocked } from '../accounts/account.js'
import type { Accounts } from '../accounts/accounts.js'
import { type UserOfIdentity, emailOf } from './linking.js'
import { currentPrincipal } from './refresh.js'
import {
  type ProviderIdentity, type SignIn, type SignInHook, type SignInRules, answerOfApplication
} from './sign-in-rules.js'

/** A user who has authenticated. */
export interface AuthenticatedUser extends UserOfIdentity {
  identity: ProviderIdentity
  /** How they authenticated. */
  method: AuthenticationMethod
  /** Null without an external provider. */
  tokens: ProviderTokens | null
  /** Whether they asked to be remembered. */
  remember: boolean
}

/**
 * Signs a user in: admits them, then enters them into the session.
 *
 * @throws what the hook throws; AuthError `blocked`, `unauthenticated` when the hook deleted the
 * user, `invalid_state` when the user signed out meanwhile, `unavailable`
 */
export async function signIn (
  request: FastifyRequest,
  rules: SignInRules,
  authenticated: AuthenticatedUser
): Promise<Principal> {
  const admitted = await admit(request, rules, authenticated)
  await enter(request, rules, admitted)
  return admitted.principal
}

/** A user who may sign in. */
interface AdmittedUser {
  principal: Principal
  method: AuthenticationMethod
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
  { user, isNew, identity, method, tokens, remember }: AuthenticatedUser
): Promise<AdmittedUser> {
  const { userId, generation = 0 } = user
  const { provider } = identity
  if (isNew === 'link') audit('link', { userId, provider, by: 'email' }, request)
  if (isBlocked(user)) throw new AuthError('blocked')

  const principal = { userId, provider, claims: mergeClaims(identity.claims, user.claims) }
  const created = user.isNew === true
  const admitted = { principal, method, remember, generation, isNew: created, isCreated: isNew === 'user' }
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
  const { principal, method, generation, isNew } = admitted
  const { userId, provider } = principal
  const at = Date.now()
  const record = { principal, generation, at, methods: [{ method, at }] }
  const lifetime = remember === null ? null : chosenLifetime(remember, admitted.remember)
  const confirm = async (isAdmitted: boolean): Promise<void> => {
    if (isAdmitted || (isNew && await accounts.admitUser(userId))) audit('registration', { userId, provider }, request)
  }
  const entry = { lifetime, admits: isNew, confirm }
  await undoneOnFailure(request, accounts, admitted, () => enterSession(request, record, entry))
  audit('sign-in', { userId, provider, by: method === 'application' ? 'application' : 'provider' }, request)
}

/**
 * Signs in a user that the application has authenticated. The identity claims are those of the
 * user's link `local`, else of their first link by the provider's name.
 *
 * @throws AuthError `unknown_user`, and what {@link signIn} throws
 */
export async function signInUser (
  request: FastifyRequest,
  rules: SignInRules,
  { userId, remember }: { userId: string, remember: boolean }
): Promise<Principal> {
  const { store } = rules
  const [user, links] = await Promise.all([store.findUser({ userId }), store.links(userId)])
  const link = links.find(({ provider }) => provider === 'local') ?? links[0]
  if (user === null || link === undefined) throw new AuthError('unknown_user')
  const { provider, subject, claims } = link
  const emailVerified = user.emailVerified && emailOf(claims) === user.email
  const identity = { provider, subject, claims, emailVerified }
  return signIn(request, rules, { user, isNew: false, identity, method: 'application', tokens: null, remember })
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
