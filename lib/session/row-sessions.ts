import type { Session } from 'fastify'
import { digestOf } from '../base/values.js'
import { AuthError } from '../errors.js'
import type { SessionData } from '../schema/sessions.js'
import {
  ENDED_AT_PROVIDER, type EndedSession, type EntryKey, type FoundSession, PENDING_MS, type ProviderEnd,
  type ProviderSession, type SessionRows, type SessionUser, type StoredSessions
} from './store.js'
import { hasEnded } from './at-provider.js'
import { BROWSER_SESSION_MS, type CookieOptions, membersIn, noteIn, withoutMaxAge } from './lifetime.js'
import {
  MAX_HOPS, type OwnedEntries, ReadRecord, type SavedPart, type SessionBackend, type SessionRecord,
  type SessionReplacement, type SessionToEnd, type SignedOut, ownRecordIn
} from './record.js'

/** `seenAt` and a sliding end may be off by this part of the lifetime. */
const PRECISION = 10

/**
 * Keeps sessions in the rows of a store, which replaces, ends and takes in one step each. A session
 * with pending entries alone has no row: the entries tell that it exists.
 */
export class RowSessions implements SessionBackend {
  readonly entries: OwnedEntries
  readonly #rows: StoredSessions
  readonly #cookie: CookieOptions
  readonly #userAgent: string | null

  /** @param cookie the options that a cookie has unless the application changed it */
  constructor ({ sessions, entries }: SessionRows, cookie: CookieOptions, userAgent?: string) {
    this.entries = entries
    this.#rows = sessions
    this.#cookie = cookie
    this.#userAgent = userAgent?.slice(0, 256) ?? null
  }

  async read (id: string): Promise<Session | null> {
    const now = Date.now()
    const idHash = digestOf(id)
    const found = await this.#rows.find(idHash, now)
    if (found === 'ended' || found === null) return null
    if (found === 'visitor') return pendingOnlySession(this.#cookie)
    // In the background: it is for the list of sessions alone.
    if (isOff(found.seenAt, now, found)) this.#rows.update(idHash, { seenAt: now }).catch(() => {})
    return sessionOf(found, now, this.#cookie)
  }

  async create (
    id: string, session: Session, { replaced, admits = false, onlyOpen = false }: SessionReplacement = {}
  ): Promise<boolean> {
    if (isPendingOnly(session) && replaced === undefined) return false
    const now = Date.now()
    const record = ownRecordIn(session)
    const written = await this.#rows.insert({
      idHash: digestOf(id),
      user: record && userOf(record),
      data: this.#dataOf(session),
      userAgent: this.#userAgent,
      createdAt: now,
      expiresAt: endOf(session, now),
      admits,
      onlyOpen
    }, replaced === undefined ? null : digestOf(replaced))
    if (written === false) throw new AuthError('invalid_state')
    return written === 'admitted'
  }

  async save (id: string, session: Session, part: SavedPart, isUnchanged: () => boolean): Promise<void> {
    if (part === 'none') {
      await this.create(id, session)
      return
    }
    const now = Date.now()
    const expiresAt = endOf(session, now)
    const { originalExpires } = session.cookie as { originalExpires?: Date }
    const written = Number(originalExpires ?? session.svcAuth?.until)
    const isEnough = !isOff(written, expiresAt, { createdAt: now, expiresAt })
    if (isEnough && isUnchanged()) return
    const user = part === 'stored' ? {} : { user: userOf(part) }
    await this.#rows.update(digestOf(id), { ...user, data: this.#dataOf(session), seenAt: now, expiresAt })
  }

  async remove (id: string): Promise<void> {
    await this.end(id)
  }

  async replacementOf (id: string): Promise<Session | null> {
    const now = Date.now()
    let idHash: string | null = digestOf(id)
    for (let hops = 0; idHash !== null && hops < MAX_HOPS; hops++) {
      const found = await this.#rows.find(idHash, now)
      if (found === null || found === 'visitor') return null
      if (found !== 'ended') return hops === 0 ? null : sessionOf(found, now, this.#cookie)
      idHash = (await this.#rows.end(idHash, { now, isSignOut: false }))?.replacedBy ?? null
    }
    return null
  }

  async end (id: string): Promise<void> {
    await this.#rows.end(digestOf(id), { now: Date.now(), isSignOut: false })
  }

  async signOut ({ id }: SessionToEnd, isRecorded: boolean): Promise<SignedOut | null> {
    return signOutRow(this.#rows, digestOf(id), isRecorded)
  }

  async signOutReplaced (id: string): Promise<SignedOut | null> {
    // A sign-in is over with the one step in which it has replaced the session. One that is under
    // way in a session with pending entries alone has taken the entry by which it was known.
    const isUnknown = await this.#rows.find(digestOf(id), Date.now()) === null
    return isUnknown ? signOutRow(this.#rows, digestOf(id)) : null
  }

  /** The record comes first: a session that is written meanwhile is ended here, or finds it. */
  async endAtProvider (end: ProviderEnd): Promise<SignedOut[]> {
    const now = Date.now()
    await this.entries.put({ ...endKey(end.hash), content: { endedAt: now }, startedAt: now }, 1)
    return await this.#rows.endAtProvider?.(end, now) ?? []
  }

  async hasEndedAtProvider (began: ProviderSession): Promise<boolean> {
    return hasEnded(began, async hash => {
      const content = await this.entries.find(endKey(hash))
      return content && Number(content.endedAt)
    })
  }

  #dataOf ({ cookie, svcAuth, ...ofApplication }: Session): SessionData | null {
    // The plugin's part of a session without a user is a note, for which there are no columns.
    const members = svcAuth === undefined || svcAuth.principal ? ofApplication : { ...ofApplication, svcAuth }
    const changed = changesOf(cookie, this.#cookie)
    const [hasMembers, isChanged] = [Object.keys(members).length > 0, Object.keys(changed).length > 0]
    if (!hasMembers && !isChanged) return null
    return storable({ ...(hasMembers && { members }), ...(isChanged && { cookie: changed }) })
  }
}

function endKey (hash: string): EntryKey {
  return { hash, kind: ENDED_AT_PROVIDER, owner: hash }
}

/**
 * Ends a session because its user signs out, and the sessions that have replaced it meanwhile:
 * see {@link SessionBackend.signOut}.
 */
export async function signOutRow (rows: StoredSessions, idHash: string, isRecorded = false): Promise<SignedOut | null> {
  const now = Date.now()
  let signedOut: SignedOut | null = null
  for (let next: string | null = idHash; next !== null;) {
    const how = { now, isSignOut: true, isRecorded: signedOut?.isRecorded ?? isRecorded }
    const ended: EndedSession | null = await rows.end(next, how)
    const { wasOpen = false, userId = null } = ended ?? {}
    if (wasOpen && userId !== null) signedOut ??= { userId, isRecorded: ended?.isRecorded ?? false }
    next = ended?.replacedBy ?? null
  }
  return signedOut
}

/** Matches what `jsonb` of Postgres refuses in JSON text: U+0000, and half a surrogate pair. */
const UNSTORABLE = /\\u(?:0000|d[89a-f])/

function storable (data: SessionData): SessionData {
  const text = JSON.stringify(data)
  return UNSTORABLE.test(text) ? { encoded: Buffer.from(text).toString('base64') } : data
}

function originalOf (data: SessionData | null): SessionData | null {
  return data?.encoded === undefined ? data : JSON.parse(Buffer.from(data.encoded, 'base64').toString())
}

function sessionOf (found: FoundSession, now: number, options: CookieOptions): Session {
  const { user, expiresAt, status, presentClaims } = found
  const data = originalOf(found.data)
  const { maxAge: originalMaxAge = null } = options
  const cookie = withoutMaxAge({ originalMaxAge, expires: new Date(expiresAt), ...data?.cookie })
  const record = user && new ReadRecord(user, { status, presentClaims }, now)
  return { ...data?.members, cookie, ...(record !== null && { svcAuth: record }) }
}

function pendingOnlySession ({ maxAge, expires }: CookieOptions): Session {
  const note: ReturnType<typeof noteIn> = { fullLifetime: { maxAge: maxAge ?? null, expires: expires ?? null } }
  const session: Session = { cookie: { originalMaxAge: PENDING_MS, expires: new Date(Date.now() + PENDING_MS) } }
  return Object.assign(session, { svcAuth: note })
}

function isPendingOnly (session: Session): boolean {
  return noteIn(session).fullLifetime !== undefined && membersIn(session).length === 0
}

function userOf ({ principal, generation, ...proofs }: SessionRecord): SessionUser {
  return { ...principal, generation, proofs }
}

/** The end of a session, in milliseconds since the epoch. */
function endOf ({ cookie: { expires }, svcAuth }: Session, now: number): number {
  const end = expires == null ? now + BROWSER_SESSION_MS : new Date(expires).getTime()
  return Math.min(end, svcAuth?.until ?? end)
}

/** Whether a time that is written is off by more than a tenth of the lifetime. */
function isOff (
  written: number, present: number, { createdAt, expiresAt }: Pick<FoundSession, 'createdAt' | 'expiresAt'>
): boolean {
  return !(Math.abs(present - written) * PRECISION <= expiresAt - createdAt)
}

/** What the application has changed about the cookie of a session. */
function changesOf (cookie: Session['cookie'], options: CookieOptions): Record<string, unknown> {
  const { path = '/', httpOnly = true, sameSite, domain, maxAge = null, secure, partitioned } = options
  const usual = {
    path, httpOnly, sameSite: sameSite || null, domain: domain || null, originalMaxAge: maxAge, secure, partitioned
  }
  // By the protocol of each request.
  const ofRequest = secure === 'auto' ? ['secure', 'sameSite'] : []
  const changed = Object.entries(usual)
    .filter(([name, value]) => Reflect.get(cookie, name) !== value && !ofRequest.includes(name))
    .map(([name]) => [name, Reflect.get(cookie, name)])
  return { ...Object.fromEntries(changed), ...(cookie.expires == null && { expires: null }) }
}
