/** Matches a UUID in lower case (RFC 9562 section 4); Microsoft Entra calls it a GUID. */
export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Whether a value has the form of a user id: a UUID in lower case. */
export function isUserId (value: unknown): value is string {
  return typeof value === 'string' && UUID.test(value)
}
