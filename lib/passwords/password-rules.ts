import { AuthError, wrongLength } from '../errors.js'
import { type Checked, type ChecksOf, callable, optional, orFalse, wholeNumber } from '../option-checks.js'
import { common } from './common.js'
import { normalizePassword } from './hashing.js'
import type { PasswordCheck, PasswordContext } from './password-check.js'

/** Rules for new passwords, in addition to a length of 8 to 1024 bytes. */
export interface PasswordRules {
  /**
   * Called when a password is chosen, not at sign-in; default `common()`, which refuses the
   * passwords that attackers try first; false for none.
   */
  check?: PasswordCheck | false | undefined
  /**
   * The least number of characters as a user counts them, after NFKC, from 8 to 128; default 8, for
   * which 8 bytes are enough.
   */
  minLength?: number | undefined
}

/** Asks for nothing beyond {@link normalizePassword}. */
export const MIN_LENGTH = 8

/** The options of rules for new passwords. */
export const PASSWORD_RULES = {
  check: optional(orFalse(callable<PasswordCheck>('(password, { email }) => boolean or a sentence')), common()),
  minLength: optional(wholeNumber(MIN_LENGTH, 128, 'characters'), MIN_LENGTH)
} satisfies ChecksOf<PasswordRules>

/** Makes the function that checks new passwords: it resolves to the password in NFKC. */
export function passwordRules (
  { check, minLength }: Checked<typeof PASSWORD_RULES>
): (password: string, context: PasswordContext) => Promise<string> {
  const refusal = minLength === MIN_LENGTH ? {} : { message: wrongLength(minLength) }

  return async (password, context) => {
    const normalized = normalizePassword(password)
    if (normalized === null || !hasCharacters(normalized, minLength)) {
      throw new AuthError('weak_password', refusal)
    }
    const verdict = check === null || await check(normalized, context)
    if (verdict !== true) throw new AuthError('weak_password', typeof verdict === 'string' ? { message: verdict } : {})
    return normalized
  }
}

/** Whether a text has so many characters as a user counts them: an emoji is one. */
function hasCharacters (text: string, count: number): boolean {
  return count === MIN_LENGTH || Array.from(new Intl.Segmenter().segment(text)).length >= count
}
