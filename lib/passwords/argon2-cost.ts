import type { Complete } from '../base/defaults.js'
import { OptionsError } from '../errors.js'
import { type ChecksOf, optional, table, wholeNumber } from '../option-checks.js'

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

/** The highest cost: verifying a damaged hash that asks for more could exhaust the machine. */
export const HIGHEST_ARGON2_COST: Argon2Cost = { memoryCost: 1_048_576, timeCost: 64, parallelism: 16 }

const checkedCost = table({
  memoryCost: optional(wholeNumber(8, HIGHEST_ARGON2_COST.memoryCost, 'KiB'), DEFAULT_ARGON2_COST.memoryCost),
  timeCost: optional(wholeNumber(1, HIGHEST_ARGON2_COST.timeCost), DEFAULT_ARGON2_COST.timeCost),
  parallelism: optional(wholeNumber(1, HIGHEST_ARGON2_COST.parallelism), DEFAULT_ARGON2_COST.parallelism)
} satisfies ChecksOf<Argon2Options>)

/** The option `argon2`. */
export function argon2Cost (options: unknown, option: string): Argon2Cost {
  const cost = checkedCost(options, option)
  // RFC 9106 section 3.1.
  if (cost.memoryCost >= 8 * cost.parallelism) return cost
  throw new OptionsError(`${option}.memoryCost must be 8 KiB or more for each lane of parallelism`)
}

/** Whether no part of a cost is above the highest one. */
export function isAffordable ({ memoryCost, timeCost, parallelism }: Argon2Cost): boolean {
  const highest = HIGHEST_ARGON2_COST
  return memoryCost <= highest.memoryCost && timeCost <= highest.timeCost && parallelism <= highest.parallelism
}
