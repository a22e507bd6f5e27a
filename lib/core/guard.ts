import type { FastifyReply, FastifyRequest, RawServerBase, RouteGenericInterface, onSendHookHandler } from 'fastify'
import { AuthError } from '../errors.js'
import { mergedVary } from './site.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The names of the headers that guards have read, as `Vary` has them. */
    svcAuthVary?: string
    /** Members of the answer to a guard's refusal, besides the four of each error. */
    svcAuthDetails?: AuthError['details']
  }
}

/** A request on any server of Node.js: HTTP/1, HTTPS, HTTP/2 with or without TLS. */
export type AnyRequest = FastifyRequest<RouteGenericInterface, RawServerBase>

/** The reply to such a request. */
export type AnyReply = FastifyReply<RouteGenericInterface, RawServerBase>

/**
 * A `preHandler` that lets a request pass, redirects a browser, or throws an AuthError for the
 * error handler of the application. Handlers for a single kind of server are guards too.
 */
export type Guard = Bivariant<(request: AnyRequest, reply: AnyReply) => Promise<void>>

/**
 * A function with bivariant parameters, as TypeScript has them for methods only.
 *
 * @typeParam F the function
 */
export type Bivariant<F extends (...args: never[]) => unknown> = {
  /** Stands for the function. */
  method (...args: Parameters<F>): ReturnType<F>
}['method']

/**
 * Makes a guard that reads these headers: what it lets pass is private, a refusal not stored. It
 * awaits nothing itself, because it runs with each request.
 */
export function reading (headers: string, guard: Guard): Guard {
  return (request: AnyRequest, reply: AnyReply) => {
    request.svcAuthVary = mergedVary(request.svcAuthVary, headers)
    return guard(request, reply).then(() => {
      if (!reply.hasHeader('Cache-Control')) reply.header('Cache-Control', 'private')
    }, (error: unknown) => {
      reply.header('Cache-Control', 'no-store')
      throw error
    })
  }
}

/**
 * An `onSend` hook that names in `Vary` what guards have read, because a handler replaces the
 * header, and adds to a refusal what error handlers leave out of its body.
 */
export const answerForGuards: onSendHookHandler = (request, reply, payload, done) => {
  const { svcAuthVary: headers, svcAuthDetails: details } = request
  if (headers !== undefined) reply.header('Vary', mergedVary(reply.getHeader('Vary'), headers))
  done(null, details === undefined ? payload : withDetails(payload, details))
}

function withDetails (payload: unknown, details: AuthError['details']): unknown {
  try {
    const body = JSON.parse(String(payload))
    if (body.code === 'reauthenticate') return JSON.stringify({ ...details, ...body })
  } catch {}
  return payload
}
