/** The roles that an invitation can offer. */
export const ROLES: readonly string[] = ['member', 'editor', 'admin']
