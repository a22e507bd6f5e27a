/** A kind of factor: an authenticator app, recovery codes, or a passkey. */
export type FactorKind = 'totp' | 'recovery' | 'passkey'

/** The column `extras` of `svc_auth_users`: the library's own notes about a user, not claims. */
export interface UserExtras {
  /** Whether the user has confirmed `email`, or one of their links vouches for it. */
  email_verified?: boolean
  /** The providers whose links vouch for `email`, and `@user` when the user has confirmed it. */
  email_verified_by?: string[]
  /**
   * The user has owned an address of the account: a provider has vouched for one, or the user has
   * confirmed one. Nothing removes it, so that who reads their mailbox later removes no factor.
   */
  email_proven?: true
  /**
   * A provider that vouched for `email` has since reported that it does not. Unless another
   * vouches, mail opens no account until the user confirms it: it may have another owner by now.
   */
  email_disputed?: true
  /** The providers that report another e-mail than before, and have not verified it yet. */
  email_awaited_from?: string[]
  /** A visitor without an address, who has signed in by nothing yet. */
  guest?: true
  /** The application has not admitted the user yet. */
  is_new?: true
  /** When the user was created, in milliseconds since the epoch. */
  created_at?: number
  /** Counts the events that ended all sessions of the user; absent before the first one. */
  generation?: number
  /** Counts the events that ended all API keys of the user; absent before the first one. */
  key_generation?: number
  /** The last such event, in seconds since the epoch like the `iat` of the tokens it ended. */
  signed_out_at?: number
  /** The application has blocked the user; the times are in milliseconds since the epoch. */
  blocked?: {
    /** When the user was blocked. */
    at: number
    /** When the block ends by itself. */
    until?: number
    /** A note of the application. */
    reason?: string
  }
  /** The browser of a sign-in was noted: a sign-in from another one is told to the user. */
  browser_noted?: true
  /** The connection by which the user signed in last. */
  connection?: {
    /** Its name as a provider: `connection:{id}`. */
    provider: string
    /** When, to an hour, in milliseconds. */
    at: number
  }
  /** The name as it is searched: in lower case, without marks. */
  name_key?: string
  /** The domain of the e-mail as it is searched. */
  email_domain?: string
  /** The application has set the name: sign-ins leave it alone. */
  name_set?: true
  /** The kinds of factors that the user has, sorted; absent for a user without factors. */
  factors?: FactorKind[]
  /** The attempts at codes of factors in the last fifteen minutes. */
  factor_attempts?: {
    /** The generation that the attempts were made at; the next one starts anew. */
    generation: number
    /** When each was made, in milliseconds since the epoch; refused ones are not noted. */
    at: number[]
    /** When the user was last told of a refused one. */
    told?: number
  }
}
