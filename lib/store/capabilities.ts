import { randomBytes } from 'node:crypto'
import type { AuthStore } from '../accounts/auth-store.js'
import { Sweeper } from '../base/sweeper.js'
import { OptionsError } from '../errors.js'
import type { AttemptCounter } from './attempts.js'
import type { OneTimeEntries } from './one-time-entries.js'
import type { Revocations } from './revocations.js'
import type { StoredSessions } from './sessions.js'

/** What an {@link AuthStore} may keep besides accounts: null or absent where it does not. */
export interface StoreCapabilities {
  /** Sessions beside the users, in place of a session store. It needs `entries`. */
  readonly sessions: StoredSessions | null
  /** What may be used once. */
  readonly entries: OneTimeEntries | null
  /** The counts of attempts, which processes share. */
  readonly attempts: AttemptCounter | null
  /** Revocations, by which `revoke` reaches every process. */
  readonly revocations: Revocations | null
}

/** Sessions beside the users, and what they own. */
export interface SessionRows {
  readonly sessions: StoredSessions
  readonly entries: OneTimeEntries
}

/** Returns what a store keeps besides accounts. */
export function capabilitiesOf (store: AuthStore & Partial<StoreCapabilities>): StoreCapabilities {
  const { sessions = null, entries = null, attempts = null, revocations = null } = store
  return { sessions, entries, attempts, revocations }
}

/** Checks the members of a store of the application. */
export function assertCapabilities ({ sessions, entries, attempts, revocations }: StoreCapabilities): void {
  assertCapability('sessions', sessions, ['find', 'insert', 'update', 'end', 'ofUser'])
  assertCapability('entries', entries, ['put', 'find', 'take', 'attempt', 'count'])
  assertCapability('attempts', attempts, ['count'])
  assertCapability('revocations', revocations, ['record', 'follow'])
  if (sessions !== null && entries === null) {
    throw new OptionsError('store.sessions needs store.entries, which keeps the sign-ins that sessions start')
  }
}

function assertCapability<T> (name: string, member: T | null, methods: ReadonlyArray<keyof T>): void {
  if (member === null || methods.every(method => typeof Object(member)[method] === 'function')) return
  throw new OptionsError(`store.${name} must be null or have the methods ${methods.join(', ')}`)
}

/**
 * Sweeps the rows of a table a page at a time, in the order of their hashes. It begins at a random
 * one: a process that does not run for long would never come to the last rows otherwise.
 *
 * @param sweepPage sweeps the page after a hash; returns its last hash, null when no row follows
 */
export function inPages (
  sweepPage: (after: string, now: number) => Promise<string | null>
): (now: number) => Promise<void> {
  let after = randomBytes(24).toString('base64url')
  return async now => {
    after = await sweepPage(after, now) ?? await sweepPage('', now) ?? ''
  }
}

/** Lets sessions and entries be swept in the background while some are written. */
export function withSweeps ({ sessions, entries }: SessionRows, sweep: (now: number) => Promise<void>): SessionRows {
  const sweeper = new Sweeper(sweep)
  return {
    sessions: {
      ...sessions,
      async insert (session, replaced) {
        const inserted = await sessions.insert(session, replaced)
        sweeper.start(session.createdAt)
        return inserted
      }
    },
    entries: {
      ...entries,
      async put (entry, most) {
        await entries.put(entry, most)
        sweeper.start(entry.startedAt)
      }
    }
  }
}
