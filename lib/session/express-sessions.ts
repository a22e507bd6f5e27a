import { randomUUID } from 'node:crypto'
import type { Session } from 'fastify'
import { KeyedMutex } from '../base/keyed-mutex.js'
import { TIMEOUT_MS } from '../base/with-timeout.js'
import { AuthError } from '../errors.js'
import { ENDED_MS } from '../store/sessions.js'
import { ExpressEntries } from './express-entries.js'
import { type CallbackStore, SessionEntries, entryId } from './express-store.js'
import { isOver, withOwnLifetime } from './lifetime.js'
import { principalIn } from './record.js'
import {
  MAX_HOPS, type SavedPart, type SessionBackend, type SessionReplacement, type SessionToEnd, type SignedOut, preciseTime
} from './session-backend.js'

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

  async create (id: string, session: Session, { replaced }: SessionReplacement = {}): Promise<boolean> {
    this.entries.noteFirst(id, session)
    await this.#store.writeSession(id, session)
    if (replaced === undefined) return false
    await this.end(replaced, { next: id, until: preciseTime() + SIGN_IN_MS })
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
          signedOutId ??= principalIn(await this.#store.read(next))?.userId ?? null
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

  /** The mark of an ended session; empty for a session that has not ended. */
  async #endMark (id: string): Promise<EndMark> {
    return Object(Object(await this.#store.read(entryId('ended', id))).svcAuthEnd)
  }

  /** Whether a session was ended, or its user signed out, which a sign-in in it is not. */
  async #has (kind: 'ended' | 'signed-out', id: string): Promise<boolean> {
    return await this.#store.read(entryId(kind, id)) !== null
  }
}
