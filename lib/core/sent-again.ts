/** Acts whose request is sent again: what has succeeded is not told as a failure. */
import { setTimeout } from 'node:timers/promises'
import type { FastifyRequest } from 'fastify'
import { BoundedMap, digestOf } from '../base/values.js'
import { TimeoutError, withTimeout } from '../base/concurrency.js'
import { noteSignIn } from './completed-sign-ins.js'
import type { AuthContext, WithAccounts } from './context.js'
import { currentPrincipal } from './current-user.js'
import { AuthError, SENT_TWICE } from '../errors.js'
import { type WaitingSession, renewSession, startPendingSession, takeEntry } from '../session/lifecycle.js'
import { useSession } from '../session/cookies.js'
import { ownRecordIn, principalOf } from '../session/record.js'
import { sentFields } from './site.js'
import { namedIdOf, sessionsOf } from '../session/request-sessions.js'
import { SENT_MS, seenSessions } from '../session/seen-sessions.js'
import { type SentBefore, digestOfRequest, findSent, noteOf, noteRequest } from '../session/sent-requests.js'
import { SECOND_STEP } from '../session/store.js'

/** What an act does, and what the same request gets after it. */
export interface RepeatableAct<Answer> {
  readonly run: () => Promise<Answer>
  /** Is asked in the new session of the user, if the act has started one. */
  readonly again: (next: string | null) => Answer | Promise<Answer>
}

/** The kind of the note that a request with a secret has succeeded, which started no session. */
const SENT_REQUEST = 'sent-request'

/** The fields that only someone who may act knows. */
const SECRETS = ['token', 'code', 'mailCode', 'password', 'current', 'response']

/** What an act answers when another request with the same secret has used it. */
const USED: ReadonlySet<string> = new Set([
  'invalid_state', 'invalid_token', 'invalid_code', 'invalid', 'unauthenticated', 'reauthenticate', 'exists'
])

/** How long a request waits for the same one. */
const WAIT_MS = 5000

/**
 * Looks up whether a request was sent before, by the session that its cookie named then: before
 * anything is counted. A request whose session is open has not been answered.
 */
export async function wasSentBefore (request: FastifyRequest): Promise<boolean> {
  if (principalOf(request) !== null || sessionsOf(request).isStored(request.session)) return false
  const before = await findSent(request)
  if (before !== null) noteRequest(request, { before })
  return before !== null
}

/** The acts with a secret that an application runs in this process, by their requests. */
const runningIn = new WeakMap<AuthContext, Map<string, Promise<unknown>>>()

/**
 * Runs an act once for each request: the same request, with the same cookie, gets the outcome of
 * the first one within the minute, in a session of its own, while no request has come in the first
 * one's session. One that comes while the first one runs waits for it.
 *
 * @param count what {@link wasSentBefore} has spared a request that is another one after all
 */
export async function runOnce<Answer> (
  auth: AuthContext, request: FastifyRequest, act: RepeatableAct<Answer>, count: () => Promise<void>
): Promise<Answer> {
  const hasSecret = secretsIn(request).length > 0
  noteRequest(request, { hasSecret })
  const { before = null } = noteOf(request)
  const isSame = before !== null && before.isSame(request)
  let found = isSame && before.isInTime ? before : null
  // Of two requests that differ, one may guess the short code of the other.
  if (before !== null && !isSame) await seenSessions.add(sessionsOf(request).backend.entries, before.startedId)
  if (before !== null && found === null) await count()
  const id = before?.firstId ?? namedIdOf(request)
  if (id === null || !hasSecret) return attempt(auth, request, act, { before, id: hasSecret ? tokenIn(request) : null })

  const key = digestOfRequest(request, id)
  const running = runningIn.get(auth) ?? new Map<string, Promise<unknown>>()
  runningIn.set(auth, running)
  let isSecond = false
  for (let first = running.get(key); first !== undefined; first = running.get(key)) {
    await endOf(request, first)
    const sent = await findSent(request, [id])
    found = sent !== null && sent.isInTime ? sent : null
    isSecond = true
  }
  const run = async (): Promise<Answer> => {
    if (found === null) return attempt(auth, request, act, { before, id, isSecond })
    const repeated = await repeat(auth, request, act, found)
    if (repeated !== null) return repeated.answer
    if (before !== null) await count()
    return attempt(auth, request, act, { before: found, id, isSecond })
  }
  const answer = run()
  running.set(key, answer)
  try {
    return await answer
  } finally {
    if (running.get(key) === answer) running.delete(key)
  }
}

/** Waits for the same request; throws its failure. */
async function endOf (request: FastifyRequest, first: Promise<unknown>): Promise<void> {
  try {
    await withTimeout(WAIT_MS, first, 'the same request')
  } catch (error) {
    if (error instanceof TimeoutError) throw new AuthError('busy', { retryAfter: 1 })
    // It was dropped, because its client has closed the connection; or it has a session.
    if (error instanceof AuthError && ['busy', 'second_factor_required'].includes(error.code)) return
    noteRequest(request, { hasSameFailure: true })
    throw error
  }
}

/** @param isSecond whether the same request has just ended, in this process */
async function attempt<Answer> (
  auth: Pick<AuthContext, 'accounts' | 'mayAct' | 'records'>,
  request: FastifyRequest,
  act: RepeatableAct<Answer>,
  { before, id, isSecond = false }: { before: SentBefore | null, id: string | null, isSecond?: boolean }
): Promise<Answer> {
  const record = id === null ? null : recordOf(auth, request, id)
  const recorded = isSecond ? await record?.find() : null
  if (recorded != null) return act.again(recorded.next)
  try {
    const answer = await act.run()
    const { next = null, hasStarted } = noteOf(request)
    // A session knows the request that has started it; all else is recorded.
    if (!hasStarted) await record?.put(next).catch(err => { request.log.warn({ err }, 'a used secret was not noted') })
    return answer
  } catch (error) {
    if (!(error instanceof AuthError) || !USED.has(error.code)) throw error
    // A request that has spent the code takes the sign-in next.
    if (error.code === 'invalid_code' && id !== null) await setTimeout(50)
    const found = id === null || record === null ? null : await answeredMeanwhile(request, id, record)
    if (found !== null && 'next' in found) return act.again(found.next)
    const isRepeated = found !== null && found.isSame(request) && found.isInTime
    const repeated = isRepeated ? await repeat(auth, request, act, found) : null
    if (repeated !== null) return repeated.answer
    // A callback says itself who is signed in, and how to go on.
    const isForm = before !== null && request.method === 'POST'
    throw isForm && (before.sent.digest === undefined || before.isSame(request)) ? sentTwice(request) : error
  } finally {
    const { entry, hasEntry = false } = noteOf(request)
    if (entry !== undefined && hasEntry) endedHere.set(entry.hash, true)
  }
}

/** The entries that acts of this process have taken, which are over. */
const endedHere = new BoundedMap<true>(1000)

/**
 * Returns what the same request has left that another one has answered. Waits for another process,
 * which has taken the entry that this one did not get, as long as an act may take.
 */
async function answeredMeanwhile (
  request: FastifyRequest, id: string, record: ReturnType<typeof recordOf>
): Promise<SentBefore | { next: string | null } | null> {
  const { backend } = sessionsOf(request)
  const { entry, hasEntry = false } = noteOf(request)
  for (;;) {
    // Asked first: what an act has left that ends during the look-up is found the next time.
    const mayRun = entry !== undefined && !hasEntry && !endedHere.has(entry.hash)
    const found = await findSent(request, [id]) ?? await record.find()
    const takenAt = found === null && mayRun ? await backend.entries.takenAt(entry) : null
    if (takenAt === null || takenAt < Date.now() - WAIT_MS) return found
    await setTimeout(100)
  }
}

/** The record of a request that has succeeded and started no session. */
function recordOf ({ records }: Pick<AuthContext, 'records'>, request: FastifyRequest, id: string) {
  const key = { hash: digestOf(digestOfRequest(request, id)), kind: SENT_REQUEST, owner: digestOf(id) }
  return {
    async put (next: string | null): Promise<void> {
      const startedAt = Date.now()
      await records.put({ ...key, content: { startedAt, next }, startedAt }, 1)
    },
    async find (): Promise<{ next: string | null } | null> {
      const { startedAt, next }: { startedAt?: number, next?: string } = Object(await records.find(key))
      return Number(startedAt) > Date.now() - SENT_MS ? { next: next ?? null } : null
    }
  }
}

/**
 * Moves the session that the first request has started to a new id, for this one; null when that
 * session has ended or gone on meanwhile.
 */
async function repeat<Answer> (
  auth: WithAccounts, request: FastifyRequest, act: RepeatableAct<Answer>, { firstId, startedId, sent }: SentBefore
): Promise<{ answer: Answer } | null> {
  noteRequest(request, { firstId, left: sent.left - 1, next: sent.next })
  await useSession(request, startedId, firstId)
  const record = await currentPrincipal(auth, request) === null ? null : ownRecordIn(request.session)
  // It may have ended; then another session that the browser names is the present one.
  if (request.session.sessionId !== startedId) return null
  if (record !== null) {
    await renewSession(request, record)
    noteSignIn(request, { userId: record.principal.userId, isRepeated: true })
    return { answer: await act.again(sent.next) }
  }
  const waiting = await moveWaiting(request)
  if (waiting === null) return null
  throw new AuthError('second_factor_required', { details: waiting.details })
}

function sentTwice ({ method }: FastifyRequest): AuthError {
  return method === 'POST' ? new AuthError('unauthenticated', { message: SENT_TWICE }) : new AuthError('invalid_state')
}

/** The secret of a link, which needs no cookie. */
function tokenIn (request: FastifyRequest): string | null {
  const { token } = sentFields(request)
  return typeof token === 'string' ? token : null
}

function secretsIn (request: FastifyRequest): unknown[] {
  const fields = { ...Object(request.query), ...sentFields(request) }
  return SECRETS.flatMap(name => fields[name] || [])
}

/** Moves a sign-in that waits to a new session; null without one. */
async function moveWaiting (request: FastifyRequest): Promise<WaitingSession | null> {
  const waiting = await takeEntry<WaitingSession>(request, SECOND_STEP)
  if (waiting !== null) await startPendingSession(request, SECOND_STEP, waiting)
  return waiting
}
