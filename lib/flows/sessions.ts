import type { FastifyReply, FastifyRequest } from 'fastify'
import { audit } from '../audit.js'
import type { RevokeSource } from '../channel.js'
import { AuthError } from '../errors.js'
import { type AuthenticationState, recordIn, withDates } from '../session/record.js'
import { signOutRow } from '../session/row-sessions.js'
import { digestOf } from '../base/digest.js'
import type { ListedSession, StoredSessions } from '../store/sessions.js'
import { Accounts } from '../accounts/accounts.js'
import type { AuthStore } from '../accounts/auth-store.js'
import { assertRecent } from './methods.js'
import { presentStatus } from '../current-user/refresh.js'
import { type SignOutRules, announceSignOut, signOut } from './sign-out.js'

/** An open session of a user. */
export interface UserSession {
  /** Names the session in `endSession`. It signs no one in, unlike the id in the cookie. */
  id: string
  /** Whether it is the session of the request that was passed. */
  current: boolean
  /** When it got its id: at the sign-in, at a reauthentication or when all others were ended. */
  createdAt: Date
  /** The last request, to a tenth of the lifetime. */
  lastSeenAt: Date
  /** The header `User-Agent` of the browser, at most 256 characters; null without one. */
  userAgent: string | null
  /** How and when the user authenticated. */
  methods: AuthenticationState['methods']
}

/** What the flows of a user's sessions work with. */
export interface SessionRules extends SignOutRules {
  /** The sessions beside the users; null where a session store of the application has them. */
  readonly listedSessions: StoredSessions | null
}

/**
 * Lists the open sessions of a user, the last used ones first.
 *
 * @param current a request whose session is marked
 * @throws AuthError `unknown_user`, `unsupported`, `unavailable`
 */
export async function sessionsOfUser (
  { store, listedSessions }: SessionRules,
  userId: string,
  current?: FastifyRequest
): Promise<UserSession[]> {
  const listed = await listOf(userId, { store, rows: rowsIn(listedSessions) })
  const currentHash = current === undefined ? null : idHashOf(current)
  return listed.map(session => ({
    id: publicId(session),
    current: session.idHash === currentHash,
    createdAt: new Date(session.createdAt),
    lastSeenAt: new Date(session.seenAt),
    userAgent: session.userAgent,
    methods: withDates(session.proofs.methods)
  }))
}

/**
 * Ends one session of a user and announces it like a sign-out.
 *
 * @returns false when the user has no open session with this id
 * @throws AuthError `unknown_user`, `unsupported`, `unavailable`
 */
export async function endSessionOfUser (
  rules: SessionRules,
  { userId, id }: { userId: string, id: string },
  source: RevokeSource
): Promise<boolean> {
  const rows = rowsIn(rules.listedSessions)
  const session = (await listOf(userId, { store: rules.store, rows })).find(session => publicId(session) === id)
  const ended = session === undefined ? null : await signOutRow(rows, session.idHash)
  if (ended === null) return false
  audit('session-end', { userId }, source)
  await announceSignOut(ended, rules, source)
  return true
}

/**
 * Ends one session of the signed-in user, who must have authenticated recently: a stolen
 * session must not end those of its owner. For the session of the request it is a sign-out.
 *
 * @throws AuthError `unauthenticated`, `reauthenticate`, `unsupported`, `unavailable`; `not_found`
 * for an id that no open session of the user has, of other users or not
 * @see OWASP ASVS 7.5.2
 */
export async function endListedSession (
  request: FastifyRequest,
  reply: FastifyReply,
  rules: SessionRules,
  id: string
): Promise<void> {
  const record = await presentStatus(request, rules.store) === null ? null : recordIn(request.session)
  if (record === null) throw new AuthError('unauthenticated')
  assertRecent(record)
  if (publicId({ idHash: idHashOf(request) }) === id) return signOut(request, reply, rules)
  const isEnded = await endSessionOfUser(rules, { userId: record.principal.userId, id }, request)
  if (!isEnded) throw new AuthError('not_found', { message: 'The user has no open session with this id.' })
}

function rowsIn (sessions: StoredSessions | null): StoredSessions {
  if (sessions !== null) return sessions
  throw new AuthError('unsupported', {
    message: 'A session store of the application does not tell which sessions a user has.'
  })
}

async function listOf (
  userId: string,
  { store, rows }: { store: AuthStore, rows: StoredSessions }
): Promise<ListedSession[]> {
  const status = await new Accounts(store).status(userId)
  if (status === null) throw new AuthError('unknown_user')
  return rows.ofUser(userId, status.generation, Date.now())
}

/** A hash of what is in the store: neither that nor the id in the cookie can be found from it. */
function publicId ({ idHash }: Pick<ListedSession, 'idHash'>): string {
  return digestOf(`listed session:${idHash}`)
}

/** The hash of the id of a request's session, as it is in the store. */
function idHashOf ({ session }: FastifyRequest): string {
  // A destroyed session is null, and outside the path of its cookie it has no id.
  return digestOf(session?.sessionId ?? '')
}
