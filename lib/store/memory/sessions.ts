import { Sweeper } from '../../base/sweeper.js'
import type { PendingContent } from '../../schema/sessions.js'
import {
  ENDED_MS, MAX_LISTED, MAX_PENDING, PENDING_MS, type EndedSession, type FoundSession, type ListedSession,
  type NewPendingSignIn, type NewSession, type SessionChange, type SessionUser, type StoredSessions,
  visitorRow
} from '../sessions.js'

/** The maximum number of anonymous sessions, and of pending sign-ins: any client can cause them. */
const MAX_ANONYMOUS = 50_000

/**
 * A session. User and data are kept as text, so that sessions behave as in a database: a request
 * sees its session as of its start, without the changes of other requests.
 */
interface Row {
  readonly userId: string | null
  readonly userAgent: string | null
  readonly createdAt: number
  user: string
  data: string
  seenAt: number
  expiresAt: number
  endedAt: number | null
  isSignedOut: boolean
  replacedBy: string | null
}

interface PendingRow extends Omit<NewPendingSignIn, 'content'> {
  content: string
}

/**
 * Keeps sessions in the memory of one process. Above the maximum, the oldest anonymous sessions and
 * pending sign-ins are removed.
 */
export class MemorySessions implements StoredSessions {
  readonly #rows = new Map<string, Row>()
  readonly #anonymous = new Set<string>()
  readonly #pending = new Map<string, PendingRow>()
  /** The pending sign-ins of each session, the oldest first. */
  readonly #started = new Map<string, PendingRow[]>()
  readonly #sweeper = new Sweeper(async now => { this.#sweep(now) })

  async find (idHash: string, now: number): Promise<FoundSession | null> {
    const row = this.#rows.get(idHash)
    if (row === undefined || !isOpen(row, now)) return null
    const { user, data, createdAt, seenAt, expiresAt } = row
    return { user: JSON.parse(user), data: JSON.parse(data), createdAt, seenAt, expiresAt }
  }

  async insert (session: NewSession, replaced: string | null): Promise<boolean> {
    const { idHash, data, createdAt, expiresAt } = session
    this.#sweeper.start(createdAt)
    if (this.#rows.has(idHash)) {
      await this.update(idHash, { data, expiresAt })
      return true
    }
    if (replaced === null) {
      this.#write(session)
      return true
    }
    const before = this.#rows.get(replaced) ?? this.#write(visitorRow(replaced, session))
    if (before.isSignedOut) return false
    this.#write(session, before.replacedBy)
    before.endedAt ??= createdAt
    before.replacedBy = idHash
    return true
  }

  #write (session: NewSession, replacedBy: string | null = null): Row {
    const { idHash, user, data, userAgent, createdAt, expiresAt } = session
    const row: Row = {
      userId: user?.userId ?? null,
      userAgent,
      createdAt,
      user: JSON.stringify(user),
      data: JSON.stringify(data),
      seenAt: createdAt,
      expiresAt,
      endedAt: null,
      isSignedOut: false,
      replacedBy
    }
    this.#rows.set(idHash, row)
    if (user === null) limit(this.#anonymous.add(idHash), oldest => { this.#remove(oldest) })
    return row
  }

  async update (idHash: string, { user, data, ...times }: SessionChange): Promise<void> {
    const row = this.#rows.get(idHash)
    if (row === undefined) return
    Object.assign(row, times)
    if (user !== undefined) row.user = JSON.stringify(user)
    if (data !== undefined) row.data = JSON.stringify(data)
  }

  async end (
    idHash: string,
    { now, isSignOut }: { now: number, isSignOut: boolean }
  ): Promise<EndedSession | null> {
    if (isSignOut) for (const pending of this.#startedIn(idHash)) this.#forget(pending)
    const row = this.#rows.get(idHash)
    if (row === undefined) return null
    const { userId, replacedBy } = row
    const wasOpen = isOpen(row, now)
    row.endedAt ??= now
    row.isSignedOut ||= isSignOut
    return { userId, wasOpen, replacedBy }
  }

  async ofUser (userId: string, generation: number, now: number): Promise<ListedSession[]> {
    const listed: ListedSession[] = []
    for (const [idHash, row] of this.#rows) {
      if (row.userId !== userId || !isOpen(row, now)) continue
      const user: SessionUser = JSON.parse(row.user)
      if (user.generation !== generation) continue
      const { userAgent, createdAt, seenAt, expiresAt } = row
      listed.push({ idHash, userAgent, createdAt, seenAt, expiresAt, proofs: user.proofs })
    }
    return listed.sort((a, b) => b.seenAt - a.seenAt).slice(0, MAX_LISTED)
  }

  async addPending ({ content, ...pending }: NewPendingSignIn): Promise<void> {
    const { stateHash, sessionHash, startedAt } = pending
    this.#sweeper.start(startedAt)
    const row = { ...pending, content: JSON.stringify(content) }
    const started = [...this.#startedIn(sessionHash), row]
    this.#started.set(sessionHash, started)
    this.#pending.set(stateHash, row)
    for (const oldest of started.slice(0, -MAX_PENDING)) this.#forget(oldest)
    limit(this.#pending, oldest => { this.#forget(oldest) })
  }

  async hasPending (sessionHash: string, since: number): Promise<boolean> {
    return !this.#rows.has(sessionHash) && this.#startedIn(sessionHash).some(({ startedAt }) => startedAt > since)
  }

  async takePending (stateHash: string, sessionHashes: readonly string[]): Promise<PendingContent | null> {
    const pending = this.#pending.get(stateHash)
    if (pending === undefined || !sessionHashes.includes(pending.sessionHash)) return null
    this.#forget(pending)
    return JSON.parse(pending.content)
  }

  #startedIn (sessionHash: string): readonly PendingRow[] {
    return this.#started.get(sessionHash) ?? []
  }

  #forget (pending: PendingRow): void {
    const { stateHash, sessionHash } = pending
    this.#pending.delete(stateHash)
    const left = this.#startedIn(sessionHash).filter(other => other !== pending)
    if (left.length > 0) this.#started.set(sessionHash, left)
    else this.#started.delete(sessionHash)
  }

  #remove (idHash: string): void {
    this.#rows.delete(idHash)
    this.#anonymous.delete(idHash)
  }

  #sweep (now: number): void {
    for (const [idHash, { expiresAt, endedAt }] of this.#rows) {
      if ((endedAt === null ? expiresAt : endedAt + ENDED_MS) <= now) this.#remove(idHash)
    }
    for (const pending of this.#pending.values()) {
      if (pending.startedAt <= now - PENDING_MS) this.#forget(pending)
    }
  }
}

function isOpen ({ endedAt, expiresAt }: Row, now: number): boolean {
  return endedAt === null && expiresAt > now
}

/** Removes the oldest of more than the maximum. */
function limit<T> (entries: { size: number, values: () => Iterable<T> }, remove: (oldest: T) => void): void {
  const [oldest] = entries.values()
  if (oldest !== undefined && entries.size > MAX_ANONYMOUS) remove(oldest)
}
