import type { FastifyRequest } from 'fastify'
import type { SignInParameters } from '../providers/provider.js'
import { sessionCookieName } from './cookie.js'
import { type CallbackStore, entryId, readEntry, removeEntry, sessionsUnavailable, writeEntry } from './session-store.js'
import { Turns } from '../base/turns.js'

/** A sign-in that was started at a provider and has not come back. */
export interface PendingSignIn {
  /** The provider's name. */
  provider: string
  state: string
  nonce: string
  codeVerifier: string
  /** Where to go after the sign-in: a path of this origin. */
  next: string
  /** Where an error is shown: the page that `error_next` named, or on which the sign-in was started. A path of this origin. */
  startedOn: string | null
  /** The id of the user who asked for this identity to be added to his account; null for a sign-in. */
  linkTo: string | null
  /** What this sign-in asks of its provider. */
  asked: SignInParameters
  /** Milliseconds since the epoch. */
  startedAt: number
}

const MAX_AGE_MS = 10 * 60 * 1000
const MAX_PENDING = 8

/**
 * The pending sign-ins of a session. They are kept beside the session, in its store, under a key of their own: whatever saves the
 * session as it was some requests ago (the application, another tab) can neither lose one nor bring a used one back.
 */
export async function addPendingSignIn (request: FastifyRequest, pending: PendingSignIn): Promise<void> {
  await keepSession(request).catch((error: unknown) => { throw sessionsUnavailable(error) })
  await change(request.sessionStore, request.session.sessionId, known => [[...known, pending].slice(-MAX_PENDING), undefined])
}

/** The session must exist, and its cookie be set, for the browser to find back to what is pending. */
async function keepSession (request: FastifyRequest): Promise<void> {
  if (sessionCookieName(request) === undefined) return request.session.save()
  // What is in the store may have changed since this request read it.
  const present = await readEntry(request.sessionStore, request.session.sessionId)
  const expires = present?.cookie.expires
  if (expires == null || new Date(expires).getTime() > Date.now() + MAX_AGE_MS) return
  await request.session.reload()
  await request.session.save()
}

/**
 * Takes a pending sign-in out of the session: of many requests with one state, one gets it.
 *
 * @returns null when the state is not of this session, not of this provider, used or older than ten minutes
 */
export async function takePendingSignIn (request: FastifyRequest, provider: string, state: string): Promise<PendingSignIn | null> {
  const taken = await change(request.sessionStore, request.session.sessionId, known => [
    known.filter(pending => pending.state !== state),
    known.find(pending => pending.state === state)
  ])
  // A state that comes back by way of another provider is a mix-up (RFC 9700 section 4.4): it is spent, and good for nothing.
  return taken?.provider === provider ? taken : null
}

/** Hands the sign-ins that other tabs started over to the session that takes the place of this one. */
export async function movePendingSignIns (request: FastifyRequest, from: string, to: string): Promise<void> {
  const pending = await change(request.sessionStore, from, known => [[], known])
  if (pending.length > 0) await change(request.sessionStore, to, known => [[...known, ...pending].slice(-MAX_PENDING), undefined])
}

/** Changes of one session take turns, so that none works on a list that another is about to replace. */
const turns = new Turns()

async function change<T> (store: CallbackStore, sessionId: string, change: (known: PendingSignIn[]) => [PendingSignIn[], T]): Promise<T> {
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
