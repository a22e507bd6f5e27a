const MAX_LENGTH = 2048

/** Stands for the origin of this application where only a path matters. */
export const ANY_ORIGIN = 'http://own.invalid'

/** Browsers read backslashes as `/` and drop control characters; another URL parser may not. */
// eslint-disable-next-line no-control-regex
const AMBIGUOUS = /[\\\u0000-\u001f\u007f]/

/**
 * Returns a redirect target that stays on `origin` or leads to a trusted one. Every redirect of the
 * plugin to a requested target passes this check and no other.
 *
 * @see RFC 9700 section 4.11 (open redirection)
 */
export function redirectTarget (target: unknown, origin: string, trusted: ReadonlySet<string>): string | null {
  return sameOriginPath(target, origin) ?? trustedUrl(target, trusted)
}

/** Returns path, query and fragment of a target that stays on `origin`; null for any other. */
export function sameOriginPath (target: unknown, origin: string): string | null {
  if (!isPlain(target) || !URL.canParse(target, origin)) return null

  const url = new URL(target, origin)
  if (!url.protocol.startsWith('http') || url.origin !== origin) return null
  if (url.username !== '' || url.password !== '') return null
  // `/..//evil` resolves to `//evil`, which a browser would read as another host.
  if (url.pathname.startsWith('//')) return null
  // Escapes can make it longer than a header may be.
  const path = url.pathname + url.search + url.hash
  return path.length > MAX_LENGTH ? null : path
}

/** Whether a value is a path of the application, written as browsers send it. */
export function isPath (value: unknown): value is string {
  return typeof value === 'string' && sameOriginPath(value, ANY_ORIGIN) === value
}

/**
 * Returns a URL whose origin is in a list. It must begin with the origin letter for letter: what
 * another parser could read differently is no URL of it.
 */
export function trustedUrl (target: unknown, trusted: ReadonlySet<string>): string | null {
  if (!isPlain(target) || !URL.canParse(target)) return null
  const { origin, href } = new URL(target)
  const isExact = trusted.has(origin) && target.startsWith(origin) && /^(?:$|[/?#])/.test(target.slice(origin.length))
  return isExact && href.length <= MAX_LENGTH ? href : null
}

function isPlain (target: unknown): target is string {
  return typeof target === 'string' && target !== '' && target.length <= MAX_LENGTH && !AMBIGUOUS.test(target)
}

/** Whether an accepted target is a path of this application, and not a URL of another origin. */
export function isOwnPath (target: string): boolean {
  return target.startsWith('/')
}

export function pathnameOf (path: string): string {
  return new URL(path, ANY_ORIGIN).pathname
}

export function withError (target: string, code: string): string {
  return withParameter(target, 'error', code)
}

/** Returns a target with a query parameter set once, before any fragment. */
export function withParameter (target: string, name: string, value: string): string {
  const url = new URL(target, ANY_ORIGIN)
  url.searchParams.set(name, value)
  return isOwnPath(target) ? url.pathname + url.search + url.hash : url.href
}

/** Returns a path with a query; members that are null are left out. */
export function withQuery (path: string, query: Readonly<Record<string, string | null>>): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== null) params.set(name, value)
  return params.size === 0 ? path : `${path}?${params}`
}
