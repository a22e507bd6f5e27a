import { setTimeout } from 'node:timers/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { AuthError } from '../errors.js'
import { login, register } from '../flows/local.js'
import { reauthenticate } from '../flows/reauthentication.js'
import { wantsJson } from '../http/accept.js'
import type { Caller } from '../local/fair-queue.js'
import { hashing } from '../local/hashing.js'
import type { LocalIdentityProvider } from '../local/identity-provider.js'
import { answerFailure } from './answers.js'
import type { RouteContext } from './context.js'
import { addressOf } from './limits.js'
import {
  FORM_OR_JSON, NOTHING, SESSION, type SchemaTypes, errorNext, isChecked, next, redirect, refusals, signedIn, tags
} from './schema-parts.js'

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

const email = {
  type: 'string',
  maxLength: 65_536,
  description: 'At most 254 characters when it is trimmed'
} as const

/**
 * Fields of the application's form, for its hook `onSignIn`. Bounded, because bodies wait in memory
 * for the hash.
 */
const ownFields = {
  description: 'At most 32 fields, with names of at most 256 characters',
  maxProperties: 32,
  propertyNames: { maxLength: 256 },
  additionalProperties: {
    type: ['string', 'number', 'boolean', 'null'],
    maxLength: 4096,
    description: 'Fields of the application'
  }
} as const

const registerSchema = {
  tags,
  summary: 'Register with e-mail and password, and sign in',
  operationId: 'authLocalRegister',
  security: NOTHING,
  consumes: FORM_OR_JSON,
  body: {
    type: 'object',
    required: ['email', 'password'],
    properties: {
      email,
      password: { type: 'string', description: '8 to 1024 bytes' },
      name: { type: 'string', maxLength: 1000, description: 'A display name' },
      role: { type: 'string', maxLength: 1000, description: 'An initial claim, if the application allows it' },
      email_verified: {
        anyOf: [{ type: 'boolean' }, { type: 'string', maxLength: 1000 }],
        description: 'A checkbox: an initial claim, if the application allows it'
      },
      next,
      error_next: errorNext
    },
    ...ownFields
  },
  response: {
    201: signedIn,
    303: redirect,
    ...refusals(
      'invalid_request', 'invalid_email', 'weak_password', 'invalid_state', 'unauthenticated', 'cross_origin',
      'claim_not_allowed', 'exists', 'rate_limited', 'busy', 'unavailable'
    )
  }
} as const

const loginSchema = {
  tags,
  summary: 'Sign in with e-mail and password',
  operationId: 'authLocalLogin',
  security: NOTHING,
  consumes: FORM_OR_JSON,
  body: {
    type: 'object',
    required: ['email', 'password'],
    properties: { email, password: { type: 'string' }, next, error_next: errorNext },
    ...ownFields
  },
  response: {
    200: signedIn,
    303: redirect,
    ...refusals(
      'invalid_request', 'invalid_state', 'invalid', 'unauthenticated', 'cross_origin', 'blocked', 'rate_limited',
      'busy', 'unavailable'
    )
  }
} as const

const reauthenticateSchema = {
  tags,
  summary: 'Prove again who the signed-in user is',
  operationId: 'authLocalReauthenticate',
  security: SESSION,
  consumes: FORM_OR_JSON,
  body: {
    type: 'object',
    required: ['password'],
    properties: { password: { type: 'string' }, next, error_next: errorNext }
  },
  response: {
    204: { type: 'null', description: 'Done: the session has a new id' },
    303: redirect,
    ...refusals(
      'invalid_request', 'invalid_state', 'invalid', 'unauthenticated', 'cross_origin', 'rate_limited', 'busy',
      'unavailable'
    )
  }
} as const

/** Mounts the routes that register users, sign them in by password, and verify it again. */
export function mountPasswordRoutes (context: RouteContext, local: LocalIdentityProvider): void {
  const { scope, rules, pages, limits } = context
  const routes = scope.withTypeProvider<SchemaTypes>()

  if (local.registration !== null) {
    routes.post('/local/register', {
      schema: registerSchema,
      onRequest: [refuseWhenBusy, limits.register],
      errorHandler: answerOnPage
    }, async (request, reply) => {
      const { email, password, name, role, email_verified: emailVerified, next } = request.body
      const principal = await register(request, local, rules, {
        email,
        password,
        name: filledIn(name?.trim()),
        role: filledIn(role),
        emailVerified: isChecked(emailVerified),
        caller: callerOf(request, reply)
      })
      return wantsJson(request) ? reply.code(201).send(principal) : goTo(request, reply, next)
    })
  }

  routes.post('/local/login', {
    schema: loginSchema,
    onRequest: [refuseWhenBusy, limits.login],
    preHandler: limits.account,
    errorHandler: answerOnPage
  }, async (request, reply) => {
    const { email, password, next } = request.body
    const principal = await login(request, local, rules, { email, password, caller: callerOf(request, reply) })
    return wantsJson(request) ? principal : goTo(request, reply, next)
  })

  routes.post('/local/reauthenticate', {
    schema: reauthenticateSchema,
    onRequest: [refuseWhenBusy, limits.reauthenticate],
    errorHandler: answerOnPage
  }, async (request, reply) => {
    const { password, next } = request.body
    await reauthenticate(request, local, rules.store, { password, caller: callerOf(request, reply) })
    return wantsJson(request) ? reply.code(204).send() : goTo(request, reply, next)
  })

  function goTo (request: FastifyRequest, reply: FastifyReply, next: unknown): FastifyReply {
    return reply.redirect(pages.afterSuccess(request, next), 303)
  }

  function answerOnPage (error: Error, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const page = pages.forError(request, Object(request.body).error_next)
    return answerFailure(request, reply, error, { page, signInAt: 'local' })
  }
}

/**
 * Refuses a request when too many passwords wait. Runs before the body is read, so that refusals
 * cost little.
 */
async function refuseWhenBusy (request: FastifyRequest): Promise<void> {
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
function callerOf (request: FastifyRequest, { raw }: FastifyReply): Caller {
  const closed = new AbortController()
  raw.once('close', () => {
    closed.abort(new AuthError('busy', { message: 'The client closed the connection before its turn came.' }))
  })
  return { address: addressOf(request), signal: closed.signal }
}

/** Returns a field of a form; undefined for an empty one, which forms send as an empty string. */
function filledIn (field: string | undefined): string | undefined {
  return field === '' ? undefined : field
}
