import type { FastifyRequest } from 'fastify'

/**
 * Returns the name of the session cookie of a request. The application may have configured the name
 * and a prefix of the value, so the cookie is the one whose value ends with the signed session id;
 * a new session has none.
 */
export function sessionCookieName (request: FastifyRequest): string | undefined {
  const { encryptedSessionId } = request.session
  return Object.entries(request.cookies).find(([, value]) => value?.endsWith(encryptedSessionId))?.[0]
}

/**
 * Returns the session ids that cookies of a request have signed, whether or not their sessions are
 * in the store. The name of the session cookie may be the application's, so each cookie is looked
 * at, also without the prefix `s:` of express-session.
 */
export function signedIdsIn (request: FastifyRequest): string[] {
  const signer = signerOf(request.session)
  return cookiesIn(request).flatMap(([, cookie]) => unsigned(signer, cookie.replace(/^s:/, '')) ?? [])
}

/** Returns the session ids that the cookies of a request have signed: of each name one cookie. */
export function namedIdsIn ({ cookies, session }: FastifyRequest): string[] {
  const signer = signerOf(session)
  const values = Object.values(cookies).filter(value => value?.includes('.') === true)
  return values.flatMap(value => unsigned(signer, String(value).replace(/^s:/, '')) ?? [])
}

/** Makes another session that of a request, as if its cookie had come in place of another one. */
export async function useSession (request: FastifyRequest, id: string, inPlaceOf: string): Promise<void> {
  const signer = signerOf(request.session)
  const { sign }: { sign: (id: string) => string } = Object(signer)
  const signed = sign.call(signer, id)
  for (const [name, value] of Object.entries(request.cookies)) {
    const [prefix = ''] = /^s:/.exec(String(value)) ?? []
    if (unsigned(signer, String(value).slice(prefix.length)) === inPlaceOf) request.cookies[name] = prefix + signed
  }
  await new Promise<void>((resolve, reject) => {
    request.server.decryptSession(signed, request, error => { error ? reject(error) : resolve() })
  })
}

/** Returns the session id that a cookie has signed; null for another cookie. */
export function unsigned (signer: unknown, cookie: string): string | null {
  try {
    const { valid, value = null } = Object(signer).unsign(cookie)
    return valid === true ? value : null
  } catch {
    // An own signer may fail at a cookie that it has not made.
    return null
  }
}

/** Returns what signs the cookies of sessions. */
export function signerOf (session: FastifyRequest['session']): unknown {
  return Object.getOwnPropertySymbols(session).map(symbol => Reflect.get(session, symbol))
    .find(value => typeof Object(value).unsign === 'function')
}

/** Returns the values of all cookies of a name: a browser sends one for each domain and path. */
export function cookiesNamed (request: FastifyRequest, name: string): string[] {
  return cookiesIn(request).flatMap(([other, value]) => other === name ? [value] : [])
}

function cookiesIn ({ headers: { cookie = '' }, server }: FastifyRequest): Array<[name: string, value: string]> {
  return cookie.split(';').flatMap(pair => Object.entries(server.parseCookie(pair)))
}

/**
 * The config of a route to which pages of other sites send: its requests have no session. Browsers
 * withhold cookies that are `SameSite=Lax` there, so the cookie of a new one would replace theirs.
 */
export const WITHOUT_SESSION: object = { svcAuth: 'without session' }

/** Whether a request is to such a route, a POST. Fastify makes its options anew each time. */
export function isWithoutSession (request: FastifyRequest): boolean {
  return request.method === 'POST' && Object(request.routeOptions.config).svcAuth !== undefined
}

const warnedOfSeveral = new WeakSet<object>()

export function warnOfSeveral ({ sessionStore, log }: FastifyRequest, name: string, effect: string): void {
  if (warnedOfSeveral.has(sessionStore)) return
  warnedOfSeveral.add(sessionStore)
  log.warn(`A browser sent several cookies named ${name}: ${effect}. The domain or the path of the cookie was ` +
    'changed, or another application on this host uses the name; give each application its own cookieName.')
}

/** A hook for sessions of the application: of several cookies @fastify/session reads the first. */
export async function warnOfRepeatedCookie (request: FastifyRequest): Promise<void> {
  const cookies = cookiesIn(request)
  const last = new Map(cookies.map(([name], index) => [name, index]))
  const repeated = new Set(cookies.flatMap(([name], index) => last.get(name) === index ? [] : [name]))
  if (repeated.size === 0) return
  const signer = signerOf(request.session)
  const [name] = cookies.find(([name, cookie]) =>
    repeated.has(name) && unsigned(signer, cookie.replace(/^s:/, '')) !== null) ?? []
  if (name !== undefined) warnOfSeveral(request, name, 'only the first one counts, so a sign-in may have no effect')
}
