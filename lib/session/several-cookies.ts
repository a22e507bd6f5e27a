import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import type { EntryKey } from '../store/one-time-entries.js'
import { expireDuplicates } from './cookie-scopes.js'
import { cookiesNamed, unsigned, warnOfSeveral } from './cookie.js'
import { principalIn } from './record.js'
import { type EntryStore, type RowStore, sessionsOf } from './request-sessions.js'
import type { OwnSession } from './session-options.js'

/** A session that one of several cookies names. It was open when the request came. */
interface NamedSession {
  id: string
  /** Null when no user is signed in to it. */
  userId: string | null
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
  { cookieName: name, cookiePrefix: prefix = '' }: OwnSession['options'],
  signer: unknown,
  store: EntryStore | RowStore
): onRequestHookHandler {
  const start = `${name}=`
  return (request, _reply, done) => {
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
      return session === null ? [] : [{ id, userId: principalIn(session)?.userId ?? null, cookie, use }]
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
 * Makes the session that owns an entry the session of the request.
 *
 * @param keyOf returns the key of the entry if a session owns it
 */
export async function useOwner (
  request: FastifyRequest, keyOf: (owner: { session: { sessionId: string } }) => EntryKey
): Promise<void> {
  for (const { id, use } of otherSessions(request)) {
    const key = keyOf({ session: { sessionId: id } })
    if (await sessionsOf(request).backend.entries.find(key) !== null) return use()
  }
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
