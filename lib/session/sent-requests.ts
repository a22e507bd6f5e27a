/**
 * Requests that are sent again, as by a double click: the answer to the first one is lost, and with
 * it the cookie of the session that it has started.
 */
import { createHmac } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { SentRequest } from '../schema/sessions.js'
import { Sealer } from '../sealed.js'
import { derivedKey, isEqual } from '../secrets.js'
import type { EntryKey } from './store.js'
import { sentIn } from './lifetime.js'
import { namedIdsIn } from './cookies.js'
import { sessionsOf } from './request-sessions.js'
import { SENT_MS, seenSessions } from './seen-sessions.js'

/** How often it is answered again. */
const MAX_REPEATS = 5

const MAX_COOKIES = 4

/** A request that may start a session. */
interface NotedRequest {
  readonly hasSecret: boolean
  readonly next: string | null
  /** The id of the session of the first one, and how often the request may come after this one. */
  readonly firstId: string | null
  readonly left: number
  hasStarted: boolean
  /** The same request, or another one to this path, as it was found before this one was counted. */
  readonly before?: SentBefore
  /** Whether its failure is that of the same request, which is recorded with that. */
  hasSameFailure?: boolean
  /** The entry that the request asked for, and whether it got it; else another one may have it. */
  entry?: EntryKey
  hasEntry?: boolean
}

/** What was found of a request that was sent before. */
export class SentBefore {
  /** The id of the session that its cookie names. */
  readonly firstId: string
  /** The id of the session that it has started. */
  readonly startedId: string
  readonly sent: SentRequest

  constructor (firstId: string, startedId: string, sent: SentRequest) {
    this.firstId = firstId
    this.startedId = startedId
    this.sent = sent
  }

  /** Whether a request is this very one. */
  isSame (request: FastifyRequest): boolean {
    const { digest } = this.sent
    return digest !== undefined && isEqual(digest, digestOfRequest(request, this.firstId))
  }

  /** Whether the same request is still answered again. */
  get isInTime (): boolean {
    return this.sent.left > 0 && this.sent.at > Date.now() - SENT_MS
  }
}

const noted = new WeakMap<FastifyRequest, NotedRequest>()

/** Notes a request, so that the session which it starts knows it. */
export function noteRequest (request: FastifyRequest, how: Partial<Omit<NotedRequest, 'hasStarted'>>): void {
  const usual = { hasSecret: false, next: null, firstId: null, left: MAX_REPEATS, hasStarted: false }
  noted.set(request, { ...usual, ...noted.get(request), ...how })
}

/** Returns what is noted of a request: the page after it, and whether it has started a session. */
export function noteOf (request: FastifyRequest): Partial<NotedRequest> {
  return noted.get(request) ?? {}
}

/** Returns what the new session of a request knows of it; `replacedId`: the id of that before. */
export async function sentBy (request: FastifyRequest, replacedId: string | null): Promise<{ sent?: SentRequest }> {
  const note = noted.get(request)
  if (note === undefined) return {}
  const { hasSecret, next, firstId, left } = note
  note.hasStarted = true
  const id = firstId ?? replacedId
  if (id === null) return {}
  const sent = {
    at: Date.now(),
    path: pathIn(request),
    ...(hasSecret && { digest: digestOfRequest(request, id) }),
    sealedId: await sealerFor(id).seal(request.session.sessionId, ''),
    next,
    left
  }
  return { sent }
}

/**
 * Finds the session that a request to this path has started whose cookie was this one, if no
 * request has come in it.
 *
 * @param ids default those that the cookies of the request name
 */
export async function findSent (
  request: FastifyRequest, ids: readonly string[] = namedIdsIn(request).slice(0, MAX_COOKIES)
): Promise<SentBefore | null> {
  const { backend } = sessionsOf(request)
  for (const firstId of ids) {
    const started = await backend.replacementOf(firstId)
    const sent = started === null ? undefined : sentIn(started)
    if (sent?.path !== pathIn(request)) continue
    // That of a request which was sent again names the first session alone.
    const opened = await sealerFor(firstId).open(sent.sealedId, '').catch(() => null)
    if (opened === null || await seenSessions.has(backend.entries, opened.text)) continue
    return new SentBefore(firstId, opened.text, sent)
  }
  return null
}

/** A keyed digest of all that a request asks for. */
export function digestOfRequest ({ method, url, body = null }: FastifyRequest, key: string): string {
  return createHmac('sha256', derivedKey(key, 'svc-auth sent request'))
    .update(JSON.stringify([method, url, body])).digest('base64url')
}

function pathIn ({ url }: FastifyRequest): string {
  return url.split('?', 1).join()
}

/** Who reads the store cannot open it without the cookie of the session before. */
function sealerFor (id: string): Sealer {
  return new Sealer([id], 'session id')
}
