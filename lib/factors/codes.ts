import { hash } from 'node:crypto'
import { randomText } from './base32.js'

/** Crockford's base32, without letters that pass for others. */
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** More than any code has, with a blank or dash behind each character. */
const MAX_LENGTH = 64

/** What a user typed as a code: six digits of an app, or a recovery code without its dashes. */
export interface TypedCode {
  readonly kind: 'totp' | 'recovery'
  readonly code: string
}

/**
 * Tells by its shape what kind of code a text is, before anything is counted or compared. Blanks
 * may be anywhere, and dashes in a recovery code, in which O stands for 0, and I and L for 1.
 *
 * @returns null for a text that is no code of any kind
 */
export function codeShape (text: unknown): TypedCode | null {
  if (typeof text !== 'string' || text.length > MAX_LENGTH) return null
  const code = text.replace(/\s/g, '')
  if (/^[0-9]{6}$/.test(code)) return { kind: 'totp', code }
  const recovery = code.replace(/\p{Dash_Punctuation}/gu, '')
  if (!/^[0-9A-TV-Z]{24}$/i.test(recovery)) return null
  return { kind: 'recovery', code: recovery.toUpperCase().replaceAll('O', '0').replace(/[IL]/g, '1') }
}

/** Returns ten random codes of 120 bits as users see them: `ABCD-EFGH-…`. */
export function newRecoveryCodes (): string[] {
  return Array.from({ length: 10 }, () => randomText(ALPHABET, 24).replace(/.{4}(?!$)/g, '$&-'))
}

/**
 * Returns what a code is compared by. A plain hash is enough, because nobody can try 120 random
 * bits.
 */
export function recoveryHash (code: string): string {
  return hash('sha256', code.replaceAll('-', ''), 'base64url')
}
