import type { FastifyBaseLogger } from 'fastify'
import type { AuthContext } from '../../core/context.js'
import { AuthError } from '../../errors.js'
import { type Cause, sourceOfCause } from '../app-auth/users.js'
import type { ApiKey, CreatedKey, KeyOwner, KeyToCreate } from './made-keys.js'

declare module '../app-auth/auth.js' {
  interface Auth extends KeyMembers {}
}

/** What the option `apiKeys` adds to `app.auth`; without it all throw AuthError `unsupported`. */
export interface KeyMembers {
  /**
   * Makes an API key of a user, or of an owner that the application names, such as `org:42` or
   * `job:nightly`. Its text is shown this once.
   *
   * @param cause with `request`, the request must have a session and no header `Authorization`: a
   *   key, token or grant makes no keys
   * @throws AuthError `invalid_request`; `unauthenticated` for such a request; `unknown_user`,
   *   `blocked`; `too_many` for more than 50 living keys
   *
   * @example
   * ```ts
   * const { id, key } = await app.auth.createKey(
   *   { userId, name: 'Laptop', scopes: ['orders:read'] }, { request })
   * ```
   */
  readonly createKey: (key: KeyToCreate, cause?: Cause) => Promise<CreatedKey>

  /** Lists the living API keys of a user or of an owner, the newest first. */
  readonly keys: (owner: KeyOwner) => Promise<ApiKey[]>

  /**
   * Ends an API key, in each process at once.
   *
   * @returns false when there is none with this id
   */
  readonly endKey: (id: string, cause?: Cause) => Promise<boolean>
}

/** What they do is loaded when it is asked for. */
export function keyMembers (
  auth: Pick<AuthContext, 'accounts' | 'mailer' | 'mayAct' | 'parts'>, log: FastifyBaseLogger
): KeyMembers {
  const part = () => {
    const { apiKeys } = auth.parts
    if (apiKeys === null) throw new AuthError('unsupported', { message: 'The option apiKeys is not given.' })
    return apiKeys
  }
  const load = () => import('./made-keys.js')
  return {
    async createKey (key, cause = {}) {
      const source = sourceOfCause('createKey', cause, log)
      const keys = part()
      const { createKey, makerOf } = await load()
      const maker = cause.request === undefined ? null : await makerOf(auth, cause.request)
      return createKey(keys, key, {
        source, maker, tell: user => auth.mailer?.sendOfApplication('key-created', user, log)
      })
    },
    async keys (owner) {
      const keys = part()
      return (await load()).listKeys(keys, owner)
    },
    async endKey (id, cause = {}) {
      const source = sourceOfCause('endKey', cause, log)
      const keys = part()
      return (await load()).endKey(keys, id, source)
    }
  }
}
