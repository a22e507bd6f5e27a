import { isPlainObject } from '../../claims.js'
import { PublicDocuments } from '../../core/public-documents.js'
import { INTERNET, type FetchedDocument, isPublicUrl } from '../../core/public-fetch.js'
import { type AuthError, invalidRequest } from '../../errors.js'
import { readMetadata } from './client-metadata.js'
import type { OAuthClient } from './client.js'

const UNREACHABLE = 'The application that asks for access cannot be reached at the moment; try again later.'

/**
 * Whether a `client_id` is the URL of a document: https: with a path, and written as browsers write
 * it, so without dot segments. Its host is a name.
 *
 * @see draft-ietf-oauth-client-id-metadata-document section 3
 */
export function isDocumentUrl (clientId: string): boolean {
  if (!isPublicUrl(clientId) || clientId.includes('#')) return false
  const { href, pathname } = new URL(clientId)
  return href === clientId && pathname !== '/'
}

/**
 * Returns what finds clients by their documents. A document that cannot be fetched is
 * `unavailable`, and never an unknown client, which would have to register anew. One that breaks a
 * rule is `invalid_request`, with a sentence that names the rule.
 *
 * @param schemes the option `schemes`
 * @see draft-ietf-oauth-client-id-metadata-document section 4
 */
export function clientDocuments (schemes: ReadonlySet<string>, network = INTERNET): PublicDocuments<OAuthClient> {
  return new PublicDocuments(UNREACHABLE, document => readDocument(document, schemes), network)
}

function readDocument ({ url, type, body }: FetchedDocument, schemes: ReadonlySet<string>): OAuthClient {
  // Otherwise a file that a host keeps for its users, such as an image, would speak for the host.
  const document = /^application\/(?:[\w.-]+\+)?json *(?:;|$)/i.test(type) ? parsed(body) : null
  if (!isPlainObject(document)) throw broken('must be a JSON object, with the content type application/json')
  if (document['client_id'] !== url) throw broken('must have its own URL as its client_id, letter for letter')
  if (!isPublicClient(document)) {
    throw broken('must allow the token_endpoint_auth_method "none": keys and secrets of clients are not supported here')
  }
  const { name, redirectUris } = readMetadata(document, schemes)
  if (redirectUris.length === 0) throw broken('must list redirect_uris, at least one of which can be used here')
  return { id: url, name, redirectUris, firstParty: false, kind: 'document' }
}

/**
 * Whether a client can do without authentication. ChatGPT names the method that it prefers, and
 * `none` in a list beside it.
 *
 * @see OpenID Connect Relying Party Metadata Choices 1.0
 */
function isPublicClient (document: Readonly<Record<string, unknown>>): boolean {
  const { token_endpoint_auth_method: method = 'none', token_endpoint_auth_methods_supported: methods } = document
  return method === 'none' || (Array.isArray(methods) && methods.includes('none'))
}

function parsed (body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return null
  }
}

function broken (rule: string): AuthError {
  return invalidRequest(`The application that asks for access is set up wrong: its document ${rule}.`)
}
