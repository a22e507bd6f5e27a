import type { Session } from 'fastify'
import { digestOf } from '../base/digest.js'
import { TIMEOUT_MS, withTimeout } from '../base/with-timeout.js'
import { AuthError } from '../errors.js'

export type Done<T = void> = (error?: unknown, answer?: T) => void

/** What the plugin uses of an express-session compatible store. */
export interface CallbackStore {
  /** Without a callback, for an application whose store returns promises. */
  get (id: string, done?: Done<Session | null>): unknown
  set (id: string, session: Session, done: Done): unknown
  destroy (id: string, done: Done): unknown
}

/**
 * What the plugin keeps beside the sessions in their store: what sessions own, and the list of what
 * one has started; the mark that a session has ended; the notes that its user signed out, and that
 * the sign-in is over that has written it.
 */
type EntryKind = 'pending' | 'started' | 'ended' | 'signed-out' | 'signed-in'

/**
 * Returns the id of an entry: 36 characters, because some stores have a column of that width for
 * session ids. A client cannot use it as a session id, because cookies are signed.
 *
 * @param key a session id, or the kind and the hash of what a session owns
 */
export function entryId (kind: EntryKind, key: string): string {
  return `svc-${digestOf(`${kind}:${key}`)}`
}

/**
 * A session store with promises, which rejects with AuthError `unavailable` when the store fails.
 * Its calls in a row wait five seconds together, so that a store that hangs holds a request no
 * longer, however many calls the request makes.
 */
export class SessionEntries {
  readonly #store: CallbackStore
  #left = TIMEOUT_MS
  #lastAnswer = 0

  constructor (store: CallbackStore) {
    this.#store = store
  }

  async read (id: string): Promise<Session | null> {
    return await this.#ask<Session | null | undefined>(done => { this.#store.get(id, done) }, ignoreMissing) ?? null
  }

  /**
   * Writes an entry of the plugin.
   *
   * @param lifetime milliseconds; stores take them from the member `cookie`, as for a session
   */
  async write (id: string, content: object, lifetime: number, afterwards?: () => Promise<void>): Promise<void> {
    const cookie = { originalMaxAge: lifetime, maxAge: lifetime, expires: new Date(Date.now() + lifetime) }
    await this.writeSession(id, { ...content, cookie }, afterwards)
  }

  /** @param afterwards runs after the write, also when the store answers too late for the caller */
  async writeSession (id: string, session: Session, afterwards?: () => Promise<void>): Promise<void> {
    let isLate = false
    const write = (done: Done): void => {
      this.#store.set(id, session, error => {
        done(error)
        if (isLate && !error) afterwards?.().catch(() => {})
      })
    }
    try {
      await this.#ask(write)
    } catch (error) {
      isLate = true
      throw error
    }
    await afterwards?.()
  }

  async remove (id: string): Promise<void> {
    await this.#ask(done => { this.#store.destroy(id, done) }, ignoreMissing)
  }

  async #ask<T = void> (call: (done: Done<T>) => void, ignore?: (error: unknown) => undefined): Promise<T | undefined> {
    const start = performance.now()
    if (start - this.#lastAnswer > TIMEOUT_MS) this.#left = TIMEOUT_MS
    try {
      return await answerWithin(this.#left, call).catch(ignore)
    } catch (error) {
      throw sessionsUnavailable(error)
    } finally {
      this.#lastAnswer = performance.now()
      this.#left = Math.max(0, this.#left - (this.#lastAnswer - start))
    }
  }
}

/** Waits for a callback. A store in memory answers at once, without a timer. */
function answerWithin<T> (milliseconds: number, call: (done: Done<T>) => void): Promise<T | undefined> {
  let isAnswered = false
  const answer = new Promise<T | undefined>((resolve, reject) => {
    call((error, answer) => {
      isAnswered = true
      error ? reject(error) : resolve(answer)
    })
  })
  return isAnswered ? answer : withTimeout(milliseconds, answer, 'the session store')
}

/** Ignores the error by which some stores report a missing entry. */
function ignoreMissing (error: unknown): undefined {
  if (typeof error === 'object' && error !== null && 'code' in error && error.code === 'ENOENT') return
  throw error
}

export function sessionsUnavailable (cause: unknown): AuthError {
  return new AuthError('unavailable', { message: 'Sessions cannot be reached at the moment; try again later.', cause })
}
