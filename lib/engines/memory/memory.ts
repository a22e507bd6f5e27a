import {
  type Account, type AccountStatus, type Credential, type Factor, type Link, type User, generationOf, isBlocked, linkAt,
  linksOf, statusOf, userOf
} from '../../accounts/account.js'
import {
  type AccountQuery, type AuthStore, type CreateHook, type Rule, type UniqueKeys, type UserQuery, type UsersFilter,
  type UsersQuery, refusalBy
} from '../../accounts/auth-store.js'
import { Sweeper, lazilyBy } from '../../base/concurrency.js'
import { BoundedMap } from '../../base/values.js'
import {
  ENDED_MS, type EndedSession, type EntryContent, type EntryKey, type FoundSession, type ListedSession, MAX_LISTED,
  type NewSession, type OneTimeEntries, type OneTimeEntry, PENDING_MS, type ProviderEnd, RECORDS_OF_USE, RECORD_MS,
  type SessionChange, type SessionUser, type ShowingSession, type StoredSessions, unwrittenRow
} from '../../session/store.js'
import { applyRule, factorExists, makesUser } from '../apply-rule.js'

type Listed = Pick<User, 'userId' | 'createdAt'>

/**
 * Keeps users in memory: they are lost when the process ends, and no other process sees them. For
 * tests and first steps.
 *
 * Each method runs without a pause, so that no call sees another's half-done work. Values are
 * copied when they are stored and when they are returned.
 */
export class MemoryAuthStore implements AuthStore<null> {
  /** Keeps what may be used once, such as the sign-ins that were started at a provider. */
  readonly entries: OneTimeEntries
  /** Keeps the sessions of the plugin. */
  readonly sessions: StoredSessions
  readonly #accounts = new Map<string, Account>()
  /** The ids of users by what only one of them has. */
  readonly #owners = new Map<string, string>()
  /** By what only one user has: whose creation waits for the application. */
  readonly #created = new Map<string, Promise<unknown>>()

  /** Starts without users. */
  constructor () {
    const entries = new MemoryEntries()
    this.entries = entries
    this.sessions = new MemorySessions(entries)
  }

  async findUser (query: UserQuery): Promise<User | null> {
    const account = this.#find(query)
    return account && copyOf(userOf(account))
  }

  async links (userId: string): Promise<Link[]> {
    const account = this.#find({ userId })
    return account === null ? [] : copyOf(linksOf(account))
  }

  async factors (userId: string): Promise<Factor[]> {
    return copyOf([...this.#find({ userId })?.factors ?? []])
  }

  async findCredential (email: string): Promise<Credential | null> {
    const account = this.#find({ provider: 'local', subject: email })
    const link = account && linkAt(account, 'local')
    if (account?.passwordHash == null || link == null) return null
    const { userId, passwordHash } = account
    return copyOf({ user: userOf(account), link: { ...link, userId }, passwordHash })
  }

  async status (userId: string): Promise<AccountStatus | null> {
    const account = this.#find({ userId })
    return account && statusOf(account)
  }

  async abandonedGuests (createdBefore: number, now: number, limit: number, after: string): Promise<string[]> {
    const found: string[] = []
    for (const account of this.#accounts.values()) {
      const { userId, extras: { guest = false, created_at: createdAt = 0 } } = account
      if (!guest || createdAt >= createdBefore || userId <= after) continue
      if ((await this.sessions.ofUser(userId, generationOf(account), now)).length === 0) found.push(userId)
    }
    return found.sort().slice(0, limit)
  }

  async users ({ after, limit, order, ...filter }: UsersQuery): Promise<User[]> {
    const isNewest = order === 'newest'
    const isAfter = (user: Listed, last: Listed): boolean => isNewest && +user.createdAt !== +last.createdAt
      ? user.createdAt < last.createdAt
      : isNewest ? user.userId < last.userId : user.userId > last.userId
    const found = this.#matching(filter).filter(user => after === null || isAfter(user, after))
    return copyOf(found.sort((a, b) => isAfter(a, b) ? 1 : -1).slice(0, limit))
  }

  async countUsers (filter: UsersFilter): Promise<number> {
    return this.#matching(filter).length
  }

  #matching ({ search, blocked }: UsersFilter): User[] {
    const now = Date.now()
    return [...this.#accounts.values()]
      .filter(({ email, extras: { name_key: name, email_domain: domain } }) =>
        search === null || [email, domain, name].some(text => text?.startsWith(search)))
      .map(userOf)
      .filter(user => blocked === null || isBlocked(user, now) === blocked)
  }

  async insert (account: Account, hook?: CreateHook<null>): Promise<boolean> {
    for (let other; (other = this.#creationOf(keysOf(account))) !== undefined;) await other
    if (this.#accounts.has(account.userId) || keysOf(account).some(key => this.#owners.has(key))) return false
    return this.#create({ before: null, after: account }, hook)
  }

  async change<T> (
    find: AccountQuery, keys: UniqueKeys, rule: Rule<T>, hook?: CreateHook<null>
  ): Promise<T> {
    const { email, link } = keys
    const asked = [find, email != null && { email }, link].filter(query => typeof query === 'object' && query !== null)
    const uniqueKeys = asked.flatMap(query => 'userId' in query ? [] : [keyOf(query)])
    // Asked again where the guest who is to become a user was changed meanwhile.
    for (;;) {
      for (let other; (other = this.#creationOf(uniqueKeys)) !== undefined;) await other
      const accounts = asked.flatMap(query => copyOf(this.#find(query)) ?? [])
      const { result, change } = applyRule(rule, { find, keys }, accounts)
      if (change === null) return result
      const { before, after } = change
      const owners = after?.factors.map(({ id }) => this.#owners.get(keyOf({ factor: id })) ?? after.userId) ?? []
      if (owners.some(owner => owner !== after?.userId)) throw factorExists()
      if (after === null || !makesUser(change)) this.#replace(before, after)
      else if (!await this.#create({ before, after }, hook)) continue
      return result
    }
  }

  async hookProblem (): Promise<null> {
    return null
  }

  /** What to wait for while another user is created with a key: of two, one asks the hook. */
  #creationOf (keys: string[]): Promise<unknown> | undefined {
    const [first] = keys.flatMap(key => this.#created.get(key) ?? [])
    return first?.catch(() => {})
  }

  /**
   * Makes a user, of nothing or of a guest; without a hook there is no pause.
   *
   * @returns false, and nothing was written, when the account was changed during the pause
   */
  async #create (
    { before, after }: { before: Account | null, after: Account }, hook: CreateHook<null> | undefined
  ): Promise<boolean> {
    const present = this.#accounts.get(after.userId)
    let made = after
    if (hook !== undefined) {
      const creation = (async () => hook(copyOf(after), null))()
      for (const key of keysOf(after)) this.#created.set(key, creation)
      try {
        made = await creation
      } catch (error) {
        throw refusalBy(error)
      } finally {
        for (const key of keysOf(after)) this.#created.delete(key)
      }
    }
    if (this.#accounts.get(after.userId) !== present) return false
    this.#replace(before, made)
    return true
  }

  async close (): Promise<void> {
    // Nothing is open, and a closed application may still read its users.
  }

  #find (query: UserQuery): Account | null {
    const userId = 'userId' in query ? query.userId : this.#owners.get(keyOf(query))
    return this.#accounts.get(userId ?? '') ?? null
  }

  #replace (before: Account | null, after: Account | null): void {
    if (before !== null) {
      this.#accounts.delete(before.userId)
      for (const key of keysOf(before)) this.#owners.delete(key)
    }
    if (after === null) return
    this.#accounts.set(after.userId, copyOf(after))
    for (const key of keysOf(after)) this.#owners.set(key, after.userId)
  }
}

function keysOf ({ email, links, factors }: Account): string[] {
  return [
    ...email === null ? [] : [keyOf({ email })], ...links.map(keyOf), ...factors.map(({ id }) => keyOf({ factor: id }))
  ]
}

function keyOf (query: { email: string } | { factor: string } | { provider: string, subject: string }): string {
  if ('email' in query) return JSON.stringify([query.email])
  return JSON.stringify('factor' in query ? [null, query.factor] : [query.provider, query.subject])
}

/** Many times faster than a structured clone, for plain JSON data and dates. */
function copyOf<T> (value: T): T
function copyOf (value: unknown): unknown {
  if (value instanceof Date) return new Date(value)
  if (Array.isArray(value)) return value.map(item => copyOf(item))
  if (typeof value !== 'object' || value === null) return value
  const copy: Record<string, unknown> = { ...value }
  for (const name of Object.keys(copy)) copy[name] = copyOf(copy[name])
  return copy
}

/** The maximum of entries of a kind, and of anonymous sessions: any client can cause them. */
const MAX_ANONYMOUS = 50_000

const MAX_TAKEN = 1000

interface EntryRow extends Omit<OneTimeEntry, 'content'> {
  /** As text, so that entries behave as in a database. */
  readonly content: string
  attempts: number
}

const WARN_INTERVAL_MS = 60 * 60_000

/** Keeps one-time entries in memory. Above the maximum of a kind, its oldest are removed. */
export class MemoryEntries implements OneTimeEntries {
  readonly #rows = new Map<string, EntryRow>()
  /** The entries of each owner, the oldest first. */
  readonly #owned = new Map<string, EntryRow[]>()
  /** Each kind on its own: what any client can cause must not push out the records of a use. */
  readonly #ofKind = lazilyBy((_kind: string) => ({ rows: new Set<EntryRow>(), warnedAt: -Infinity }))
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

  #find (hash: string, kind: string): EntryRow | undefined {
    const row = this.#rows.get(hash)
    return row?.kind === kind ? row : undefined
  }

  #of (owner: string): readonly EntryRow[] {
    return this.#owned.get(owner) ?? []
  }

  #remove (row: EntryRow): void {
    this.#rows.delete(row.hash)
    this.#ofKind(row.kind).rows.delete(row)
    const left = this.#of(row.owner).filter(other => other !== row)
    if (left.length > 0) this.#owned.set(row.owner, left)
    else this.#owned.delete(row.owner)
  }

  #sweep (now: number): void {
    for (const row of this.#rows.values()) {
      const lifetime = RECORDS_OF_USE.includes(row.kind) ? RECORD_MS : PENDING_MS
      if (row.startedAt <= now - lifetime) this.#remove(row)
    }
  }
}

export function limit<T> (entries: { size: number, values: () => Iterable<T> }, remove: (oldest: T) => void): void {
  const [oldest] = entries.values()
  if (oldest !== undefined && entries.size > MAX_ANONYMOUS) remove(oldest)
}

/** User and data are text, as in a database: a request sees its session as of its start. */
interface SessionRow extends Omit<NewSession, 'user' | 'data' | 'admits' | 'onlyOpen'> {
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
  readonly #rows = new Map<string, SessionRow>()
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
    if (before.isSignedOut || (session.onlyOpen === true && before.endedAt !== null)) return false
    this.#write(session, before.replacedBy)
    before.endedAt ??= createdAt
    before.replacedBy = idHash
    return true
  }

  #write ({ user, data, ...session }: NewSession, replacedBy: string | null = null): SessionRow {
    const { idHash } = session
    const row: SessionRow = {
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

  async showing (shownId: string, now: number): Promise<ShowingSession[]> {
    const listed: ShowingSession[] = []
    for (const row of this.#rows.values()) {
      if (row.userId === null || !isOpen(row, now)) continue
      const { proofs }: SessionUser = JSON.parse(row.user)
      if (proofs.acting?.user.userId !== shownId) continue
      const { idHash, userId, userAgent, createdAt, seenAt, expiresAt } = row
      listed.push({ idHash, userId, userAgent, createdAt, seenAt, expiresAt, proofs })
    }
    return listed.sort((a, b) => b.seenAt - a.seenAt).slice(0, MAX_LISTED)
  }

  async endAtProvider ({ by, hash }: ProviderEnd, now: number): ReturnType<Required<StoredSessions>['endAtProvider']> {
    const users = new Set<string>()
    for (const row of this.#rows.values()) {
      if (row.userId === null || !isOpen(row, now)) continue
      const { proofs }: SessionUser = JSON.parse(row.user)
      if (proofs.atProvider?.[by] !== hash) continue
      row.endedAt = now
      users.add(row.userId)
    }
    return Array.from(users, userId => ({ userId, isRecorded: false }))
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

function isOpen ({ endedAt, expiresAt }: SessionRow, now: number): boolean {
  return endedAt === null && expiresAt > now
}
