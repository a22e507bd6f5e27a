import { channel } from 'node:diagnostics_channel'
import type { AuthorizationClaims } from './claims.js'

/** What is noted of people's accounts, by event; no secrets, no e-mail addresses. */
interface AuditContents {
  /** A user was made, and let in by the hook `onSignIn` if there is one: by the registration form, or by the first sign-in of an identity. */
  registration: { userId: string, provider: string }
  /** `by` application: signed in by `app.auth.signIn`; the provider had no part in it. */
  'sign-in': { userId: string, provider: string, by: 'provider' | 'application' }
  /** A sign-in, a registration or a linking failed; `code` is what the browser is told. */
  failure: { provider: string, code: string }
  /** An identity was added to a user: by its e-mail at a sign-in, or because he asked for it. */
  link: { userId: string, provider: string, by: 'email' | 'request' }
  unlink: { userId: string, provider: string }
  /** `claims` are those that were granted, not all that the user has. */
  grant: { userId: string, claims: AuthorizationClaims }
  withdraw: { userId: string, names: readonly string[] }
  deletion: { userId: string }
  /** Somebody signed out. */
  revoke: { userId: string }
}

/** The request that brought an event about; absent where the application called `app.auth` by itself. */
export interface AuditOrigin {
  requestId?: string
  ip?: string
}

/** The payloads of the diagnostics channels, by event: that of `fastify-svc-auth.sign-in` is `AuditEvents['sign-in']`. */
export type AuditEvents = { [E in keyof AuditContents]: AuditContents[E] & AuditOrigin }

/** A request, an application, or a script's logger. */
export interface AuditSource {
  log: { info: (entry: object, message: string) => void }
  id?: string
  ip?: string
}

/** Writes an event to the log and publishes it. */
export function audit<E extends keyof AuditContents> (event: E, content: AuditContents[E], source: AuditSource | null): void {
  source?.log.info({ ...auditEntry(event), ...content }, event)
  publish(event, content, source)
}

/** What marks a line of the log as an event. */
export function auditEntry (event: keyof AuditContents): { event: string } {
  return { event: channelName(event) }
}

/** Publishes an event that is in the log already. */
export function publish<E extends keyof AuditContents> (event: E, content: AuditContents[E], source: AuditSource | null): void {
  const { id, ip } = source ?? {}
  channel(channelName(event)).publish({ ...content, ...(id !== undefined && { requestId: id }), ...(ip !== undefined && { ip }) })
}

function channelName (event: keyof AuditContents): string {
  return `fastify-svc-auth.${event}`
}
