/** The column `content` of `svc_auth_connections`: what of a connection can be changed. */
export interface ConnectionContent {
  /** What people call it. */
  name: string
  /** The client secret, or the private key of the client as JSON: encrypted. */
  credential: {
    /** Which of the two. */
    kind: 'secret' | 'key'
    /** A JWE that the data secret opens. */
    sealed: string
  }
  /** Scopes besides those of every connection. */
  scopes: readonly string[]
  /** How users of its domains must sign in by it; null where they need not. */
  enforce: {
    /** The days that keys and grants of a user are good after their last sign-in by it. */
    days: number
    /** The ids of users who may sign in by other methods. */
    except: readonly string[]
  } | null
  /** The addresses that are told when a domain is not proven any more. */
  administrators: readonly string[]
}
