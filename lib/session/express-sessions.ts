import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { Session } from 'fastify'
import { KeyedMutex } from '../base/keyed-mutex.js'
import { AuthError } from '../errors.js'
import {
  SIGN_IN_MS, endSession, finishReplacement, hasEnded, hasSignedOut, isReplacedSince, preciseTime, signOutOf
} from './ended-sessions.js'
import type {
  EndingSession, Entrance, LeavingSession, SavedPart, SessionBackend, SignedOut
} from './session-backend.js'
import { isOver, withOwnLifetime } from './lifetime.js'
import type { PendingSignIn } from './pending-sign-in.js'
import { type CallbackStore, SessionEntries, digestOf, entryId } from './session-store.js'
import { MAX_PENDING, PENDING_MS } from '../store/one-time-entries.js'
import { firstStartedIn } from './visitor.js'

/** An entry of a pending sign-in in the session store. */
interface PendingEntry extends PendingSignIn {
  /** A digest of the id of the session that started it. */
  session: string
  /** Set by the callback that takes it. */
  takenBy?: string
}

/** Runs the saves of one session one after the other, so that none overwrites another's part. */
const saves = new KeyedMutex()

/** Runs changes of one list, and uses of one state, one after the other. */
const mutex = new KeyedMutex()

/**
 * Keeps sessions in an express-session compatible store, which can read, write and remove an entry
 * and no more: what must not happen beside something else is looked for after the write.
 */
export class ExpressSessions implements SessionBackend {
  readonly #entries: SessionEntries

  constructor (store: CallbackStore) {
    this.#entries = new SessionEntries(store)
  }

  async read (id: string): Promise<Session | null> {
    const session = await this.#entries.read(id)
    return session === null || isOver(session) ? null : withOwnLifetime(session)
  }

  async create (id: string, session: Session, { replaced }: Entrance = {}): Promise<boolean> {
    await this.#entries.writeSession(id, session)
    if (replaced === undefined) return false
    await endSession(this.#entries, { ...replaced, next: id, until: preciseTime() + SIGN_IN_MS })
    // Another sign-in may replace the session meanwhile, as when a form is sent twice; a sign-out
    // wins.
    if (await hasSignedOut(this.#entries, replaced.id)) throw new AuthError('invalid_state')
    finishReplacement(this.#entries, replaced.id, id)
    return false
  }

  async save (id: string, session: Session, part: SavedPart): Promise<void> {
    await saves.run(id, async () => {
      const present = await this.#entries.read(id)
      // It has ended, or it expired.
      if (present === null) return
      const { svcAuth, ...application } = session
      const own = part === 'stored' ? present.svcAuth : part
      const merged = { ...application, ...(own !== undefined && own !== 'none' && { svcAuth: own }) }
      await this.#entries.writeSession(id, merged, async () => {
        if (await hasEnded(this.#entries, id)) await this.#entries.remove(id)
      })
    })
  }

  async remove (id: string): Promise<void> {
    await this.#entries.remove(id)
  }

  async end (session: EndingSession): Promise<void> {
    await endSession(this.#entries, session)
  }

  async signOut ({ id, userId }: LeavingSession): Promise<SignedOut | null> {
    const ended = await signOutOf(this.#entries, { id, isOfUser: userId !== null })
    const endedUserId = ended && (userId ?? ended.nextUserId)
    return endedUserId === null ? null : { userId: endedUserId, isRecorded: false }
  }

  async signOutReplaced (id: string, arrivedAt: number): Promise<SignedOut | null> {
    const isBeside = await isReplacedSince(this.#entries, id, arrivedAt)
    return isBeside ? this.signOut({ id, userId: null }) : null
  }

  async addPending (session: Session & { sessionId: string }, pending: PendingSignIn, isFirst: boolean): Promise<void> {
    const id = entryId('pending', pending.state)
    const entry: PendingEntry = { ...pending, session: digestOf(session.sessionId) }
    await this.#entries.write(id, { pending: entry }, PENDING_MS)
    if (!isFirst) await this.#limitStarted(session, id)
  }

  /** Removes the oldest of more than eight sign-ins that a session has started. */
  async #limitStarted (session: Session & { sessionId: string }, pendingId: string): Promise<void> {
    const id = entryId('started', session.sessionId)
    await mutex.run(id, async () => {
      const first = firstStartedIn(session)
      const earlier = startedIn(await this.#entries.read(id)) ?? (first === null ? [] : [first])
      const started = [...earlier, pendingId]
      const tooMany = started.length > MAX_PENDING ? started.shift() : undefined
      if (tooMany !== undefined) await this.#entries.remove(tooMany)
      await this.#entries.write(id, { started }, PENDING_MS)
    })
  }

  /**
   * Of several requests with one state in this process, one gets the sign-in; of several in
   * different processes, the one that claims it last, as far as a store without an atomic removal
   * can tell.
   */
  async takePending (state: string, sessions: readonly string[]): Promise<PendingSignIn | null> {
    const id = entryId('pending', state)
    return mutex.run(id, async () => {
      const pending = pendingIn(await this.#entries.read(id))
      if (pending === null || pending.takenBy !== undefined || !sessions.includes(pending.session)) return null
      if (!await this.#claim(id, pending)) return null
      await this.#entries.remove(id)
      return pending
    })
  }

  /**
   * Claims a pending sign-in for one of several processes. Waits twice as long as the write took
   * before it reads the claim again: a process that saw the entry unclaimed has overwritten it by
   * then.
   */
  async #claim (id: string, pending: PendingEntry): Promise<boolean> {
    const takenBy = randomUUID()
    const start = performance.now()
    await this.#entries.write(id, { pending: { ...pending, takenBy } }, PENDING_MS)
    await wait(Math.min(2 * (performance.now() - start), 100))
    return pendingIn(await this.#entries.read(id))?.takenBy === takenBy
  }
}

function pendingIn (entry: Session | null): PendingEntry | null {
  return entry !== null && 'pending' in entry ? Object(entry.pending) : null
}

function startedIn (entry: Session | null): string[] | null {
  return entry !== null && 'started' in entry && Array.isArray(entry.started) ? entry.started : null
}
