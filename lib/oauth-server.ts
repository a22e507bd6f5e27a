/**
 * The authorization server of the application's own clients.
 *
 * @module fastify-svc-auth/oauth-server
 */
export type { ScopeText } from './core/scopes.js'
export type { ConnectedClient } from './features/oauth-server/account.js'
export type { AuditedClient } from './features/oauth-server/consent.js'
export type { GrantMembers } from './features/oauth-server/members.js'
export {
  type ClientOptions, OAuthServer, type OAuthServerOptions, type ResourceOptions
} from './features/oauth-server/oauth-server.js'
