/** The endpoints that clients ask themselves, for tokens and their revocation. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { User } from '../../accounts/account.js'
import { audit, noteOwnToken } from '../../audit.js'
import { DAY_MS } from '../../base/values.js'
import { isPlainObject } from '../../claims.js'
import type { AuthContext } from '../../core/context.js'
import { followsConnection } from '../../core/required-connection.js'
import { FORM_OR_JSON, type Operation, operation } from '../../core/schema.js'
import { AuthError } from '../../errors.js'
import { TAKEN } from '../../session/store.js'
import { noteHourly } from '../noted-use.js'
import { mountPreflight } from '../published.js'
import type { TokenClaims } from '../tokens/token-claims.js'
import { REGISTERED, isKnownClient } from './clients.js'
import { CODE, type CodeContent, codeKey, endGrant, isVerifierOf } from './consent.js'
import {
  CODE_MS, type Grant, type Issued, accessToken, firstTokens, presentedToken, refreshed,
  withoutToken
} from './grant.js'
import type { FoundGrant } from './grants.js'
import { type Parameters, parametersOf } from './request.js'
import type { Server } from './oauth-server.js'

/** An error of RFC 6749 section 5.2, or of another specification with that form. */
export class OAuthError extends Error {
  readonly error: string
  readonly statusCode: number
  /** `WWW-Authenticate` of a 401. */
  readonly challenge: string

  constructor (error: string, description: string, statusCode = 400, challenge = 'Basic realm="oauth"') {
    super(description)
    this.error = error
    this.statusCode = statusCode
    this.challenge = challenge
  }
}

/** Refuses a code or refresh token, without saying why to someone who may have stolen it. */
const invalidGrant = (): OAuthError => new OAuthError('invalid_grant', 'The code or token is not valid any more.')

/** An endpoint in the document: its path is below the prefix. */
type Described = Pick<Operation, 'summary' | 'description' | 'operationId'> & {
  readonly path: string
  /** The status of its answer; default 200. */
  readonly status?: number
  /** Whether scripts of any origin may read its answers; default true. */
  readonly isOpen?: boolean
}

const FIELDS = { type: 'object', description: 'As the specification says', additionalProperties: true }
const ANSWER = { ...FIELDS, description: 'The answer, as the specification says' }
const FAILURE = {
  type: 'object',
  description: 'A failure (RFC 6749 section 5.2)',
  required: ['error', 'error_description'],
  properties: { error: { type: 'string' }, error_description: { type: 'string' } }
}
const FAILURES = { 400: FAILURE, 401: FAILURE, '4xx': FAILURE, '5xx': FAILURE }

/** Returns the body of the answer. */
export type Endpoint = (request: FastifyRequest) => Promise<object>

/**
 * Mounts an endpoint for programs, which send no cookies and read the errors of RFC 6749
 * section 5.2.
 */
export function mountEndpoint (
  scope: FastifyInstance, auth: AuthContext,
  { path, status = 200, isOpen = true, ...described }: Described, endpoint: Endpoint,
  limit: 'token' | 'register' = 'token'
): void {
  const url = `${auth.prefix.slice(scope.prefix.replace(/\/$/, '').length)}/${path}`
  const open = (reply: FastifyReply): FastifyReply =>
    isOpen ? reply.header('Access-Control-Allow-Origin', '*') : reply
  scope.route({
    method: 'POST',
    url,
    schema: {
      ...operation({ ...described, user: 'anyone', answers: { [status]: ANSWER } }),
      response: { [status]: ANSWER, ...FAILURES },
      consumes: FORM_OR_JSON,
      body: FIELDS
    },
    errorHandler (error, request, reply) { answerError(open(reply), request, error) },
    async handler (request, reply) {
      await auth.limits[limit](request)
      return open(reply).code(status).send(await endpoint(request))
    }
  })
  if (isOpen) mountPreflight(scope, url)
}

function answerError (reply: FastifyReply, request: FastifyRequest, failure: unknown): void {
  const { error, description, statusCode } = shownError(failure)
  const { retryAfter, challenge }: Partial<AuthError & OAuthError> = Object(failure)
  if (retryAfter !== undefined) reply.header('Retry-After', retryAfter)
  if (statusCode === 401) reply.header('WWW-Authenticate', challenge)
  if (statusCode < 500) request.log.info({ code: error }, description)
  else request.log.error({ err: Object(failure).cause ?? failure, code: error }, description)
  reply.code(statusCode).send({ error, error_description: description })
}

function shownError (failure: unknown): { error: string, description: string, statusCode: number } {
  if (failure instanceof OAuthError) {
    return { error: failure.error, description: failure.message, statusCode: failure.statusCode }
  }
  const { statusCode = 500 }: { statusCode?: number } = Object(failure)
  if (statusCode === 429 || statusCode === 503) {
    return { error: 'temporarily_unavailable', description: 'Try again in a moment.', statusCode }
  }
  return statusCode < 500
    ? { error: 'invalid_request', description: 'The request does not have the expected form.', statusCode: 400 }
    : { error: 'server_error', description: 'The request could not be completed.', statusCode: 500 }
}

export function fieldsOf ({ body }: FastifyRequest): Parameters {
  const fields = isPlainObject(body) ? parametersOf(body) : null
  if (fields === null) throw new OAuthError('invalid_request', 'A field comes twice, or is not a text.')
  return fields
}

/** Returns the id of the client, which is public: what it presents must be of that client. */
export async function clientOf (server: Server, request: FastifyRequest, fields: Parameters): Promise<string> {
  const { client_id: id = '' } = fields
  const isKnown = request.headers.authorization === undefined && await isKnownClient(server, id)
  if (!isKnown) throw new OAuthError('invalid_client', 'The client is not known; register it again.', 401)
  return id
}

/** The token endpoint (RFC 6749 section 3.2); further grant types by their names. */
export function tokenEndpoint (
  auth: ExchangeContext, server: Server, grantTypes: Readonly<Record<string, Exchange>>
): Endpoint {
  const all: Readonly<Record<string, Exchange>> = { authorization_code: redeem, refresh_token: refresh, ...grantTypes }
  return async request => {
    const fields = fieldsOf(request)
    const clientId = await clientOf(server, request, fields)
    const { grant_type: type } = fields
    if (type === undefined) throw new OAuthError('invalid_request', 'grant_type is missing.')
    const exchange = Object.hasOwn(all, type) ? all[type] : undefined
    if (exchange === undefined) throw new OAuthError('unsupported_grant_type', `grant_type ${type} is not supported.`)
    return exchange(auth, server, request, { ...fields, client_id: clientId })
  }
}

type WithRule = Pick<AuthContext, 'connectionRule'>
type ExchangeContext = WithRule & Pick<AuthContext, 'accounts' | 'mailer' | 'records'>

export type Exchange = (
  auth: ExchangeContext, server: Server, request: FastifyRequest, fields: Parameters
) => Promise<object>

/** The code is taken before anything of it is compared: a stolen one is gone with the first try. */
const redeem: Exchange = async (auth, server, request, fields) => {
  const { code = '', client_id: clientId, redirect_uri: redirectUri, code_verifier: verifier } = fields
  const key = codeKey(code)
  if (key === null) throw invalidGrant()
  const isRight = (content: CodeContent): boolean => content.clientId === clientId &&
    (redirectUri === undefined || redirectUri === content.redirectUri) && isVerifierOf(verifier, content.challenge)
  const taken = await auth.records.take(key.hash, key.kind, [key.owner]) as CodeContent | null
  if (taken === null) {
    const used = await auth.records.find({ ...key, kind: CODE + TAKEN }) as CodeContent | null
    // The one who has the verifier was given tokens for it already: one of the two is a thief.
    if (used !== null && isRight(used)) await endByReuse(server, request, used.grantId)
    throw invalidGrant()
  }
  if (!isRight(taken) || taken.at < Date.now() - CODE_MS) throw invalidGrant()
  return giveTokens(auth, server, taken.grantId, fields)
}

async function endByReuse (server: Server, request: FastifyRequest, grantId: string): Promise<void> {
  const found = await server.grants.find(grantId)
  // Without tokens it was taken with a wrong verifier: there is nothing to end.
  if (found !== null && found.grant.content.tokens.length > 0) await endGrant(server, found.grant, request)
}

/** Gives a grant its first tokens, unless its user's sessions have ended since the consent. */
export async function giveTokens (
  auth: WithRule, server: Server, grantId: string, { resource, scope }: Parameters
): Promise<object> {
  const { grants, lifetimes } = server
  await assertFollowed(auth, server, grantId)
  const now = Date.now()
  const next = await grants.change<ReturnType<typeof firstTokens>>(grantId, found => {
    const next = isCurrent(found) ? firstTokens(found.grant, { lifetimes, now, resource, scope }) : 'expired'
    return [typeof next === 'string' ? null : next.grant, next]
  })
  const { clientId = '' } = typeof next === 'string' ? {} : next.grant
  if (REGISTERED.test(clientId)) await grants.noteClientUse(clientId, now)
  return answerOf(next)
}

const refresh: Exchange = async (auth, server, request, fields) => {
  const { client_id: clientId, resource, scope } = fields
  const token = presentedToken(fields.refresh_token)
  if (token?.kind !== 'refresh') throw invalidGrant()
  const { grants, lifetimes, replays } = server
  await assertFollowed(auth, server, token.grantId)
  const now = Date.now()
  let replayed: Grant | null = null
  const next = await grants.change<ReturnType<typeof refreshed>>(token.grantId, found => {
    if (!isCurrent(found) || found.grant.clientId !== clientId) return [null, 'expired']
    const next = refreshed(found.grant, token, { lifetimes, now, resource, scope })
    replayed = next === 'replayed' ? found.grant : null
    return [typeof next === 'string' ? null : next.grant, next]
  })
  if (replayed !== null) {
    await noteReplay(auth, server, request, replayed)
    if (replays === 'end-grant') await endGrant(server, replayed, request)
  }
  return answerOf(next)
}

/** Tells the operator of each replay, and the user once a day. */
async function noteReplay (
  { accounts, mailer }: ExchangeContext, { grants }: Server, request: FastifyRequest, grant: Grant
): Promise<void> {
  const { grantId, userId, clientId } = grant
  audit('token-replayed', { userId, clientId }, request)
  const now = Date.now()
  const isFirst = await grants.change(grantId, found => {
    const { toldAt = 0 } = found?.grant.content ?? {}
    if (found === null || toldAt > now - DAY_MS) return [null, false]
    return [{ ...found.grant, content: { ...found.grant.content, toldAt: now } }, true]
  })
  const user = isFirst ? await accounts.findUser({ userId }) : null
  if (user !== null) mailer?.sendOfApplication('token-replayed', user, request.log)
}

/** Refuses the grant of a user who has not signed in lately by the connection that they must. */
async function assertFollowed (auth: WithRule, { grants }: Server, grantId: string): Promise<void> {
  const found = auth.connectionRule === null ? null : await grants.find(grantId)
  if (found !== null && !await followsConnection(auth, found.user)) throw invalidGrant()
}

function isCurrent (found: FoundGrant | null): found is FoundGrant {
  return found !== null && found.grant.generation === found.user.generation
}

/** The answer with tokens (RFC 6749 section 5.1). */
function answerOf (next: Issued | 'expired' | 'replayed' | 'other-resource'): object {
  if (next === 'other-resource') throw new OAuthError('invalid_target', 'The grant is for another resource.')
  if (typeof next === 'string') throw invalidGrant()
  const { access, refresh, expiresIn, scopes } = next.tokens
  return {
    access_token: access, token_type: 'Bearer', expires_in: expiresIn, refresh_token: refresh, scope: scopes.join(' ')
  }
}

/** The revocation endpoint (RFC 7009): a refresh token ends its grant, an access token itself. */
export function revocationEndpoint (server: Server): Endpoint {
  return async request => {
    const fields = fieldsOf(request)
    const clientId = await clientOf(server, request, fields)
    const token = presentedToken(fields.token)
    const found = token === null ? null : await server.grants.find(token.grantId)
    if (token === null || found === null || found.grant.clientId !== clientId) return {}
    if (token.kind === 'refresh') {
      const isOfGrant = found.grant.content.tokens.some(({ kind, hash }) => kind === 'refresh' && hash === token.hash)
      if (isOfGrant) await endGrant(server, found.grant, request)
    } else {
      await server.grants.change(token.grantId, found => [found && withoutToken(found.grant, token), null])
    }
    return {}
  }
}

/** An access token that is good, and what it belongs to. */
export interface VerifiedAccess {
  readonly claims: TokenClaims
  readonly grantId: string
  readonly clientId: string
  readonly user: User
}

/**
 * Verifies an access token for a resource, by one statement: its grant ends with the generation of
 * its user.
 *
 * @throws AuthError `invalid_token`
 */
export async function verifyAccess (
  auth: WithRule, server: Server, text: string, { resource, log }: { resource: string, log: FastifyRequest['log'] }
): Promise<VerifiedAccess> {
  const access = await findAccess(auth, server, text, log)
  if (access?.claims.aud !== resource) throw new AuthError('invalid_token')
  return access
}

/** Finds an access token of any resource; null for one that is not good. */
export async function findAccess (
  auth: WithRule, server: Server, text: string, log: FastifyRequest['log']
): Promise<VerifiedAccess | null> {
  const token = presentedToken(text)
  const found = token === null ? null : await server.grants.find(token.grantId)
  const now = Date.now()
  const access = token !== null && isCurrent(found) ? accessToken(found.grant, token, now) : null
  if (access === null || !isCurrent(found) || !await followsConnection(auth, found.user)) return null
  const { grantId, userId, clientId, content: { resource, scopes, auth: proven }, createdAt, usedAt } = found.grant
  noteHourly(usedAt, { now, note: async () => server.grants.noteUse(grantId, now), log, what: 'a grant' })
  const claims = noteOwnToken({
    iss: server.issuer,
    sub: userId,
    aud: resource,
    client_id: clientId,
    scope: (access.scopes ?? scopes).join(' '),
    iat: Math.floor((access.issuedAt ?? createdAt) / 1000),
    exp: Math.floor(access.expiresAt / 1000),
    auth_time: Math.floor(proven.at / 1000),
    ...(proven.amr.length > 0 && { amr: [...proven.amr] })
  })
  return { claims, grantId, clientId, user: found.user }
}
