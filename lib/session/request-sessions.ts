import type { FastifyReply, FastifyRequest, Session } from 'fastify'
import { Turns } from '../base/turns.js'
import { sessionCookieName } from './cookie.js'
import { endSession, hasEnded } from './ended-sessions.js'
import { MemorySessionStore } from './memory-session-store.js'
import { isOutgrown, restoreLifetime } from './visitor.js'
import { type SessionRecord, principalIn } from './record.js'
import { type CallbackStore, SessionEntries, sessionsUnavailable } from './session-store.js'

type Done<T = void> = (error?: unknown, answer?: T) => void

/** What a request knows of a session in the store. */
interface StoredSession {
  /** Whether a user is signed in to it. */
  isOfUser: boolean
  /** Its cookie as it was read or written. */
  cookie: string
}

/** Runs the saves of one session one after the other, so that none overwrites another's part. */
const saves = new Turns()

/**
 * The session store as one request uses it. The session of the request refers to it instead of the
 * application's store, which stays as it is, so that
 *
 * - an ended session is not saved again, however late the request is answered;
 * - a save of the application changes the application's part of the session alone: the plugin's
 *   part stays as it is in the store, where another request may have updated it;
 * - all calls of the request together wait five seconds.
 */
export class RequestSessions implements CallbackStore {
  readonly entries: SessionEntries
  /** Whether another process may change what is in the store. */
  readonly isShared: boolean
  /** Whether the browser may forget the cookie of the session that it sent. */
  hasLeft = false
  /** The sessions that are in the store, by id. */
  readonly #stored = new Map<string, StoredSession>()
  #isQuiet = false
  #ownRecord: SessionRecord | undefined

  constructor (store: CallbackStore) {
    this.entries = new SessionEntries(store)
    this.isShared = !(store instanceof MemorySessionStore)
  }

  /** Notes that the session of the request is in the store. */
  found ({ session }: FastifyRequest): void {
    this.#note(session.sessionId, session)
  }

  /** Whether a session is in the store: this request has read or written it. */
  isStored (session: FastifyRequest['session']): boolean {
    return this.#stored.has(session.sessionId)
  }

  /** Whether the application changed the cookie of a session after it was read or written. */
  hasNewCookie (session: FastifyRequest['session']): boolean {
    const stored = this.#stored.get(session.sessionId)
    return stored !== undefined && stored.cookie !== JSON.stringify(session.cookie)
  }

  get (id: string, done: Done<Session | null>): void {
    settle(done, this.entries.read(id))
  }

  set (id: string, session: Session, done: Done): void {
    if (this.#isQuiet) return done()
    if (isOutgrown(session)) restoreLifetime(session)
    settle(done, this.#save(id, session, this.#ownRecord))
  }

  destroy (id: string, done: Done): void {
    const stored = this.#stored.get(id)
    if (this.#isQuiet || stored === undefined) return done()
    settle(done, endSession(this.entries, { id, isOfUser: stored.isOfUser }))
  }

  /**
   * Saves the session of a request with a new part of the plugin.
   *
   * @throws AuthError `unavailable`
   */
  async saveRecord ({ session }: FastifyRequest, record: SessionRecord): Promise<void> {
    session.svcAuth = record
    this.#ownRecord = record
    try {
      const saved = session.save()
      this.#ownRecord = undefined
      await saved
    } catch (error) {
      throw sessionsUnavailable(error)
    }
  }

  /**
   * Gives the request a new session with a new id. The store is left as it is.
   *
   * @param kept the names of members of the present session that the new one gets
   */
  renew (request: FastifyRequest, kept: string[] = []): void {
    this.#quietly(done => { request.session.regenerate(kept, done) })
  }

  /** Takes the session from a request. The store is left as it is. */
  drop (request: FastifyRequest): void {
    this.#quietly(done => { request.session.destroy(done) })
  }

  /** Runs a call of @fastify/session that asks the store and would change it. */
  #quietly (call: (done: () => void) => void): void {
    this.#isQuiet = true
    call(() => {})
    this.#isQuiet = false
  }

  async #save (id: string, session: Session, ownRecord: SessionRecord | undefined): Promise<void> {
    const isStored = this.#stored.has(id)
    this.#note(id, session)
    if (!isStored) return this.entries.writeSession(id, session)
    await saves.take(id, async () => {
      const present = await this.entries.read(id)
      // It has ended, or it expired.
      if (present === null) return
      const record = ownRecord ?? (isOutgrown(session) ? undefined : present.svcAuth)
      const { svcAuth, ...application } = session
      const merged = { ...application, ...(record !== undefined && { svcAuth: record }) }
      await this.entries.writeSession(id, merged, async () => {
        if (await hasEnded(this.entries, id)) await this.entries.remove(id)
      })
    })
  }

  #note (id: string, session: Session): void {
    this.#stored.set(id, { isOfUser: principalIn(session) !== null, cookie: JSON.stringify(session.cookie) })
  }
}

const sessionsByRequest = new WeakMap<FastifyRequest, RequestSessions>()

/**
 * An `onRequest` hook behind that of @fastify/session: from then on the session of the request uses
 * the store as {@link RequestSessions} does.
 */
export function watchSession (request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  // Outside the path of its cookie a session is empty.
  if (request.session?.sessionId !== undefined) sessionsOf(request)
  done()
}

/** Returns the session store as a request uses it. */
export function sessionsOf (request: FastifyRequest): RequestSessions {
  const known = sessionsByRequest.get(request)
  if (known !== undefined) return known
  const { sessionStore, session } = request
  const sessions = new RequestSessions(sessionStore instanceof PatientStore ? sessionStore.store : sessionStore)
  sessionsByRequest.set(request, sessions)
  replaceStore(session, sessionStore, sessions)
  // An own signer may make the cookie anew each time; then the user tells that the session is
  // stored.
  if (sessionCookieName(request) !== undefined || principalIn(session) !== null) sessions.found(request)
  return sessions
}

/**
 * Makes a session, and those that @fastify/session makes from it, use another store. A session
 * refers to its store by a symbol, which is found by its value.
 */
function replaceStore (session: Session, present: CallbackStore, sessions: RequestSessions): void {
  const name = Object.getOwnPropertySymbols(session).find(symbol => Reflect.get(session, symbol) === present)
  if (name === undefined) throw new Error('this version of @fastify/session is not supported; install ^11.1.3')
  Reflect.set(session, name, sessions)
}

/** A store for @fastify/session whose reads wait five seconds and fail with an AuthError. */
export class PatientStore implements CallbackStore {
  readonly store: CallbackStore

  constructor (store: CallbackStore) {
    this.store = store
  }

  get (id: string, done: Done<Session | null>): void {
    settle(done, new SessionEntries(this.store).read(id))
  }

  set (id: string, session: Session, done: Done): void {
    this.store.set(id, session, done)
  }

  destroy (id: string, done: Done): void {
    this.store.destroy(id, done)
  }
}

function settle<T> (done: Done<T>, answer: Promise<T>): void {
  // The callback runs outside the promise, so that its errors are not reported as errors of the
  // store.
  answer.then(answer => { process.nextTick(done, null, answer) }, (error: unknown) => { process.nextTick(done, error) })
}
