import { OptionsError } from './errors.js'

const MIN_LENGTH = 32

/**
 * Reads a secret from an option or, if the option is absent, from an environment variable.
 *
 * @param option the option's name, for the error
 * @param setting the environment variable's name
 * @throws OptionsError that names the option and the setting, never the secret
 */
export function secretsOf (given: unknown, option: string, setting: string): [string, ...string[]] {
  const value = given ?? process.env[setting]
  const secrets: unknown[] = Array.isArray(value) ? value : [value]
  if (!areLongEnough(secrets)) {
    const each = secrets.length > 1 ? ', each of them' : ''
    throw new OptionsError(`${option} must be at least ${MIN_LENGTH} characters${each}; ` +
      `set ${setting}, for example to the output of: openssl rand -hex 32`)
  }
  return secrets
}

function areLongEnough (secrets: unknown[]): secrets is [string, ...string[]] {
  return secrets.length > 0 && secrets.every(secret => typeof secret === 'string' && secret.length >= MIN_LENGTH)
}
