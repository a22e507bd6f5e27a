const MAX_LENGTH = 2048

/** Stands for the origin of this application where only a path matters. */
export const ANY_ORIGIN = 'http://own.invalid'

/**
 * Backslashes and control characters: browsers read them as `/` or drop them, and another URL
 * parser may not.
 */
// eslint-disable-next-line no-control-regex
const AMBIGUOUS = /[\\\u0000-\u001f\u007f]/

/**
 * Returns the path, query and fragment of a redirect target that stays on `origin`. Every redirect
 * of the plugin to a requested target passes this check and no other.
 *
 * @param target the value that the client sent, of any type
 * @param origin the application's own origin, such as `https://app.example`
 * @returns a reference that starts with a single `/`, or null when the target leaves the origin or
 * is not a URL
 * @see RFC 9700 section 4.11 (open redirection)
 */
export function sameOriginPath (target: unknown, origin: string): string | null {
  if (typeof target !== 'string' || target === '' || target.length > MAX_LENGTH) return null
  if (AMBIGUOUS.test(target) || !URL.canParse(target, origin)) return null

  const url = new URL(target, origin)
  if (!url.protocol.startsWith('http') || url.origin !== origin) return null
  if (url.username !== '' || url.password !== '') return null
  // `/..//evil` resolves to `//evil`, which a browser would read as another host.
  if (url.pathname.startsWith('//')) return null
  // Escapes can make it longer than a header may be.
  const path = url.pathname + url.search + url.hash
  return path.length > MAX_LENGTH ? null : path
}

/**
 * Whether a path may lead to a login route with `link`, under any prefix. A redirect to such a path
 * is not allowed: to the login route it would look as if the user had clicked a link of the
 * application.
 */
export function startsLinking (path: string): boolean {
  // In every form that a router may be configured to accept: escapes, case, trailing slashes,
  // semicolons.
  const plain = path.replace(/%[0-9a-f]{2}/gi, escape => String.fromCharCode(parseInt(escape.slice(1), 16)))
  return /\/login\/*[?;](.*[?;&])?(link|reauthenticate)=/i.test(plain)
}

/** Returns the path with the query parameter `error` set once, before any fragment. */
export function withError (path: string, code: string): string {
  return withParameter(path, 'error', code)
}

/** Returns the path with a query parameter set once, before any fragment. */
export function withParameter (path: string, name: string, value: string): string {
  const url = new URL(path, ANY_ORIGIN)
  url.searchParams.set(name, value)
  return url.pathname + url.search + url.hash
}
