/** Token introspection (RFC 7662), for resource servers that are not this application. */
import type { AuthContext } from '../../core/context.js'
import { findKey } from '../api-keys/find-key.js'
import { INTROSPECT, type KeysPart } from '../api-keys/api-keys.js'
import { bearerTokenOf } from '../tokens/bearer.js'
import { type Endpoint, OAuthError, fieldsOf, findAccess } from './token.js'
import type { Server } from './oauth-server.js'

/** Whether the application has API keys that may ask. */
export function hasIntrospection ({ parts: { apiKeys } }: Pick<AuthContext, 'parts'>): boolean {
  return apiKeys?.scopes.has(INTROSPECT) === true
}

/**
 * Says what an access token allows, to callers with an API key of the scope `introspect`. Any other
 * text is `{ active: false }`, refresh tokens too: a resource server has no use for them.
 */
export function introspectionEndpoint (
  auth: Pick<AuthContext, 'connectionRule'>, server: Server, apiKeys: KeysPart
): Endpoint {
  return async request => {
    const key = await findKey(auth, apiKeys, bearerTokenOf(request) ?? '', request.log)
    if (key === null) throw new OAuthError('invalid_token', 'An API key is needed as the Bearer token.', 401, 'Bearer')
    if (!key.scopes.includes(INTROSPECT)) {
      throw new OAuthError('insufficient_scope', `The API key lacks the scope ${INTROSPECT}.`, 403)
    }
    const { token = '' } = fieldsOf(request)
    const access = await findAccess(auth, server, token, request.log)
    return access === null ? { active: false } : { active: true, token_type: 'Bearer', ...access.claims }
  }
}
