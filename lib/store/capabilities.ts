import type { AuthStore } from '../accounts/auth-store.js'
import { OptionsError } from '../errors.js'
import { hasMethods } from '../option-checks.js'
import type { AttemptCounter } from './attempts.js'
import type { OneTimeEntries } from './one-time-entries.js'
import type { Revocations } from './revocations.js'
import type { StoredSessions } from './sessions.js'

/**
 * What an {@link AuthStore} may keep besides accounts: null or absent where it does not. Methods
 * reject with AuthError `unavailable` when the store cannot be reached.
 */
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
export type SessionRows = { readonly [Name in 'sessions' | 'entries']: NonNullable<StoreCapabilities[Name]> }

export function capabilitiesOf (store: AuthStore & Partial<StoreCapabilities>): StoreCapabilities {
  const { sessions = null, entries = null, attempts = null, revocations = null } = store
  return { sessions, entries, attempts, revocations }
}

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
  if (member === null || hasMethods<T>(...methods)(member)) return
  throw new OptionsError(`store.${name} must be null or have the methods ${methods.join(', ')}`)
}
