/** The authorization request (RFC 6749 section 4.1.1, OAuth 2.1): what a client asks for. */
import type { FastifyRequest } from 'fastify'
import type { OAuthClient } from './client.js'
import { findClient } from './clients.js'
import type { Resource, Server } from './oauth-server.js'
import { kindOf, matchingRedirect } from './redirect-uris.js'

/** The parameters of a request, each of which comes once. */
export type Parameters = Readonly<Record<string, string>>

/** A request that is answered by sending the browser to its client. */
export interface ClientRequest {
  readonly client: OAuthClient
  readonly redirectUri: string
  readonly resource: Resource
  readonly scopes: readonly string[]
  readonly challenge: string
  readonly state: string | undefined
  readonly prompt: ReadonlySet<string>
}

/** A failure that the client is told in its redirect URI (RFC 6749 section 4.1.2.1). */
export interface RedirectedFailure {
  readonly client: OAuthClient
  readonly redirectUri: string
  readonly state: string | undefined
  readonly error: string
  readonly description: string
}

/** Why a request cannot be answered at its client: nobody knows who has sent it. */
export type PageFailure = 'unknownClient' | 'unknownRedirect' | 'repeated'

/** RFC 7636 section 4.2: the base64url of a SHA-256. */
const CHALLENGE = /^[\w-]{43}$/

/** Other ways to ask, which this server does not have; a server must say so. */
const UNSUPPORTED = { request: 'request_not_supported', request_uri: 'request_uri_not_supported' }

/**
 * Returns the parameters of a query or a form; null where one comes twice. Several resources are
 * one that is not known (RFC 8707 section 2).
 */
export function parametersOf (given: unknown): Parameters | null {
  const { resource, ...others }: Record<string, unknown> = Object(given)
  const named = Array.isArray(resource) ? resource.join(' ') : resource
  const entries = Object.entries({ ...others, ...(resource !== undefined && { resource: named }) })
  const isText = (entry: [string, unknown]): entry is [string, string] => typeof entry[1] === 'string'
  return entries.every(isText) ? Object.fromEntries(entries) : null
}

/**
 * Checks an authorization request: first its client and where that is sent back, so that nothing
 * is redirected to what is not registered.
 *
 * @throws AuthError where the document of a client cannot be fetched
 */
export async function authorizationRequest (
  server: Server, request: FastifyRequest, parameters: Parameters
): Promise<ClientRequest | RedirectedFailure | PageFailure> {
  const { client_id: clientId = '', redirect_uri: asked, state } = parameters
  const client = await findClient(server, request, clientId)
  if (client === null) return 'unknownClient'
  const redirectUri = matchingRedirect(client.redirectUris, asked)
  if (redirectUri === null) return 'unknownRedirect'
  const failed = (error: string, description: string): RedirectedFailure =>
    ({ client, redirectUri, state, error, description })

  for (const [name, error] of Object.entries(UNSUPPORTED)) {
    if (parameters[name] !== undefined) return failed(error, `The parameter ${name} is not supported.`)
  }
  const { response_type: type, response_mode: mode = 'query', code_challenge: challenge = '' } = parameters
  if (type === undefined) return failed('invalid_request', 'response_type is missing; it must be code.')
  if (type !== 'code') return failed('unsupported_response_type', 'response_type must be code.')
  if (mode !== 'query') return failed('invalid_request', 'response_mode must be query.')
  if (!CHALLENGE.test(challenge) || parameters.code_challenge_method !== 'S256') {
    return failed('invalid_request', 'code_challenge must be the SHA-256 of the verifier, with ' +
      'code_challenge_method S256 (RFC 7636).')
  }
  const resource = resourceFor(server, parameters.resource)
  if (resource === null) {
    return failed('invalid_target', `resource must be one of ${[...server.resources.keys()].join(', ')}.`)
  }
  return {
    client,
    redirectUri,
    resource,
    scopes: scopesOf(resource, parameters.scope),
    challenge,
    state,
    prompt: new Set(parameters.prompt?.split(' '))
  }
}

/** Without a name it is the only resource (RFC 8707 section 2). */
export function resourceFor ({ resources }: Server, asked: string | undefined): Resource | null {
  const [only] = resources.size === 1 ? resources.values() : []
  return asked === undefined ? only ?? null : resources.get(asked) ?? null
}

/** The scopes that are asked for and known; all of the resource where there is none of them. */
export function scopesOf ({ scopes }: Resource, asked = ''): string[] {
  const known = asked.split(' ').filter(scope => scopes.has(scope))
  return known.length > 0 ? [...new Set(known)] : [...scopes.keys()]
}

/** Whether the user is not asked: another program of this machine could be the client. */
export function isTrusted ({ client, redirectUri, prompt }: ClientRequest): boolean {
  return client.firstParty && kindOf(redirectUri) === 'https' && !prompt.has('consent')
}

/** Returns where a browser is sent back, with the answer in the query. */
export function answerUrl (
  { redirectUri, state }: { redirectUri: string, state: string | undefined }, issuer: string, answer: Parameters
): string {
  const url = new URL(redirectUri)
  const values = { ...answer, ...(state !== undefined && { state }), iss: issuer }
  for (const [name, value] of Object.entries(values)) url.searchParams.set(name, value)
  return url.href
}
