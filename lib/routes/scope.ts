import { isUtf8 } from 'node:buffer'
import { parse } from 'node:querystring'
import formbody from '@fastify/formbody'
import { Ajv } from 'ajv'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { AuthError } from '../errors.js'
import type { ResolvedOptions } from '../options.js'
import { refuseCrossOrigin } from '../http/own-origin.js'
import { warnOfPlainHttp } from '../session/cookie.js'
import { keepEnded } from '../session/ended-sessions.js'
import { answerFailure, errorPage, failureBody } from './answers.js'
import { undocumented } from './schemas.js'

/** Of every answer: each may carry who somebody is, or a code in the URL that it leads away from. */
const HEADERS = { 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer', 'X-Content-Type-Options': 'nosniff' }

/**
 * Sets up the encapsulated context of our routes: parsers, validation, headers, log and errors of their own. Nothing of the application's
 * settings weakens them, and nothing of them reaches the application.
 *
 * @returns what compiles the schemas of the routes that are mounted afterwards, each once the application is ready
 */
export async function setUpScope (
  scope: FastifyInstance,
  options: ResolvedOptions
): Promise<ReadonlyArray<() => unknown>> {
  await setUpParsers(scope)
  keepQueriesOutOfLog(scope)

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
  scope.addHook('onRequest', async (_request, reply) => { reply.headers(HEADERS) })
  scope.setErrorHandler((error, request, reply) => answerFailure(request, reply, error, {
    page: errorPage(request, options, Object(request.body).error_next)
  }))
  return compilations
}

/** Checks the requests for the routes of a scope, before each of them is asked. */
export function checkRequests (scope: FastifyInstance, options: ResolvedOptions): void {
  scope.addHook('onRequest', async request => {
    refuseCrossOrigin(request, options)
    // @fastify/session takes a path that is spelt in another way for one outside that of its cookie.
    if (request.session.sessionId === undefined) throw new AuthError('invalid_request')
    // The session may be one that the application registered.
    keepEnded(request.sessionStore)
    warnOfPlainHttp(request)
  })
  // A request without a body is one without fields: what is required is then missing, what is not is not.
  scope.addHook('preValidation', async request => { request.body ??= {} })
}

/** Paths and methods that no route has, of the application neither: 404, and not the page of a failure. */
export function mountNotFound (scope: FastifyInstance): void {
  const notFound = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    return answerFailure(request, reply, new AuthError('not_found'), { page: null })
  }
  // As a route, so that it comes before a wildcard of the application's and reads paths as its router
  // does; it answers before any body is parsed.
  scope.route({
    method: scope.supportedMethods.filter(method => !scope.hasRoute({ method, url: `${scope.prefix}/*` })),
    url: '/*',
    schema: undocumented,
    onRequest: notFound,
    handler: notFound
  })
  // Methods that the router does not know, and the prefix itself.
  scope.setNotFoundHandler(notFound)
}

/**
 * What the log says of a request: no query, for that of a callback is a credential. However it is
 * spelt, and wherever: the path ends with the first character that no path of a route has.
 */
function keepQueriesOutOfLog (scope: FastifyInstance): void {
  const req = (request: FastifyRequest): object => ({
    method: request.method,
    url: /^[\w.~:/-]*/.exec(request.url)?.[0],
    host: request.host,
    remoteAddress: request.ip,
    remotePort: request.socket.remotePort
  })
  const { childLoggerFactory } = scope
  scope.setChildLoggerFactory(function (logger, bindings, options, rawRequest) {
    const serializers = Object.assign(Object.create(options.serializers ?? null), { req })
    return childLoggerFactory.call(this, logger, bindings, { ...options, serializers }, rawRequest)
  })
}

/** Parses JSON and forms, and refuses bodies that are not UTF-8. Any other content type is answered 415. */
async function setUpParsers (scope: FastifyInstance): Promise<void> {
  scope.removeAllContentTypeParsers()
  const parseJson = scope.getDefaultJsonParser('error', 'error')
  scope.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    if (!isUtf8(body)) done(notUtf8())
    // Clients that always name a content type send it with an empty body too.
    else if (body.length === 0) done(null)
    else parseJson(request, body.toString(), done)
  })
  await scope.register(formbody, { parser: parseForm })
  scope.addHook('preValidation', async ({ body }) => { if (body === NOT_UTF8) throw notUtf8() })
}

/** Stands for the fields of a form that is not UTF-8: an error thrown by the parser ends the process with Fastify 5.8. */
const NOT_UTF8 = Object.freeze({})

/** Bytes that ASCII does not have: several adjacent ones are one character or more in UTF-8. */
const ESCAPED_BYTES = /(?:%[89a-f][0-9a-f])+/gi

function parseForm (text: string): Record<string, unknown> {
  // Decoding bytes that are not UTF-8 makes U+FFFD of them; the parser makes it of escapes.
  const escapes = (text.match(ESCAPED_BYTES) ?? []).join('%20').replaceAll('%', '')
  return text.includes('\ufffd') || !isUtf8(Buffer.from(escapes, 'hex')) ? NOT_UTF8 : parse(text)
}

function notUtf8 (): AuthError {
  return new AuthError('invalid_request', { message: 'The body is not UTF-8.' })
}
