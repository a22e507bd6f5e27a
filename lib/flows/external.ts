import { randomBytes } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { audit } from '../audit.js'
import { AuthError } from '../errors.js'
import { providerFailure } from '../providers/failures.js'
import { checkedIdentity } from '../providers/identity.js'
import type { ExternalProvider, ProviderTokens } from '../providers/provider.js'
import { type PendingSignIn, addPendingSignIn, takePendingSignIn } from '../session/pending-sign-ins.js'
import { assertSessionGoesOn } from '../session/principal.js'
import { principalOf } from '../session/record.js'
import { assertLinkable, linkIdentity, userOfIdentity } from './linking.js'
import { confirmedPrincipal } from './refresh.js'
import { signIn } from './sign-in.js'
import { type ProviderIdentity, type SignInRules, answerOfApplication } from './sign-in-rules.js'

/** What a request to the login route asks for. */
export type SignInStart = Pick<PendingSignIn, 'next' | 'startedOn' | 'linkTo' | 'asked'>

/** An authorization response (RFC 6749 section 4.1.2) and the sign-in that it belongs to. */
export interface Callback {
  provider: ExternalProvider
  /** The redirect URI of the authorization request. */
  redirectUri: string
  /** The parameters of the authorization response. */
  parameters: URLSearchParams
  pending: PendingSignIn
}

/**
 * Starts a sign-in at a provider.
 *
 * @returns the URL of the authorization request (RFC 6749 section 4.1.1)
 * @throws AuthError `provider_unavailable`, `provider_error`, `unavailable`
 */
export async function startSignIn (
  request: FastifyRequest,
  provider: ExternalProvider,
  redirectUri: string,
  start: SignInStart
): Promise<URL> {
  const checks = { state: randomToken(), nonce: randomToken(), codeVerifier: randomToken() }
  const url = await answerOf(() => provider.authorizationUrl({ ...start.asked, ...checks, redirectUri }))
  await addPendingSignIn(request, { ...checks, ...start, provider: provider.name, startedAt: Date.now() })
  return url
}

/**
 * Takes the sign-in that an authorization response belongs to out of the session. This happens
 * before anything else, because an authorization response may be used once.
 *
 * @throws AuthError `invalid_state`
 */
export async function pendingSignIn (
  request: FastifyRequest,
  provider: ExternalProvider,
  parameters: URLSearchParams
): Promise<PendingSignIn> {
  const [state, ...others] = parameters.getAll('state')
  if (state === undefined || state === '' || others.length > 0) throw new AuthError('invalid_state')
  const pending = await takePendingSignIn(request, provider.name, state)
  if (pending === null) throw new AuthError('invalid_state')
  return pending
}

/**
 * Finishes a sign-in: authorization response, token request, identity, user, session.
 *
 * @throws what the hook throws; AuthError `access_denied`, `provider_unavailable`,
 * `provider_error`, `account_exists`, and what {@link signIn} throws
 */
export async function finishSignIn (request: FastifyRequest, rules: SignInRules, callback: Callback): Promise<void> {
  const { identity, tokens } = await authenticate(callback)
  const arrival = { ...await userOfIdentity(rules, identity), identity, tokens }
  await signIn(request, rules, arrival)
}

/**
 * Finishes the linking of another identity: authorization response, token request, identity, link.
 * The user who started it must still be signed in; the session does not change.
 *
 * @throws what the hook throws; AuthError `invalid_state`, `already_linked`, `access_denied`,
 * `provider_unavailable`, `provider_error`, `unauthenticated`, `unavailable`
 */
export async function finishLinking (
  request: FastifyRequest,
  { store, onLink }: SignInRules,
  callback: Callback
): Promise<void> {
  if (principalOf(request)?.userId !== callback.pending.linkTo) throw new AuthError('invalid_state')
  const { identity, tokens } = await authenticate(callback)
  await assertSessionGoesOn(request)
  // The user may have been deleted meanwhile, or the link of the session removed.
  const { userId } = await confirmedPrincipal(request, store)
  if (onLink !== null) {
    await assertLinkable(store, userId, identity)
    await answerOfApplication(() => onLink({ request, userId, identity, tokens }))
    await assertSessionGoesOn(request)
  }
  const isNew = await linkIdentity(store, userId, identity)
  if (isNew) audit('link', { userId, provider: identity.provider, by: 'request' }, request)
}

async function authenticate (
  { provider, redirectUri, parameters, pending }: Callback
): Promise<{ identity: ProviderIdentity, tokens: ProviderTokens }> {
  const { asked, state, nonce, codeVerifier } = pending
  return answerOf(async () => {
    const { identity, tokens } = await provider.authenticate({
      ...asked, parameters, redirectUri, state, nonce, codeVerifier
    })
    return { identity: { provider: provider.name, ...checkedIdentity(identity) }, tokens }
  })
}

/**
 * Turns every error of a provider into a failure of that provider, those of an application's
 * provider included.
 */
async function answerOf<T> (ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw providerFailure(error)
  }
}

/**
 * Returns 256 random bits as 43 characters, which is a valid code verifier too (RFC 7636 section
 * 4.1).
 */
function randomToken (): string {
  return randomBytes(32).toString('base64url')
}
