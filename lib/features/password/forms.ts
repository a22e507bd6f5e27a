/** The parts that the routes with passwords have in common. */
import { setTimeout } from 'node:timers/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type AuthContext, needed } from '../../core/context.js'
import { AuthError } from '../../errors.js'
import type { Passwords } from '../local/local-identity-provider.js'
import { hashing } from './hashing.js'
import { addressOf } from '../../core/limits.js'

/** Before `busy` is answered: clients that try again at once take time from sign-ins under way. */
const PAUSE_MS = 1000

/** How many requests may pause at a time, because each takes memory; others are refused at once. */
const MAX_PAUSED = 1024

export const email = {
  type: 'string',
  maxLength: 65_536,
  description: 'At most 254 characters when it is trimmed'
} as const

export const password = { type: 'string' } as const

export const newPassword = { type: 'string', description: '8 to 1024 bytes' } as const

export const NEW_PASSWORD_REFUSALS = ['weak_password', 'breached_password'] as const

/** The field by which the signed-in user authenticates for a change. */
export const presentPassword = {
  type: 'string',
  description: 'The present password; without it, the last sign-in must be less than ten minutes ago'
} as const

/** What a change by the signed-in user may be refused with until they authenticate for it. */
export const UNPROVEN = ['invalid_state', 'invalid', 'reauthenticate'] as const

/** The answer of a change that ends all other sessions of the user. */
export const changed = {
  type: 'null', description: 'Done: the session has a new id, and all others have ended'
} as const

/** Fields of the application, for `onSignIn`. Bounded: bodies wait in memory for the hash. */
export const ownFields = {
  description: 'At most 32 fields, with names of at most 256 characters',
  maxProperties: 32,
  propertyNames: { maxLength: 256 },
  additionalProperties: {
    type: ['string', 'number', 'boolean', 'null'],
    maxLength: 4096,
    description: 'Fields of the application'
  }
} as const

/** Refuses a request when too many passwords wait: before its body is read, which costs little. */
export async function refuseWhenBusy (request: FastifyRequest): Promise<void> {
  const refusal = hashing.refusalFor(addressOf(request))
  if (refusal === null) return
  if (paused < MAX_PAUSED) {
    paused++
    await setTimeout(PAUSE_MS)
    paused--
  }
  throw refusal
}

let paused = 0

/** The same without a pause, for a request whose body is in memory. */
export function refusePasswordWhenBusy (request: FastifyRequest): void {
  const refusal = hashing.refusalFor(addressOf(request))
  if (refusal !== null) throw refusal
}

/**
 * Returns the operations on passwords for the client of a request: the queue drops them when the
 * connection closes. Fastify's `request.signal` aborts as soon as the body was read.
 */
export function passwordsFor (
  { local, layout }: AuthContext, { request, reply: { raw } }: { request: FastifyRequest, reply: FastifyReply }
): Passwords {
  const closed = new AbortController()
  const close = (): void => {
    if (raw.writableFinished) return
    closed.abort(new AuthError('busy', { message: 'The client closed the connection before its turn came.' }))
  }
  if (raw.closed) close()
  else raw.once('close', close)
  const language = layout?.languageFor(request) ?? 'en'
  return needed(local, 'local').passwordsFor({ address: addressOf(request), signal: closed.signal }, language)
}
