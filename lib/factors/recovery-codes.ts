import { hash } from 'node:crypto'
import { randomText } from './base32.js'

/** Crockford's base32, without letters that pass for others. */
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const COUNT = 10
const LENGTH = 24

/** Returns ten random codes of 120 bits as users see them: `ABCD-EFGH-…`. */
export function newRecoveryCodes (): string[] {
  return Array.from({ length: COUNT }, () => randomText(ALPHABET, LENGTH).replace(/.{4}(?!$)/g, '$&-'))
}

/**
 * Returns what a code is compared by. A plain hash is enough, because nobody can try 120 random
 * bits.
 *
 * @param code as {@link newRecoveryCodes} or `codeShape` returns it
 */
export function recoveryHash (code: string): string {
  return hash('sha256', code.replaceAll('-', ''), 'base64url')
}
