import { channel } from 'node:diagnostics_channel'
import type { EventEmitter } from 'node:events'
import type { FastifyRequest } from 'fastify'
import type { AuthenticationMethod } from './authentication.js'
import { withoutUndefined } from './base/values.js'
import type { AuthorizationClaims } from './claims.js'

/**
 * The payloads of audit events, without secrets and e-mails, by name: the diagnostics channel
 * `fastify-svc-auth.sign-in` publishes `AuditEvents['sign-in']`.
 */
export interface AuditEvents {
  /** A form or the first sign-in of an identity created a user, whom `onSignIn` admitted. */
  registration: AuditedUser & AuditedProvider
  /** The application created a user, or a guest. */
  creation: AuditedUser & {
    /** `local` for a user with a password, `guest` for a guest, otherwise `application`. */
    provider: 'local' | 'application' | 'guest'
  }
  /** A user signed in. */
  'sign-in': AuditedUser & AuditedProvider & {
    /** `application`: by `app.auth.signIn` or an operator's link; `provider`: otherwise. */
    by: 'provider' | 'application'
    /** How they authenticated, in order. */
    methods: readonly AuthenticationMethod[]
  }
  /** A signed-in user reauthenticated. */
  reauthentication: AuditedUser & {
    /** How. */
    method: AuthenticationMethod
  }
  /**
   * A sign-in, a reauthentication, a registration, a linking, a change of credentials, or the
   * deletion of an account by its user failed.
   */
  failure: AuditedProvider & {
    /** An {@link AuthErrorCode} or an application's own. */
    code: string
    /** The route that failed, as the application has mounted it, such as `/auth/local/login`. */
    route: string
    /** The user whose account was tried, where the request got that far; no answer has it. */
    userId?: string
  }
  /** An identity was added to a user. */
  link: AuditedUser & AuditedProvider & {
    /** `email`: at a sign-in, because the user has its e-mail; `request`: the user asked for it. */
    by: 'email' | 'request'
  }
  /** A link was removed from a user. */
  unlink: AuditedUser & AuditedProvider
  /** Authorization claims were granted to a user. */
  grant: AuditedUser & {
    /** The claims that were granted, not all that the user has. */
    claims: AuthorizationClaims
  }
  /** Authorization claims were withdrawn from a user. */
  withdraw: AuditedUser & {
    /** Whether or not the user had these claims. */
    names: readonly string[]
  }
  /** The password of a user was set: by the application, by the user, or by a link in a mail. */
  password: AuditedUser
  /**
   * The first proof of an address by a mail removed all factors and the links of its account.
   * Another person may have made the account: check what they left in it.
   */
  recovery: AuditedUser & {
    /** The providers of the links that were removed. */
    removed: readonly string[]
    /** The authorization claims, which stay. */
    claims: AuthorizationClaims
  }
  /** A user confirmed their e-mail by a mail, or the application set `emailVerified`. */
  verification: AuditedUser & {
    /** Whether it counts as theirs now. */
    verified: boolean
  }
  /** The e-mail of a user was replaced: they confirmed a new one, or the application set it. */
  email: AuditedUser & {
    /** Whether the new one counts as theirs. */
    verified: boolean
  }
  /** The name of a user was changed. */
  name: AuditedUser
  /** The owner of an address said that another person had registered it. */
  'email-released': AuditedUser & {
    /** Whether the user was deleted; otherwise they have no e-mail any more. */
    deleted: boolean
  }
  /** A second factor or a passkey was added to a user. */
  'factor-added': AuditedUser & {
    /** Its kind. */
    method: 'totp' | 'passkey'
  }
  /** A second factor or a passkey was removed from a user. */
  'factor-removed': AuditedUser & {
    /** Its kind; `all` for a reset. */
    method: 'totp' | 'passkey' | 'all'
    /** Who did it. */
    by: 'user' | 'application'
  }
  /** The recovery codes of a user were replaced. */
  'recovery-codes': AuditedUser
  /** A user authenticated by a recovery code. */
  'recovery-code': AuditedUser & {
    /** How many codes the user has left. */
    left: number
  }
  /** Too many codes were sent: another person knows the user's password, or has their identity. */
  'too-many-codes': AuditedUser
  /** The signature counter of a passkey did not grow: there may be a copy of it. */
  'passkey-cloned': AuditedUser
  /** A factor's secret cannot be opened: sealed by another data secret, or changed in the table. */
  'secret-unreadable': AuditedUser
  /** An operator made a link that signs in as the user, once. */
  'sign-in-link': AuditedUser
  /** A user was blocked. */
  block: AuditedUser & {
    /** When the block ends by itself; null for one that lasts until it is removed. */
    until: Date | null
  }
  /** The block of a user was removed. */
  unblock: AuditedUser
  /** All sessions of a user were ended. */
  'sign-out-everywhere': AuditedUser
  /** A provider has ended one session of a user there, or all; those that began so have ended. */
  'back-channel-logout': AuditedUser & AuditedProvider
  /** One session of a user was ended, by the list of their sessions. */
  'session-end': AuditedUser
  /** A user began to see the application as another one: `userId` is that user. */
  impersonation: AuditedUser & {
    /** What the application gave as the reason. */
    reason: string
    /** When it ends at the latest. */
    until: Date
  }
  /** An impersonation ended before the session in which it was. */
  'impersonation-end': AuditedUser
  /** A user was deleted. */
  deletion: AuditedUser
  /** A user signed out, or sessions of a user were ended. */
  revoke: AuditedUser
}

/** Any event, as the channel `fastify-svc-auth.audit` publishes all of them. */
export type AuditEvent = { [E in keyof AuditEvents]: AuditEvents[E] & { event: E } }[keyof AuditEvents]

/** The user that an event is about. */
export interface AuditedUser extends AuditOrigin {
  /** A UUID. */
  userId: string
}

/** The provider that an event is about. */
export interface AuditedProvider extends AuditOrigin {
  /** `local`, `application` or the name of an external provider. */
  provider: string
}

/** Who caused an event, and by which request; what is not known is absent. */
export interface AuditOrigin {
  /**
   * The id of the user who was signed in, or was by the end of a sign-in; or what the application
   * has named (see {@link Cause}). Absent where no user was signed in, as for a link in a mail, and
   * behind a token of another server.
   */
  actor?: string
  /**
   * The id of the user as whom the actor saw the application, where the request came from an
   * impersonation.
   */
  impersonating?: string
  /** Fastify's `request.id`. */
  requestId?: string
  /** Fastify's `request.ip`. */
  ip?: string
  /** The header `User-Agent`, at most 256 characters: text of the client. */
  userAgent?: string
}

export type AuditContent<E extends keyof AuditEvents> = Omit<AuditEvents[E], keyof AuditOrigin>

/** What events are logged with. */
export interface AuditLog {
  info: (entry: object, message: string) => void
}

/** A request, or the logger of an application or a script. */
export interface AuditSource {
  log?: AuditLog | undefined
  id?: string
  ip?: string
  headers?: { 'user-agent'?: string | undefined }
  /** The signed-in user of the request. */
  principal?: { readonly userId: string, readonly impersonator?: string } | null
  /** The claims of the token of the request. */
  token?: { readonly sub: string } | null
  /** In place of the user of the request. */
  actor?: string | undefined
  /** The user whom an impersonation shows, in place of that of the request. */
  impersonating?: string | undefined
}

/** The longest `User-Agent` that is kept. */
const MAX_USER_AGENT = 256

/** The users whose accounts requests try: no answer is made of them. */
const subjects = new WeakMap<object, string | undefined>()

/** Notes the user, if there is one, whose account a request tries, for the event of its failure. */
export function noteSubject (request: object, userId: string | undefined): void {
  subjects.set(request, userId)
}

/** Returns the payload of the event `failure`. */
export function failureEvent (request: FastifyRequest, provider: string, code: string): AuditContent<'failure'> {
  const { url: route = '' } = request.routeOptions
  return { provider, code, route, ...withoutUndefined({ userId: subjects.get(request) }) }
}

/** Returns who causes events by a request, whose session may end before they are published. */
export function sourceOf<Source extends AuditSource> (
  request: Source, actor: string | undefined = actorOf(request)
): Omit<AuditSource, 'log'> & Pick<Source, 'log'> {
  const { id, ip, headers } = request
  return { log: request.log, actor, ...withoutUndefined({ id, ip, headers, impersonating: impersonatedBy(request) }) }
}

/** The tokens of this application's own issuer: a subject of another server is no user of it. */
const ownTokens = new WeakSet<object>()

export function noteOwnToken<Token extends object> (token: Token): Token {
  ownTokens.add(token)
  return token
}

export function isOwnToken (token: object): boolean {
  return ownTokens.has(token)
}

/** As behind guards, the user of a token comes before the one of a session. */
function actorOf ({ actor, token, principal }: AuditSource): string | undefined {
  if (actor !== undefined || token == null) return actor ?? principal?.impersonator ?? principal?.userId
  return isOwnToken(token) ? token.sub : undefined
}

/** Returns the user whom a request was shown; undefined where its user is the one who acts. */
function impersonatedBy ({ impersonating, token, principal }: AuditSource): string | undefined {
  if (impersonating !== undefined || token != null || principal?.impersonator === undefined) return impersonating
  return principal.userId
}

/** Writes an event to the log and publishes it. */
export function audit<E extends keyof AuditEvents> (
  event: E, content: AuditContent<E>, source: AuditSource
): void {
  const who = withoutUndefined({ actor: actorOf(source), impersonating: impersonatedBy(source) })
  source.log?.info({ ...auditEntry(event), ...content, ...who }, event)
  publish(event, content, source)
}

/** The member that marks a log entry as an event. */
export function auditEntry (event: keyof AuditEvents): { event: string } {
  return { event: channelName(event) }
}

/** Publishes an event that is in the log already. */
export function publish<E extends keyof AuditEvents> (
  event: E, content: AuditContent<E>, source: AuditSource
): void {
  const origin: AuditOrigin = withoutUndefined({
    actor: actorOf(source),
    impersonating: impersonatedBy(source),
    requestId: source.id,
    ip: source.ip,
    userAgent: source.headers?.['user-agent']?.slice(0, MAX_USER_AGENT)
  })
  const payload = { ...content, ...origin }
  channel(channelName(event)).publish(payload)
  channel(channelName('audit')).publish({ event, ...payload })
}

function channelName (event: keyof AuditEvents | 'audit'): string {
  return `fastify-svc-auth.${event}`
}

/** The events of `app.auth.channel`. A listener that throws or rejects is logged, nothing else. */
export interface AuthEvents {
  /** A user signed out, or sessions of a user ended; on Postgres, in any process that uses it. */
  revoke: [userId: string]
}

/** The type of `app.auth.channel`. */
export type AuthChannel = EventEmitter<AuthEvents>

/** The request that signed a user out, or the logger of the application. */
export type RevokeSource = AuditSource & Pick<FastifyRequest, 'log'>

/** Audits that a user signed out, and calls the listeners. */
export function announceRevoke (channel: AuthChannel, userId: string, source: RevokeSource): void {
  audit('revoke', { userId }, source)
  callListeners(channel, userId, source.log)
}

export function callListeners (channel: AuthChannel, userId: string, log: RevokeSource['log']): void {
  // `emit` would stop at the first that throws, and an unhandled rejection ends the process.
  for (const listener of channel.rawListeners('revoke')) {
    const call = async (): Promise<void> => { await listener.call(channel, userId) }
    call().catch((error: unknown) => {
      log.error({ err: error, event: 'revoke' }, 'a listener of app.auth.channel failed')
    })
  }
}
