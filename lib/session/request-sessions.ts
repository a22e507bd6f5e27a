import type { FastifyReply, FastifyRequest, Session } from 'fastify'
import { AuthError } from '../errors.js'
import { isWithoutSession, namedIdsIn, sessionCookieName } from './cookies.js'
import { type CallbackStore, type Done, ExpressSessions, sessionsUnavailable } from './express.js'
import { cookieEndOf, membersIn, noteIn, restoreLifetime } from './lifetime.js'
import { type SessionBackend, type SessionRecord, type SessionReplacement, ownRecordIn } from './record.js'
import { seenSessions } from './seen-sessions.js'

/** What a request knows of a session in the store. */
interface StoredSession {
  id: string
  cookie: Session['cookie']
  /** The members of the cookie, as {@link membersOf} lists them. */
  members: readonly unknown[]
}

/** What the plugin saves itself. */
interface OwnSave extends SessionReplacement {
  record: SessionRecord | null
  isAdmitted: boolean
}

/**
 * The session store as one request uses it. The session of the request refers to it instead of the
 * application's store, which stays as it is, so that
 *
 * - an ended session is not saved again, however late the request is answered;
 * - a save of the application changes the application's part of the session alone: the plugin's
 *   part stays as it is in the store, where another request may have updated it.
 */
export class RequestSessions implements CallbackStore {
  readonly backend: SessionBackend
  /** Whether the browser may forget the cookie of the session that it sent. */
  hasLeft = false
  /** The sessions that are in the store: the one of the request, and those that it has written. */
  #stored: StoredSession[] = []
  #isQuiet = false
  #own: OwnSave | undefined
  /** Whether a save moves the end of a session. */
  readonly isRolling: boolean

  constructor (backend: SessionBackend, isRolling: boolean) {
    this.backend = backend
    this.isRolling = isRolling
  }

  note (id: string, session: Session): void {
    const { cookie } = session
    this.#stored = [{ id, cookie, members: membersOf(cookie) }, ...this.#stored.filter(other => other.id !== id)]
  }

  /** Whether a session is in the store: this request has read or written it. */
  isStored (session: FastifyRequest['session']): boolean {
    return this.#find(session.sessionId) !== undefined
  }

  /** Whether the application changed the cookie of a session after it was read or written. */
  hasNewCookie (id: string, session: Session): boolean {
    const stored = this.#find(id)
    if (stored === undefined) return false
    const members = membersOf(session.cookie)
    return stored.cookie !== session.cookie || stored.members.some((member, index) => member !== members[index])
  }

  get (id: string, done: Done<Session | null>): void {
    settle(done, this.backend.read(id))
  }

  set (id: string, session: Session, done: Done): void {
    if (this.#isQuiet) return done()
    settle(done, this.#save(id, session, this.#own))
  }

  destroy (id: string, done: Done): void {
    if (this.#isQuiet || this.#find(id) === undefined) return done()
    settle(done, this.backend.end(id))
  }

  /**
   * Saves the session of a request with a new part of the plugin.
   *
   * @param record null for a new session without a user
   * @returns whether its user was new and is admitted
   * @throws AuthError `invalid_state` when the user of the session that it replaces signed out
   *   meanwhile, `unavailable`, `impersonating` for a record of a user who is only shown
   */
  async saveRecord (
    { session }: FastifyRequest, record: SessionRecord | null, replacement: SessionReplacement = {}
  ): Promise<boolean> {
    // Else the impersonation would become a session of that user.
    if (record?.principal.impersonator !== undefined) throw new AuthError('impersonating')
    if (record !== null) session.svcAuth = record
    const own = this.#own = { ...replacement, record, isAdmitted: false }
    try {
      const saved = session.save()
      this.#own = undefined
      await saved
      return own.isAdmitted
    } catch (error) {
      throw error instanceof AuthError ? error : sessionsUnavailable(error)
    }
  }

  /** Gives the request a new session, with these members of the present one. The store stays. */
  renew (request: FastifyRequest, kept: string[] = []): void {
    this.#quietly(done => { request.session.regenerate(kept, done) })
    // It is that of the session before.
    Reflect.deleteProperty(request.session.cookie, 'originalExpires')
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

  async #save (id: string, session: Session, own: OwnSave | undefined): Promise<void> {
    const isStored = this.#find(id) !== undefined
    const hasOutgrown = isOutgrown(session)
    if (hasOutgrown) restoreLifetime(session)
    const hasNewCookie = this.hasNewCookie(id, session)
    const hasChange = own !== undefined || hasNewCookie
    if (!this.isRolling && isStored && !hasOutgrown && !hasNewCookie) session.cookie.expires = cookieEndOf(session)
    const isUnchanged = (): boolean => !hasChange && !isModified(session)
    this.note(id, session)
    if (!isStored) {
      const isAdmitted = await this.backend.create(id, session, own)
      if (own !== undefined) own.isAdmitted = isAdmitted
      return
    }
    await this.backend.save(id, session, own?.record ?? (hasOutgrown ? 'none' : 'stored'), isUnchanged)
  }

  #find (id: string): StoredSession | undefined {
    return this.#stored.find(stored => stored.id === id)
  }
}

/**
 * An `onRequest` hook behind @fastify/session's: from then on a session that is in the store
 * uses the store as {@link RequestSessions} does. A new session cannot have ended, so the
 * application saves it as it is.
 */
export function watchSession (request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  if (isWithoutSession(request)) Reflect.set(request, 'session', { cookie: request.session?.cookie })
  else if (isInStore(request)) {
    const { backend: { entries } } = sessionsOf(request)
    // In the background: the browser has the session, so that no other request gets it.
    seenSessions.note(entries, request.session).catch(() => {})
  }
  done()
}

/** Whether a session was shortened, and the application has written something into it since. */
function isOutgrown (session: Session): boolean {
  const { fullLifetime, preserved: kept = [] } = noteIn(session)
  return fullLifetime !== undefined && membersIn(session).some(name => !kept.includes(name))
}

/** Whether the session of a request was read from the store. */
function isInStore (request: FastifyRequest): boolean {
  // Outside the path of its cookie a session is empty. An own signer may make the cookie anew each
  // time; then the user tells that the session is stored.
  return request.session?.sessionId !== undefined &&
    (ownRecordIn(request.session) !== null || sessionCookieName(request) !== undefined)
}

/** Whether a request has asked for its session store, or has a session in it. */
export function hasSessions ({ session }: FastifyRequest): boolean {
  return storeOf(session) instanceof RequestSessions
}

export function sessionsOf (request: FastifyRequest): RequestSessions {
  const { sessionStore, session } = request
  const known = storeOf(session)
  if (known instanceof RequestSessions) return known
  const sessions = new RequestSessions(backendOf(request), isOwnStore(sessionStore) ? sessionStore.isRolling : true)
  replaceStore(session, sessionStore, sessions)
  if (isInStore(request)) sessions.note(session.sessionId, session)
  return sessions
}

/** Returns the id of a request's session, or of the one that its cookie names; null without one. */
export function namedIdOf (request: FastifyRequest): string | null {
  const { session } = request
  return sessionsOf(request).isStored(session) ? session.sessionId : namedIdsIn(request)[0] ?? null
}

/** Returns where sessions are, also for a request that has none. */
export function backendOf (request: FastifyRequest): SessionBackend {
  const { sessionStore } = request
  return isOwnStore(sessionStore) ? sessionStore.backendFor(request) : new ExpressSessions(sessionStore)
}

/** The symbols by which sessions refer to their store: one for each copy of @fastify/session. */
const storeSymbols = new WeakMap<object, symbol>()

/**
 * Makes a session, and those that @fastify/session makes from it, use another store. The symbol by
 * which a session refers to its store is found by its value.
 */
function replaceStore (session: Session, present: CallbackStore, sessions: RequestSessions): void {
  const refersToStore = (symbol: symbol): boolean => Reflect.get(session, symbol) === present
  const symbol = storeSymbols.get(Object.getPrototypeOf(session)) ??
    Object.getOwnPropertySymbols(session).find(refersToStore)
  if (symbol === undefined) throw new Error('this version of @fastify/session is not supported; install ^11.1.3')
  storeSymbols.set(Object.getPrototypeOf(session), symbol)
  Reflect.set(session, symbol, sessions)
}

/** The store that a session refers to; undefined before the symbol is known. */
function storeOf (session: Session): unknown {
  const symbol = storeSymbols.get(Object.getPrototypeOf(session))
  return symbol === undefined ? undefined : Reflect.get(session, symbol)
}

/** What an application changes about a cookie. A new lifetime is a new `expires`. */
function membersOf (cookie: Session['cookie']): unknown[] {
  const { expires, originalMaxAge, path, domain, secure, httpOnly, sameSite } = cookie
  return [expires, originalMaxAge, path, domain, secure, httpOnly, sameSite]
}

/** Whether the application's part of a session differs from the store's. */
function isModified (session: Session): boolean {
  return !('isModified' in session && typeof session.isModified === 'function' && session.isModified() === false)
}

function isOwnStore (store: CallbackStore): store is OwnStore {
  return 'backendFor' in store
}

/**
 * The store that @fastify/session asks for a session that no request has in its own hands yet. Of
 * one of the application, the reads wait five seconds and fail with an AuthError; its other calls
 * are the application's, by `request.sessionStore`.
 */
export class OwnStore implements CallbackStore {
  /** Returns what a request uses in its place. */
  readonly backendFor: (request?: FastifyRequest) => SessionBackend
  readonly isRolling: boolean
  readonly #ofApplication: CallbackStore | null

  constructor (backendFor: OwnStore['backendFor'], isRolling: boolean, ofApplication: CallbackStore | null) {
    this.backendFor = backendFor
    this.isRolling = isRolling
    this.#ofApplication = ofApplication
  }

  get (id: string, done?: Done<Session | null>): unknown {
    return done === undefined ? this.#ofApplication?.get(id) : settle(done, this.backendFor().read(id))
  }

  /** Called for a new session in which the application has written something. */
  set (id: string, session: Session, done: Done): unknown {
    if (this.#ofApplication !== null) return this.#ofApplication.set(id, session, done)
    return settle(done, this.backendFor().create(id, session).then(() => {}))
  }

  destroy (id: string, done: Done): unknown {
    if (this.#ofApplication !== null) return this.#ofApplication.destroy(id, done)
    return settle(done, this.backendFor().end(id))
  }
}

function settle<T> (done: Done<T>, answer: Promise<T>): void {
  // The callback runs outside the promise, so that its errors are not reported as errors of the
  // store.
  answer.then(answer => { process.nextTick(done, null, answer) }, (error: unknown) => { process.nextTick(done, error) })
}
