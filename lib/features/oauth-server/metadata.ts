import type { FastifyInstance } from 'fastify'
import { urlOf } from '../../core/act.js'
import { type AuthContext, needed } from '../../core/context.js'
import { OptionsError } from '../../errors.js'
import { type PublicDocument, assertFree, mountDocument } from '../published.js'
import { deviceAuthorization, redeemDevice } from './device.js'
import { hasIntrospection, introspectionEndpoint } from './introspection.js'
import { registrationEndpoint } from './registration.js'
import { mountEndpoint, revocationEndpoint, tokenEndpoint } from './token.js'

const DOCUMENT: PublicDocument = {
  summary: 'The authorization server',
  description: 'For clients that have no token yet (RFC 8414).',
  operationId: 'authServerMetadata',
  maxAge: 300,
  isOpen: true
}

const TOKEN = {
  path: 'oauth/token',
  summary: 'Get tokens for a code or a refresh token',
  description: 'RFC 6749 section 3.2, RFC 8628 section 3.4.',
  operationId: 'authOauthToken'
}
const REVOKE = {
  path: 'oauth/revoke',
  summary: 'Revoke a token',
  description: 'RFC 7009: a refresh token ends its grant.',
  operationId: 'authOauthRevoke'
}
const DEVICE = {
  path: 'oauth/device',
  summary: 'Get a code that a user types on another device',
  description: 'RFC 8628 section 3.1.',
  operationId: 'authOauthDevice'
}
const INTROSPECT = {
  path: 'oauth/introspect',
  isOpen: false,
  summary: 'Ask what a token allows',
  description: 'RFC 7662, with an API key of the scope `introspect`.',
  operationId: 'authOauthIntrospect'
}
const REGISTER = {
  path: 'oauth/register',
  status: 201,
  summary: 'Register a client',
  description: 'RFC 7591.',
  operationId: 'authOauthRegister'
}

/**
 * Mounts what clients ask themselves, and the document by which they find it.
 *
 * @see RFC 8414
 */
export function mountServer (scope: FastifyInstance, auth: AuthContext): void {
  const server = needed(auth.parts.oauthServer, 'oauthServer')
  const { issuer, registration, deviceClients, documents, resources } = server
  if (auth.local?.issuer === issuer) {
    throw new OptionsError('oauthServer has the issuer of local, which is baseUrl; give the LocalIdentityProvider ' +
      'another one: the documents of one issuer would name two servers')
  }
  const hasDevices = deviceClients.size > 0
  const grants = hasDevices ? { 'urn:ietf:params:oauth:grant-type:device_code': redeemDevice } : {}
  mountEndpoint(scope, auth, TOKEN, tokenEndpoint(auth, server, grants))
  mountEndpoint(scope, auth, REVOKE, revocationEndpoint(server))
  if (hasDevices) mountEndpoint(scope, auth, DEVICE, deviceAuthorization(auth, server))
  const { apiKeys } = auth.parts
  const introspects = hasIntrospection(auth)
  if (apiKeys !== null && introspects) {
    mountEndpoint(scope, auth, INTROSPECT, introspectionEndpoint(auth, server, apiKeys))
  }
  if (registration !== null) {
    mountEndpoint(scope, auth, REGISTER, registrationEndpoint(server, registration.most), 'register')
  }

  const endpoint = (path: string): string => urlOf(auth, `oauth/${path}`)
  const { pathname } = new URL(issuer)
  const url = `/.well-known/oauth-authorization-server${pathname.replace(/\/$/, '')}`
  assertFree(scope, url, 'oauthServer')
  mountDocument(scope, url, DOCUMENT, () => ({
    issuer,
    authorization_endpoint: endpoint('authorize'),
    token_endpoint: endpoint('token'),
    revocation_endpoint: endpoint('revoke'),
    ...(registration !== null && { registration_endpoint: endpoint('register') }),
    ...(introspects && {
      introspection_endpoint: endpoint('introspect'), introspection_endpoint_auth_methods_supported: ['Bearer']
    }),
    ...(hasDevices && { device_authorization_endpoint: endpoint('device') }),
    scopes_supported: [...new Set([...resources.values()].flatMap(({ scopes }) => [...scopes.keys()]))],
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token', ...Object.keys(grants)],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none'],
    revocation_endpoint_auth_methods_supported: ['none'],
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: documents !== null,
    protected_resources: [...resources.keys()]
  }))
}
