import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Test } from 'tap'
import type { AuditEvents } from '../../lib/index.js'

/** The audit events of a name from now on. */
export function eventsOf<E extends keyof AuditEvents> (t: Test, event: E): Array<AuditEvents[E]> {
  const events: Array<AuditEvents[E]> = []
  const listener = (message: unknown): void => { events.push(message as AuditEvents[E]) }
  subscribe(`fastify-svc-auth.${event}`, listener)
  t.teardown(() => { unsubscribe(`fastify-svc-auth.${event}`, listener) })
  return events
}
