import { isUtf8 } from 'node:buffer'
import { parse } from 'node:querystring'
import formbody from '@fastify/formbody'
import { Ajv } from 'ajv'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AuthContext } from './context.js'
import { AuthError, SHOWN_TO_ANOTHER, invalidRequest } from '../errors.js'
import { type Site, sentFields, shownTo } from './site.js'
import { isWithoutSession } from '../session/cookies.js'
import { principalOf } from '../session/record.js'
import { failureBody } from './act.js'
import { answerFailure } from './failure-answer.js'
import { refuseUnserved } from './acting.js'
import { undocumented } from './schema.js'

/**
 * Of every response: it may have the user's data, or redirect away from a URL with a code. A proxy
 * that rewrites addresses in pages would change forms and links.
 */
const HEADERS = {
  'Cache-Control': 'no-store, no-transform',
  'X-Content-Type-Options': 'nosniff'
}

/** Fastify's own validator coerces `true` to "true" and ["a"] to "a". */
const AJV = new Ajv({
  strict: false,
  coerceTypes: false,
  useDefaults: false,
  removeAdditional: false,
  validateFormats: false,
  meta: false,
  validateSchema: false,
  // It takes longer than the rest of compiling.
  code: { optimize: false }
})

/** By their text: ajv compiles each object once, and several applications may have the same. */
const schemas = new Map<string, object>()

/**
 * Sets up the encapsulated context of the routes: parsers, validation, headers, log and errors. The
 * settings of the application do not weaken them, and they do not affect the application.
 *
 * @returns what compiles the schemas of routes mounted afterwards, for after the start
 */
export async function setUpScope (
  scope: FastifyInstance, auth: AuthContext
): Promise<ReadonlyArray<() => unknown>> {
  const { redirects, site } = auth
  await setUpParsers(scope)
  keepQueriesOutOfLog(scope)

  const compilations: Array<() => unknown> = []
  scope.setValidatorCompiler(({ schema: given }) => {
    const text = JSON.stringify(given)
    const schema = schemas.get(text) ?? given
    schemas.set(text, schema)
    compilations.push(() => AJV.compile(schema))
    return data => {
      const validate = AJV.compile(schema)
      validate(data)
      return validate.errors ? { error: validate.errors } : true
    }
  })
  // Errors too: no error handler is called when the session cannot be saved during `onSend`.
  scope.setSerializerCompiler(() => data => JSON.stringify(data instanceof Error ? failureBody(data) : data))

  // In both hooks: the session can fail before the first hook of the routes and after the last.
  const headers = { ...HEADERS, 'Referrer-Policy': site.referrerPolicy }
  const warnOfCors = corsWarning(site)
  scope.addHook('onSend', async (request, reply) => {
    reply.headers(headers)
    warnOfCors(request, reply)
  })
  scope.addHook('onRequest', async (_request, reply) => { reply.headers(headers) })
  scope.setErrorHandler((error, request, reply) => answerFailure(auth, request, reply, error, {
    page: redirects.forError(request, sentFields(request).error_next)
  }))
  return compilations
}

export function checkRequests (scope: FastifyInstance, site: Site): void {
  scope.addHook('onRequest', async request => {
    if (isWithoutSession(request)) return
    site.refuseCrossOrigin(request)
    // @fastify/session gives none to another spelling of the path of its cookie.
    if (request.session.sessionId === undefined) throw new AuthError('invalid_request')
    refuseUnserved(request)
    warnOfPlainHttp(request)
  })
  // A request without a body has no fields, so that the schema names the missing ones.
  scope.addHook('preValidation', async request => {
    request.body ??= {}
    refuseFormOfAnother(request)
  })
}

/** Refuses the form of a page that was shown to another user than the present one. */
function refuseFormOfAnother (request: FastifyRequest): void {
  const { shown_to: shown, token, next, error_next: errorNext } = sentFields(request)
  const present = principalOf(request)
  if (shown === undefined || present === null || shown === shownTo(present.userId)) return
  // The page is shown anew without what was typed.
  request.body = { token, next, error_next: errorNext }
  throw new AuthError('invalid_state', { message: SHOWN_TO_ANOTHER })
}

/** Answers paths and methods under the prefix that no route has with 404. */
export function mountNotFound (scope: FastifyInstance, auth: AuthContext): void {
  const notFound = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    return answerFailure(auth, request, reply, new AuthError('not_found'), { page: null })
  }
  // A route precedes a wildcard of the application; in onRequest, because no body is parsed then.
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
 * Logs requests without their query: that of a callback is a credential. In every spelling, because
 * the logged path ends at the first character that the path of a route cannot have.
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

/** Parses JSON and forms in UTF-8. Any other content type is answered 415. */
async function setUpParsers (scope: FastifyInstance): Promise<void> {
  scope.removeAllContentTypeParsers()
  const parseJson = scope.getDefaultJsonParser('error', 'error')
  scope.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    if (!isUtf8(body)) done(notUtf8())
    // Some clients send the content type with an empty body too.
    else if (body.length === 0) done(null)
    else parseJson(request, body.toString(), done)
  })
  await scope.register(formbody, { parser: parseForm })
  scope.addHook('preValidation', async ({ body }) => { if (body === NOT_UTF8) throw notUtf8() })
}

/** A form that is not UTF-8: an error of the parser would end the process (Fastify 5.8). */
const NOT_UTF8 = Object.freeze({})

/** Escapes of bytes outside ASCII: in UTF-8 a run of them is one or more whole characters. */
const ESCAPED_BYTES = /(?:%[89a-f][0-9a-f])+/gi

/** Parses a form. Bytes that are not UTF-8 are U+FFFD already; escapes are checked before. */
function parseForm (text: string): Record<string, unknown> {
  const escapes = (text.match(ESCAPED_BYTES) ?? []).join('%20').replaceAll('%', '')
  return text.includes('\ufffd') || !isUtf8(Buffer.from(escapes, 'hex')) ? NOT_UTF8 : parse(text)
}

function notUtf8 (): AuthError {
  return invalidRequest('The body is not UTF-8.')
}

/**
 * Makes a function that warns, once for each trusted origin, that its scripts cannot read an
 * answer: the headers for that are up to the application (Fetch, CORS protocol and credentials).
 */
function corsWarning ({ trustedOrigins }: Site): (request: FastifyRequest, reply: FastifyReply) => void {
  const warned = new Set<string>()
  return (request, reply) => {
    const { origin, 'sec-fetch-mode': mode, 'sec-fetch-site': site } = request.headers
    if (origin === undefined || mode !== 'cors' || site === 'same-origin') return
    if (!trustedOrigins.has(origin) || warned.has(origin)) return
    const allowed = reply.getHeader('Access-Control-Allow-Origin')
    if (allowed === origin && reply.getHeader('Access-Control-Allow-Credentials') === 'true') return
    warned.add(origin)
    request.log.warn(`Scripts of ${origin} cannot read this answer: ` +
      `Access-Control-Allow-Origin is ${allowed === undefined ? 'absent' : `"${String(allowed)}"`}, and must be that ` +
      'origin, with Access-Control-Allow-Credentials: true. Register @fastify/cors before fastify-svc-auth, with ' +
      `{ origin: ['${origin}'], credentials: true }.`)
  }
}

const warned = new WeakSet<object>()

/**
 * Warns once when the session cookie is for https: but requests appear to come over http:. Then
 * @fastify/session does not save what the application writes into a session.
 */
function warnOfPlainHttp (request: FastifyRequest): void {
  const { session, sessionStore, protocol } = request
  if (session?.cookie.secure !== true || protocol === 'https' || warned.has(sessionStore)) return
  warned.add(sessionStore)
  request.log.warn('The session cookie is for https:, but this request came over http:. ' +
    'If a proxy terminates TLS, set the option trustProxy of Fastify to its addresses, or to ' +
    '(address, hop) => hop < 1 where it has no fixed one; ' +
    'otherwise what the application writes into sessions is lost, and all clients count as one address.')
}
