import { randomBytes } from 'node:crypto'

/** The alphabet of authenticator apps (RFC 4648 section 6). */
export const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Returns random characters of an alphabet of 32: five bits each. */
export function randomText (alphabet: string, length: number): string {
  return Array.from(randomBytes(length), byte => alphabet[byte % 32]).join('')
}

/** Decodes base32 without padding. */
export function bytesOf (text: string): Buffer {
  const bits = Array.from(text, character => BASE32.indexOf(character).toString(2).padStart(5, '0')).join('')
  return Buffer.from(Array.from(bits.matchAll(/.{8}/g), ([byte]) => parseInt(byte, 2)))
}
