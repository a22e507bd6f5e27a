import type { FastifyRequest } from 'fastify'
import { audit } from '../audit.js'
import { mergeClaims } from '../claims.js'
import { AuthError } from '../errors.js'
import type { ProviderTokens } from '../providers/provider.js'
import { type Principal, writePrincipal } from '../session/principal.js'
import type { AuthStore } from '../store/store.js'
import type { LinkingPolicy, ProviderIdentity, UserOfIdentity } from './linking.js'
import { currentPrincipal } from './refresh.js'

/** A sign-in that is about to happen, as the hook `onSignIn` sees it. */
export interface SignIn {
  request: FastifyRequest
  /** Who will be signed in. */
  principal: Principal
  /** What the provider says of him now; for a sign-in without an external provider, what the store has. */
  identity: ProviderIdentity
  /** What the provider issued, for this hook alone: it is stored nowhere. Null for a sign-in without an external provider. */
  tokens: ProviderTokens | null
  /** Whether the user was made by this sign-in. */
  created: boolean
}

/**
 * An application's part in every sign-in, before the session is written. Claims that it grants are in the principal already.
 * `throw new SignInRefused('code')` refuses; a user or a link that this sign-in made is then taken back.
 */
export type SignInHook = (signIn: SignIn) => void | Promise<void>

/** What an application has decided about sign-ins. */
export interface SignInRules {
  readonly store: AuthStore
  readonly linking: LinkingPolicy
  readonly onSignIn: SignInHook | null
}

/**
 * Signs a user in: asks the application, writes the session, notes it.
 *
 * @throws SignInRefused, or whatever else the application's hook throws; AuthError `unauthenticated` when the hook deleted the user, `unavailable`
 */
export async function signIn (request: FastifyRequest, { store, onSignIn }: SignInRules, { user, isNew }: UserOfIdentity, identity: ProviderIdentity, tokens: ProviderTokens | null): Promise<Principal> {
  const { userId } = user
  const { provider, subject } = identity
  let principal: Principal = { userId, provider, claims: mergeClaims(identity.claims, user.claims) }
  if (onSignIn !== null) {
    try {
      await onSignIn({ request, principal, identity, tokens, created: isNew === 'user' })
    } catch (error) {
      await takeBack(request, store, { user, isNew }, provider)
      throw error
    }
    principal = await principalAfterHook(store, principal)
  }

  if (isNew === 'user') audit('registration', { userId, provider }, request)
  if (isNew === 'link') audit('link', { userId, provider, subject, by: 'email' }, request)
  await writePrincipal(request, principal)
  audit('sign-in', { userId, provider }, request)
  return principal
}

/**
 * Signs in a user of whom the application is sure; his identity claims are those of his link `local`, else of his first.
 *
 * @throws AuthError `unknown_user`, and what {@link signIn} throws
 */
export async function signInUser (request: FastifyRequest, rules: SignInRules, userId: string): Promise<Principal> {
  const [user, links] = await Promise.all([rules.store.findUser({ userId }), rules.store.links(userId)])
  const link = links.find(({ provider }) => provider === 'local') ?? links[0]
  if (user === null || link === undefined) throw new AuthError('unknown_user')
  const { provider, subject, claims } = link
  return signIn(request, rules, { user, isNew: false }, { provider, subject, claims, emailVerified: false }, null)
}

/** The hook may have granted claims. */
async function principalAfterHook (store: AuthStore, before: Principal): Promise<Principal> {
  const principal = await currentPrincipal(store, before)
  if (principal === null) throw new AuthError('unauthenticated')
  return principal
}

/** A sign-in that was refused leaves nothing behind, and the next one of the same person is his first again. */
async function takeBack (request: FastifyRequest, store: AuthStore, { user: { userId }, isNew }: UserOfIdentity, provider: string): Promise<void> {
  try {
    if (isNew === 'user') await store.deleteUser(userId)
    if (isNew === 'link') await store.removeLink(userId, provider)
  } catch (error) {
    request.log.warn({ err: error, userId }, 'what a refused sign-in had made could not be taken back')
  }
}
