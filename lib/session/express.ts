import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { Session } from 'fastify'
import { KeyedMutex, TIMEOUT_MS, withTimeout } from '../base/concurrency.js'
import { digestOf } from '../base/values.js'
import { AuthError } from '../errors.js'
import { hasEnded } from './at-provider.js'
import { isOver, noteIn, withoutMaxAge } from './lifetime.js'
import {
  MAX_HOPS, type OwnedEntries, type SavedPart, type SessionBackend, type SessionReplacement, type SessionToEnd,
  type SignedOut, ownRecordIn, preciseTime
} from './record.js'
import {
  ENDED_MS, type EntryContent, type EntryKey, type OneTimeEntry, PENDING_MS, type ProviderEnd, type ProviderSession
} from './store.js'

/** What the mark of an ended session says of the sign-in that has replaced it. */
interface EndMark {
  /** The id of the new session. */
  next?: string
  /** When the sign-in is over at the latest, by {@link preciseTime}. */
  until?: number
}

/** The longest time from the mark of the replaced session to the end of a sign-in. */
const SIGN_IN_MS = 2 * TIMEOUT_MS

/** Runs the saves of one session one after the other, so that none overwrites another's part. */
const saves = new KeyedMutex()

/** Runs the ends of one session one after the other: of sign-outs at a time, one announces it. */
const ends = new KeyedMutex()

/**
 * Keeps sessions in an express-session compatible store, which can read, write and remove an entry
 * and no more: what must not happen beside something else is looked for after the write.
 *
 * @fastify/session saves a session when a request is answered, also after another request has
 * signed the user out: the session would exist again. Therefore the end of a session writes a mark,
 * and every save looks for it afterwards. The mark is written before the session is removed, so a
 * late save is either removed with the session or finds the mark.
 */
export class ExpressSessions implements SessionBackend {
  readonly entries: ExpressEntries
  readonly #store: SessionEntries

  constructor (store: CallbackStore) {
    this.#store = new SessionEntries(store)
    this.entries = new ExpressEntries(this.#store)
  }

  async read (id: string): Promise<Session | null> {
    const session = await this.#store.read(id)
    if (session === null || isOver(session)) return null
    this.entries.noteFirst(id, session)
    return withOwnLifetime(session)
  }

  async create (
    id: string, session: Session, { replaced, onlyOpen = false }: SessionReplacement = {}
  ): Promise<boolean> {
    this.entries.noteFirst(id, session)
    await this.#store.writeSession(id, session)
    if (replaced === undefined) return false
    const mark = { next: id, until: preciseTime() + SIGN_IN_MS }
    await (onlyOpen ? this.#endOpen(replaced, mark) : this.end(replaced, mark))
    // Another sign-in may replace the session meanwhile, as when a form is sent twice; a sign-out
    // wins.
    if (await this.#has('signed-out', replaced)) throw new AuthError('invalid_state')
    // In the background: a sign-out that comes from now on with the replaced cookie does not end
    // the new session.
    const overAt = preciseTime()
    ends.run(replaced, () => this.#store.write(entryId('signed-in', id), { overAt }, SIGN_IN_MS)).catch(() => {})
    return false
  }

  async save (id: string, session: Session, part: SavedPart): Promise<void> {
    await saves.run(id, async () => {
      const present = await this.#store.read(id)
      // It has ended, or it expired.
      if (present === null) return
      const { svcAuth, ...application } = session
      const own = part === 'stored' ? present.svcAuth : part
      const merged = { ...application, ...(own !== undefined && own !== 'none' && { svcAuth: own }) }
      await this.#store.writeSession(id, merged, async () => {
        if (await this.#has('ended', id)) await this.#store.remove(id)
      })
    })
  }

  async remove (id: string): Promise<void> {
    await this.#store.remove(id)
  }

  async replacementOf (id: string): Promise<Session | null> {
    if (await this.#store.read(id) !== null) return null
    let { next } = await this.#endMark(id)
    for (let hops = 0; next !== undefined && hops < MAX_HOPS; hops++) {
      const session = await this.read(next)
      if (session !== null) return session
      ;({ next } = await this.#endMark(next))
    }
    return null
  }

  async end (id: string, mark: EndMark = {}): Promise<void> {
    await this.#store.write(entryId('ended', id), { svcAuthEnd: mark }, ENDED_MS, () => this.#store.remove(id))
  }

  /**
   * A sign-in that is under way looks for the note after it has written its session, so one of the
   * two sees the other. Of two calls in different processes, the one whose note is the last signs
   * the user out; a store without a conditional write allows no more.
   */
  async signOut ({ id, userId }: SessionToEnd): Promise<SignedOut | null> {
    return ends.run(id, async () => {
      const note = entryId('signed-out', id)
      const isThere = await this.#store.read(id) !== null
      const isNoted = await this.#store.read(note) !== null
      const by = randomUUID()
      // The note of another process stays: it tells that process that it is the one.
      if (!isNoted) await this.#store.write(note, { by }, ENDED_MS)
      let signedOutId = userId
      let next: string | undefined
      try {
        ({ next } = await this.#endMark(id))
        if (next !== undefined) {
          signedOutId ??= ownRecordIn(await this.#store.read(next))?.principal.userId ?? null
          await this.end(next)
        }
        await this.end(id, next === undefined ? {} : { next })
      } catch (error) {
        // The note of another sign-out stays.
        if (!isNoted) await this.#store.remove(note).catch(() => {})
        throw error
      }
      const last = await this.#store.read(note)
      const isEndedHere = (isThere || next !== undefined) && !isNoted && Object(last).by === by
      return isEndedHere && signedOutId !== null ? { userId: signedOutId, isRecorded: false } : null
    })
  }

  async signOutReplaced (id: string, arrivedAt: number): Promise<SignedOut | null> {
    const isBeside = await ends.run(id, async () => {
      const { next, until } = await this.#endMark(id)
      if (next === undefined) return false
      const { overAt = until } = Object(await this.#store.read(entryId('signed-in', next)))
      return arrivedAt < overAt
    })
    return isBeside ? this.signOut({ id, userId: null }) : null
  }

  /** A store of the application does not find these sessions: each is refused when it comes. */
  async endAtProvider ({ hash }: ProviderEnd, lifetime: number): Promise<null> {
    await this.#store.write(entryId('ended-at-provider', hash), { endedAt: Date.now() }, lifetime)
    return null
  }

  async hasEndedAtProvider (began: ProviderSession): Promise<boolean> {
    return hasEnded(began, async hash => {
      const note = await this.#store.read(entryId('ended-at-provider', hash))
      return note && Number(Object(note).endedAt)
    })
  }

  /** Ends a session that is open. Of two calls in different processes, both may succeed. */
  async #endOpen (id: string, mark: EndMark): Promise<void> {
    await ends.run(id, async () => {
      if (await this.#has('ended', id)) throw new AuthError('invalid_state')
      await this.end(id, mark)
    })
  }

  /** The mark of an ended session; empty for a session that has not ended. */
  async #endMark (id: string): Promise<EndMark> {
    return Object(Object(await this.#store.read(entryId('ended', id))).svcAuthEnd)
  }

  /** Whether a session was ended, or its user signed out, which a sign-in in it is not. */
  async #has (kind: 'ended' | 'signed-out', id: string): Promise<boolean> {
    return await this.#store.read(entryId(kind, id)) !== null
  }
}

/** Returns a session of a store of the application with the lifetime that it was saved with. */
function withOwnLifetime (session: Session): Session {
  if (session.svcAuth?.until === undefined) return session
  // A store in memory may hand out the session that was saved, whose cookie computes its members.
  const cookie: Session['cookie'] = JSON.parse(JSON.stringify(session.cookie))
  return { ...session, cookie: withoutMaxAge(cookie) }
}

interface PendingEntry extends Pick<OneTimeEntry, 'owner' | 'content'> {
  attempts: number
  /** Set by the request that takes it. */
  takenBy?: string
  takenAt?: number
}

/** Runs changes of one entry, or of one list, one after the other. */
const mutex = new KeyedMutex()

/**
 * Keeps what sessions own beside them in an express-session compatible store. Each method is atomic
 * in this process.
 */
export class ExpressEntries implements OwnedEntries {
  readonly #store: SessionEntries
  /** The entries that sessions were saved for, as hashes by owner: no list has them at first. */
  readonly #firstOf = new Map<string, string>()

  constructor (store: SessionEntries) {
    this.#store = store
  }

  noteFirst (id: string, session: Session): void {
    const { firstEntry } = noteIn(session)
    if (firstEntry !== undefined) this.#firstOf.set(digestOf(id), firstEntry)
  }

  async put ({ hash, kind, owner, content }: OneTimeEntry, most: number): Promise<void> {
    const id = idOf(kind, hash)
    await mutex.run(id, () => this.#write(id, { owner, content, attempts: 0 }))
    const first = this.#firstOf.get(owner)
    if (first === hash) return
    const list = entryId('started', `${kind} ${owner}`)
    await mutex.run(list, async () => {
      const { started: earlier = first === undefined ? [] : [first] }: { started?: string[] } =
        Object(await this.#store.read(list))
      const started = [...earlier.filter(other => other !== hash), hash]
      const tooMany = started.splice(0, started.length - most)
      for (const oldest of tooMany) await this.#store.remove(idOf(kind, oldest))
      await this.#store.write(list, { started }, PENDING_MS)
    })
  }

  async find ({ hash, kind, owner }: EntryKey): Promise<EntryContent | null> {
    const entry = await this.#read(idOf(kind, hash), [owner])
    return entry && entry.content
  }

  async attempt ({ hash, kind, owner }: EntryKey, most: number): Promise<EntryContent | null> {
    const id = idOf(kind, hash)
    return mutex.run(id, async () => {
      const entry = await this.#read(id, [owner])
      if (entry === null || entry.attempts >= most) return null
      await this.#write(id, { ...entry, attempts: entry.attempts + 1 })
      return entry.content
    })
  }

  /** Of several calls in different processes, the one that claims the entry last gets it. */
  async take (hash: string, kind: string, owners: readonly string[]): Promise<EntryContent | null> {
    const id = idOf(kind, hash)
    return mutex.run(id, async () => {
      const entry = await this.#read(id, owners)
      return entry !== null && await this.#claim(id, entry) ? entry.content : null
    })
  }

  async takenAt ({ hash, kind, owner }: EntryKey): Promise<number | null> {
    const entry = await this.#pending(idOf(kind, hash))
    return entry?.owner === owner ? entry.takenAt ?? null : null
  }

  /**
   * Claims an entry for one of several processes, as far as a store without an atomic removal can
   * tell. Waits twice as long as the write took before it reads the claim again: a process that saw
   * the entry unclaimed has overwritten it by then.
   */
  async #claim (id: string, entry: PendingEntry): Promise<boolean> {
    const takenBy = randomUUID()
    const start = performance.now()
    await this.#write(id, { ...entry, content: {}, takenBy, takenAt: Date.now() })
    await wait(Math.min(2 * (performance.now() - start), 100))
    return (await this.#pending(id))?.takenBy === takenBy
  }

  /** Reads an entry of one of these owners that is not taken. */
  async #read (id: string, owners: readonly string[]): Promise<PendingEntry | null> {
    const entry = await this.#pending(id)
    return entry !== null && entry.takenBy === undefined && owners.includes(entry.owner) ? entry : null
  }

  async #pending (id: string): Promise<PendingEntry | null> {
    return Object(await this.#store.read(id)).pending ?? null
  }

  async #write (id: string, pending: PendingEntry): Promise<void> {
    await this.#store.write(id, { pending }, PENDING_MS)
  }
}

function idOf (kind: string, hash: string): string {
  return entryId('pending', `${kind} ${hash}`)
}

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
 * one has started; the mark that a session has ended; the notes that its user signed out, that the
 * sign-in is over that has written it, and that a session has ended at its provider.
 */
type EntryKind = 'pending' | 'started' | 'ended' | 'signed-out' | 'signed-in' | 'ended-at-provider'

/**
 * Returns the id of an entry: 36 characters, because some stores have a column of that width for
 * session ids. A client cannot use it as a session id, because cookies are signed.
 *
 * @param key a session id, the kind and the hash of what a session owns, or the hash of an end
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
