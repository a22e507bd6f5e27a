import formbody from '@fastify/formbody'
import { Ajv } from 'ajv'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { AuthError } from '../errors.js'
import type { ResolvedOptions } from '../options.js'
import { refuseCrossOrigin } from '../own-origin.js'
import { warnOfPlainHttp } from '../session/cookie.js'
import { keepEnded } from '../session/ended-sessions.js'
import { answerFailure, errorPage, failureBody } from './answers.js'

/** Of every answer: each may carry who somebody is, or a code in the URL that it leads away from. */
const HEADERS = { 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer', 'X-Content-Type-Options': 'nosniff' }

/**
 * Sets up the encapsulated context of our routes: parsers, validation, headers, log and errors of their own. Nothing of the application's
 * settings weakens them, and nothing of them reaches the application.
 *
 * @returns what compiles the schemas of the routes that are mounted afterwards, each once the application is ready
 */
export async function setUpScope (scope: FastifyInstance, options: ResolvedOptions): Promise<ReadonlyArray<() => unknown>> {
  await setUpParsers(scope)

  // Fastify's own validator turns `true` into "true" and ["a"] into "a": here a wrong type is a wrong type. Our schemas need no check of their own.
  const ajv = new Ajv({ strict: false, coerceTypes: false, useDefaults: false, removeAdditional: false, validateFormats: false, meta: false, validateSchema: false })
  // Not while the application starts; ajv keeps what it has compiled.
  const compilations: Array<() => unknown> = []
  scope.setValidatorCompiler(({ schema }) => {
    compilations.push(() => ajv.compile(schema))
    return data => {
      const validate = ajv.compile(schema)
      validate(data)
      return validate.errors ? { error: validate.errors } : true
    }
  })
  // An error is serialised where no handler is asked any more: when the session cannot be saved while an answer is sent.
  scope.setSerializerCompiler(() => data => JSON.stringify(data instanceof Error ? failureBody(data) : data))

  // Twice, for the session can fail in front of our first hook, and behind our last.
  scope.addHook('onSend', async (_request, reply) => { reply.headers(HEADERS) })
  scope.addHook('onRequest', async (request, reply) => {
    reply.headers(HEADERS)
    refuseCrossOrigin(request, options)
    // @fastify/session takes a path that is spelt in another way for one outside that of its cookie.
    if (request.session.sessionId === undefined) throw new AuthError('invalid_request')
    // The session may be one that the application registered.
    keepEnded(request.sessionStore)
    warnOfPlainHttp(request)
  })
  // A request without a body is one without fields: what is required is then missing, what is not is not.
  scope.addHook('preValidation', async request => { request.body ??= {} })
  scope.setErrorHandler((error, request, reply) => answerFailure(request, reply, error, { page: errorPage(request, options) }))
  return compilations
}

/** What the log says of a request: the query of a callback is a credential, so no query at all. */
export const logSerializers = {
  req: (request: FastifyRequest) => ({
    method: request.method,
    url: request.url.split(/[?;]/, 1)[0],
    host: request.host,
    remoteAddress: request.ip,
    remotePort: request.socket.remotePort
  })
}

/** JSON and forms, strictly; any other type is 415. */
async function setUpParsers (scope: FastifyInstance): Promise<void> {
  scope.removeAllContentTypeParsers()
  const parseJson = scope.getDefaultJsonParser('error', 'error')
  scope.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    // Clients that always name a content type send it with an empty body too.
    if (body === '') done(null)
    else parseJson(request, body.toString(), done)
  })
  await scope.register(formbody)
}
