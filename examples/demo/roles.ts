import type { FastifyInstance } from 'fastify'
import type { Auth, Guard } from 'fastify-svc-auth'

/** The roles that administrators can give. */
export const ROLES: readonly string[] = ['member', 'editor', 'admin']

export interface RoleForm {
  role: string
}

/** The schema of a form with a role. */
export const roleForm = { type: 'object', required: ['role'], properties: { role: { enum: ROLES } } }

/**
 * What administrators alone may do. Refreshed first: a role counts as soon as it is granted, and until it is withdrawn.
 * A second factor, at most an hour ago: a browser that someone left open, or a password that they know, is not enough.
 */
export function administratorsOnly ({ auth }: FastifyInstance): Array<Auth['refresh'] | Guard> {
  return [auth.refresh, auth.requireClaims({ role: 'admin' }), auth.requireRecent({ within: 60 * 60, secondFactor: true })]
}
