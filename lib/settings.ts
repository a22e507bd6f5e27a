import { isText } from './claims.js'
import { OptionsError } from './errors.js'

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * Reads a setting of the environment, without the white space around it; undefined for none.
 *
 * @throws OptionsError naming the setting, for quotes around it, or blanks or control characters in
 *   it, as files and shells add them by mistake
 */
export function settingOf (name: string, env: Environment = process.env): string | undefined {
  const [value, ...others] = settingsIn(name, env)
  if (others.length > 0) throw mistaken(name)
  return value
}

/** Reads a setting that has several values, separated by white space. */
export function settingsIn (name: string, env: Environment = process.env): string[] {
  const values = env[name]?.match(/\S+/g) ?? []
  const whole = values.join(' ')
  if (whole !== '' && !isBare(whole)) throw mistaken(name)
  return values
}

/** Whether a value is a text without blanks or quotes around it, and without control characters. */
export function isBare (value: unknown): value is string {
  return isText(value) && value === value.trim() && !/^["'`“‘].*["'`”’]$|[\p{Cc}\p{Cf}]/u.test(value)
}

function mistaken (name: string): OptionsError {
  return new OptionsError(`${name} must be the value alone: no quotes around it, no blanks and no control characters`)
}
