import type { FastifyRequest } from 'fastify'
import { type AuditEvents, audit } from '../audit.js'
import { mergeClaims } from '../claims.js'
import { AuthError } from '../errors.js'
import type { ProviderTokens } from '../providers/provider.js'
import { type Principal, writePrincipal } from '../session/principal.js'
import type { AuthStore } from '../store/store.js'
import { type UserOfIdentity, emailOf } from './linking.js'
import { currentPrincipal } from './refresh.js'
import { type ProviderIdentity, type SignIn, type SignInHook, type SignInRules, answerOfApplication } from './sign-in-rules.js'

/** Who has proven to be whom. */
export interface Arrival extends UserOfIdentity {
  identity: ProviderIdentity
  /** Null without an external provider. */
  tokens: ProviderTokens | null
}

/**
 * Signs a user in: asks the application, writes the session, notes it. A user who was made for this
 * sign-in is new until then; when it fails, they are deleted.
 *
 * @throws what the hook throws; AuthError `unauthenticated` when the application's hook deleted the user, `invalid_state` when somebody signed out meanwhile, `unavailable`
 */
export async function signIn (request: FastifyRequest, { store, onSignIn }: SignInRules, { user, isNew, identity, tokens }: Arrival, by: AuditEvents['sign-in']['by'] = 'provider'): Promise<Principal> {
  const { userId } = user
  const { provider } = identity
  if (isNew === 'link') audit('link', { userId, provider, by: 'email' }, request)

  const arriving = { userId, provider, claims: mergeClaims(identity.claims, user.claims) }
  const created = user.isNew === true
  if (onSignIn !== null) await askHook(store, onSignIn, { request, principal: arriving, identity, tokens, created })

  try {
    // Read again, for the hook may have granted claims.
    const principal = onSignIn === null ? arriving : await currentPrincipal(store, arriving)
    if (principal === null) throw new AuthError('unauthenticated')

    await writePrincipal(request, principal, async () => {
      if (created && await store.admitUser(userId)) audit('registration', { userId, provider }, request)
    })
    audit('sign-in', { userId, provider, by }, request)
    return principal
  } catch (error) {
    // Otherwise the user would be told that the registration failed, and at the next try that the e-mail is taken.
    if (isNew === 'user') await takeBack(request, store, userId)
    throw error
  }
}

/**
 * Signs in a user of whom the application is sure. His identity claims are those of his link `local`, else of his first by the
 * provider's name.
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

/** Deletes a new user who was not signed in. A user whom another request has signed in meanwhile is not new and stays. */
async function takeBack (request: FastifyRequest, store: AuthStore, userId: string): Promise<void> {
  try {
    await store.deleteNewUser(userId)
  } catch (error) {
    request.log.warn({ err: error, userId }, 'a new user who was not signed in could not be deleted')
  }
}
