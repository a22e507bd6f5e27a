import type { AuthContext } from '../../core/context.js'
import { checkedUserId } from '../app-auth/users.js'

declare module '../app-auth/auth.js' {
  interface Auth extends GrantMembers {}
}

/** A client that a user has allowed to act for them. */
export interface ConnectedClient {
  /** Names the grant in `endGrant`. */
  id: string
  /** The id of the client. */
  clientId: string
  /** The name of the client; null for one without. */
  name: string | null
  /** The URL of the resource. */
  resource: string
  scopes: readonly string[]
  createdAt: Date
  /** The last use, to an hour. */
  lastUsedAt: Date
}

/** What the option `oauthServer` adds to `app.auth`. */
export interface GrantMembers {
  /**
   * Lists the clients that a user has connected, the last used ones first.
   *
   * @throws AuthError `unsupported` without the option `oauthServer`
   */
  readonly grants: (userId: string) => Promise<ConnectedClient[]>

  /**
   * Ends a grant with its tokens, in each process at once.
   *
   * @param id of {@link ConnectedClient}
   * @returns false when {@link grants} lists none with this id
   */
  readonly endGrant: (userId: string, id: string) => Promise<boolean>
}

/** What they do is loaded when it is asked for. */
export function grantMembers (auth: AuthContext): GrantMembers {
  const load = () => import('./account.js')
  return {
    grants: async userId => (await load()).connectedClients(auth, userId),
    endGrant: async (userId, id) => (await load()).endGrantOf(auth, checkedUserId(userId), id, {})
  }
}
