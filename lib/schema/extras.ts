/** The column `extras` of `svc_auth_users`: the library's own notes about a user, not claims. */
export interface UserExtras {
  /** Whether a link of the user vouches for `email`. */
  email_verified?: boolean
  /** The providers whose links vouch for `email`. Version 0.1.0 did not note them. */
  email_verified_by?: string[]
  /** The application has not admitted the user yet. */
  is_new?: true
}
