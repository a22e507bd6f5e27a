/** How keys are made, listed and ended: for the application, and for users. */
import type { FastifyRequest } from 'fastify'
import { type User, isBlocked } from '../../accounts/account.js'
import { type AuditSource, audit } from '../../audit.js'
import { UUID, withoutUndefined } from '../../base/values.js'
import { checkedName, isText } from '../../claims.js'
import type { WithAccounts } from '../../core/context.js'
import { type CurrentUser, current } from '../../core/current-user.js'
import type { AnyRequest, Bivariant } from '../../core/guard.js'
import { AuthError, invalidRequest } from '../../errors.js'
import { assertKnownOptions } from '../../option-checks.js'
import { checkedUserId } from '../app-auth/users.js'
import { INTROSPECT, type KeysPart } from './api-keys.js'
import { newKey } from './key-text.js'
import type { Key, KeyHolder } from './keys.js'

/** The user or the owner of API keys: exactly one of both. */
export interface KeyOwner {
  /** The user. */
  userId?: string | undefined
  /** What the application names, such as `org:42`: at most 256 characters, and not a UUID. */
  owner?: string | undefined
}

/** An API key that `app.auth.createKey` makes. */
export interface KeyToCreate extends KeyOwner {
  /** What people call it: 1 to 64 characters. */
  name: string
  /** Some of those of the option. */
  scopes: readonly string[]
  /** In the future; default never, or as late as `maxAge` allows. */
  expiresAt?: Date | undefined
}

/** A new API key. */
export interface CreatedKey {
  /** Names the key in `keys` and `endKey`. */
  id: string
  /** What clients send: it is not kept, and shown this once. */
  key: string
}

/** An API key, without its secret. */
export interface ApiKey {
  /** Names the key in `endKey`, and is a part of its text. */
  id: string
  /** What people call it. */
  name: string
  /** What it is allowed. */
  scopes: readonly string[]
  /** Null for a key of an owner. */
  userId: string | null
  /** Null for a key of a user. */
  owner: string | null
  /** When it was made. */
  createdAt: Date
  /** The last use, to an hour; null for a key that was not used. */
  lastUsedAt: Date | null
  /** Null for a key that does not end by itself. */
  expiresAt: Date | null
}

/** The API key that an event is about. */
export interface AuditedKey {
  /** Its id. */
  keyId: string
  /** The user of the key; absent for a key of an owner. */
  userId?: string
  /** The owner of the key; absent for a key of a user. */
  owner?: string
}

declare module '../../audit.js' {
  interface AuditEvents {
    /** An API key was made: by the application, or by its user. */
    'key-created': AuditOrigin & AuditedKey & {
      /** What it is allowed. */
      scopes: readonly string[]
    }
    /** An API key was ended: by the application, or by its user. */
    'key-ended': AuditOrigin & AuditedKey
  }
}

/** How many living keys a user or an owner has at most. */
const MAX_KEYS = 50

const MAX_NAME = 64
const MAX_OWNER = 256

/**
 * Returns the user of a request that makes a key: of its session, never of what a header carries,
 * else a key could make others that outlive it.
 */
export const makerOf: Bivariant<(auth: WithAccounts, request: AnyRequest) => Promise<CurrentUser>> =
  async (auth: WithAccounts, request: FastifyRequest) => {
    if (request.headers.authorization !== undefined) throw new AuthError('unauthenticated')
    return current(auth, request)
  }

/**
 * @param how `maker`: the user of the request, whose session must not have ended meanwhile;
 *   `tell`: tells the user of the key; default nobody
 */
export async function createKey (
  part: KeysPart, wanted: KeyToCreate,
  { source, maker, tell }:
  { source: AuditSource, maker: Pick<CurrentUser, 'user'> | null, tell?: ((user: User) => void) | undefined }
): Promise<CreatedKey> {
  assertKnownOptions('createKey', wanted, ['userId', 'owner', 'name', 'scopes', 'expiresAt'])
  const { keys, prefix } = part
  const holder = holderOf(wanted)
  const createdAt = Date.now()
  const details = {
    name: nameOf(wanted.name),
    scopes: scopesOf('userId' in holder ? userScopes(part) : [...part.scopes.keys()], wanted.scopes),
    expiresAt: endOf(part, wanted.expiresAt, createdAt)
  }
  const found = 'userId' in holder ? await keys.userOf(holder.userId) : null
  if ('userId' in holder) {
    if (found === null) throw new AuthError('unknown_user')
    if (found.user.guest) throw new AuthError('forbidden', { message: 'A guest has no API keys.' })
    if (isBlocked(found.user, createdAt)) throw new AuthError('blocked')
    const isOther = maker?.user.userId === holder.userId && maker.user.generation !== found.user.generation
    if (isOther) throw new AuthError('unauthenticated')
  }
  const { keyId, hash, text } = newKey(prefix)
  const generation = found?.keyGeneration ?? 0
  const key: Key = {
    userId: null, owner: null, ...holder, ...details, keyId, hash, generation, createdAt, usedAt: null
  }
  await keys.insert(key)
  // Once it is written, so that no two requests at once both come to the last place.
  if ((await keys.list(holder, generation, createdAt)).length > MAX_KEYS) {
    await keys.end(keyId)
    throw new AuthError('too_many')
  }
  audit('key-created', { ...auditedKey(key), scopes: details.scopes }, source)
  if (found !== null) tell?.(found.user)
  return { id: keyId, key: text }
}

export async function listKeys ({ keys }: Pick<KeysPart, 'keys'>, owner: KeyOwner): Promise<ApiKey[]> {
  assertKnownOptions('keys', owner, ['userId', 'owner'])
  const holder = holderOf(owner)
  const found = 'userId' in holder ? await keys.userOf(holder.userId) : null
  if ('userId' in holder && found === null) throw new AuthError('unknown_user')
  return (await keys.list(holder, found?.keyGeneration ?? 0, Date.now())).map(shown)
}

export async function endKey ({ keys }: Pick<KeysPart, 'keys'>, id: unknown, source: AuditSource): Promise<boolean> {
  const ended = isText(id) ? await keys.end(id) : null
  if (ended !== null) audit('key-ended', auditedKey(ended), source)
  return ended !== null
}

function auditedKey ({ keyId, userId, owner }: Key) {
  return withoutUndefined({ keyId, userId: userId ?? undefined, owner: owner ?? undefined })
}

function shown ({ keyId: id, name, scopes, userId, owner, createdAt, usedAt, expiresAt }: Key): ApiKey {
  return {
    id,
    name,
    scopes,
    userId,
    owner,
    createdAt: new Date(createdAt),
    lastUsedAt: usedAt === null ? null : new Date(usedAt),
    expiresAt: expiresAt === null ? null : new Date(expiresAt)
  }
}

function holderOf ({ userId, owner }: KeyOwner): KeyHolder {
  if ((userId === undefined) === (owner === undefined)) {
    throw invalidRequest('A key is of a user or of an owner: give { userId } or { owner }.')
  }
  if (userId !== undefined) return { userId: checkedUserId(userId) }
  // One that looks like a user would be taken for one where keys are judged.
  if (!isText(owner) || owner.length > MAX_OWNER || UUID.test(owner.toLowerCase())) {
    throw invalidRequest(`owner must be text of at most ${MAX_OWNER} characters, such as "org:42", and not a UUID.`)
  }
  return { owner }
}

function nameOf (name: unknown): string {
  const shown = isText(name) ? checkedName(name) : null
  if (shown === null || Array.from(shown).length > MAX_NAME) {
    throw invalidRequest(`name must be text of 1 to ${MAX_NAME} characters.`)
  }
  return shown
}

/** What keys of users may have. */
export function userScopes ({ scopes }: Pick<KeysPart, 'scopes'>): string[] {
  return [...scopes.keys()].filter(scope => scope !== INTROSPECT)
}

function scopesOf (all: readonly string[], scopes: unknown): string[] {
  const isSubset = Array.isArray(scopes) && scopes.length > 0 && scopes.every(scope => all.includes(scope))
  if (!isSubset) throw invalidRequest(`scopes must be a list of some of ${all.join(', ')}.`)
  return all.filter(scope => scopes.includes(scope))
}

function endOf ({ maxAge }: KeysPart, expiresAt: unknown, now: number): number | null {
  const latest = maxAge === null ? null : now + maxAge
  if (expiresAt === undefined) return latest
  const end = expiresAt instanceof Date ? expiresAt.getTime() : NaN
  if (end > now && end <= (latest ?? Infinity)) return end
  throw invalidRequest(`expiresAt must be a Date in the future${latest === null ? '' : ' and within maxAge'}.`)
}
