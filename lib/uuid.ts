/** A UUID in lower case (RFC 9562 section 4); Microsoft Entra calls it a GUID. */
export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
