import { hash, randomBytes, randomInt } from 'node:crypto'

/** Crockford's base32, without letters that pass for others. */
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** More than any code has, with a blank or hyphen behind each character. */
const MAX_LENGTH = 64

/** What a user typed as a code: six digits of an app, or a recovery code without its hyphens. */
export interface TypedCode {
  readonly kind: 'totp' | 'recovery'
  readonly code: string
}

/**
 * Tells by its shape what kind of code a text is, before anything is counted or compared; null for
 * no code. In a recovery code O stands for 0, and I and L for 1.
 */
export function codeShape (text: unknown): TypedCode | null {
  if (typeof text !== 'string' || text.length > MAX_LENGTH) return null
  const code = normalCode(text)
  if (/^[0-9]{6}$/.test(code)) return { kind: 'totp', code }
  if (!/^[0-9A-TV-Z]{24}$/i.test(code)) return null
  return { kind: 'recovery', code: code.toUpperCase().replaceAll('O', '0').replace(/[IL]/g, '1') }
}

/**
 * Returns a code as it was shown or sent, without what typing and copying add: decimal digits of
 * other scripts become ASCII; format characters (zero-width, direction marks), blanks and hyphens
 * are removed.
 */
export function normalCode (text: string): string {
  const typed = text.normalize('NFKC').replace(/[\p{Cf}\s\p{Dash}]/gu, '')
  return typed.replace(/\p{Nd}/gu, digit => String(valueOf(Number(digit.codePointAt(0))) % 10))
}

/** Unicode has the decimal digits of each script in a row, from 0 to 9 (section 4.6). */
function valueOf (digit: number): number {
  return /\p{Nd}/u.test(String.fromCodePoint(digit - 1)) ? valueOf(digit - 1) + 1 : 0
}

/** Returns a random code for a mail: six digits. */
export function newMailCode (): string {
  return String(randomInt(1_000_000)).padStart(6, '0')
}

/** Returns ten random codes of 120 bits as users see them: `ABCD-EFGH-…`. */
export function newRecoveryCodes (): string[] {
  return Array.from({ length: 10 }, () => randomText(ALPHABET, 24).replace(/.{4}(?!$)/g, '$&-'))
}

/** Returns what a code is compared by: a plain hash, because nobody can try 120 random bits. */
export function recoveryHash (code: string): string {
  return hash('sha256', code.replaceAll('-', ''), 'base64url')
}

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
