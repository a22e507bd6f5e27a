import { createHash, randomBytes } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { audit } from '../../audit.js'
import { amrOf } from '../../authentication.js'
import { digestOf } from '../../base/values.js'
import type { AuthContext } from '../../core/context.js'
import { assertFollowsConnection } from '../../core/required-connection.js'
import type { CurrentUser } from '../../core/current-user.js'
import { AuthError } from '../../errors.js'
import type { EntryContent } from '../../schema/sessions.js'
import { PENDING_MS } from '../../session/store.js'
import { type Grant, hashOf } from './grant.js'
import { PREFIXES } from './prefixes.js'
import type { OAuthClient } from './client.js'
import type { Server } from './oauth-server.js'

declare module '../../audit.js' {
  interface AuditEvents {
    /** A user has allowed a client of the authorization server to act for them. */
    'grant-given': AuditedUser & AuditedClient
    /** The grant of a client was ended: by the user, the application or the client. */
    'grant-ended': AuditedUser & AuditedClient
    /** A token was sent again that had been replaced: another client may have a copy of it. */
    'token-replayed': AuditedUser & AuditedClient
  }
}

/** The client that an event is about. */
export interface AuditedClient {
  /** Its id. */
  clientId: string
}

/** What a user allows. */
export interface Allowed {
  readonly client: Pick<OAuthClient, 'id' | 'name'>
  readonly resource: { readonly url: string }
  readonly scopes: readonly string[]
  /** Null for a device. */
  readonly redirectUri: string | null
}

/** How many grants a user has for one client: each consent makes one. */
const MAX_GRANTS = 20

/**
 * Writes the grant of a consent, whose life begins when the client gets its tokens.
 *
 * @param consentId names the consent: a second click makes no second grant
 * @throws AuthError `invalid_state` when the client has its tokens already, or the grant is over;
 *   `sso_required`
 */
export async function giveGrant (
  auth: Pick<AuthContext, 'connectionRule' | 'mailer'>, server: Server, request: FastifyRequest,
  { user, record }: Pick<CurrentUser, 'user' | 'record'>, { client, resource, scopes, redirectUri }: Allowed,
  consentId: string
): Promise<Grant> {
  await assertFollowsConnection(auth, user)
  const { userId, generation } = user
  const now = Date.now()
  const grant: Grant = {
    grantId: hashOf(`${consentId} ${userId} ${generation}`).slice(0, 24),
    userId,
    generation,
    clientId: client.id,
    content: {
      clientName: client.name,
      redirectUri,
      resource: resource.url,
      scopes,
      auth: { at: record.at, amr: amrOf(record.methods) },
      tokens: []
    },
    version: 0,
    createdAt: now,
    usedAt: now,
    endsAt: now + PENDING_MS
  }
  if (!await server.grants.insert(grant)) {
    const found = await server.grants.find(grant.grantId)
    if (found === null || found.grant.content.tokens.length > 0) throw new AuthError('invalid_state')
    return found.grant
  }
  const others = (await server.grants.ofUser(userId, generation, now))
    .filter(({ clientId, grantId }) => clientId === client.id && grantId !== grant.grantId)
  for (const { grantId } of others.slice(MAX_GRANTS - 1)) await server.grants.end(grantId, userId)
  audit('grant-given', { userId, clientId: client.id }, request)
  if (others.length === 0) auth.mailer?.sendOfApplication('application-connected', user, request.log)
  return grant
}

/** The kind of the entry of a code, which may be redeemed once. */
export const CODE = 'oauth-code'

/** What a code was given for: it must come back from the same client. */
export interface CodeContent extends EntryContent {
  readonly grantId: string
  readonly clientId: string
  readonly redirectUri: string
  readonly challenge: string
  readonly at: number
}

/** The text of a code: what tells the codes of a grant apart from others, and a secret. */
const CODE_TEXT = /^([a-z]{3}_)([\w-]{24})[\w-]{43}$/

export function codeKey (code: string): { hash: string, kind: string, owner: string } | null {
  const [, prefix, group] = CODE_TEXT.exec(code) ?? []
  if (group === undefined || prefix !== PREFIXES.code) return null
  return { hash: digestOf(code), kind: CODE, owner: digestOf(group) }
}

/** Makes the code of a grant; one before it is void. */
export async function newCode (
  { records }: Pick<AuthContext, 'records'>, content: Omit<CodeContent, 'at'>
): Promise<string> {
  // The grant cannot be found from its code: who has seen one cannot name the other.
  const group = hashOf(`codes of ${content.grantId}`).slice(0, 24)
  const code = `${PREFIXES.code}${group}${randomBytes(32).toString('base64url')}`
  const now = Date.now()
  const key = { hash: digestOf(code), kind: CODE, owner: digestOf(group) }
  await records.put({ ...key, content: { ...content, at: now }, startedAt: now }, 1)
  return code
}

/** Whether a verifier is that of a challenge (RFC 7636 section 4.6). */
export function isVerifierOf (verifier: string | undefined, challenge: string): boolean {
  return verifier !== undefined && /^[\w.~-]{43,128}$/.test(verifier) &&
    createHash('sha256').update(verifier).digest('base64url') === challenge
}

/** Ends a grant, and tells that it was ended. */
export async function endGrant (
  server: Server, grant: Pick<Grant, 'grantId' | 'userId' | 'clientId'>, source: Parameters<typeof audit>[2]
): Promise<boolean> {
  const { grantId, userId, clientId } = grant
  const isEnded = await server.grants.end(grantId, userId)
  if (isEnded) audit('grant-ended', { userId, clientId }, source)
  return isEnded
}
