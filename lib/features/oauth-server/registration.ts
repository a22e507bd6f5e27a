import { randomBytes } from 'node:crypto'
import { DAY_MS } from '../../base/values.js'
import { isPlainObject } from '../../claims.js'
import { type ClientMetadata, readMetadata } from './client-metadata.js'
import type { OAuthClient } from './client.js'
import { type Endpoint, OAuthError } from './token.js'
import type { Server } from './oauth-server.js'

/** An error of RFC 7591 section 3.2.2. */
const refused = (error: 'invalid_redirect_uri' | 'invalid_client_metadata', description: string): OAuthError =>
  new OAuthError(error, description)

/** What every client has, whatever it asks for. */
const CAPABILITIES = {
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none'
}

/**
 * Reads the body of a registration. Redirect URIs that cannot be used are dropped, since clients
 * send those of all their platforms. An authentication method becomes `none`.
 *
 * @param schemes the option `schemes`
 * @throws OAuthError
 * @see RFC 7591 section 3.1
 */
export function readRegistration (body: unknown, schemes: ReadonlySet<string>): ClientMetadata {
  if (!isPlainObject(body)) throw refused('invalid_client_metadata', 'The body must be a JSON object.')
  const { grant_types: grants = ['authorization_code'], response_types: responses = ['code'] } = body
  if (!Array.isArray(grants) || !grants.includes('authorization_code')) {
    throw refused('invalid_client_metadata', 'grant_types must list authorization_code.')
  }
  if (!Array.isArray(responses) || !responses.includes('code')) {
    throw refused('invalid_client_metadata', 'response_types must list code.')
  }
  const metadata = readMetadata(body, schemes)
  if (metadata.redirectUris.length > 0) return metadata
  throw refused('invalid_redirect_uri', 'redirect_uris must list a URI that can be used here: https:, ' +
    'http: with 127.0.0.1, [::1] or localhost, or a private scheme with a dot.')
}

/**
 * Returns the body of the answer: the client as it is registered.
 *
 * @param createdAt milliseconds since 1970
 * @see RFC 7591 section 3.2.1
 */
export function registrationAnswer ({ id, name, redirectUris }: OAuthClient, createdAt: number): object {
  return {
    client_id: id,
    client_id_issued_at: Math.floor(createdAt / 1000),
    ...(name !== null && { client_name: name }),
    redirect_uris: redirectUris,
    ...CAPABILITIES
  }
}

/** Registers clients, of which `most` that nobody has used are kept, for a day. */
export function registrationEndpoint (
  { grants, schemes }: Server, most: number
): Endpoint {
  return async request => {
    const content = readRegistration(request.body, schemes)
    const createdAt = Date.now()
    const clientId = `client_${randomBytes(18).toString('base64url')}`
    await grants.addClient({ clientId, content, createdAt, usedAt: null }, most, createdAt - DAY_MS)
    return registrationAnswer({ id: clientId, ...content, firstParty: false, kind: 'registered' }, createdAt)
  }
}
