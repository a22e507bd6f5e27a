import fastifyCookie, { type CookieSerializeOptions, Signer } from '@fastify/cookie'
import fastifySession from '@fastify/session'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { BoundedMap } from '../base/values.js'
import { OptionsError } from '../errors.js'
import { isEqual } from '../secrets.js'
import { ExpressSessions } from './express.js'
import { OwnStore, hasSessions, sessionsOf } from './request-sessions.js'
import { RowSessions } from './row-sessions.js'
import type { OwnSession } from './session-options.js'
import { chooseCookie, claimCookie, expireOthers } from './several-cookies.js'

/** Registers @fastify/session, and @fastify/cookie unless the application has it. */
export async function registerSession (app: FastifyInstance, { options, rows }: OwnSession): Promise<void> {
  await registerCookies(app)

  const { secret, algorithm, cookieName, cookie, rolling } = options
  claimCookie(app, cookieName, cookie)
  const signer = Array.isArray(secret) ? new RotatingSigner([...secret], algorithm) : secret
  const { store: ofApplication = null } = options
  const store = new OwnStore(request => ofApplication === null
    ? new RowSessions(rows, cookie, request?.headers['user-agent'])
    : new ExpressSessions(ofApplication), rolling, ofApplication)
  // Registered first, so that they run before @fastify/session reads a cookie and answers with one.
  app.addHook('onRequest', chooseCookie(options, signer, store))
  app.addHook('onSend', (request, reply, payload, done) => {
    expireOthers(reply, options)
    const isSaved = prepareCookie(request, cookieName)
    if (isSaved === null) done(null, payload)
    else isSaved.then(() => { done(null, payload) }, done)
  })
  await app.register(fastifySession, { ...options, secret: signer, store })
  app.addHook('onSend', (_request, reply, payload, done) => {
    keepPrivate(reply, cookieName)
    done(null, payload)
  })
}

/**
 * Keeps an answer with the session cookie out of caches that clients share: with `rolling` a file
 * that the handler lets them keep has it as well.
 */
function keepPrivate (reply: FastifyReply, cookieName: string): void {
  const cookies = [reply.getHeader('Set-Cookie') ?? []].flat()
  if (!cookies.some(cookie => String(cookie).startsWith(`${cookieName}=`))) return
  const directives = String(reply.getHeader('Cache-Control') ?? 'private').split(',').map(name => name.trim())
  if (directives.some(name => /^(?:private|no-store)$/i.test(name))) return
  const others = directives.filter(name => !/^(?:public|s-maxage)\b/i.test(name))
  reply.header('Cache-Control', ['private', ...others].join(', '))
}

/**
 * Prepares what @fastify/session does next: saves a session of which only the cookie has changed,
 * and hides the cookie of another session, which @fastify/session would clear besides.
 */
function prepareCookie (request: FastifyRequest, cookieName: string): Promise<void> | null {
  const { session } = request
  // Without a session the cookies need not be parsed either: a hook of the application answered.
  if (session?.sessionId === undefined) return null
  if (request.cookies[cookieName] === undefined && !hasSessions(request)) return null
  const sessions = sessionsOf(request)
  // A new session takes the place of that cookie. Without one, the session of the cookie may have
  // been replaced by a sign-in that was under way: then the browser has the new cookie already.
  const isOfCookie = request.cookies[cookieName]?.endsWith(session.encryptedSessionId) === true
  const isHidden = sessions.isStored(session) ? !isOfCookie : !sessions.hasLeft
  if (isHidden) request.cookies[cookieName] = undefined
  return sessions.hasNewCookie(session.sessionId, session) ? session.save() : null
}

/** The characters in cookies of the plugin: base64, base64url, a dot, a prefix. */
const VALUE = 's:AZaz09-_.+/='

/** @throws OptionsError where the `parseOptions` of the application would change other cookies */
async function registerCookies (app: FastifyInstance): Promise<void> {
  if (!app.hasPlugin('@fastify/cookie')) {
    await app.register(fastifyCookie)
    return
  }
  const { cookies, options: { signed, maxAge, encode } } = noted(app)
  const isRead = app.parseCookie(app.serializeCookie('cookie', VALUE, { ...(encode && { encode }) })).cookie === VALUE
  const [odd] = Object.entries({ decode: !isRead, signed, maxAge }).find(([, isOdd]) => isOdd) ?? []
  if (odd !== undefined) {
    throw new OptionsError(`@fastify/cookie is registered with parseOptions.${odd}, which would change session ` +
      'cookies too; leave it out, and use it where you set or read your own cookies')
  }
  // With another `hook` than onRequest it would do so after @fastify/session needs it.
  app.addHook('onRequest', (request, reply, done) => {
    if (request.cookies === null) {
      request.cookies = app.parseCookie(request.headers.cookie ?? '')
      Reflect.set(reply, cookies, new Map())
    }
    done()
  })
}

/**
 * Returns where @fastify/cookie notes the cookies that an answer sets, and with which options: the
 * `parseOptions` of the application are the defaults. An answer that is never sent tells.
 */
function noted (app: FastifyInstance): { cookies: symbol, options: CookieSerializeOptions } {
  const ofSymbols = Object.getOwnPropertySymbols(app).map((symbol): unknown => Reflect.get(app, symbol))
  const { prototype } = Object(ofSymbols.find(value => Object(value).prototype?.setCookie !== undefined))
  const reply = Object.create(prototype, { server: { value: app }, request: { value: { raw: { headers: {} } } } })
  reply.setCookie('cookie', VALUE)
  const cookies = Object.getOwnPropertySymbols(reply).find(symbol => reply[symbol] instanceof Map)
  if (cookies === undefined) throw new Error('this version of @fastify/cookie is not supported; install ^11.1.3')
  return { cookies, options: reply[cookies].values().next().value.opts }
}

/**
 * The maximum number of remembered cookies. For a session that is not remembered the signature is
 * computed with each request, and after a rotation its user signs in again.
 */
const MAX_REMEMBERED = 10_000

/**
 * Signs session cookies with the first secret and accepts those signed with any of the secrets.
 *
 * @fastify/session compares the cookie of a request with a new signature of its id and clears the
 * cookie when they differ, so a rotation of secrets would sign all users out. Therefore a session
 * keeps the signature of its cookie until a sign-in gives it a new id. A signature that was
 * verified is not computed again: the cookies of later requests are compared with it.
 */
export class RotatingSigner {
  readonly #signer: Signer
  readonly #cookieById = new BoundedMap<string>(MAX_REMEMBERED)

  constructor (secrets: string[], algorithm: string | undefined) {
    this.#signer = new Signer(secrets, algorithm)
  }

  sign (id: string): string {
    return this.#cookieById.get(id) ?? this.#signer.sign(id)
  }

  unsign (cookie: string): ReturnType<Signer['unsign']> {
    const id = cookie.slice(0, cookie.lastIndexOf('.'))
    const verified = this.#cookieById.get(id)
    if (verified !== undefined && isEqual(verified, cookie)) return { valid: true, renew: false, value: id }
    const unsigned = this.#signer.unsign(cookie)
    if (unsigned.valid && (unsigned.renew || verified === undefined)) this.#cookieById.set(id, cookie)
    return unsigned
  }
}
