import { type Complete, withoutUndefined } from '../base/defaults.js'
import { isPlainObject } from '../claims.js'
import { OptionsError } from '../errors.js'

/** Cost of a password hash (Argon2id, RFC 9106). */
export interface Argon2Options {
  /** KiB of memory per hash; default 19456. */
  memoryCost?: number | undefined
  /** Passes over the memory; default 2. */
  timeCost?: number | undefined
  /** Lanes; default 1. */
  parallelism?: number | undefined
}

export type Argon2Cost = Complete<Argon2Options>

/** The cost that OWASP recommends for Argon2id. */
export const DEFAULT_ARGON2_COST: Argon2Cost = { memoryCost: 19456, timeCost: 2, parallelism: 1 }

/**
 * The highest cost that is computed. Verifying a damaged hash that asks for more could exhaust the
 * machine.
 */
export const HIGHEST_ARGON2_COST: Argon2Cost = { memoryCost: 1_048_576, timeCost: 64, parallelism: 16 }

/**
 * Checks the option `argon2` and fills in the defaults.
 *
 * @throws OptionsError
 */
export function argon2Cost (options: Argon2Options): Argon2Cost {
  const cost: Argon2Cost = { ...DEFAULT_ARGON2_COST, ...withoutUndefined(Object(options)) }
  const { memoryCost, timeCost, parallelism, ...unknown } = cost
  const isValid = isPlainObject(options) && Object.keys(unknown).length === 0 &&
    [memoryCost, timeCost, parallelism].every(Number.isInteger) &&
    parallelism >= 1 && timeCost >= 1 && memoryCost >= 8 * parallelism && isAffordable(cost)
  if (isValid) return cost
  const { memoryCost: m, timeCost: t, parallelism: p } = HIGHEST_ARGON2_COST
  throw new OptionsError(
    `argon2 must be { memoryCost: KiB from 8 to ${m}, timeCost: 1 to ${t}, parallelism: 1 to ${p} }`)
}

/** Whether no part of a cost is above the highest one. */
export function isAffordable ({ memoryCost, timeCost, parallelism }: Argon2Cost): boolean {
  const highest = HIGHEST_ARGON2_COST
  return memoryCost <= highest.memoryCost && timeCost <= highest.timeCost && parallelism <= highest.parallelism
}
