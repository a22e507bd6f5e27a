/** What a {@link PasswordCheck} learns beside the password. */
export interface PasswordContext {
  /** The e-mail of the account in its canonical form. */
  email: string
  /** The `issuer` of the identity provider: the name of the application, or its URL. */
  issuer: string
  /** The language of the page of the plugin, such as `de`; `en` where there is none. */
  language: string
}

/**
 * The application's rule for new passwords, which are in NFKC and long enough already. True
 * accepts; false, or a sentence that says why, refuses with `weak_password`. Throw an {@link
 * AuthError} to refuse with another code, such as `breached_password`.
 */
export type PasswordCheck = (
  password: string, context: PasswordContext
) => boolean | string | Promise<boolean | string>
