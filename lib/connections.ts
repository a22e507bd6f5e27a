/**
 * Identity providers that the application adds while it runs, for the customers of the application.
 *
 * @module fastify-svc-auth/connections
 */
export { type ConnectionSignIn, Connections, type ConnectionsOptions } from './features/connections/connections.js'
export type { ConnectionDomain, DomainProof } from './features/connections/domains.js'
export type {
  AuditedConnection, Connection, ConnectionChange, ConnectionToCreate, EnforceOptions
} from './features/connections/made-connections.js'
export type { ConnectionList, ConnectionMembers, ConnectionPage } from './features/connections/members.js'
