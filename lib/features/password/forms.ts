/** The parts that the routes with passwords have in common. */
import { setTimeout } from 'node:timers/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Credential } from '../../accounts/account.js'
import { noteSubject } from '../../audit.js'
import type { AuthContext, PasswordQueue } from '../../core/context.js'
import { type CurrentUser, current, currentPrincipal } from '../../core/current-user.js'
import { addressOf } from '../../core/limits.js'
import type { PageLayout } from '../../core/pages/layout.js'
import { assertFactorUsed, assertRecent } from '../recent.js'
import { AuthError, WRONG_PASSWORD } from '../../errors.js'
import type { LocalIdentityProvider } from '../local/local-identity-provider.js'
import { assertText, hashing } from './hashing.js'
import type { HashingSubmission } from '../../core/submission.js'

/** Before `busy` is answered: clients that try again at once take time from sign-ins under way. */
const PAUSE_MS = 1000

/** How many requests may pause at a time, because each takes memory; others are refused at once. */
const MAX_PAUSED = 1024

export const email = {
  type: 'string', maxLength: 65_536, description: 'At most 254 characters when it is trimmed'
} as const

export const password = { type: 'string' } as const

export const newPassword = { type: 'string', description: '8 to 1024 bytes' } as const

export const NEW_PASSWORD_REFUSALS = ['weak_password', 'breached_password'] as const

/** The field by which the signed-in user authenticates for a change. */
export const presentPassword = {
  type: 'string', description: 'The present password; without it, the last sign-in must be less than ten minutes ago'
} as const

/** What a change by the signed-in user may be refused with until they authenticate for it. */
export const UNPROVEN = ['invalid_state', 'invalid', 'reauthenticate'] as const

/** The answer of a change that ends all other sessions of the user. */
export const changed = {
  type: 'null', description: 'Done: the session has a new id, and all others have ended'
} as const

async function refuseWhenBusy (request: FastifyRequest, isRead = false): Promise<void> {
  const refusal = hashing.refusalFor(addressOf(request))
  if (refusal === null) return
  if (!isRead && paused < MAX_PAUSED) {
    paused++
    await setTimeout(PAUSE_MS)
    paused--
  }
  throw refusal
}

let paused = 0

/** @param layout says in which language the check of a new password answers */
export function passwordQueue (local: LocalIdentityProvider, layout: PageLayout | null): PasswordQueue {
  return {
    refuseWhenBusy,
    passwordsFor ({ request, reply }) {
      const caller = { address: addressOf(request), signal: closedSignal(reply) }
      const language = layout?.languageFor(request) ?? 'en'
      return {
        hashPassword: async (password, { email }) => local.hashPassword(password, { email, language }, caller),
        rehashPassword: async password => local.rehashPassword(password, caller),
        // With `password: false`, a password of before signs in nowhere.
        verifyPassword: async (hash, password) =>
          local.verifyPassword(local.hasPasswords ? hash : null, password, caller)
      }
    }
  }
}

/**
 * Returns a signal that aborts when the connection closes before the answer: the queue then drops
 * its passwords. Fastify's `request.signal` aborts as soon as the body was read.
 */
function closedSignal ({ raw }: FastifyReply): AbortSignal {
  const closed = new AbortController()
  const close = (): void => {
    if (raw.writableFinished) return
    closed.abort(new AuthError('busy', { message: 'The client closed the connection before its turn came.' }))
  }
  if (raw.closed) close()
  else raw.once('close', close)
  return closed.signal
}

/**
 * Returns the signed-in user if the password of a form is theirs; without one, if they have
 * authenticated recently as {@link recent} requires it. Counts the change for the user.
 *
 * @param password the field of the form; empty for none
 * @returns also their credential; null for a user without a password
 * @throws AuthError as {@link recent}, and `invalid`, `rate_limited`
 */
export async function recentByPassword (
  auth: AuthContext, submission: HashingSubmission<unknown>, password: string | undefined
): Promise<CurrentUser & { credential: Credential | null }> {
  const { request } = submission
  const present = await current(auth, request)
  const { user: { userId, generation }, links } = present
  const credential = await auth.accounts.credentialOf(userId, links)
  // What was read after the session may be the password of a reset.
  if (credential !== null && credential.user.generation !== generation) throw new AuthError('unauthenticated')
  await assertFactorUsed(auth, present)
  if (!password) assertRecent(present.record)
  await auth.limits.reauthenticate(request)
  if (password) await attemptPassword(auth, submission, password, credential)
  return { ...present, credential }
}

/**
 * Refuses a request unless its session, or the password in its form, belongs to a user:
 * `unauthenticated` without both, `invalid`, `rate_limited`.
 */
export async function assertIsUser (
  auth: AuthContext, submission: HashingSubmission<{ password?: string }>, userId: string
): Promise<void> {
  const { request, fields: { password } } = submission
  if ((await currentPrincipal(auth, request))?.userId === userId) return
  noteSubject(request, userId)
  if (!password) throw new AuthError('unauthenticated')
  await attemptPassword(auth, submission, password, await auth.accounts.credentialOf(userId))
}

/** Counts an attempt at the password of an account, then compares it. */
async function attemptPassword (
  { limits }: AuthContext, submission: HashingSubmission<unknown>, password: string, credential: Credential | null
): Promise<void> {
  assertText(password)
  await limits.attempt(submission.request, credential?.link.subject ?? '')
  await verifyPassword(submission, password, credential)
}

/** Refuses a wrong password of an account, in the same time for a user without a password. */
export async function verifyPassword (
  { passwords }: HashingSubmission<unknown>,
  password: string,
  credential: Credential | null,
  wrong: { message?: string } = { message: WRONG_PASSWORD }
): Promise<{ outdated: boolean }> {
  assertText(password)
  const { matches, outdated } = await passwords.verifyPassword(credential?.passwordHash ?? null, password)
  if (!matches) throw new AuthError('invalid', wrong)
  return { outdated }
}
