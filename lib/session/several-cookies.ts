import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import { OptionsError } from '../errors.js'
import type { EntryKey } from './store.js'
import { cookiesNamed, isWithoutSession, unsigned, warnOfSeveral } from './cookies.js'
import type { CookieOptions } from './lifetime.js'
import { type SessionToEnd, ownRecordIn, principalOf } from './record.js'
import { type OwnStore, sessionsOf } from './request-sessions.js'
import type { OwnSession } from './session-options.js'

/** A session that one of several cookies names. It was open when the request came. */
interface NamedSession extends SessionToEnd {
  /** Makes it the session of the request. */
  use: () => Promise<void>
}

/** The maximum number of sessions that are looked up for a request. */
const MAX_SESSIONS = 4

/** The open sessions of requests with several cookies, and whether the answer expires these. */
const severalOf = new WeakMap<FastifyRequest, { open: readonly NamedSession[], areOver: boolean }>()

/**
 * Returns a hook that chooses one of several session cookies, of which @fastify/session would read
 * the first: a browser sends one for each domain and path. The first one of a user counts,
 * otherwise the first one of an open session.
 */
export function chooseCookie (
  { cookieName: name, cookiePrefix: prefix = '' }: OwnSession['options'], signer: unknown, store: OwnStore
): onRequestHookHandler {
  const start = `${name}=`
  return (request, _reply, done) => {
    // So that nothing is looked up in the store.
    if (isWithoutSession(request)) [request.cookies, request.headers.cookie] = [{}, '']
    const { cookie = '' } = request.headers
    if (cookie.indexOf(start, cookie.indexOf(start) + 1) === -1) done()
    else choose(request).then(() => { done() }, done)
  }

  async function choose (request: FastifyRequest): Promise<void> {
    const cookies = cookiesNamed(request, name)
    if (cookies.length > 1) warnOfSeveral(request, name, 'the one whose session is open counts')
    const [first, ...more] = cookies.filter(cookie => cookie.startsWith(prefix)).flatMap(cookie => {
      const signed = cookie.slice(prefix.length)
      const id = unsigned(signer, signed)
      return id === null ? [] : [{ id, cookie, signed }]
    }).slice(0, MAX_SESSIONS)
    request.cookies[name] = first?.cookie
    if (first === undefined || more.length === 0) return

    const backend = store.backendFor(request)
    // At once, so that a database answers in one turn.
    const found = await Promise.all([first, ...more].map(async ({ id, cookie, signed }) => {
      const session = await backend.read(id)
      const use = async (): Promise<void> => {
        request.cookies[name] = cookie
        await new Promise<void>((resolve, reject) => {
          request.server.decryptSession(signed, request, error => { error ? reject(error) : resolve() })
        })
      }
      return session === null ? [] : [{ id, userId: ownRecordIn(session)?.principal.userId ?? null, cookie, use }]
    }))
    const open = found.flat()
    request.cookies[name] = (open.find(({ userId }) => userId !== null) ?? open[0] ?? first).cookie
    severalOf.set(request, { open, areOver: false })
  }
}

/** The open sessions of a request that its other cookies name. */
export function otherSessions (request: FastifyRequest): NamedSession[] {
  return severalOf.get(request)?.open.filter(({ id }) => id !== request.session.sessionId) ?? []
}

/**
 * Makes another session that the browser names the session of the request, if that one owns an
 * entry and none of them has a user: a cookie that a sibling subdomain has set must not make a user
 * another one.
 */
export async function useOwner (request: FastifyRequest, keyOf: (sessionId: string) => EntryKey): Promise<void> {
  const others = otherSessions(request)
  if (others.length === 0 || principalOf(request) !== null) return
  const owns = async ({ id }: { id: string }): Promise<boolean> =>
    await sessionsOf(request).backend.entries.find(keyOf(id)) !== null
  if (await owns({ id: request.session.sessionId })) return
  for (const other of others) if (await owns(other)) return other.use()
}

/** Lets the answer expire several cookies, whose sessions have ended. */
export function forgetOthers (request: FastifyRequest): void {
  const several = severalOf.get(request)
  if (several !== undefined) several.areOver = true
}

/** Expires the cookies of a name, except the one that @fastify/session sets afterwards. */
export function expireOthers (reply: FastifyReply, { cookieName, cookie }: OwnSession['options']): void {
  if (severalOf.get(reply.request)?.areOver === true) expireDuplicates(reply, cookieName, cookie)
}

/** What tells a cookie from others of its name, and its flags. */
type Attributes = { [Name in 'path' | 'secure' | 'sameSite']?: CookieOptions[Name] | undefined } & {
  domain?: string | null | undefined
  partitioned?: boolean
}

/** The session cookies of each server, by name and scope. */
const cookiesOf = new WeakMap<object, Set<string>>()

/**
 * Refuses a second session with the same cookie on one server: each would sign out the users of the
 * other.
 */
export function claimCookie ({ server }: FastifyInstance, name: string, cookie: Attributes): void {
  const cookies = cookiesOf.get(server) ?? new Set()
  const key = `${name};${scopeOf(cookie)}`
  if (cookies.has(key)) {
    throw new OptionsError(`this server has a session cookie ${name} for the path ${cookie.path ?? '/'} already, of ` +
      'another registration of fastify-svc-auth; set session.cookieName or session.cookie.path, or register the ' +
      'plugin once')
  }
  cookiesOf.set(server, cookies.add(key))
}

function scopeOf ({ domain, path = '/' }: Attributes): string {
  return `${(domain ?? '').replace(/^\./, '').toLowerCase()};${path}`
}

/** The name of a host with up to six labels. An IP address is none. */
const HOST = /^(?:(?!-)[a-z\d-]{1,63}(?<!-)\.){1,5}[a-z](?:[a-z\d-]{0,61}[a-z\d])?$/i

/** The number of cookies that expire at most: proxies take a few kilobytes of headers. */
const MAX_EXPIRED = 16

/**
 * Expires the cookies of a name that a browser may have for other domains and paths than one of
 * the server. Those of its other sessions stay. It is called before the answer sets the cookie,
 * because a browser may take a domain for the host alone.
 */
export function expireDuplicates (reply: FastifyReply, name: string, own: Attributes): void {
  const { request: { hostname, originalUrl, protocol }, server } = reply
  const labels = HOST.exec(hostname)?.[0].split('.') ?? []
  // A top-level domain has no cookies.
  const domains = ['', ...labels.slice(1).map((_, index) => labels.slice(index).join('.'))]
  const path = originalUrl.replace(/^((?:\/[\w.~%-]+){0,6}).*/s, '$1')
  const paths = Array.from(path.matchAll(/\/|$/g), ({ index }) => path.slice(0, index) || '/')
  const kept = [`;${scopeOf(own)}`, ...cookiesOf.get(server.server) ?? []]
  const isSecure = own.secure === true || protocol === 'https'
  const flags = { maxAge: 0, httpOnly: true, secure: isSecure, sameSite: own.sameSite ?? false }
  const expired = paths.flatMap(path => domains.map(domain => ({ domain, path })))
    .filter(scope => !kept.some(key => key.endsWith(`;${scopeOf(scope)}`)))
    .flatMap(scope => own.partitioned === true ? [scope, { ...scope, partitioned: true }] : [scope])
  for (const scope of expired.slice(0, MAX_EXPIRED)) {
    reply.header('set-cookie', server.serializeCookie(name, '', { ...scope, ...flags }))
  }
}
