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

/**
 * Starts a sign-in at a provider.
 *
 * @returns the URL of the authorization request (RFC 6749 section 4.1.1)
 * @throws AuthError `provider_unavailable`, `provider_error`, `unavailable`
 */
export async function startSignIn (request: FastifyRequest, provider: ExternalProvider, redirectUri: string, start: Pick<PendingSignIn, 'next' | 'startedOn' | 'linkTo' | 'asked'>): Promise<URL> {
  const checks = { state: randomToken(), nonce: randomToken(), codeVerifier: randomToken() }
  const url = await answerOf(() => provider.authorizationUrl({ ...start.asked, ...checks, redirectUri }))
  await addPendingSignIn(request, { ...checks, ...start, provider: provider.name, startedAt: Date.now() })
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
 * @throws what the hook throws; AuthError `access_denied`, `provider_unavailable`, `provider_error`, `account_exists`, `unavailable`
 */
export async function finishSignIn (request: FastifyRequest, provider: ExternalProvider, rules: SignInRules, redirectUri: string, parameters: URLSearchParams, pending: PendingSignIn): Promise<void> {
  const { identity, tokens } = await authenticate(provider, redirectUri, parameters, pending)
  const arrival = { ...await userOfIdentity(rules, identity), identity, tokens }
  await signIn(request, rules, arrival)
}

/**
 * Finishes the linking of another identity: authorization response, token request, identity, link. It is good for the user who started
 * it and is still signed in; his session stays what it is.
 *
 * @throws what the hook throws; AuthError `invalid_state`, `already_linked`, `access_denied`, `provider_unavailable`, `provider_error`, `unauthenticated`, `unavailable`
 */
export async function finishLinking (request: FastifyRequest, provider: ExternalProvider, { store, onLink }: SignInRules, redirectUri: string, parameters: URLSearchParams, pending: PendingSignIn): Promise<void> {
  if (principalOf(request)?.userId !== pending.linkTo) throw new AuthError('invalid_state')
  const { identity, tokens } = await authenticate(provider, redirectUri, parameters, pending)
  await assertSessionGoesOn(request)
  // Who was deleted meanwhile, or whose way in was taken away, adds none.
  const { userId } = await confirmedPrincipal(request, store)
  if (onLink !== null) {
    await assertLinkable(store, userId, identity)
    await answerOfApplication(() => onLink({ request, userId, identity, tokens }))
    await assertSessionGoesOn(request)
  }
  const isNew = await linkIdentity(store, userId, identity)
  if (isNew) audit('link', { userId, provider: provider.name, by: 'request' }, request)
}

async function authenticate (provider: ExternalProvider, redirectUri: string, parameters: URLSearchParams, { asked, state, nonce, codeVerifier }: PendingSignIn): Promise<{ identity: ProviderIdentity, tokens: ProviderTokens }> {
  return answerOf(async () => {
    const { identity, tokens } = await provider.authenticate({ ...asked, parameters, redirectUri, state, nonce, codeVerifier })
    return { identity: { provider: provider.name, ...checkedIdentity(identity) }, tokens }
  })
}

/** What a provider of the application's own throws, or answers, is a failure of that provider, whatever it looks like. */
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
