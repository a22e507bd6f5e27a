/** The parts that the routes with passwords have in common. */
import { setTimeout } from 'node:timers/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { AuthError } from '../errors.js'
import { wantsJson } from '../http/accept.js'
import type { Caller } from '../local/fair-queue.js'
import { hashing } from '../local/hashing.js'
import { answerFailure } from './answers.js'
import { addressOf } from './limits.js'
import type { Pages } from './pages.js'

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

/** How the routes answer forms. */
export interface FormAnswers {
  /** Redirects a browser to the field `next`. */
  goTo: (request: FastifyRequest, reply: FastifyReply, next: unknown) => FastifyReply
  /** Answers a success without content: 204, or a redirect of a browser to `next`. */
  done: (request: FastifyRequest, reply: FastifyReply, next: unknown) => FastifyReply
  /** Answers a request for a mail like {@link done}, with 202. */
  accepted: (request: FastifyRequest, reply: FastifyReply, next: unknown) => FastifyReply
  /** Answers a redeemed link: 204, or a redirect of a browser: see {@link Pages.afterLink}. */
  redeemed: (request: FastifyRequest, reply: FastifyReply, next: unknown) => FastifyReply
  /** Answers a failure, on a page of the application for a browser. */
  answerOnPage: (error: Error, request: FastifyRequest, reply: FastifyReply, details?: object) => FastifyReply
}

/** Makes the answers of the routes with passwords. */
export function formAnswers (pages: Pages): FormAnswers {
  const goTo: FormAnswers['goTo'] = (request, reply, next) => reply.redirect(pages.afterSuccess(request, next), 303)
  return {
    goTo,
    done: (request, reply, next) => wantsJson(request) ? reply.code(204).send() : goTo(request, reply, next),
    accepted: (request, reply, next) => wantsJson(request) ? reply.code(202).send() : goTo(request, reply, next),
    redeemed: (request, reply, next) => wantsJson(request)
      ? reply.code(204).send()
      : reply.redirect(pages.afterLink(request, next), 303),
    answerOnPage (error, request, reply, details = {}) {
      const page = pages.forError(request, Object(request.body).error_next)
      return answerFailure(request, reply, error, { page, signInAt: 'local', details })
    }
  }
}

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

/**
 * Identifies the client for the queue of passwords, which drops the request when the connection
 * closes. Fastify's `request.signal` aborts as soon as the body was read.
 */
export function callerOf (request: FastifyRequest, { raw }: FastifyReply): Caller {
  const closed = new AbortController()
  raw.once('close', () => {
    if (raw.writableFinished) return
    closed.abort(new AuthError('busy', { message: 'The client closed the connection before its turn came.' }))
  })
  return { address: addressOf(request), signal: closed.signal }
}

/** Returns a field of a form; undefined for an empty one, which forms send as an empty string. */
export function filledIn (field: string | undefined): string | undefined {
  return field === '' ? undefined : field
}
