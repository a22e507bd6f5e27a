import type { IdentityClaims } from '../../claims.js'
import { AuthError } from '../../errors.js'
import { CONFIRMATION, assertCanonical, confirmedClaims, holds, isConfirmed, localClaims } from '../accounts.js'
import type { EmailProof, EmailProofs } from '../email-proofs.js'
import { isBlocked } from '../store.js'
import { type Account, type MemoryAccounts, copyOf, endSessions, linkAt, noteVouching } from './accounts.js'

/** Redeems e-mailed links in memory. */
export function memoryEmailProofs (accounts: MemoryAccounts): EmailProofs {
  const proven = (proof: EmailProof): Account | null => {
    const account = accounts.find({ userId: proof.userId })
    return account !== undefined && holds(proof, account.user) ? account : null
  }
  const isTaken = (account: Account, email: string): boolean => {
    const owner = accounts.find({ provider: 'local', subject: email })
    return owner !== undefined && owner !== account
  }

  return {
    async verifyEmail (proof) {
      const account = proven(proof)
      if (account === null) return null
      if (isConfirmed(account.vouchers)) return 'unchanged'
      noteVouching(account, CONFIRMATION)
      const link = linkAt(account, 'local')
      if (link?.subject === proof.email) link.claims.email_verified = true
      return 'verified'
    },

    async resetPassword (proof, passwordHash) {
      const { email } = proof
      const account = proven(proof)
      if (account === null || isBlocked(account.user) || isTaken(account, email)) return null
      const wasVerified = account.user.emailVerified
      const removed = wasVerified ? [] : accounts.removeLinks(account, ({ provider }) => provider !== 'local')
      accounts.setLink(account, { provider: 'local', subject: email, claims: claimsAt(account, email) })
      account.passwordHash = passwordHash
      noteVouching(account, CONFIRMATION)
      endSessions(account)
      return { user: copyOf(account.user), wasVerified, removed: removed.map(({ provider }) => provider).sort() }
    },

    async changeEmail (proof, to) {
      assertCanonical(to)
      const account = proven(proof)
      if (account === null) return null
      const owner = accounts.find({ email: to }) ?? account
      if (owner !== account || isTaken(account, to)) throw new AuthError('exists')
      if (linkAt(account, 'local') !== undefined) {
        accounts.setLink(account, { provider: 'local', subject: to, claims: claimsAt(account, to) })
      }
      accounts.setEmail(account, to)
      noteVouching(account, { ...CONFIRMATION, isNewEmail: true })
      endSessions(account)
      return copyOf(account.user)
    },

    async disownEmail (proof) {
      const account = proven(proof)
      if (account === null || account.user.emailVerified) return null
      const [removed] = accounts.removeLinks(account, ({ provider, subject }) =>
        provider === 'local' && subject === proof.email)
      if (account.links.length === 0) {
        accounts.remove(account)
        return 'deleted'
      }
      if (removed !== undefined) account.passwordHash = undefined
      accounts.setEmail(account, null)
      endSessions(account)
      return 'freed'
    }
  }
}

/** The claims of the link at `local` after the user has confirmed its address; it may be new. */
function claimsAt (account: Account, email: string): IdentityClaims {
  const { userId, name } = account.user
  const claims = linkAt(account, 'local')?.claims ?? localClaims({ userId, email, name, isConfirmed: true })
  return confirmedClaims(claims, email)
}
