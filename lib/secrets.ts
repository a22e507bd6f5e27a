import { hkdfSync, timingSafeEqual } from 'node:crypto'
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

/** The newest secret first. */
export type Secrets = readonly [string, ...string[]]

const MIN_LENGTH = 32

/**
 * Reads the secrets of an option or, if it is absent, of an environment variable, which may have
 * several separated by blanks.
 *
 * @throws OptionsError that names both, never a secret
 */
export function secretsOf (given: unknown, option: string, setting: string): [string, ...string[]] {
  const value = given ?? settingsIn(setting)
  const secrets: unknown[] = Array.isArray(value) ? value : [value]
  if (!areLongEnough(secrets)) {
    const each = secrets.length > 1 ? ', each of them' : ''
    throw new OptionsError(`${option} must be at least ${MIN_LENGTH} characters${each}; ` +
      `set ${setting}, for example to the output of: openssl rand -hex 32`)
  }
  return secrets
}

/** Reads the option `dataSecret` or SVC_AUTH_DATA_SECRET likewise; null without both. */
export function dataSecretsOf (given: unknown): Secrets | null {
  if (given === undefined && settingsIn('SVC_AUTH_DATA_SECRET').length === 0) return null
  return secretsOf(given, 'dataSecret', 'SVC_AUTH_DATA_SECRET')
}

/** Refuses to do without secrets; `need` is what the error says: `with …, because …`. */
export function requiredDataSecrets (secrets: Secrets | null, need: string): Secrets {
  if (secrets !== null) return secrets
  throw new OptionsError(`dataSecret is required ${need}; set it, or SVC_AUTH_DATA_SECRET, ` +
    'for example to the output of: openssl rand -hex 32')
}

/** Derives a key of 32 bytes for a use, `info` (HKDF-SHA256, RFC 5869). */
export function derivedKey (secret: string, info: string, salt = ''): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, salt, info, 32))
}

export function derivedSecrets ([newest, ...older]: Secrets, info: string, salt?: string): Secrets {
  const derived = (secret: string): string => derivedKey(secret, info, salt).toString('base64url')
  return [derived(newest), ...older.map(derived)]
}

/** Compares texts in the same time for each text of a length. */
export function isEqual (one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}

function areLongEnough (secrets: unknown[]): secrets is [string, ...string[]] {
  return secrets.length > 0 && secrets.every(secret => typeof secret === 'string' && secret.length >= MIN_LENGTH)
}
