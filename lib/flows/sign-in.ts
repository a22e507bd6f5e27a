import { randomUUID } from 'node:crypto'
import { canonicalEmail } from '../email.js'
import { AuthError } from '../errors.js'
import type { Identity } from '../providers/provider.js'
import type { AuthStore, LinkedIdentity, User } from '../store/store.js'

/** How often a race with another sign-in of the same person is started over before giving up. */
const MAX_ATTEMPTS = 5

/**
 * Finds the user whom an identity at a provider belongs to, links it to the user who owns its verified e-mail, or makes a new user.
 *
 * Every write that another request got ahead of is refused by the store and looked at afresh: simultaneous first sign-ins of one
 * identity, or of two identities with one verified e-mail, end as one user.
 *
 * @throws AuthError `account_exists` when the e-mail is somebody's and it is not certain that it is the same person, `unavailable`
 */
export async function userOfIdentity (store: AuthStore, provider: string, { subject, claims, emailVerified }: Identity): Promise<User> {
  const email = claims.email === undefined ? null : canonicalEmail(claims.email)
  const identity: LinkedIdentity = { provider, subject, claims, verifiedEmail: emailVerified ? email : null }

  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const known = await store.refreshIdentity(identity)
    if (known !== null) return known

    const owner = email === null ? null : await store.findUser({ email })
    if (owner === null) {
      const created = await store.createUser(newUser(identity))
      if (created !== null) return created
    } else {
      if (identity.verifiedEmail === null || !owner.emailVerified) throw new AuthError('account_exists')
      const linked = await store.addLink(owner.userId, identity)
      if (linked !== null) return linked
      if (await hasOtherSubject(store, owner, identity)) throw new AuthError('account_exists')
    }
  }
  throw new AuthError('unavailable', { cause: new Error(`the account was changed by ${MAX_ATTEMPTS} other sign-ins meanwhile`) })
}

function newUser ({ provider, subject, claims, verifiedEmail }: LinkedIdentity) {
  return {
    userId: randomUUID(),
    email: verifiedEmail,
    emailVerified: verifiedEmail !== null,
    name: claims.name ?? null,
    claims: {},
    link: { provider, subject, claims }
  }
}

/** A second subject at one provider with the same e-mail may be a new owner of a recycled address. */
async function hasOtherSubject (store: AuthStore, { userId }: User, { provider, subject }: LinkedIdentity): Promise<boolean> {
  const links = await store.links(userId)
  return links.some(link => link.provider === provider && link.subject !== subject)
}
