import { randomUUID } from 'node:crypto'
import { type User, isBlocked } from '../../accounts/account.js'
import type { Accounts, OnCreate } from '../../accounts/accounts.js'
import type { LinkedIdentity, NewUser } from '../../accounts/identities.js'
import { noteSubject } from '../../audit.js'
import type { AuthContext } from '../../core/context.js'
import { AuthError } from '../../errors.js'
import { type LinkingPolicy, type ProviderIdentity, callHook } from '../../hooks.js'
import type { Outbox } from '../../core/mail-links.js'
import type { Findings } from '../../core/findings.js'
import { promotionOf } from '../../core/guests.js'
import { mayNeedFactor } from '../../core/methods.js'
import { emailOf, linkOf, tellOwner, writeSignIn } from '../../core/linking.js'
import { refuseOtherWays } from '../../core/required-connection.js'

const MAX_ATTEMPTS = 10

/**
 * Finds the user of an identity, links the identity to the user with its e-mail if the policy
 * allows it, or creates a user, unless a guest becomes that user. Nothing is written of a user who
 * is blocked, of whom a second factor may be due, or who may have to sign in by a connection:
 * {@link writeHeld} does that when the sign-in is complete.
 *
 * The store refuses a write that another request was ahead of, and the next attempt reads again.
 * Simultaneous first sign-ins of one identity, or of two identities with one verified e-mail,
 * therefore end as one user.
 *
 * @throws AuthError `account_exists` when a user has the e-mail and the identity may not join them
 */
export async function userOfIdentity (
  auth: Pick<AuthContext, 'accounts' | 'connectionRule' | 'linking' | 'methods' | 'offered' | 'requiresFactor'>,
  request: object,
  identity: ProviderIdentity,
  { outbox = null, guest = null, onCreate }:
  { outbox?: Outbox | null, guest?: User | null, onCreate?: OnCreate | undefined } = {}
): Promise<Pick<Findings, 'user' | 'isNew' | 'held' | 'newUser'>> {
  const { accounts, linking } = auth
  const link = linkOf(identity)
  const isRuled = auth.connectionRule !== null
  const mustHold = (user: User): boolean => isBlocked(user) || mayNeedFactor(auth, user)
  const holds = (user: User): boolean => isRuled || mustHold(user)
  let mayCreate = guest === null && !isRuled

  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const created = newUser(link)
    const email = emailOf(identity.claims)
    const found = await accounts.enterIdentity(link, email, mayCreate ? created : null, holds, onCreate)
    if (guest !== null && found === null) return promotionOf(request, guest, created)
    if (found === null) {
      // No user has the identity, or its address.
      await refuseOtherWays(auth, { email, userId: null }, identity.provider)
      mayCreate = true
      continue
    }
    const { as, ...entered } = found
    const { user: existing } = entered
    noteSubject(request, existing.userId)
    if (as === 'refreshes' || as === 'moves') return { user: existing, isNew: false, held: as }
    if (as !== 'owner-of-email') {
      tellOwner(entered, outbox)
      return { user: existing, isNew: as === 'new' && 'user', held: null }
    }

    if (await mayJoin(linking, existing, identity)) {
      await refuseOtherWays(auth, existing, identity.provider)
      const isHeld = mustHold(existing)
      const joining = { user: existing, identity, held: 'link', outbox } as const
      const joined = isHeld ? null : await writeSignIn(accounts, joining)
      if (joined !== null) return { user: joined, isNew: 'link', held: null }
      if (await hasOtherSubject(accounts, existing, link)) throw new AuthError('account_exists')
      if (isHeld) return { user: existing, isNew: false, held: 'link' }
    } else if (await accounts.findUser({ userId: existing.userId }) !== null) {
      throw new AuthError('account_exists')
    }
  }
  const cause = new Error(`the account was changed by ${MAX_ATTEMPTS} other sign-ins meanwhile`)
  throw new AuthError('unavailable', { cause })
}

/**
 * Links an identity to a user who asked for it. Of one that they have, the claims are replaced.
 *
 * @param generation as of the session in which the user asked
 * @returns the user with a new link; null when they had it already
 * @throws AuthError `unauthenticated` when the user's sessions were ended since, `already_linked`
 * when the identity belongs to another user, or the user has another identity at this provider
 */
export async function linkIdentity (
  accounts: Accounts,
  { userId, generation }: Pick<User, 'userId' | 'generation'>,
  identity: ProviderIdentity
): Promise<User | null> {
  const linked = await accounts.addLink(userId, linkOf(identity), generation)
  if (linked !== null) return linked

  const user = await accounts.findUser({ userId })
  if (user === null || user.generation !== generation) throw new AuthError('unauthenticated')
  if (!await isLinkedTo(accounts, userId, identity)) throw new AuthError('already_linked')
  if (!await accounts.updateLink(userId, linkOf(identity), generation)) throw new AuthError('unauthenticated')
  return null
}

/** Whether a user has an identity; refuses one that cannot be linked to them: `already_linked`. */
export async function isLinkedTo (
  accounts: Accounts, userId: string, { provider, subject }: ProviderIdentity
): Promise<boolean> {
  const [owner, links] = await Promise.all([accounts.findUser({ provider, subject }), accounts.links(userId)])
  const present = links.find(link => link.provider === provider)
  if (present !== undefined && present.subject !== subject) {
    throw new AuthError('already_linked', {
      message: 'Your account has another identity at this provider; unlink that one first.'
    })
  }
  if (owner !== null && owner.userId !== userId) throw new AuthError('already_linked')
  return present !== undefined
}

/**
 * Links by e-mail only when the e-mail of the user is verified. Otherwise an attacker could
 * register a victim's address and wait for the victim's first external sign-in (account
 * pre-hijacking).
 */
async function mayJoin (linking: LinkingPolicy, existing: User, identity: ProviderIdentity): Promise<boolean> {
  const isApproved = typeof linking === 'function'
    ? await callHook(() => linking(existing, identity))
    : linking === 'verified-email' && identity.emailVerified
  return isApproved === true && existing.emailVerified
}

/**
 * Whether a user has another subject at the provider of an identity. A second subject with the same
 * e-mail may be a new owner of a recycled address.
 */
async function hasOtherSubject (
  accounts: Accounts, { userId }: User, { provider, subject }: LinkedIdentity
): Promise<boolean> {
  const links = await accounts.links(userId)
  return links.some(link => link.provider === provider && link.subject !== subject)
}

function newUser ({ provider, subject, claims, verifiedEmail, connectionAt }: LinkedIdentity): NewUser {
  return {
    userId: randomUUID(),
    email: verifiedEmail,
    emailVerified: verifiedEmail !== null,
    name: claims.name ?? null,
    claims: {},
    isNew: true,
    link: { provider, subject, claims },
    connectionAt
  }
}
