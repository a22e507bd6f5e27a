import type { FastifyRequest } from 'fastify'
import type { User } from '../accounts/account.js'
import { audit } from '../audit.js'
import type { AuthenticationMethod, Proof } from '../authentication.js'
import { mergeClaims } from '../claims.js'
import { AuthError } from '../errors.js'
import { type ProviderIdentity, callHook } from '../hooks.js'
import { renewSession, replaceSession } from '../session/lifecycle.js'
import { chosenLifetime } from '../session/lifetime.js'
import { type Principal, type SessionRecord, withProof } from '../session/record.js'
import { noteSignIn } from './completed-sign-ins.js'
import type { AuthContext, Owner, Proven, WithAccounts } from './context.js'
import { current, readUser } from './current-user.js'
import type { Findings } from './findings.js'
import { leaveGuest } from './guests.js'
import { refuseOvertaken } from './required-connection.js'

interface AuthenticatedSignIn extends Omit<Findings, 'method' | 'held'> {
  /** Writes what waited, and returns the user as they are then; absent for nothing. */
  write?: () => Promise<User>
}

/**
 * Completes the sign-in of a user who has authenticated by all that it needs: asks the application
 * whether they may sign in, and with which claims, writes what waited for its answer, and writes
 * the session; a new user stays new until then. One whom the hook refuses is deleted; so is one who
 * was created for this sign-in when it fails afterwards, because the next attempt would report that
 * the e-mail is taken.
 *
 * @param proofs how they authenticated, in order
 * @throws what the hook throws; AuthError `unauthenticated` when the hook deleted the user,
 * `invalid_state` when the user has changed or signed out meanwhile
 */
export async function completeSignIn (
  auth: AuthContext, request: FastifyRequest, authenticated: AuthenticatedSignIn, proofs: readonly Proof[]
): Promise<Principal> {
  const { accounts, onSignIn } = auth
  const { user, isNew, identity, newUser, tokens, write } = authenticated
  const { userId, isNew: created = false } = user
  const isPromoted = newUser !== undefined
  const orDelete = async <T>(isDeleted: boolean, step: () => T | Promise<T>): Promise<T> => {
    try {
      return await step()
    } catch (error) {
      // A user whom another request has signed in meanwhile is not new, and stays.
      if (isDeleted) {
        await accounts.deleteNewUser(userId).catch((err: unknown) => {
          request.log.warn({ err, userId }, 'a new user who was not signed in could not be deleted')
        })
      }
      throw error
    }
  }

  const asked = principalFor(authenticated)
  if (onSignIn !== null) {
    const signIn = { request, principal: asked, identity, tokens, created: created || isPromoted }
    await orDelete(created, () => callHook(() => onSignIn(signIn)))
  }
  const present = await write?.() ?? user
  const { generation } = present
  const forgetGuest = await orDelete(isNew === 'user', () => leaveGuest(auth, request, present))
  const principal = await orDelete(isNew === 'user', async () => {
    // With the claims that onCreateUser has given to a guest, or onSignIn has granted.
    const written = principalFor({ user: present, identity })
    const admitted = onSignIn === null ? written : (await readUser(auth, asked))?.principal
    if (admitted === undefined) throw new AuthError('unauthenticated')
    const { ofCallback, remember } = authenticated
    const { cookieEnd, ...others } = { ...ofCallback, ...chosenLifetime(auth.remember, remember) }
    // The generation was read with the credential: a sign-in that a change of the password
    // overtakes writes a session that has ended.
    const record = { principal: admitted, methods: proofs, generation, at: proofs.at(-1)?.at ?? Date.now(), ...others }
    const confirm = async (isAdmitted: boolean): Promise<void> => {
      if (!isPromoted && !isAdmitted && !(created && await accounts.admitUser(userId))) return
      audit('registration', { userId, provider: identity.provider }, request)
    }
    await replaceSession(request, record, { cookieEnd, admits: created, confirm })
    await refuseOvertaken(auth, request, authenticated, proofs[0]?.method)
    return admitted
  })
  await forgetGuest()
  const methods = proofs.map(({ method }) => method)
  const by = methods.includes('application') ? 'application' : 'provider'
  audit('sign-in', { userId, provider: identity.provider, by, methods }, request)
  noteSignIn(request, { userId, isRepeated: false })
  return principal
}

/** The principal of a user who signs in, before the hook has granted claims. */
export function principalFor ({ user, identity, newUser }: Pick<Findings, 'user' | 'identity' | 'newUser'>): Principal {
  const { provider, claims } = identity
  return { userId: user.userId, provider, claims: mergeClaims(claims, { ...user.claims, ...newUser?.claims }) }
}

/** Authenticates the signed-in user again, by what checks it. */
export async function reauthenticateBy (
  auth: WithAccounts, request: FastifyRequest, verify: (owner: Owner) => Promise<Proven>
): Promise<void> {
  const { user, links, record } = await current(auth, request)
  const { userId, generation } = user
  const { proof } = await verify(async () => ({ userId, generation, user, links }))
  await completeReauthentication(request, record, proof.method)
}

/**
 * Authenticates the signed-in user again, by an identity that must be theirs: `invalid_state`.
 *
 * @param began the session at the provider, which takes the place of an earlier one there
 */
export async function reauthenticateAs (
  auth: WithAccounts, request: FastifyRequest, { provider, subject }: ProviderIdentity,
  began: Pick<SessionRecord, 'atProvider'>
): Promise<void> {
  const { record } = await current(auth, request)
  const owner = await auth.accounts.findUser({ provider, subject })
  if (owner?.userId !== record.principal.userId) throw new AuthError('invalid_state')
  const isOfSession = record.principal.provider === provider
  await completeReauthentication(request, { ...record, ...isOfSession && began }, 'provider')
}

/**
 * Adds a proof to a session, which gets a new id and counts as authenticated now. The generation
 * stays the one that was read before the proof: if the user's sessions were ended meanwhile, this
 * one has ended too.
 *
 * @see OWASP ASVS 7.5.3
 */
export async function completeReauthentication (
  request: FastifyRequest, record: SessionRecord, method: AuthenticationMethod
): Promise<void> {
  const at = Date.now()
  await renewSession(request, { ...record, at, methods: withProof(record.methods, { method, at }) })
  audit('reauthentication', { userId: record.principal.userId, method }, request)
}
