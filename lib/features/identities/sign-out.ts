import type { FastifyRequest } from 'fastify'
import { TIMEOUT_MS, withTimeout } from '../../base/concurrency.js'
import { isText } from '../../claims.js'
import { type AuthContext, needed } from '../../core/context.js'
import { currentRecord } from '../../core/current-user.js'
import { AuthError } from '../../errors.js'
import { isSecureUrl } from '../../core/fetching.js'
import { sentence } from '../../core/pages/elements.js'
import { redacted, unacceptable } from '../../providers/failures.js'
import type { Authentication, EndSessionRequest } from '../../providers/provider.js'
import { type SessionRecord, recordIn } from '../../session/record.js'
import { PENDING_MS } from '../../session/store.js'
import { type Mounting, urlOf } from '../../core/act.js'
import type { FormAnswer } from '../../core/form.js'
import { operation, operationIdOf, redirect } from '../../core/schema.js'
import type { Submission } from '../../core/submission.js'

/** With longer ones, the URL would exceed the 8 KB that servers take. */
const [MAX_ID_TOKEN, MAX_LOGOUT_HINT] = [4096, 512]

/** Encrypts what the session of a user keeps for a sign-out at their provider. */
export async function hintFor (
  { signOutSealer }: AuthContext, provider: string, userId: string, { identity, tokens, logoutHint }: Authentication
): Promise<Pick<SessionRecord, 'signOutHint'>> {
  const { idToken = '' } = tokens
  const isLong = idToken.length > MAX_ID_TOKEN
  const name = logoutHint ?? (isLong ? identity.claims.email : undefined)
  const hint = JSON.stringify({
    ...(idToken !== '' && !isLong && { idToken }),
    ...(isText(name) && name.length <= MAX_LOGOUT_HINT && { logoutHint: name })
  })
  return { signOutHint: await needed(signOutSealer, 'signOut').seal(hint, `hint ${provider} ${userId}`) }
}

/**
 * Signs a user out here, then leads the browser to the provider by which they signed in; undefined
 * where that is not possible. What the provider does keeps no user signed in here.
 */
export async function signOutThere (
  auth: AuthContext,
  { request, reply, fields: { next } }: Submission<{ next?: string }>,
  signOutHere: () => Promise<void>
): Promise<FormAnswer | undefined> {
  // Not of a session that has ended: what it keeps is not for those who have its cookie.
  const hasHint = recordIn(request.session)?.signOutHint !== undefined
  const record = hasHint ? await currentRecord(auth, request).catch(() => null) : null
  await signOutHere()
  const url = record && await endSessionUrl(auth, request, record, auth.redirects.afterSuccess(request, next))
  if (url === null) return undefined
  const { leadTo } = await import('../../core/pages/lead-to.js')
  return {
    status: 200,
    body: { url: url.href },
    show: () => leadTo(auth, reply, url.href, ({ signOut: { title, text } }) => (
      { title, text: sentence(text, { host: url.host }) }))
  }
}

/** Returns the URL of a sign-out at the provider; null when it has none, or fails. */
async function endSessionUrl (
  auth: AuthContext, { log }: FastifyRequest, { principal, signOutHint = '' }: SessionRecord, next: string
): Promise<URL | null> {
  const { userId, provider: name } = principal
  const provider = auth.providers.find(provider => provider.name === name && provider.signOut === true)
  const sealer = needed(auth.signOutSealer, 'signOut')
  const opened = await sealer.open(signOutHint, `hint ${name} ${userId}`).catch(() => null)
  const hint: Pick<EndSessionRequest, 'idToken' | 'logoutHint'> = JSON.parse(opened?.text ?? '{}')
  const state = await sealer.seal(JSON.stringify({ next, until: Date.now() + PENDING_MS }), `state ${name}`)
  const redirectUri = urlOf(auth, `${name}/signed-out`)
  try {
    const asked = provider?.endSessionUrl?.({ ...hint, redirectUri, state })
    const url = await withTimeout(TIMEOUT_MS, Promise.resolve(asked ?? null), name)
    // A browser would run a javascript: URL.
    if (url === null || isSecureUrl(url.href, true)) return url
    throw unacceptable('the URL of the sign-out is not an https: URL')
  } catch (error) {
    const { message } = Object(error instanceof AuthError ? error.cause : error)
    const reason = redacted(String(message), Object.values(hint))
    log.warn({ provider: name, reason }, 'a user is signed out here, and cannot be led to the provider')
    return null
  }
}

/** Mounts the routes that providers redirect to, whether or not the user has signed out there. */
export function mountSignedOut ({ scope, auth }: Mounting): void {
  const sealer = needed(auth.signOutSealer, 'signOut')
  for (const { name } of auth.providers.filter(({ signOut }) => signOut === true)) {
    const schema = operation({
      summary: `Return from a sign-out at ${name}`,
      operationId: operationIdOf(`${name}/signed-out`),
      user: 'anyone',
      answers: { 302: { ...redirect, description: 'A redirect to `next` of the sign-out' } }
    })
    const querystring = { type: 'object', properties: { state: {} } }
    const options = { schema: { ...schema, querystring }, exposeHeadRoute: false }
    scope.get(`/${name}/signed-out`, options, async (request, reply) => {
      const opened = await sealer.open(String(Object(request.query).state), `state ${name}`).catch(() => null)
      const { next, until } = JSON.parse(opened?.text ?? '{}')
      return reply.redirect(auth.redirects.afterSuccess(request, until > Date.now() ? next : null), 302)
    })
  }
}
