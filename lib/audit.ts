import { channel } from 'node:diagnostics_channel'
import type { AuthorizationClaims } from './claims.js'

/**
 * What is noted of people's accounts, by event; no secrets, no e-mail addresses. They are the payloads of the diagnostics channels: that of
 * `fastify-svc-auth.sign-in` is `AuditEvents['sign-in']`.
 */
export interface AuditEvents {
  /** A user was made, and let in by the hook `onSignIn` if there is one: by the registration form, or by the first sign-in of an identity. */
  registration: AuditedUser & AuditedProvider
  /** Somebody signed in. */
  'sign-in': AuditedUser & AuditedProvider & {
    /** `application`: signed in by `app.auth.signIn`; the provider had no part in it. */
    by: 'provider' | 'application'
  }
  /** A sign-in, a registration or a linking failed. */
  failure: AuditedProvider & {
    /** What the browser is told: an {@link AuthErrorCode}, or the code of a {@link SignInRefused}. */
    code: string
  }
  /** An identity was added to a user. */
  link: AuditedUser & AuditedProvider & {
    /** `email`: at a sign-in, because its e-mail was his; `request`: because he asked for it. */
    by: 'email' | 'request'
  }
  /** A way in was taken away from a user. */
  unlink: AuditedUser & AuditedProvider
  /** A user was given authorization claims. */
  grant: AuditedUser & {
    /** Those that were granted, not all that the user has. */
    claims: AuthorizationClaims
  }
  /** Authorization claims were taken away from a user. */
  withdraw: AuditedUser & {
    /** The names of the claims, whether or not he had them. */
    names: readonly string[]
  }
  /** A user was deleted. */
  deletion: AuditedUser
  /** Somebody signed out. */
  revoke: AuditedUser
}

/** The user whom an event is about. */
export interface AuditedUser extends AuditOrigin {
  /** A UUID. */
  userId: string
}

/** The provider that had a part in an event. */
export interface AuditedProvider extends AuditOrigin {
  /** `local` or the name of an external provider. */
  provider: string
}

/** The request that brought an event about; absent where the application called `app.auth` by itself. */
export interface AuditOrigin {
  /** Fastify's `request.id`. */
  requestId?: string
  /** Fastify's `request.ip`. */
  ip?: string
}

type AuditContent<E extends keyof AuditEvents> = Omit<AuditEvents[E], keyof AuditOrigin>

/** A request, an application, or a script's logger. */
export interface AuditSource {
  log: { info: (entry: object, message: string) => void }
  id?: string
  ip?: string
}

/** Writes an event to the log and publishes it. */
export function audit<E extends keyof AuditEvents> (event: E, content: AuditContent<E>, source: AuditSource | null): void {
  source?.log.info({ ...auditEntry(event), ...content }, event)
  publish(event, content, source)
}

/** What marks a line of the log as an event. */
export function auditEntry (event: keyof AuditEvents): { event: string } {
  return { event: channelName(event) }
}

/** Publishes an event that is in the log already. */
export function publish<E extends keyof AuditEvents> (event: E, content: AuditContent<E>, source: AuditSource | null): void {
  const { id, ip } = source ?? {}
  channel(channelName(event)).publish({ ...content, ...(id !== undefined && { requestId: id }), ...(ip !== undefined && { ip }) })
}

function channelName (event: keyof AuditEvents): string {
  return `fastify-svc-auth.${event}`
}
