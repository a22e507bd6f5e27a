import type { Session } from 'fastify'
import { KeyedMutex } from '../base/keyed-mutex.js'
import { AuthError } from '../errors.js'
import {
  SIGN_IN_MS, endSession, finishReplacement, hasEnded, hasSignedOut, isReplacedSince, preciseTime, signOutOf
} from './ended-sessions.js'
import type { SavedPart, SessionBackend, SessionReplacement, SessionToEnd, SignedOut } from './session-backend.js'
import { ExpressEntries } from './express-entries.js'
import { isOver, withOwnLifetime } from './lifetime.js'
import { type CallbackStore, SessionEntries } from './express-store.js'

/** Runs the saves of one session one after the other, so that none overwrites another's part. */
const saves = new KeyedMutex()

/**
 * Keeps sessions in an express-session compatible store, which can read, write and remove an entry
 * and no more: what must not happen beside something else is looked for after the write.
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
    await endSession(this.#store, replaced, { next: id, until: preciseTime() + SIGN_IN_MS })
    // Another sign-in may replace the session meanwhile, as when a form is sent twice; a sign-out
    // wins.
    if (await hasSignedOut(this.#store, replaced)) throw new AuthError('invalid_state')
    finishReplacement(this.#store, replaced, id)
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
        if (await hasEnded(this.#store, id)) await this.#store.remove(id)
      })
    })
  }

  async remove (id: string): Promise<void> {
    await this.#store.remove(id)
  }

  async end (id: string): Promise<void> {
    await endSession(this.#store, id)
  }

  async signOut ({ id, userId }: SessionToEnd): Promise<SignedOut | null> {
    const ended = await signOutOf(this.#store, id)
    const endedUserId = ended && (userId ?? ended.nextUserId)
    return endedUserId === null ? null : { userId: endedUserId, isRecorded: false }
  }

  async signOutReplaced (id: string, arrivedAt: number): Promise<SignedOut | null> {
    const isBeside = await isReplacedSince(this.#store, id, arrivedAt)
    return isBeside ? this.signOut({ id, userId: null }) : null
  }
}
