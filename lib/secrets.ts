import { hkdfSync, timingSafeEqual } from 'node:crypto'
import { OptionsError } from './errors.js'
import { settingsIn } from './settings.js'

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
