import type { FastifyRequest } from 'fastify'
import type { SignInParameters } from '../providers/provider.js'
import { sessionCookieName } from './cookie.js'
import {
  type CallbackStore, entryId, readEntry, removeEntry, sessionsUnavailable, writeEntry
} from './session-store.js'
import { Turns } from '../base/turns.js'

/** A sign-in that was started at a provider and is not finished. */
export interface PendingSignIn {
  /** The name of the provider. */
  provider: string
  state: string
  nonce: string
  codeVerifier: string
  /** The page after the sign-in: a path of this origin. */
  next: string
  /**
   * The page for errors: the one that `error_next` names, or the one on which the sign-in was
   * started. A path of this origin.
   */
  startedOn: string | null
  /** The id of the user who links this identity to their account; null for a sign-in. */
  linkTo: string | null
  /** The parameters of this authorization request. */
  asked: SignInParameters
  /** Milliseconds since the epoch. */
  startedAt: number
}

const MAX_AGE_MS = 10 * 60 * 1000
const MAX_PENDING = 8

/**
 * Adds a pending sign-in to a session. Pending sign-ins have an entry of their own in the session
 * store, so that a late save of the session, by the application or another tab, neither loses one
 * nor restores a used one.
 */
export async function addPendingSignIn (request: FastifyRequest, pending: PendingSignIn): Promise<void> {
  await keepSession(request).catch((error: unknown) => { throw sessionsUnavailable(error) })
  const { sessionStore, session } = request
  await change(sessionStore, session.sessionId, known => [[...known, pending].slice(-MAX_PENDING), undefined])
}

/** Saves the session if necessary, because the callback finds pending sign-ins by its cookie. */
async function keepSession (request: FastifyRequest): Promise<void> {
  if (sessionCookieName(request) === undefined) return request.session.save()
  // The session may have changed since this request read it.
  const present = await readEntry(request.sessionStore, request.session.sessionId)
  const expires = present?.cookie.expires
  if (expires == null || new Date(expires).getTime() > Date.now() + MAX_AGE_MS) return
  await request.session.reload()
  await request.session.save()
}

/**
 * Removes a pending sign-in from a session and returns it. Of several requests with one state, one
 * gets it.
 *
 * @returns null when the state is unknown in this session, of another provider, used or older than
 * ten minutes
 */
export async function takePendingSignIn (
  request: FastifyRequest,
  provider: string,
  state: string
): Promise<PendingSignIn | null> {
  const taken = await change(request.sessionStore, request.session.sessionId, known => [
    known.filter(pending => pending.state !== state),
    known.find(pending => pending.state === state)
  ])
  // The callback of another provider is a mix-up (RFC 9700 section 4.4): the state is used up.
  return taken?.provider === provider ? taken : null
}

/** Moves the sign-ins that other tabs have started to the session that replaces this one. */
export async function movePendingSignIns (request: FastifyRequest, from: string, to: string): Promise<void> {
  const pending = await change(request.sessionStore, from, known => [[], known])
  if (pending.length === 0) return
  await change(request.sessionStore, to, known => [[...known, ...pending].slice(-MAX_PENDING), undefined])
}

/** Runs changes of one session one after the other, so that none overwrites another. */
const turns = new Turns()

async function change<T> (
  store: CallbackStore,
  sessionId: string,
  change: (known: PendingSignIn[]) => [PendingSignIn[], T]
): Promise<T> {
  return turns.take(sessionId, async () => {
    const id = entryId('pending', sessionId)
    const known = pendingIn(await readEntry(store, id))
    const fresh = known.filter(({ startedAt }) => startedAt > Date.now() - MAX_AGE_MS)
    const [left, result] = change(fresh)
    if (left.length > 0) await writeEntry(store, id, { pending: left }, MAX_AGE_MS)
    else if (known.length > 0) await removeEntry(store, id)
    return result
  })
}

function pendingIn (entry: object | null): PendingSignIn[] {
  return entry !== null && 'pending' in entry && Array.isArray(entry.pending) ? entry.pending : []
}
