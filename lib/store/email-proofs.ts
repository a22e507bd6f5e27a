import {
  type AuthStore, MANAGED_ACCOUNT_METHODS, type ManagedAccounts, type User, managesAccounts, missingMethods, unsupported
} from './store.js'

/**
 * What the token of an e-mailed link proves: its bearer reads the mailbox. It holds as long as the
 * user has this address and no event has ended all their sessions since.
 */
export interface EmailProof {
  /** A UUID in lower case. */
  userId: string
  /** The address in its canonical form, as it was when the link was sent. */
  email: string
  /** {@link User.generation} when the link was sent, 0 where it was absent. */
  generation: number
}

/** What {@link EmailProofs.resetPassword} did. */
export interface PasswordReset {
  /** The user as they are now. */
  user: User
  /** Whether the address was verified before. */
  wasVerified: boolean
  /** The providers of the links that were removed, in order. */
  removed: string[]
}

/**
 * The optional group of {@link AuthStore} for e-mailed links, beside {@link ManagedAccounts}. What
 * is said of {@link AuthStore} holds here too. A proof that does not hold any more writes nothing:
 * of several calls at once with one proof, at most one resets the password, changes the e-mail or
 * disowns it.
 *
 * An e-mail that the user has confirmed stays verified whatever links are used, added and removed,
 * and no sign-in changes it.
 */
export interface EmailProofs {
  /**
   * Notes that the user has confirmed their e-mail, also as `email_verified: true` in the claims of
   * a link at `local` with this address. Ends no session.
   *
   * @returns `unchanged` when the user had confirmed it before; null when the proof does not hold
   */
  verifyEmail (proof: EmailProof): Promise<'verified' | 'unchanged' | null>

  /**
   * Replaces the password of a user, or sets the first one; the address becomes the subject of the
   * link at `local`. Notes that the user has confirmed the address, as {@link verifyEmail} does,
   * and ends all their sessions. When the address was not verified before, all other links are
   * removed: another person may have made them.
   *
   * @param passwordHash Argon2id PHC string
   * @returns null when the proof does not hold, when the user is blocked, or when another user has
   *   the link: then nothing was written
   */
  resetPassword (proof: EmailProof, passwordHash: string): Promise<PasswordReset | null>

  /**
   * Changes the e-mail of a user to one that they have confirmed: that of the user and, in its
   * subject and its claims, that of the link at `local`. Ends all their sessions.
   *
   * @param proof about the present address
   * @param to the new address in its canonical form
   * @returns the user as they are now; null when the proof does not hold
   * @throws AuthError `exists` when another user has the new address or a link at `local` with it,
   *   `invalid_email` when it is not canonical; then nothing was written
   */
  changeEmail (proof: EmailProof, to: string): Promise<User | null>

  /**
   * Takes an address that is not verified from a user who is not its owner: the link at `local`
   * with this address is removed, with the password, and the user has no e-mail; all their sessions
   * end. A user with no other link is deleted.
   *
   * @returns null when the proof does not hold or the address is verified
   * @throws AuthError `user_in_use` when a table of the application refers to the user and forbids
   *   the deletion
   */
  disownEmail (proof: EmailProof): Promise<'deleted' | 'freed' | null>
}

/** Each method of {@link EmailProofs} by its name: one that is missing here does not compile. */
const EMAIL_PROOFS: { readonly [Name in keyof EmailProofs]: Name } = {
  verifyEmail: 'verifyEmail',
  resetPassword: 'resetPassword',
  changeEmail: 'changeEmail',
  disownEmail: 'disownEmail'
}

/** The names of the methods of {@link EmailProofs}. */
export const EMAIL_PROOF_METHODS: ReadonlyArray<keyof EmailProofs> = Object.values(EMAIL_PROOFS)

/** Whether a store can redeem e-mailed links, and manage accounts. */
export function provesEmails (store: AuthStore): store is AuthStore & ManagedAccounts & EmailProofs {
  return managesAccounts(store) && missingMethods(store, EMAIL_PROOF_METHODS).length === 0
}

/**
 * Returns a store that can redeem e-mailed links, and manage accounts.
 *
 * @param method what needs it, for the message
 * @throws AuthError `unsupported` naming the methods that the store lacks
 */
export function emailProofs (store: AuthStore, method: string): AuthStore & ManagedAccounts & EmailProofs {
  if (provesEmails(store)) return store
  throw unsupported(method, missingMethods(store, [...MANAGED_ACCOUNT_METHODS, ...EMAIL_PROOF_METHODS]))
}
