const MAX_LENGTH = 2048

/** Stands for this application where only a path matters. */
export const ANY_ORIGIN = 'http://own.invalid'

/** Backslashes and control characters: browsers read them as `/` or leave them out, the URL parser of the next hop may not. */
// eslint-disable-next-line no-control-regex
const AMBIGUOUS = /[\\\u0000-\u001f\u007f]/

/**
 * The path, query and fragment of a redirect target, when it stays on `origin`; the only check that decides where a browser is sent.
 *
 * @param target what the client asked for: anything
 * @param origin the application's own origin, such as `https://app.example`
 * @returns a reference that starts with a single `/`, or null when the target leaves the origin or is not a target at all
 * @see RFC 9700 section 4.11 (open redirection)
 */
export function sameOriginPath (target: unknown, origin: string): string | null {
  if (typeof target !== 'string' || target === '' || target.length > MAX_LENGTH || AMBIGUOUS.test(target)) return null
  if (!URL.canParse(target, origin)) return null

  const url = new URL(target, origin)
  if (!url.protocol.startsWith('http') || url.origin !== origin || url.username !== '' || url.password !== '') return null
  // `/..//evil` resolves to `//evil`, which a browser would read as another host.
  if (url.pathname.startsWith('//')) return null
  // Escaped it may be longer than any header.
  const path = url.pathname + url.search + url.hash
  return path.length > MAX_LENGTH ? null : path
}

/**
 * A path of the application as browsers see it: under the path of `baseUrl`, which a proxy in front
 * may remove before the application sees it. A path that is under it already stays as it is.
 */
export function publicPath (path: string, baseUrl: string | null): string {
  const base = baseUrl === null ? '' : new URL(baseUrl).pathname.replace(/\/$/, '')
  const isPublic = path === base || ['/', '?', '#'].some(delimiter => path.startsWith(base + delimiter))
  return isPublic ? path : base + path
}

/** Whether a path may lead to a login route with `link`, wherever it is mounted: after a redirect to it nobody can tell that the person followed no link. */
export function startsLinking (path: string): boolean {
  // However a router is set to read it: escapes, letter case, trailing slashes, semicolons.
  const plain = path.replace(/%[0-9a-f]{2}/gi, escape => String.fromCharCode(parseInt(escape.slice(1), 16))).toLowerCase()
  return /\/login\/*[?;](.*[?;&])?link=/.test(plain)
}

/** The same path with the query parameter `error` set once, in front of any fragment. */
export function withError (path: string, code: string): string {
  return withParameter(path, 'error', code)
}

/** The same path with a query parameter set once, in front of any fragment. */
export function withParameter (path: string, name: string, value: string): string {
  const url = new URL(path, ANY_ORIGIN)
  url.searchParams.set(name, value)
  return url.pathname + url.search + url.hash
}
