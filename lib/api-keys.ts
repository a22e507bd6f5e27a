/**
 * API keys of users, of organizations and of jobs.
 *
 * @module fastify-svc-auth/api-keys
 */
export type { ScopeText } from './core/scopes.js'
export { ApiKeys, type ApiKeysOptions } from './features/api-keys/api-keys.js'
export type { KeyMembers } from './features/api-keys/members.js'
export type { ApiKey, AuditedKey, CreatedKey, KeyOwner, KeyToCreate } from './features/api-keys/made-keys.js'
