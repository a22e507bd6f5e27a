import { randomBytes } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { mergeClaims } from '../claims.js'
import { AuthError } from '../errors.js'
import { providerFailure } from '../providers/failures.js'
import { checkedIdentity } from '../providers/identity.js'
import type { ExternalProvider } from '../providers/provider.js'
import { type PendingSignIn, addPendingSignIn, takePendingSignIn } from '../session/pending-sign-ins.js'
import { writePrincipal } from '../session/principal.js'
import type { AuthStore } from '../store/store.js'
import { userOfIdentity } from './sign-in.js'

/**
 * Starts a sign-in at a provider.
 *
 * @returns the URL of the authorization request (RFC 6749 section 4.1.1)
 * @throws AuthError `provider_unavailable`, `provider_error`, `unavailable`
 */
export async function startSignIn (request: FastifyRequest, provider: ExternalProvider, redirectUri: string, { next, startedOn }: { next: string, startedOn: string | null }): Promise<URL> {
  const checks = { state: randomToken(), nonce: randomToken(), codeVerifier: randomToken() }
  const url = await answerOf(() => provider.authorizationUrl({ ...checks, redirectUri }))
  await addPendingSignIn(request, { ...checks, provider: provider.name, next, startedOn, startedAt: Date.now() })
  return url
}

/**
 * Finds the sign-in that an authorization response belongs to. It is taken out of the session before anything else happens: an
 * authorization response is good for one try.
 *
 * @throws AuthError `invalid_state`
 */
export async function pendingSignIn (request: FastifyRequest, provider: ExternalProvider, parameters: URLSearchParams): Promise<PendingSignIn> {
  const [state, ...others] = parameters.getAll('state')
  if (state === undefined || state === '' || others.length > 0) throw new AuthError('invalid_state')
  const pending = await takePendingSignIn(request, provider.name, state)
  if (pending === null) throw new AuthError('invalid_state')
  return pending
}

/**
 * Finishes a sign-in: authorization response, token request, identity, user, session.
 *
 * @throws AuthError `access_denied`, `provider_unavailable`, `provider_error`, `account_exists`, `unavailable`
 */
export async function finishSignIn (request: FastifyRequest, provider: ExternalProvider, store: AuthStore, redirectUri: string, parameters: URLSearchParams, { state, nonce, codeVerifier }: PendingSignIn): Promise<void> {
  const authentication = await answerOf(() => provider.authenticate({ parameters, redirectUri, state, nonce, codeVerifier }))
  const identity = checkedIdentity(authentication.identity)
  const user = await userOfIdentity(store, provider.name, identity)
  await writePrincipal(request, { userId: user.userId, provider: provider.name, claims: mergeClaims(identity.claims, user.claims) })
}

/** What a provider of the application's own throws is a failure of that provider, whatever it looks like. */
async function answerOf<T> (ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw providerFailure(error)
  }
}

/** 256 bits, and with 43 characters a valid code verifier too (RFC 7636 section 4.1). */
function randomToken (): string {
  return randomBytes(32).toString('base64url')
}
