import type { FastifyRequest } from 'fastify'
import { audit, sourceOf } from '../../audit.js'
import { digestOf } from '../../base/values.js'
import type { AuthContext } from '../../core/context.js'
import { announceSignOut } from '../../core/sign-out.js'
import type { ExternalProvider } from '../../providers/provider.js'
import { endAt } from '../../session/at-provider.js'
import { BROWSER_SESSION_MS } from '../../session/lifetime.js'
import type { SignedOut } from '../../session/record.js'
import { backendOf } from '../../session/request-sessions.js'
import { LOGOUT_TOKEN } from '../../session/store.js'
import { callProvider } from '../identities/login.js'

/** What is asked of a provider that tells of sign-outs; its name may be that of no route. */
export type LogoutProvider = Pick<ExternalProvider, 'name'> & Required<Pick<ExternalProvider, 'verifyLogoutToken'>>

/**
 * Ends the sessions that a logout token of a provider names: those that began in the session `sid`
 * there, else all that began as its user `sub`, also one whose sign-in is under way. Other sessions
 * of the user stay. Who sends the token learns nothing of users: an unknown one is no error. A
 * token that was used changes nothing.
 *
 * @throws AuthError `invalid_token`; another one when the logout cannot be carried out now, after
 *   which the token may be sent again
 * @see OpenID Connect Back-Channel Logout 1.0 section 2.7
 */
export async function endByLogoutToken (
  auth: AuthContext, request: FastifyRequest, provider: LogoutProvider, token: string
): Promise<void> {
  const { name } = provider
  const { jti, ...ids } = await callProvider(async () => provider.verifyLogoutToken(token))
  const backend = backendOf(request)
  const hash = digestOf(`${LOGOUT_TOKEN} ${name} ${jti}`)
  const used = { hash, kind: LOGOUT_TOKEN, owner: hash }
  // Tokens are valid for two minutes, entries for ten.
  if (await backend.entries.find(used) !== null) return

  const ended = await backend.endAtProvider(endAt(name, ids), longestSession(auth, request))
  for (const user of ended ?? await linkedUser(auth, name, ids.sub)) {
    audit('back-channel-logout', { provider: name, userId: user.userId }, request)
    await announceSignOut(auth, user, { ...sourceOf(request), log: request.log })
  }
  // Last: a token that could not be carried out is good for another attempt.
  await backend.entries.put({ ...used, content: {}, startedAt: Date.now() }, 1)
}

/** The user whose sessions a store of the application may have; none where no `sub` says it. */
async function linkedUser (
  { accounts }: Pick<AuthContext, 'accounts'>, provider: string, subject: string | undefined
): Promise<SignedOut[]> {
  const user = subject === undefined ? null : await accounts.findUser({ provider, subject })
  return user === null ? [] : [{ userId: user.userId, isRecorded: false }]
}

/** How long a session can be unused at most, in milliseconds: a later request finds none. */
function longestSession ({ remember }: Pick<AuthContext, 'remember'>, { session }: FastifyRequest): number {
  const { originalMaxAge }: { originalMaxAge?: number | null } = Object(session?.cookie)
  return Math.max(BROWSER_SESSION_MS, remember ?? 0, originalMaxAge ?? 0)
}
