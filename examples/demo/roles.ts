/** The roles that administrators can give. */
export const ROLES: readonly string[] = ['member', 'editor', 'admin']

export interface RoleForm {
  role: string
}

/** The schema of a form with a role. */
export const roleForm = { type: 'object', required: ['role'], properties: { role: { enum: ROLES } } }
