import { OptionsError } from '../errors.js'
import type { PasswordCheck } from './password-check.js'

/**
 * Makes one check of several, asked one after the other until one refuses: put the one that asks a
 * server last.
 *
 * @throws OptionsError for a check that is not a function
 *
 * @example
 * ```ts
 * new LocalIdentityProvider({ password: { check: all(common({ words: ['shop'] }), breached()) } })
 * ```
 */
export function all (...checks: readonly PasswordCheck[]): PasswordCheck {
  if (!checks.every(check => typeof check === 'function')) {
    throw new OptionsError('all takes checks of passwords, such as all(common(), breached())')
  }
  return async (password, context) => {
    for (const check of checks) {
      const verdict = await check(password, context)
      if (verdict !== true) return verdict
    }
    return true
  }
}
