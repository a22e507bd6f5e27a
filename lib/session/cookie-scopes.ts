import type { FastifyInstance, FastifyReply, Session } from 'fastify'
import { OptionsError } from '../errors.js'

/** What tells a cookie from others of its name, and its flags. */
type Attributes = Pick<Session['cookie'], 'path' | 'secure' | 'sameSite'> & {
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
  const key = `${name};${keyOf(cookie)}`
  if (cookies.has(key)) {
    throw new OptionsError(`this server has a session cookie ${name} for the path ${cookie.path ?? '/'} already, of ` +
      'another registration of fastify-svc-auth; set session.cookieName or session.cookie.path, or register the ' +
      'plugin once')
  }
  cookiesOf.set(server, cookies.add(key))
}

function keyOf ({ domain, path = '/' }: Attributes): string {
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
  const kept = [`;${keyOf(own)}`, ...cookiesOf.get(server.server) ?? []]
  const isSecure = own.secure === true || protocol === 'https'
  const flags = { maxAge: 0, httpOnly: true, secure: isSecure, sameSite: own.sameSite ?? false }
  const expired = paths.flatMap(path => domains.map(domain => ({ domain, path })))
    .filter(scope => !kept.some(key => key.endsWith(`;${keyOf(scope)}`)))
    .flatMap(scope => own.partitioned === true ? [scope, { ...scope, partitioned: true }] : [scope])
  for (const scope of expired.slice(0, MAX_EXPIRED)) {
    reply.header('set-cookie', server.serializeCookie(name, '', { ...scope, ...flags }))
  }
}
