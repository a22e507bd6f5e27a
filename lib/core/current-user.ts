import { isDeepStrictEqual } from 'node:util'
import type { FastifyRequest } from 'fastify'
import type { AccountStatus, Factor, FactorKind, Link, User } from '../accounts/account.js'
import type { Accounts } from '../accounts/accounts.js'
import type { CanSignIn } from '../accounts/identities.js'
import { noteSubject } from '../audit.js'
import type { AuthenticationMethod } from '../authentication.js'
import { mergeClaims } from '../claims.js'
import { AuthError } from '../errors.js'
import type { FirstFactor } from '../features/second-factor/second-factor.js'
import { callHook } from '../hooks.js'
import { endSession, updatePrincipal } from '../session/lifecycle.js'
import { type Principal, ReadRecord, type SessionRecord, principalOf, recordIn } from '../session/record.js'
import type { AuthContext } from './context.js'

/** The signed-in user, as the store has them now. */
export interface CurrentUser {
  readonly user: User
  /** All links of the user. */
  readonly links: readonly Link[]
  /** The plugin's part of the session, with the claims that the store has now. */
  readonly record: SessionRecord
}

/**
 * Returns the signed-in user of a request. The session is left as it is.
 *
 * @throws AuthError `unauthenticated` without a user, when the user, or the link by which they
 * signed in, no longer exists, and when their sessions were ended
 */
export async function current (auth: AuthContext, request: FastifyRequest): Promise<CurrentUser> {
  const record = recordIn(request.session)
  const found = record === null ? null : await readUser(auth, record.principal)
  if (record === null || found === null || found.user.generation !== record.generation) {
    throw new AuthError('unauthenticated')
  }
  const { principal, ...user } = found
  noteSubject(request, principal.userId)
  return { ...user, record: { ...record, principal } }
}

/**
 * Returns the signed-in user of a request, for a page, with the claims of the session; null without
 * one. A session that has ended is left, as a guard does. The link by which the user signed in may
 * be gone: they have just removed it on their account page.
 */
export async function currentUser (auth: AuthContext, request: FastifyRequest): Promise<CurrentUser | null> {
  const principal = await currentPrincipal(auth, request)
  const record = recordIn(request.session)
  const found = principal === null ? null : await readAccount(auth, principal.userId)
  return found === null || record === null ? null : { ...found, record }
}

/**
 * Returns the principal of a session if the user still exists and their sessions were not ended,
 * else signs the user out. The claims are as of the session.
 */
export async function currentPrincipal (auth: AuthContext, request: FastifyRequest): Promise<Principal | null> {
  return await currentStatus(auth, request) === null ? null : principalOf(request)
}

/** Returns what a guard asks about the user of a session, as {@link currentPrincipal} does. */
export async function currentStatus (auth: AuthContext, request: FastifyRequest): Promise<AccountStatus | null> {
  const record = recordIn(request.session)
  if (record === null) return null
  const status = ReadRecord.fresh(request.session).status ?? await auth.accounts.status(record.principal.userId)
  if (status?.generation === record.generation) return status
  await endSession(request)
  return currentStatus(auth, request)
}

/**
 * Returns the record of a session with the claims that were read together with it a moment ago,
 * else as {@link current} does.
 */
export async function currentRecord (auth: AuthContext, request: FastifyRequest): Promise<SessionRecord> {
  const record = recordIn(request.session)
  const { status, presentClaims } = ReadRecord.fresh(request.session)
  if (record === null || status === undefined || presentClaims === undefined) {
    return (await current(auth, request)).record
  }
  const claims = status.generation === record.generation ? presentClaims() : null
  if (claims === null) throw new AuthError('unauthenticated')
  return { ...record, principal: { ...record.principal, claims } }
}

/**
 * Updates the principal of a session from the store. Signs the user out when the user, or the link
 * by which they signed in, no longer exists, and when their sessions were ended.
 */
export async function refreshPrincipal (auth: AuthContext, request: FastifyRequest): Promise<Principal | null> {
  for (;;) {
    const record = recordIn(request.session)
    if (record === null) return null
    const found = await readUser(auth, record.principal)
    const principal = found?.user.generation === record.generation ? found.principal : null
    if (isDeepStrictEqual(principal, record.principal)) return principalOf(request)
    // Read once more when it is written: another request may have written what came later, which
    // this one would undo.
    await (principal === null ? endSession(request) : updatePrincipal(request, principal))
  }
}

/** Returns a user, with a principal that has the claims of now; null without its user or link. */
export async function readUser (
  auth: AuthContext, { userId, provider }: Principal
): Promise<Pick<CurrentUser, 'user' | 'links'> & { principal: Principal } | null> {
  const found = await readAccount(auth, userId)
  const link = found?.links.find(link => link.provider === provider)
  if (found === null || link === undefined) return null
  return { ...found, principal: { userId, provider, claims: mergeClaims(link.claims, found.user.claims) } }
}

async function readAccount ({ accounts }: AuthContext, userId: string) {
  const [user, links] = await Promise.all([accounts.findUser({ userId }), accounts.links(userId)])
  return user && { user, links }
}

/** The kinds of factors by which a user can authenticate here, as {@link assertCanAsk} refuses. */
export async function factorsOfUser (auth: AuthContext, userId: string): Promise<FactorKind[]> {
  const user = await auth.accounts.findUser({ userId })
  if (user === null) return []
  assertCanAsk(auth, user)
  return factorsOf(auth, user)
}

export function factorsOf (
  { factors: { secondFactor, passkeys } }: Pick<AuthContext, 'factors'>, { factors: kinds = [] }: User
): FactorKind[] {
  return kinds.filter(kind => (kind === 'passkey' ? passkeys : secondFactor) !== null)
}

/**
 * Refuses a user who has factors, none of which this process can ask for. Otherwise it would pass
 * over a factor that the user has, or that another process requires.
 *
 * @throws AuthError `unavailable`; its cause names the option, for the log
 */
export function assertCanAsk (auth: AuthContext, user: User): void {
  const { userId, factors: kinds = [] } = user
  if (!cannotAsk(auth, user)) return
  const option = kinds.includes('passkey') ? 'passkeys' : 'secondFactor'
  throw new AuthError('unavailable', {
    cause: new Error(`the user ${userId} has a second factor (${kinds.join(', ')}) that this process cannot ask for: ` +
      `set the option ${option} in all processes before users set up factors`)
  })
}

/**
 * Whether a second factor may be due at a sign-in of a user, or the sign-in be refused for want of
 * one: until that is known, it writes nothing.
 */
export function mayNeedFactor (auth: Pick<AuthContext, 'factors'>, user: User): boolean {
  return cannotAsk(auth, user) || user.factors?.includes('totp') === true ||
    auth.factors.secondFactor?.required != null
}

function cannotAsk (auth: Pick<AuthContext, 'factors'>, user: User): boolean {
  const { factors: kinds = [] } = user
  return kinds.length > 0 && factorsOf(auth, user).length === 0
}

/** Whether a code can be mailed to a user: to an address that they have confirmed. */
export function canMailCode ({ mailer }: AuthContext, { email, emailVerified }: User): boolean {
  return mailer !== null && email !== null && emailVerified
}

export async function isFactorRequired (
  { factors: { secondFactor } }: AuthContext, signIn: FirstFactor
): Promise<boolean> {
  const required = secondFactor?.required ?? null
  // Any truthy answer: a rule that is not typed must not fail open.
  return required !== null && Boolean(await callHook(() => required(signIn)))
}

const FIRST_FACTORS: readonly AuthenticationMethod[] = ['password', 'provider', 'mail', 'application']

/** Whether the application requires a second factor of a user, by whichever method they sign in. */
export async function isFactorRequiredOf (auth: AuthContext, principal: Principal): Promise<boolean> {
  for (const method of FIRST_FACTORS) if (await isFactorRequired(auth, { principal, method })) return true
  return false
}

/** How a user can reauthenticate: `password`, `mail`, kinds of factors, names of providers. */
export async function methodsOf (auth: AuthContext, userId: string): Promise<string[]> {
  const found = await readAccount(auth, userId)
  return found === null ? [] : methodsIn(auth, found)
}

export function methodsIn (auth: AuthContext, { user, links }: Pick<CurrentUser, 'user' | 'links'>): string[] {
  const proving = new Set(auth.providers.filter(provider => provider.provesAuthTime === true).map(({ name }) => name))
  const names = links.map(({ provider }) => provider)
  const kinds = factorsOf(auth, user)
  const password = auth.offers.password && names.includes('local') ? ['password'] : []
  const mail = canSignInByMail(auth, user) ? ['mail'] : []
  return [...password, ...mail, ...kinds, ...names.filter(name => proving.has(name))]
}

/** Whether this process, with its options, offers a user a method to sign in. */
export function canSignIn (auth: AuthContext, ...[user, links]: Parameters<CanSignIn>): boolean {
  const isOffered = (name: string): boolean =>
    name === 'local' ? auth.offers.password : auth.providers.some(provider => provider.name === name)
  return links.some(({ provider }) => isOffered(provider)) || canSignInByMail(auth, user) ||
    factorsOf(auth, user).includes('passkey')
}

export function canSignInByMail ({ offers }: AuthContext, { email, emailDisputed }: User): boolean {
  return offers.mail && email !== null && !emailDisputed
}

/** A second factor or a passkey of a user, without its secret. */
export interface UserFactor {
  /** Names the factor; for a passkey its credential id. */
  id: string
  /** `totp`: an authenticator app; `recovery`: all recovery codes. */
  kind: FactorKind
  /** The name that the user has given; null for one without a name. */
  name: string | null
  /** When it was added. */
  createdAt: Date
  /** Null for one that was not used. */
  lastUsedAt: Date | null
  /** How many recovery codes are left; null for another kind. */
  codesLeft: number | null
}

/** Lists the factors of a user, the oldest first. */
export async function listFactors (accounts: Accounts, userId: string): Promise<UserFactor[]> {
  return (await accounts.factors(userId)).map(({ id, kind, name, createdAt, usedAt, data }) => ({
    id,
    kind,
    name,
    createdAt: new Date(createdAt),
    lastUsedAt: usedAt === null ? null : new Date(usedAt),
    codesLeft: kind === 'recovery' ? hashesIn(data).length : null
  }))
}

/** The hashes of the recovery codes that were not used. */
export function hashesIn ({ hashes }: Factor['data']): string[] {
  return Array.isArray(hashes) ? hashes : []
}
