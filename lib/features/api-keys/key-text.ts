import { hash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** The id of a key, a secret of 190 bits, and the checksum of all before it. */
const KEY = /^([a-z][a-z0-9_]{1,19})_([0-9A-Za-z]{12})([0-9A-Za-z]{32})([0-9A-Za-z]{6})$/

export interface NewKey {
  readonly keyId: string
  /** What the table has of it. */
  readonly hash: string
  /** What is shown once. */
  readonly text: string
}

export function newKey (prefix: string): NewKey {
  const [keyId, secret] = [randomDigits(12), randomDigits(32)]
  const body = `${prefix}_${keyId}${secret}`
  return { keyId, hash: hashOf(secret), text: body + checksumOf(body) }
}

/**
 * Reads a key that a client presents; null for a text that is none. The checksum comes first, so
 * that a typo costs no statement, and a scanner of secrets can tell keys from other texts.
 */
export function presentedKey (prefix: string, text: string): Pick<NewKey, 'keyId' | 'hash'> | null {
  const [, presented, keyId = '', secret = '', checksum = ''] = KEY.exec(text) ?? []
  if (presented !== prefix || checksumOf(text.slice(0, -checksum.length)) !== checksum) return null
  return { keyId, hash: hashOf(secret) }
}

/** The CRC-32 of a text in base 62. It keeps nothing secret: everyone can compute it. */
function checksumOf (text: string): string {
  const sum = crc32(text)
  return [5, 4, 3, 2, 1, 0].map(place => DIGITS.charAt(Math.floor(sum / 62 ** place) % 62)).join('')
}

/** A secret of so many bits needs no slow hash. */
function hashOf (secret: string): string {
  return hash('sha256', secret, 'base64url')
}

/** Each digit is as likely as the others: `randomInt` leaves out what would make some likelier. */
function randomDigits (length: number): string {
  return Array.from({ length }, () => DIGITS.charAt(randomInt(DIGITS.length))).join('')
}
