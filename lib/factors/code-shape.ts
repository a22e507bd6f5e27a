/** What a user typed as a code: six digits of an app, or a recovery code without its dashes. */
export interface TypedCode {
  readonly kind: 'totp' | 'recovery'
  readonly code: string
}

/** More than any code has, with a blank or dash behind each character. */
const MAX_LENGTH = 64

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
