/** The parts that the routes with passwords have in common. */
import { setTimeout } from 'node:timers/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { AuthError } from '../errors.js'
import { type Method, passwordMethod } from '../flows/methods.js'
import type { LocalIdentityProvider, Passwords } from '../local-identity-provider.js'
import { hashing } from '../passwords/hashing.js'
import { type RateLimits, addressOf } from './limits.js'

/**
 * The pause before `busy` is answered. Clients that try again at once take time from the sign-ins
 * under way.
 */
const PAUSE_MS = 1000

/**
 * The number of requests that may pause at a time, because each takes memory; others are refused at
 * once.
 */
const MAX_PAUSED = 1024

/** The field `email` of a form. */
export const email = {
  type: 'string',
  maxLength: 65_536,
  description: 'At most 254 characters when it is trimmed'
} as const

/** The field for a password that the user has. */
export const password = { type: 'string' } as const

/** The field for a new password. */
export const newPassword = { type: 'string', description: '8 to 1024 bytes' } as const

/** What a new password may be refused with. */
export const NEW_PASSWORD_REFUSALS = ['weak_password', 'breached_password'] as const

/**
 * Fields of the application's form, for its hook `onSignIn`. Bounded, because bodies wait in memory
 * for the hash.
 */
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

/**
 * Refuses a request when too many passwords wait. Runs before the body is read, so that refusals
 * cost little.
 */
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

/** Refuses a password when too many wait, without a pause: the body of the request is in memory. */
export function refusePasswordWhenBusy (request: FastifyRequest): void {
  const refusal = hashing.refusalFor(addressOf(request))
  if (refusal !== null) throw refusal
}

/**
 * Returns the operations on passwords for the client of a request: the queue drops them when the
 * connection closes. Fastify's `request.signal` aborts as soon as the body was read.
 */
export function passwordsFor (
  local: LocalIdentityProvider,
  { request, reply: { raw } }: { request: FastifyRequest, reply: FastifyReply }
): Passwords {
  const closed = new AbortController()
  raw.once('close', () => {
    if (raw.writableFinished) return
    closed.abort(new AuthError('busy', { message: 'The client closed the connection before its turn came.' }))
  })
  return local.passwordsFor({ address: addressOf(request), signal: closed.signal })
}

/**
 * Returns the method of a field for a password, whose attempts are counted for the account; null
 * for an empty field.
 */
export function methodOf (
  password: string | undefined,
  passwords: Passwords,
  limits: RateLimits,
  request: FastifyRequest
): Method | null {
  const given = filledIn(password)
  return given === undefined ? null : passwordMethod(given, passwords, async email => limits.attempt(request, email))
}

/** Returns a field of a form; undefined for an empty one, which forms send as an empty string. */
export function filledIn (field: string | undefined): string | undefined {
  return field === '' ? undefined : field
}
