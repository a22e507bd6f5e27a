import { randomBytes } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { audit } from '../audit.js'
import { AuthError } from '../errors.js'
import type { Outbox } from '../mails/outbox.js'
import { providerFailure } from '../providers/failures.js'
import { checkedIdentity } from '../providers/identity.js'
import type { ExternalProvider, ProviderTokens, AuthenticationContext } from '../providers/provider.js'
import { type PendingSignIn, addPendingSignIn, takePendingSignIn } from '../session/pending-sign-ins.js'
import { assertSessionActive } from '../session/lifecycle.js'
import { principalOf } from '../session/record.js'
import type { AuthStore } from '../accounts/auth-store.js'
import { assertLinkable, linkIdentity, userOfIdentity } from '../sign-in/linking.js'
import { recentRecord } from './methods.js'
import { reauthenticateAs } from './reauthentication.js'
import { signIn } from '../sign-in/sign-in.js'
import { type ProviderIdentity, type SignInRules, callHook } from './sign-in-rules.js'

/** What a request to the login route asks for. */
export type SignInStart = Pick<PendingSignIn, 'next' | 'startedOn' | 'purpose' | 'remember' | 'asked'>

/** An authorization response (RFC 6749 section 4.1.2) and the sign-in that it belongs to. */
export interface Callback {
  provider: ExternalProvider
  /** The redirect URI of the authorization request. */
  redirectUri: string
  /** The parameters of the authorization response. */
  parameters: URLSearchParams
  pending: PendingSignIn
  /** Where notices to the user go; null for an application that sends no mails. */
  outbox: Outbox | null
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
  const startedBy = principalOf(request)?.userId ?? null
  await addPendingSignIn(request, { ...checks, ...start, startedBy, provider: provider.name, startedAt: Date.now() })
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
 * Finishes what was started: a sign-in (authorization response, token request, identity, user,
 * session), a linking or a reauthentication.
 *
 * @throws what the hook throws; AuthError `access_denied`, `provider_unavailable`,
 * `provider_error`, `account_exists`, `already_linked`, `reauthenticate`, and what {@link signIn}
 * throws
 */
export async function finishSignIn (request: FastifyRequest, rules: SignInRules, callback: Callback): Promise<void> {
  const { purpose } = callback.pending
  if (purpose === 'link') return finishLinking(request, rules, callback)
  if (purpose === 'reauthentication') return finishReauthentication(request, rules, callback)
  const { identity, tokens, signed } = await authenticate(callback)
  await assertSameUser(request, rules.store, callback.pending, identity)
  const { pending: { remember }, outbox } = callback
  const user = await userOfIdentity(rules, identity, outbox)
  await signIn(request, rules, { ...user, identity, method: 'provider', tokens, signed, remember, outbox })
}

/**
 * Refuses to sign in another user than the present one by a sign-in that was started before they
 * signed in. An attacker could have started it and planted its session in the user's browser.
 *
 * @throws AuthError `invalid_state`, `unavailable`
 */
async function assertSameUser (
  request: FastifyRequest,
  store: AuthStore,
  { startedBy }: PendingSignIn,
  { provider, subject }: ProviderIdentity
): Promise<void> {
  const present = principalOf(request)?.userId ?? null
  if (present === null || present === startedBy) return
  const owner = await store.findUser({ provider, subject })
  if (owner?.userId !== present) throw new AuthError('invalid_state')
}

/**
 * Finishes the linking of another identity: authorization response, token request, identity, link.
 * The user who started it must still be signed in, by a recent authentication: with the new
 * identity they can sign in anew, so that a session stolen long ago would become a recent one. The
 * user is told by a mail. The session does not change.
 *
 * @throws what the hook throws; AuthError `invalid_state`, `already_linked`, `access_denied`,
 * `provider_unavailable`, `provider_error`, `unauthenticated`, `reauthenticate`, `unavailable`
 */
async function finishLinking (
  request: FastifyRequest,
  rules: SignInRules,
  callback: Callback
): Promise<void> {
  const { store, accounts, onLink } = rules
  assertStarter(request, callback.pending)
  const { identity, tokens } = await authenticate(callback)
  await assertSessionActive(request)
  // The user may have been deleted meanwhile, or the link of the session removed.
  const { principal: { userId }, generation } = await recentRecord(request, rules)
  if (onLink !== null) {
    await assertLinkable(store, userId, identity)
    await callHook(() => onLink({ request, userId, identity, tokens }))
    await assertSessionActive(request)
  }
  // Not if the sessions of the user were ended since: a squatter would keep a link to the account
  // that its owner recovers meanwhile.
  const linked = await linkIdentity(accounts, { userId, generation }, identity, callback.outbox)
  if (linked === null) return
  audit('link', { userId, provider: identity.provider, by: 'request' }, request)
  callback.outbox?.notice('identity-linked', linked)
}

/**
 * Finishes a further sign-in of the signed-in user. The provider proves by `auth_time` that they
 * authenticated since it was started.
 *
 * @throws AuthError `invalid_state`, `access_denied`, `provider_unavailable`, `provider_error`,
 * `unauthenticated`, `unavailable`
 */
async function finishReauthentication (
  request: FastifyRequest,
  { store }: SignInRules,
  callback: Callback
): Promise<void> {
  const { pending } = callback
  assertStarter(request, pending)
  const maxAge = Math.ceil((Date.now() - pending.startedAt) / 1000)
  const { identity } = await authenticate({ ...callback, pending: { ...pending, asked: { ...pending.asked, maxAge } } })
  await reauthenticateAs(request, store, identity)
}

/** Refuses to go on for another user than the one who started it. */
function assertStarter (request: FastifyRequest, { startedBy }: PendingSignIn): void {
  if (principalOf(request)?.userId !== startedBy) throw new AuthError('invalid_state')
}

async function authenticate (
  { provider, redirectUri, parameters, pending }: Callback
): Promise<{ identity: ProviderIdentity, tokens: ProviderTokens, signed: AuthenticationContext | undefined }> {
  const { asked, state, nonce, codeVerifier } = pending
  return answerOf(async () => {
    const { identity, tokens, signed } = await provider.authenticate({
      ...asked, parameters, redirectUri, state, nonce, codeVerifier
    })
    return { identity: { provider: provider.name, ...checkedIdentity(identity) }, tokens, signed }
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
