import { isLoopback } from '../../core/fetching.js'

const MAX_LENGTH = 2048

/** The characters of a URI (RFC 3986 section 2), but no fragment and no wildcard. */
const CHARACTERS = /^[\w.~:/?[\]@!$&'()+,;=%-]+$/

/** Its parts without the port, which the system chooses for each request (RFC 8252 section 7.3). */
const LOOPBACK = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost))(?::[1-9]\d{0,4})?([/?].*)?$/

/** A scheme based on a domain of the application's developer (RFC 8252 section 7.1). */
const DOMAIN_SCHEME = /^[a-z][a-z\d-]*(?:\.[a-z\d-]+)+$/

/** Schemes that browsers and systems have a meaning for. */
const COMMON_SCHEMES: ReadonlySet<string> = new Set([
  'about', 'blob', 'data', 'file', 'filesystem', 'ftp', 'http', 'https', 'intent', 'jar', 'javascript', 'mailto', 'sms',
  'tel', 'vbscript', 'view-source', 'ws', 'wss'
])

/** Whether a scheme can be that of an application, without a colon; for the option `schemes`. */
export function isPrivateScheme (scheme: unknown): scheme is string {
  return typeof scheme === 'string' && /^[a-z][a-z\d+.-]*$/.test(scheme) && !COMMON_SCHEMES.has(scheme)
}

/**
 * Whether codes may be sent to a URI: https:, http: to the loopback interface, or a private scheme
 * with a dot. It is written as browsers write it, so that nothing reads another host in it.
 *
 * @param schemes private schemes without a dot that are allowed, too
 * @see RFC 8252 section 7, RFC 9700 section 4.1.3
 */
export function isRegistrable (uri: unknown, schemes: ReadonlySet<string>): uri is string {
  if (typeof uri !== 'string' || uri.length > MAX_LENGTH || !CHARACTERS.test(uri) || !URL.canParse(uri)) return false
  const { href, protocol, username, password } = new URL(uri)
  if ((href !== uri && href !== `${uri}/`) || `${username}${password}` !== '') return false
  if (protocol === 'https:') return true
  if (protocol === 'http:') return LOOPBACK.test(uri)
  const scheme = protocol.slice(0, -1)
  // Otherwise `client.example:8080` would be one.
  if (!uri.startsWith(`${protocol}/`)) return false
  return isPrivateScheme(scheme) && (DOMAIN_SCHEME.test(scheme) || schemes.has(scheme))
}

/** Returns the registrable URIs of a list that a client sent, each once; none of another value. */
export function registrableUris (uris: unknown, schemes: ReadonlySet<string>): string[] {
  return Array.isArray(uris) ? [...new Set(uris.filter(uri => isRegistrable(uri, schemes)))] : []
}

/**
 * Returns the URI of an authorization request if it is registered: letter for letter, but for the
 * port of a loopback URI. Null for any other value.
 */
export function matchingRedirect (registered: readonly string[], asked: unknown): string | null {
  if (typeof asked !== 'string') return null
  if (registered.includes(asked)) return asked
  const [, host, rest] = LOOPBACK.exec(asked) ?? []
  const isSame = (uri: string): boolean => {
    const [, ownHost, ownRest] = LOOPBACK.exec(uri) ?? []
    return ownHost === host && ownRest === rest
  }
  return host !== undefined && URL.canParse(asked) && registered.some(isSame) ? asked : null
}

/** Who can receive codes: a host, or any program of the user's machine (RFC 8252 section 8.6). */
export type RedirectKind = 'https' | 'loopback' | 'scheme'

/** Returns the kind of a registered URI. */
export function kindOf (uri: string): RedirectKind {
  const { protocol, hostname } = new URL(uri)
  if (protocol !== 'https:' && protocol !== 'http:') return 'scheme'
  return isLoopback(hostname) ? 'loopback' : 'https'
}

/** Returns what a page shows of a registered URI: host and port, or the scheme with its colon. */
export function shownTarget (uri: string): string {
  const { protocol, host } = new URL(uri)
  return kindOf(uri) === 'scheme' ? protocol : host
}
