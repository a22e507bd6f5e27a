import type { FastifyRequest } from 'fastify'
import { type AuditEvents, audit } from '../audit.js'
import { mergeClaims } from '../claims.js'
import { AuthError } from '../errors.js'
import type { ProviderTokens } from '../providers/provider.js'
import { writePrincipal } from '../session/principal.js'
import type { Principal } from '../session/record.js'
import type { AuthStore } from '../store/store.js'
import { type UserOfIdentity, emailOf } from './linking.js'
import { currentPrincipal } from './refresh.js'
import { type ProviderIdentity, type SignIn, type SignInHook, type SignInRules, answerOfApplication } from './sign-in-rules.js'

/** A user who has proven an identity. */
export interface Arrival extends UserOfIdentity {
  identity: ProviderIdentity
  /** Null without an external provider. */
  tokens: ProviderTokens | null
}

/**
 * Signs a user in: admits them, then enters them into the session.
 *
 * @throws what the hook throws; AuthError `unauthenticated` when the hook deleted the user,
 * `invalid_state` when the user signed out meanwhile, `unavailable`
 */
export async function signIn (request: FastifyRequest, rules: SignInRules, arrival: Arrival, by: AuditEvents['sign-in']['by'] = 'provider'): Promise<Principal> {
  const person = await admit(request, rules, arrival)
  await enter(request, rules.store, person, by)
  return person.principal
}

/** A user who may sign in. */
interface Person {
  principal: Principal
  /** Whether the user stays new until they are signed in. */
  isNew: boolean
  /** Whether this sign-in made the user. */
  isMade: boolean
}

/** Asks the application whether the user may sign in, and with which claims. */
async function admit (request: FastifyRequest, { store, onSignIn }: SignInRules, { user, isNew, identity, tokens }: Arrival): Promise<Person> {
  const { userId } = user
  const { provider } = identity
  if (isNew === 'link') audit('link', { userId, provider, by: 'email' }, request)

  const arriving = { userId, provider, claims: mergeClaims(identity.claims, user.claims) }
  const person = { principal: arriving, isNew: user.isNew === true, isMade: isNew === 'user' }
  if (onSignIn === null) return person
  await askHook(store, onSignIn, { request, principal: arriving, identity, tokens, created: person.isNew })

  return takingBack(request, store, person, async () => {
    // Read again, for the hook may have granted claims.
    const principal = await currentPrincipal(store, arriving)
    if (principal === null) throw new AuthError('unauthenticated')
    return { ...person, principal }
  })
}

/** Writes the session. A user who was made for this sign-in is new until then. */
async function enter (request: FastifyRequest, store: AuthStore, person: Person, by: AuditEvents['sign-in']['by']): Promise<void> {
  const { principal, isNew } = person
  const { userId, provider } = principal
  await takingBack(request, store, person, () => writePrincipal(request, principal, async () => {
    if (isNew && await store.admitUser(userId)) audit('registration', { userId, provider }, request)
  }))
  audit('sign-in', { userId, provider, by }, request)
}

/**
 * Signs in a user whom the application has authenticated. The identity claims are those of the user's
 * link `local`, else of their first link by the provider's name.
 *
 * @throws AuthError `unknown_user`, and what {@link signIn} throws
 */
export async function signInUser (request: FastifyRequest, rules: SignInRules, userId: string): Promise<Principal> {
  const [user, links] = await Promise.all([rules.store.findUser({ userId }), rules.store.links(userId)])
  const link = links.find(({ provider }) => provider === 'local') ?? links[0]
  if (user === null || link === undefined) throw new AuthError('unknown_user')
  const { provider, subject, claims } = link
  const emailVerified = user.emailVerified && emailOf(claims) === user.email
  return signIn(request, rules, { user, isNew: false, identity: { provider, subject, claims, emailVerified }, tokens: null }, 'application')
}

/** Asks the application. A new user whom it refuses is deleted. */
async function askHook (store: AuthStore, onSignIn: SignInHook, signIn: SignIn): Promise<void> {
  try {
    await answerOfApplication(() => onSignIn(signIn))
  } catch (error) {
    if (signIn.created) await takeBack(signIn.request, store, signIn.principal.userId)
    throw error
  }
}

/**
 * Runs a step of a sign-in; when it fails, a user who was made for the sign-in is deleted. Otherwise
 * they would be told that the registration failed, and at the next try that the e-mail is taken.
 */
async function takingBack<T> (request: FastifyRequest, store: AuthStore, { principal, isMade }: Person, step: () => Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (error) {
    if (isMade) await takeBack(request, store, principal.userId)
    throw error
  }
}

/** Deletes a new user who was not signed in. A user whom another request has signed in meanwhile is not new and stays. */
async function takeBack (request: FastifyRequest, store: AuthStore, userId: string): Promise<void> {
  try {
    await store.deleteNewUser(userId)
  } catch (error) {
    request.log.warn({ err: error, userId }, 'a new user who was not signed in could not be deleted')
  }
}
