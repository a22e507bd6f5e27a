import type { FastifyBaseLogger } from 'fastify'
import { type User, isBlocked } from '../../accounts/account.js'
import type { AuthContext } from '../../core/context.js'
import { followsConnection } from '../../core/required-connection.js'
import { isEqual } from '../../secrets.js'
import { noteHourly } from '../noted-use.js'
import type { KeysPart } from './api-keys.js'
import { presentedKey } from './key-text.js'

/** A key that a client has presented, and that is good. */
export interface FoundKey {
  readonly id: string
  /** Null for a key of an owner. */
  readonly userId: string | null
  /** Null for a key of a user. */
  readonly owner: string | null
  readonly scopes: readonly string[]
  /** The user as they are now; null for a key of an owner. */
  readonly user: User | null
  /** Times are in milliseconds since the epoch. */
  readonly createdAt: number
  /** Null for a key that does not end by itself. */
  readonly expiresAt: number | null
}

/**
 * Finds the key of a text by one statement, and notes its use to an hour. Null for a text that is
 * not a key, which costs no statement, and for a key that is unknown, over, ended with the keys of
 * its user, or whose user is blocked, or has not signed in lately by the connection that they must.
 */
export async function findKey (
  auth: Pick<AuthContext, 'connectionRule'>, { prefix, keys }: Pick<KeysPart, 'prefix' | 'keys'>, text: string,
  log: Pick<FastifyBaseLogger, 'warn'>
): Promise<FoundKey | null> {
  const presented = presentedKey(prefix, text)
  const found = presented === null ? null : await keys.find(presented.keyId)
  if (presented === null || found === null || !isEqual(found.key.hash, presented.hash)) return null
  const { key: { keyId, userId, owner, scopes, generation, createdAt, usedAt, expiresAt }, of } = found
  const now = Date.now()
  if (expiresAt !== null && expiresAt <= now) return null
  if (userId !== null && (of === null || of.keyGeneration !== generation || isBlocked(of.user, now))) return null
  if (of !== null && !await followsConnection(auth, of.user)) return null
  noteHourly(usedAt, { now, note: async () => keys.noteUse(keyId, now), log, what: 'an API key' })
  return { id: keyId, userId, owner, scopes, user: of?.user ?? null, createdAt, expiresAt }
}
