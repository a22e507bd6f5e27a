/** What the column `extras` of `svc_auth_users` holds: the library's own notes about a user, no claims. */
export interface UserExtras {
  /** A provider vouched for the user's `email`. */
  email_verified?: boolean
  /** The application has not let the user in yet. */
  is_new?: true
}
