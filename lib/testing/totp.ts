import { OptionsError } from '../errors.js'
import { assertKnownOptions } from '../option-checks.js'
import { stepAt, totpCode } from '../features/second-factor/totp.js'

/** Which code {@link totp} returns. */
export interface TotpOptions {
  /**
   * How many time steps of 30 seconds after the present one, such as 1 for the next code; default
   * 0. Each code is accepted once.
   */
  step?: number | undefined
}

/**
 * Returns the code that an authenticator app shows.
 *
 * @param secret in base32, or the `otpauth:` URI that the QR code has
 * @throws OptionsError for anything else
 *
 * @example
 * ```ts
 * const code = totp(uri)
 * const next = totp(uri, { step: 1 })
 * ```
 */
export function totp (secret: string, options: TotpOptions = {}): string {
  assertKnownOptions('totp', options, ['step'])
  const { step = 0 } = options
  if (!Number.isSafeInteger(step)) throw new OptionsError('step must be a whole number of time steps, such as 1')
  const base32 = secretIn(secret).replace(/\s/g, '').toUpperCase()
  if (!/^[A-Z2-7]{16,}$/.test(base32)) {
    throw new OptionsError('totp takes a secret in base32 or an otpauth: URI, as the enrolment answers them')
  }
  return totpCode(base32, stepAt(Date.now()) + step)
}

function secretIn (text: unknown): string {
  const given = String(text)
  return URL.canParse(given) ? new URL(given).searchParams.get('secret') ?? '' : given
}
