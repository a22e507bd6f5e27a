import type { AuthContext } from '../../core/context.js'
import type { AuditLog } from '../../audit.js'
import { type Cause, checkedUserId, sourceOfCause } from '../app-auth/users.js'
import type { ConnectedClient } from './account.js'

declare module '../app-auth/auth.js' {
  interface Auth extends GrantMembers {}
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
  readonly endGrant: (userId: string, id: string, cause?: Cause) => Promise<boolean>
}

/** What they do is loaded when it is asked for. */
export function grantMembers (auth: Pick<AuthContext, 'accounts' | 'parts'>, log: AuditLog): GrantMembers {
  const load = () => import('./account.js')
  return {
    grants: async userId => (await load()).connectedClients(auth, userId),
    endGrant: async (userId, id, cause = {}) => {
      const source = sourceOfCause('endGrant', cause, log)
      return (await load()).endGrantOf(auth, checkedUserId(userId), id, source)
    }
  }
}
