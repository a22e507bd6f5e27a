/** How the application makes, changes and removes connections. */
import { randomUUID } from 'node:crypto'
import type { FastifyBaseLogger } from 'fastify'
import type { JWK } from 'jose'
import { type AuditSource, announceRevoke, audit } from '../../audit.js'
import { UUID, isUserId } from '../../base/values.js'
import { checkedName, isText } from '../../claims.js'
import { pathOf, routeOfProvider, urlOf } from '../../core/act.js'
import type { AuthContext } from '../../core/context.js'
import { typedEmail } from '../../email.js'
import { AuthError, OptionsError, invalidRequest } from '../../errors.js'
import {
  type Checked, type ChecksOf, anything, checkedOptions, listOf, mustBe, optional, table, wholeNumber
} from '../../option-checks.js'
import { isPublicUrl } from '../../core/public-fetch.js'
import type { ConnectionContent } from '../../schema/connections.js'
import type { ConnectionsPart } from './connections.js'
import { type ConnectionDomain, checkedDomain, newToken, shownDomain } from './domains.js'
import { endSessionsOf } from './enforced.js'
import { type ConnectionCredential, clientOf, isProven } from './provider.js'
import { CONNECTION, type FoundConnection } from './rows.js'

/** How users of the domains of a connection must sign in by it. */
export interface EnforceOptions {
  /** The days that keys and grants of a user are good after their last sign-in by it; default 7. */
  days?: number | undefined
  /** The ids of users who may sign in by other methods, for the day on which it does not work. */
  except?: readonly string[] | undefined
}

/** What of a connection can be changed; of a credential exactly one is given. */
export interface ConnectionChange {
  /** What people call it, on pages, too: 1 to 64 characters. */
  name?: string | undefined
  /** The secret that the provider has issued to the client. */
  clientSecret?: string | undefined
  /** A private JWK with its `alg`, whose public part the provider has. */
  clientKey?: JWK | undefined
  /** Scopes besides `openid email profile`. */
  scopes?: readonly string[] | undefined
  /** All domains that it claims; those that it claims already keep their state and record. */
  domains?: readonly string[] | undefined
  /** Whether users of its proven domains must sign in by it; default false. */
  enforce?: boolean | EnforceOptions | undefined
  /** The addresses that are told, by `sendMail`, when a domain is proven no longer. */
  administrators?: readonly string[] | undefined
}

/** A connection that `app.auth.connections.create` makes. */
export interface ConnectionToCreate extends ConnectionChange {
  /** What people call it. */
  name: string
  /** The https: URL of the issuer, as its metadata name it; it never changes. */
  issuer: string
  /** The id that the provider has issued; it never changes. */
  clientId: string
}

/** A connection, without its secret. */
export interface Connection {
  /** Names it in `app.auth.connections`, and in its routes. */
  id: string
  /** What people call it. */
  name: string
  /** The provider of its identities: `connection:` and the id. */
  provider: string
  /** The URL of the issuer. */
  issuer: string
  /** The id of the client. */
  clientId: string
  /** What the customer registers with their provider. */
  redirectUri: string
  /** What they may register for back-channel logout. */
  backChannelLogoutUri: string
  /** Where its users sign in: a path of the application. */
  loginPath: string
  /** Scopes besides `openid email profile`. */
  scopes: readonly string[]
  /** The domains that it claims. */
  domains: readonly ConnectionDomain[]
  /** Null where its users need not sign in by it. */
  enforce: Required<EnforceOptions> | null
  /** Who is told when a domain is proven no longer. */
  administrators: readonly string[]
  /** When it was made. */
  createdAt: Date
}

/** The connection that an event is about. */
export interface AuditedConnection {
  /** Names it in `app.auth.connections`. */
  connectionId: string
}

declare module '../../audit.js' {
  interface AuditEvents {
    /** A connection was made. */
    'connection-created': AuditOrigin & AuditedConnection
    /** A connection was changed. */
    'connection-changed': AuditOrigin & AuditedConnection & {
      /** The names of the members that were given. */
      changed: readonly string[]
    }
    /** A connection was removed. */
    'connection-removed': AuditOrigin & AuditedConnection
    /** A domain was proven for a connection. */
    'domain-proven': AuditOrigin & AuditedConnection & {
      /** The domain. */
      domain: string
    }
    /** A domain is proven no longer: its record was missing for a week. */
    'domain-lapsed': AuditOrigin & AuditedConnection & {
      /** The domain. */
      domain: string
    }
  }
}

export type ConnectionsContext = Pick<AuthContext, 'accounts' | 'channel' | 'mailer' | 'site' | 'prefix'>

/** Who changes a connection: the log is that of the request, or of the application. */
export type ConnectionSource = AuditSource & { readonly log: FastifyBaseLogger }

const DEFAULT_DAYS = 7
const MAX_NAME = 64
const MAX_DOMAINS = 100

const texts = (expected: string) => optional(listOf(expected, isText))

const CHANGE = {
  name: optional(mustBe(`text of 1 to ${MAX_NAME} characters`, isName)),
  // The class of the provider says what is wrong with them.
  clientSecret: anything,
  clientKey: anything,
  scopes: texts('a list of scopes'),
  domains: optional(mustBe(`a list of at most ${MAX_DOMAINS} domains, such as ['acme.example']`, areDomains)),
  enforce: optional(checkedEnforce),
  administrators: texts('a list of e-mail addresses')
} satisfies ChecksOf<ConnectionChange>

const CREATE = {
  ...CHANGE,
  name: mustBe(`text of 1 to ${MAX_NAME} characters`, isName),
  issuer: mustBe('an https: URL with the name of a host', (value): value is string =>
    typeof value === 'string' && isPublicUrl(value) && !/[?#]/.test(value)),
  clientId: mustBe('the id that the provider has issued', isText)
} satisfies ChecksOf<ConnectionToCreate>

export async function createConnection (
  part: ConnectionsPart, auth: ConnectionsContext, given: ConnectionToCreate, source: ConnectionSource
): Promise<Connection> {
  const checked = asRequest(() => checkedOptions('connections.create', given, CREATE, '{ name, issuer, clientId }'))
  const { name, issuer, clientId } = checked
  const id = randomUUID()
  const blank = { name, scopes: [], enforce: null, administrators: [] }
  const content = await contentOf(part, { id, issuer, clientId }, checked, blank)
  const domains = await domainsOf(checked)
  const row = { connectionId: id, issuer, clientId, content, version: 1, createdAt: Date.now(), removedAt: null }
  await part.rows.insert(row)
  for (const domain of domains ?? []) await part.rows.claim(id, domain, newToken())
  audit('connection-created', { connectionId: id }, source)
  return shownConnection(auth, await existing(part, id))
}

export async function updateConnection (
  part: ConnectionsPart, auth: ConnectionsContext, { id, change }: { id: string, change: ConnectionChange },
  source: ConnectionSource
): Promise<Connection> {
  const fixed = ['issuer', 'clientId'].find(name => name in Object(change))
  if (fixed !== undefined) {
    throw invalidRequest(`${fixed} of a connection never changes, because its identities belong to it; ` +
      'create another connection.')
  }
  const checked = asRequest(() => checkedOptions('connections.update', change, CHANGE, '{ name }'))
  const domains = await domainsOf(checked)
  const before = await existing(part, id)
  for (let found = before; ; found = await existing(part, id)) {
    const content = await contentOf(part, { id, ...found.row }, checked, found.row.content)
    if (await part.rows.update({ ...found.row, content })) break
  }
  if (domains !== undefined) {
    for (const domain of domains) await part.rows.claim(id, domain, newToken())
    const left = before.domains.filter(({ domain }) => !domains.includes(domain))
    for (const { domain } of left) await part.rows.unclaim(id, domain)
  }
  await endFormerSessions(part, auth, { id, before: before.row.content.enforce, change: checked }, source)
  audit('connection-changed', { connectionId: id, changed: Object.keys(change) }, source)
  return shownConnection(auth, await existing(part, id))
}

/** Ends the sessions of those who must sign in by a connection since a change of it. */
async function endFormerSessions (
  part: ConnectionsPart, auth: ConnectionsContext,
  { id, before, change }: { id: string, before: ConnectionContent['enforce'], change: Checked<typeof CHANGE> },
  source: ConnectionSource
): Promise<void> {
  if (change.enforce === undefined || change.enforce === null) return
  const { except } = change.enforce
  // Read once it is written: a domain that is proven meanwhile ends them itself.
  const { domains } = await existing(part, id)
  const proven = domains.filter(isProven).map(({ domain }) => domain)
  const wasFree = (userId: string): boolean => before === null || before.except.includes(userId)
  await endSessionsOf(auth, proven, userId => wasFree(userId) && !except.includes(userId), source)
}

/**
 * Removes a connection: it signs nobody in from the first statement on. The sessions of its users
 * end, and they keep their address as it is, by which a mail signs them in.
 */
export async function removeConnection (
  part: ConnectionsPart, { accounts, channel, mailer }: ConnectionsContext, id: unknown, source: ConnectionSource
): Promise<boolean> {
  if (!isId(id) || !await part.rows.exists(id)) return false
  await part.rows.close(id, Date.now())
  const provider = CONNECTION + id
  // A removal that was cut off is repeated: it begins with the users who are left.
  let users = await part.rows.linkedUsers(provider, NO_ID, PAGE)
  while (users.length > 0) {
    for (const userId of users) {
      const user = await accounts.leaveProvider(userId, provider)
      if (user === null) continue
      audit('unlink', { userId, provider }, source)
      announceRevoke(channel, userId, source)
      mailer?.sendOfApplication('identity-unlinked', user, source.log)
    }
    // More mails than the queue has places for would be dropped.
    await mailer?.sent()
    users = await part.rows.linkedUsers(provider, String(users.at(-1)), PAGE)
  }
  await part.rows.remove(id)
  audit('connection-removed', { connectionId: id }, source)
  return true
}

/** Before all ids of users. */
const NO_ID = '00000000-0000-0000-0000-000000000000'
const PAGE = 100

export async function listConnections (
  part: ConnectionsPart, auth: ConnectionsContext, { after, limit }: { after: unknown, limit: unknown }
): Promise<{ connections: Connection[], next: string | null }> {
  if (after !== null && !isId(after)) throw invalidRequest('after must be the next of the page before.')
  if (!Number.isInteger(limit) || Number(limit) < 1 || Number(limit) > 500) {
    throw invalidRequest('limit must be a whole number from 1 to 500.')
  }
  const found = await part.rows.list(after ?? '', Number(limit) + 1)
  const connections = found.slice(0, Number(limit)).map(found => shownConnection(auth, found))
  const last = connections.at(-1)
  return { connections, next: last !== undefined && found.length > connections.length ? last.id : null }
}

/** Returns a connection with its domains. */
export async function existing ({ rows }: Pick<ConnectionsPart, 'rows'>, id: unknown): Promise<FoundConnection> {
  const found = isId(id) ? await rows.find(id) : null
  if (found === null) throw new AuthError('not_found')
  return found
}

export function isId (id: unknown): id is string {
  return typeof id === 'string' && UUID.test(id)
}

export function shownConnection (auth: Pick<AuthContext, 'site' | 'prefix'>, found: FoundConnection): Connection {
  const { row: { connectionId: id, issuer, clientId, content, createdAt }, domains } = found
  const { name, scopes, enforce, administrators } = content
  const provider = CONNECTION + id
  return {
    id,
    name,
    provider,
    issuer,
    clientId,
    redirectUri: urlOf(auth, routeOfProvider(provider, 'callback')),
    backChannelLogoutUri: urlOf(auth, routeOfProvider(provider, 'backchannel-logout')),
    loginPath: pathOf(auth, routeOfProvider(provider, 'login')),
    scopes,
    domains: domains.map(shownDomain),
    enforce: enforce && { days: enforce.days, except: enforce.except },
    administrators,
    createdAt: new Date(createdAt)
  }
}

/** Returns the content of a connection after a change, whose client could be made. */
async function contentOf (
  { sealer }: ConnectionsPart, { id, issuer, clientId }: { id: string, issuer: string, clientId: string },
  { clientSecret, clientKey, ...change }: Checked<typeof CHANGE>,
  { credential: present, ...before }: Omit<ConnectionContent, 'credential'> & Partial<ConnectionContent>
): Promise<ConnectionContent> {
  const { name = before.name, scopes = before.scopes, enforce = before.enforce } = change
  const administrators = change.administrators?.map(address => {
    const email = typedEmail(address)
    if (email === null) throw new AuthError('invalid_email')
    return email
  }) ?? before.administrators
  const others = { name, scopes, enforce, administrators }
  const isGiven = clientSecret !== undefined || clientKey !== undefined
  if (!isGiven && present !== undefined) return { ...others, credential: present }
  if (clientSecret !== undefined && clientKey !== undefined) {
    throw invalidRequest('A connection has a clientSecret or a clientKey, not both.')
  }
  const credential = (clientKey === undefined ? { clientSecret } : { clientKey }) as ConnectionCredential
  asRequest(() => clientOf({ issuer, clientId, content: others }, credential))
  const kind = clientKey === undefined ? 'secret' : 'key'
  const text = clientKey === undefined ? String(clientSecret) : JSON.stringify(clientKey)
  return { ...others, credential: { kind, sealed: await sealer.seal(text, id) } }
}

async function domainsOf ({ domains }: Checked<typeof CHANGE>): Promise<string[] | undefined> {
  if (domains === undefined) return undefined
  const checked = new Set<string>()
  for (const domain of domains) checked.add(await checkedDomain(domain))
  return [...checked]
}

function checkedEnforce (value: unknown, option: string): ConnectionContent['enforce'] {
  if (value === false) return null
  const checks = {
    days: optional(wholeNumber(1, 3650, 'days'), DEFAULT_DAYS),
    except: optional(listOf('a list of user ids', isUserId), [])
  }
  return table(checks, 'true, false or { days, except }')(value === true ? {} : value, option)
}

function areDomains (value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length <= MAX_DOMAINS && value.every(isText)
}

function isName (value: unknown): value is string {
  return isText(value) && checkedName(value) === value && Array.from(value).length <= MAX_NAME
}

/** What an administrator of a customer has typed is wrong with the request, not the options. */
function asRequest<T> (check: () => T): T {
  try {
    return check()
  } catch (error) {
    throw error instanceof OptionsError ? invalidRequest(`${error.message}.`) : error
  }
}
