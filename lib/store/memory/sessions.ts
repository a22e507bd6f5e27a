import { Sweeper } from '../../base/sweeper.js'
import {
  ENDED_MS, MAX_LISTED, type EndedSession, type FoundSession, type ListedSession, type NewSession,
  type SessionChange, type SessionUser, type StoredSessions, unwrittenRow
} from '../sessions.js'
import { PENDING_MS } from '../one-time-entries.js'
import { type MemoryEntries, limit } from './entries.js'

/** User and data are text, as in a database: a request sees its session as of its start. */
interface Row extends Omit<NewSession, 'user' | 'data' | 'admits'> {
  readonly userId: string | null
  user: string
  data: string
  seenAt: number
  endedAt: number | null
  isSignedOut: boolean
  replacedBy: string | null
}

/** Keeps sessions in memory. Above the maximum, the oldest anonymous ones are removed. */
export class MemorySessions implements StoredSessions {
  readonly #rows = new Map<string, Row>()
  readonly #anonymous = new Set<string>()
  readonly #entries: MemoryEntries
  readonly #sweeper = new Sweeper(async now => { this.#sweep(now) })

  /** @param entries those that sessions own */
  constructor (entries: MemoryEntries) {
    this.#entries = entries
  }

  async find (idHash: string, now: number): Promise<FoundSession | 'ended' | 'visitor' | null> {
    const row = this.#rows.get(idHash)
    if (row === undefined) return this.#entries.hasAny(idHash, now - PENDING_MS) ? 'visitor' : null
    if (!isOpen(row, now)) return 'ended'
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
    const before = this.#rows.get(replaced) ?? this.#write(unwrittenRow(replaced, createdAt))
    if (before.isSignedOut) return false
    this.#write(session, before.replacedBy)
    before.endedAt ??= createdAt
    before.replacedBy = idHash
    return true
  }

  #write ({ user, data, ...session }: NewSession, replacedBy: string | null = null): Row {
    const { idHash } = session
    const row: Row = {
      ...session,
      userId: user?.userId ?? null,
      user: JSON.stringify(user),
      data: JSON.stringify(data),
      seenAt: session.createdAt,
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
    if (row === undefined || row.endedAt !== null) return
    Object.assign(row, times)
    if (user !== undefined) row.user = JSON.stringify(user)
    if (data !== undefined) row.data = JSON.stringify(data)
  }

  async end (idHash: string, { now, isSignOut }: { now: number, isSignOut: boolean }): Promise<EndedSession | null> {
    if (isSignOut) this.#entries.removeOf(idHash)
    const row = this.#rows.get(idHash)
    if (row === undefined) {
      if (isSignOut) Object.assign(this.#write(unwrittenRow(idHash, now)), { endedAt: now, isSignedOut: true })
      return null
    }
    const { userId, replacedBy } = row
    const wasOpen = isOpen(row, now)
    row.endedAt ??= now
    row.isSignedOut ||= isSignOut
    return { userId, wasOpen, replacedBy }
  }

  async ofUser (userId: string, generation: number, now: number): Promise<ListedSession[]> {
    const listed: ListedSession[] = []
    for (const row of this.#rows.values()) {
      if (row.userId !== userId || !isOpen(row, now)) continue
      const user: SessionUser = JSON.parse(row.user)
      if (user.generation !== generation) continue
      const { idHash, userAgent, createdAt, seenAt, expiresAt } = row
      listed.push({ idHash, userAgent, createdAt, seenAt, expiresAt, proofs: user.proofs })
    }
    return listed.sort((a, b) => b.seenAt - a.seenAt).slice(0, MAX_LISTED)
  }

  #remove (idHash: string): void {
    this.#rows.delete(idHash)
    this.#anonymous.delete(idHash)
  }

  #sweep (now: number): void {
    for (const [idHash, { expiresAt, endedAt }] of this.#rows) {
      if ((endedAt === null ? expiresAt : endedAt + ENDED_MS) <= now) this.#remove(idHash)
    }
  }
}

function isOpen ({ endedAt, expiresAt }: Row, now: number): boolean {
  return endedAt === null && expiresAt > now
}
