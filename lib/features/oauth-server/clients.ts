import type { FastifyRequest } from 'fastify'
import type { OAuthClient } from './client.js'
import { addressOf } from '../../core/limits.js'
import { isDocumentUrl } from './client-documents.js'
import type { Server } from './oauth-server.js'

/**
 * Finds a client by its id: of the configuration, registered, or by the document at its URL.
 *
 * @throws AuthError `unavailable` when the document cannot be fetched
 */
export async function findClient (
  server: Server, request: FastifyRequest, id: string
): Promise<OAuthClient | null> {
  const configured = server.clients.get(id)
  if (configured !== undefined) return configured
  if (server.documents !== null && isDocumentUrl(id)) return server.documents.get(id, addressOf(request))
  const registered = server.registration && REGISTERED.test(id) ? await server.grants.findClient(id) : null
  return registered && { id, ...registered.content, firstParty: false, kind: 'registered' }
}

/** Whether there may be such a client: the document of one is not fetched behind the code. */
export async function isKnownClient (server: Server, id: string): Promise<boolean> {
  if (server.clients.has(id) || (server.documents !== null && isDocumentUrl(id))) return true
  return server.registration !== null && REGISTERED.test(id) && await server.grants.findClient(id) !== null
}

/** The ids of registered clients. */
export const REGISTERED = /^client_[\w-]{24}$/
