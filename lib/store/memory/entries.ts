import { BoundedMap } from '../../base/bounded-map.js'
import { lazilyBy } from '../../base/once.js'
import { Sweeper } from '../../base/sweeper.js'
import {
  type EntryContent, type EntryKey, type OneTimeEntries, type OneTimeEntry, lifetimeOf
} from '../one-time-entries.js'

/** The maximum of entries of a kind, and of anonymous sessions: any client can cause them. */
const MAX_ANONYMOUS = 50_000

const MAX_TAKEN = 1000

interface Row extends Omit<OneTimeEntry, 'content'> {
  /** As text, so that entries behave as in a database. */
  readonly content: string
  attempts: number
}

const WARN_INTERVAL_MS = 60 * 60_000

/** Keeps one-time entries in memory. Above the maximum of a kind, its oldest are removed. */
export class MemoryEntries implements OneTimeEntries {
  readonly #rows = new Map<string, Row>()
  /** The entries of each owner, the oldest first. */
  readonly #owned = new Map<string, Row[]>()
  /** Each kind on its own: what any client can cause must not push out the records of a use. */
  readonly #ofKind = lazilyBy((_kind: string) => ({ rows: new Set<Row>(), warnedAt: -Infinity }))
  /** Those that were taken lately. */
  readonly #taken = new BoundedMap<{ kind: string, owner: string, at: number }>(MAX_TAKEN)
  readonly #sweeper = new Sweeper(async now => { this.#sweep(now) })
  /** The logger of the application, which is told when entries are removed early. */
  log: { warn (context: object, message: string): void } | undefined

  async put ({ content, ...entry }: OneTimeEntry, most: number): Promise<void> {
    const { hash, owner, kind, startedAt } = entry
    this.#sweeper.start(startedAt)
    const row = { ...entry, content: JSON.stringify(content), attempts: 0 }
    const replaced = this.#rows.get(hash)
    if (replaced !== undefined) this.#remove(replaced)
    const owned = [...this.#of(owner), row]
    this.#owned.set(owner, owned)
    this.#rows.set(hash, row)
    for (const oldest of owned.filter(other => other.kind === kind).slice(0, -most)) this.#remove(oldest)
    const ofKind = this.#ofKind(kind)
    limit(ofKind.rows.add(row), oldest => {
      this.#remove(oldest)
      if (Math.abs(startedAt - ofKind.warnedAt) < WARN_INTERVAL_MS) return
      ofKind.warnedAt = startedAt
      this.log?.warn({ kind }, `There are ${MAX_ANONYMOUS} entries of a kind in memory, so the oldest are removed: ` +
        'perhaps an attack; a store with a database keeps more')
    })
  }

  async find ({ hash, kind, owner }: EntryKey): Promise<EntryContent | null> {
    const row = this.#find(hash, kind)
    return row?.owner === owner ? JSON.parse(row.content) : null
  }

  async take (hash: string, kind: string, owners: readonly string[]): Promise<EntryContent | null> {
    const row = this.#find(hash, kind)
    if (row === undefined || !owners.includes(row.owner)) return null
    this.#remove(row)
    this.#taken.set(hash, { kind, owner: row.owner, at: Date.now() })
    return JSON.parse(row.content)
  }

  async takenAt ({ hash, kind, owner }: EntryKey): Promise<number | null> {
    const taken = this.#taken.get(hash)
    return taken?.kind === kind && taken.owner === owner ? taken.at : null
  }

  async attempt ({ hash, kind, owner }: EntryKey, most: number): Promise<EntryContent | null> {
    const row = this.#find(hash, kind)
    if (row?.owner !== owner || row.attempts >= most) return null
    row.attempts++
    return JSON.parse(row.content)
  }

  async count (owner: string, kind: string, since: number): Promise<number> {
    return this.#of(owner).filter(row => row.kind === kind && row.startedAt > since).length
  }

  hasAny (owner: string, since: number): boolean {
    return this.#of(owner).some(row => row.startedAt > since)
  }

  removeOf (owner: string): void {
    for (const row of this.#of(owner)) this.#remove(row)
  }

  #find (hash: string, kind: string): Row | undefined {
    const row = this.#rows.get(hash)
    return row?.kind === kind ? row : undefined
  }

  #of (owner: string): readonly Row[] {
    return this.#owned.get(owner) ?? []
  }

  #remove (row: Row): void {
    this.#rows.delete(row.hash)
    this.#ofKind(row.kind).rows.delete(row)
    const left = this.#of(row.owner).filter(other => other !== row)
    if (left.length > 0) this.#owned.set(row.owner, left)
    else this.#owned.delete(row.owner)
  }

  #sweep (now: number): void {
    for (const row of this.#rows.values()) {
      if (row.startedAt <= now - lifetimeOf(row.kind)) this.#remove(row)
    }
  }
}

export function limit<T> (entries: { size: number, values: () => Iterable<T> }, remove: (oldest: T) => void): void {
  const [oldest] = entries.values()
  if (oldest !== undefined && entries.size > MAX_ANONYMOUS) remove(oldest)
}
