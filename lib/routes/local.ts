import { setTimeout } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { wantsJson } from '../http/accept.js'
import { AuthError } from '../errors.js'
import { issueToken, login, register, verifyToken } from '../flows/local.js'
import type { Caller } from '../local/fair-queue.js'
import { hashing } from '../local/hashing.js'
import type { LocalIdentityProvider } from '../local/identity-provider.js'
import type { ResolvedOptions } from '../options.js'
import { answerFailure, errorPage, nextPath } from './answers.js'
import { type RateLimits, addressOf } from './limits.js'
import * as schemas from './schemas.js'

/** How long a client waits for `busy`. One that tries again at once takes the time of the logins that are under way. */
const PAUSE_MS = 1000

/** Each takes memory; what comes on top is refused at once. */
const MAX_PAUSED = 1024

/** The routes of the local identity provider. */
export function mountLocalRoutes (scope: FastifyInstance, local: LocalIdentityProvider, options: ResolvedOptions, limits: RateLimits): void {
  const routes = scope.withTypeProvider<schemas.SchemaTypes>()

  const answerOnPage: ErrorHandler = (error, request, reply) => answerFailure(request, reply, error, {
    page: errorPage(request, options, Object(request.body).error_next),
    signInAt: 'local'
  })
  const answerWithStatus: ErrorHandler = (error, request, reply) => answerFailure(request, reply, error, { page: null })

  if (local.registration !== null) {
    routes.post('/local/register', { schema: schemas.registerUser, onRequest: [refuseWhenBusy, limits.register], errorHandler: answerOnPage }, async (request, reply) => {
      const { email, password, name, role, email_verified: emailVerified, next } = request.body
      const principal = await register(request, local, options, {
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

  routes.post('/local/login', { schema: schemas.loginUser, onRequest: [refuseWhenBusy, limits.login], preHandler: limits.account, errorHandler: answerOnPage }, async (request, reply) => {
    const { email, password, next } = request.body
    const principal = await login(request, local, options, { email, password, caller: callerOf(request, reply) })
    return wantsJson(request) ? principal : goTo(request, reply, next)
  })

  routes.post('/local/token', { schema: schemas.issueToken, errorHandler: answerWithStatus }, async request => {
    const token = await issueToken(request, local, options.store)
    return { token, token_type: 'Bearer', expires_in: local.ttl }
  })

  routes.post('/local/verify-token', { schema: schemas.verifyToken, errorHandler: answerWithStatus }, async request => verifyToken(local, options.store, request.body.token))

  const { jwks } = local
  if (jwks !== null) {
    const options = { schema: schemas.publicKeys, onSend: letCachesKeep, exposeHeadRoute: false }
    routes.get('/local/jwks.json', options, async () => jwks)
  }

  function goTo (request: FastifyRequest, reply: FastifyReply, next: unknown): FastifyReply {
    return reply.redirect(nextPath(request, options, next), 303)
  }
}

type ErrorHandler = (error: Error, request: FastifyRequest, reply: FastifyReply) => FastifyReply

/** Before the body is read and the store is asked: many refusals must cost little. */
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

/** Takes a password out of the queue when the connection closes. Fastify's `request.signal` aborts as soon as the body was read. */
function callerOf (request: FastifyRequest, { raw }: FastifyReply): Caller {
  const closed = new AbortController()
  raw.once('close', () => {
    closed.abort(new AuthError('busy', { message: 'The client closed the connection before its turn came.' }))
  })
  return { address: addressOf(request), signal: closed.signal }
}

/** Lets caches keep the public keys, but no error and no answer that carries the cookie of a session. */
async function letCachesKeep (_request: FastifyRequest, reply: FastifyReply): Promise<void> {
  if (reply.statusCode === 200 && !reply.hasHeader('Set-Cookie')) reply.header('Cache-Control', 'public, max-age=300')
}

/** A form sends what is not filled in as an empty string. */
function filledIn (field: string | undefined): string | undefined {
  return field === '' ? undefined : field
}

/** A checkbox sends `on`, or the value that the page gave it; nothing when it is not checked. */
function isChecked (field: boolean | string | undefined): boolean {
  return field === true || (typeof field === 'string' && !['', 'off', 'false', '0'].includes(field))
}
