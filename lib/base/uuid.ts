/** Matches a UUID in lower case (RFC 9562 section 4); Microsoft Entra calls it a GUID. */
export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export function isUserId (value: unknown): value is string {
  return typeof value === 'string' && UUID.test(value)
}

export function uuidToBase64url (userId: string): string {
  return Buffer.from(userId.replaceAll('-', ''), 'hex').toString('base64url')
}

/** The user id of 16 bytes as base64url. */
export function uuidFromBase64url (id: string): string {
  return Buffer.from(id, 'base64url').toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
