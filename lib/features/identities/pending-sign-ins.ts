import type { FastifyReply, FastifyRequest } from 'fastify'
import { digestOf } from '../../base/values.js'
import type { SignInParameters } from '../../providers/provider.js'
import { MAX_PENDING, PENDING_MS, SIGN_IN } from '../../session/store.js'
import { putOwned } from '../../session/lifecycle.js'
import { ownRecordIn } from '../../session/record.js'
import { sessionsOf } from '../../session/request-sessions.js'
import { noteRequest } from '../../session/sent-requests.js'
import { useOwner } from '../../session/several-cookies.js'
import { keepStart, startOf } from '../../session/start-cookies.js'

/** A sign-in that was started at a provider and is not finished. */
export interface PendingSignIn {
  provider: string
  state: string
  nonce: string
  codeVerifier: string
  /** The page after the sign-in: a path of this application, or a URL of a trusted origin. */
  next: string
  /**
   * The page for errors: the one that `error_next` names, or the one on which the sign-in was
   * started; null for neither. A path or URL, as for `next`.
   */
  startedOn: string | null
  /**
   * The id of the user who was signed in at the start; null without one, and for a linking or a
   * reauthentication once another session has replaced theirs.
   */
  startedBy: string | null
  /**
   * `link`: the user who started it links the identity to their account; `reauthentication`: they
   * reauthenticate; `test`: nobody is signed in.
   */
  purpose: 'sign-in' | 'link' | 'reauthentication' | 'test'
  remember: boolean
  asked: SignInParameters
  /** Milliseconds since the epoch. */
  startedAt: number
}

/** Adds a pending sign-in to a session; of more than eight, the oldest are removed. */
export async function addPendingSignIn (reply: FastifyReply, { state, ...content }: PendingSignIn): Promise<void> {
  const { request, request: { session } } = reply
  const [hash, owner, isNew] = [digestOf(state), digestOf(session.sessionId), !sessionsOf(request).isStored(session)]
  const { startedAt, next } = content
  await putOwned(request, { hash, kind: SIGN_IN, owner, content, startedAt }, MAX_PENDING)
  if (isNew) keepStart(reply, hash, next)
}

/**
 * Takes a pending sign-in of a session out of the session store and returns it. Sign-ins that other
 * tabs have started in sessions that this one replaced, or without a session, may finish, the
 * latter while their session is open; a linking or a reauthentication counts as started by no user.
 * An attacker with a copy of the old cookie could have started it, and a new session is how the
 * user gets rid of that attacker.
 *
 * @returns `pending`: null when the state is unknown in this session, of another provider, used or
 * older than ten minutes; `next`: the page after it if this browser has started it, also then
 */
export async function takePendingSignIn (
  request: FastifyRequest, provider: string, state: string
): Promise<{ pending: PendingSignIn | null, next: string | null }> {
  const [hash, kind] = [digestOf(state), SIGN_IN]
  await useOwner(request, sessionId => ({ hash, kind, owner: digestOf(sessionId) }))
  const { session } = request
  const { backend, backend: { entries } } = sessionsOf(request)
  const take = async (owners: string[]): Promise<PendingSignIn | null> => {
    const content = owners.length > 0 ? await entries.take(hash, kind, owners) : null
    return content && Object({ ...content, state })
  }
  const start = startOf(request, hash)
  const replaced = (ownRecordIn(session)?.replacedSessions ?? []).map(({ digest }) => digest)
  const started = async (): Promise<string[]> =>
    start !== null && await backend.read(start.id) !== null ? [digestOf(start.id)] : []
  const found = await take([digestOf(session.sessionId)]) ??
    ofOtherSession(await take([...replaced, ...await started()]))
  const entry = { hash, kind, owner: digestOf(start?.id ?? session.sessionId) }
  noteRequest(request, { entry, hasEntry: found !== null })
  if (found === null) return { pending: null, next: start && start.next }
  const isInTime = found.startedAt > Date.now() - PENDING_MS
  // The callback of another provider is a mix-up (RFC 9700 section 4.4): the state is used up.
  return { pending: isInTime && found.provider === provider ? found : null, next: found.next }
}

function ofOtherSession (pending: PendingSignIn | null): PendingSignIn | null {
  return pending === null || pending.purpose === 'sign-in' ? pending : { ...pending, startedBy: null }
}
