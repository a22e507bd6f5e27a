import { hkdfSync, timingSafeEqual } from 'node:crypto'
import { OptionsError } from './errors.js'
import { settingOf, settingsIn } from './settings.js'

/** The newest secret first. */
export type Secrets = readonly [string, ...string[]]

const MIN_LENGTH = 32

/**
 * Reads a secret from an option or, if the option is absent, from an environment variable.
 *
 * @param option the option's name, for the error
 * @param setting the environment variable's name
 * @throws OptionsError that names the option and the setting, never the secret
 */
export function secretsOf (given: unknown, option: string, setting: string): [string, ...string[]] {
  const value = given ?? settingOf(setting)
  const secrets: unknown[] = Array.isArray(value) ? value : [value]
  if (!areLongEnough(secrets)) {
    const each = secrets.length > 1 ? ', each of them' : ''
    throw new OptionsError(`${option} must be at least ${MIN_LENGTH} characters${each}; ` +
      `set ${setting}, for example to the output of: openssl rand -hex 32`)
  }
  return secrets
}

/**
 * Reads the secrets of the option `dataSecret` or, if it is absent, of SVC_AUTH_DATA_SECRET,
 * separated by blanks.
 *
 * @returns null where neither is given
 * @throws OptionsError that names both, never a secret
 */
export function dataSecretsOf (given: unknown): Secrets | null {
  const setting = settingsIn('SVC_AUTH_DATA_SECRET')
  if (given === undefined && setting.length === 0) return null
  return secretsOf(given ?? setting, 'dataSecret', 'SVC_AUTH_DATA_SECRET')
}

/**
 * Returns the secrets for what cannot do without them.
 *
 * @param need what needs them, as the error says it: `with …, because …`
 * @throws OptionsError where neither the option nor the setting is given
 */
export function requiredDataSecrets (secrets: Secrets | null, need: string): Secrets {
  if (secrets !== null) return secrets
  throw new OptionsError(`dataSecret is required ${need}; set it, or SVC_AUTH_DATA_SECRET, ` +
    'for example to the output of: openssl rand -hex 32')
}

/**
 * Derives a key of 32 bytes (HKDF-SHA256, RFC 5869).
 *
 * @param info what the key is for: another text makes another key
 */
export function derivedKey (secret: string, info: string, salt = ''): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, salt, info, 32))
}

/** Derives a secret from each of several, in the same way. */
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
