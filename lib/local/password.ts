import { randomBytes } from 'node:crypto'
import type { ParsedHashOptions } from '@node-rs/argon2'
import { AuthError } from '../errors.js'
import { Once } from '../base/once.js'
import type { Caller } from './fair-queue.js'
import { hashing } from './hashing.js'

/** Cost of a password hash (Argon2id, RFC 9106). */
export interface Argon2Options {
  /** KiB of memory a hash takes; default 19456. */
  memoryCost?: number
  /** Passes over the memory; default 2. */
  timeCost?: number
  /** Lanes; default 1. */
  parallelism?: number
}

export type Argon2Cost = Required<Argon2Options>

/** Of the parameters of a hash those that the cost does not name: Argon2id, version 1.3 (RFC 9106 section 3.1). */
const ARGON2ID = 2
const VERSION_1_3 = 1

/** OWASP's recommendation for Argon2id. */
export const DEFAULT_ARGON2_COST: Argon2Cost = { memoryCost: 19456, timeCost: 2, parallelism: 1 }

/** A stored hash that asks for more than this is taken as damaged: verifying it could exhaust the machine. */
export const HIGHEST_ARGON2_COST: Argon2Cost = { memoryCost: 1_048_576, timeCost: 64, parallelism: 16 }

const MIN_BYTES = 8
const MAX_BYTES = 1024

/** Characters. Composition shortens by a factor of three at the most: what is longer needs no normalising to be too long. */
const LONGEST = MAX_BYTES * 4

/** What a verification found. */
export interface PasswordVerdict {
  /** It is the password. */
  matches: boolean
  /** The hash was made with another cost than today's. */
  outdated: boolean
}

/** Argon2id hashes as PHC strings. */
export class PasswordHasher {
  readonly #cost: Argon2Cost
  /** The hash of a password that no user has. */
  readonly #decoy = new Once(() => hashing.hash({ password: randomBytes(16).toString('hex'), cost: this.#cost }))

  constructor (cost: Argon2Cost) {
    this.#cost = cost
  }

  /**
   * @returns a PHC string
   * @throws AuthError `weak_password` when the length is not 8 to 1024 bytes, `busy` when too many hashes wait
   */
  async hash (password: string, caller?: Caller): Promise<string> {
    const normalized = normalizePassword(password)
    if (normalized === null) throw new AuthError('weak_password')
    return hashing.hash({ password: normalized, cost: this.#cost }, caller)
  }

  /**
   * Compares a password with a stored hash. Without a hash, with an unreadable one and with a password
   * that cannot be chosen, it takes as long as with a good one: time must not tell which e-mails have
   * an account. A very long password is refused at once for every e-mail, so that it does not wait for
   * its turn in memory.
   *
   * @throws AuthError `busy` when too many hashes wait
   */
  async verify (hash: string | null, password: string, caller?: Caller): Promise<PasswordVerdict> {
    if (password.length > LONGEST) return { matches: false, outdated: false }
    const normalized = normalizePassword(password)
    const parameters = hash === null || normalized === null ? null : await affordableParameters(hash)

    if (hash === null || normalized === null || parameters === null) {
      await hashing.verify({ password: 'not the password', hash: await this.#decoy.done() }, caller)
      return { matches: false, outdated: false }
    }
    const matches = await hashing.verify({ password: normalized, hash }, caller)
    return { matches, outdated: !this.#isCurrent(parameters) }
  }

  #isCurrent ({ algorithm, version, memoryCost, timeCost, parallelism }: ParsedHashOptions): boolean {
    const cost = this.#cost
    return algorithm === ARGON2ID && version === VERSION_1_3 &&
      memoryCost === cost.memoryCost && timeCost === cost.timeCost && parallelism === cost.parallelism
  }
}

/**
 * The form in which a password is hashed: NFKC, so that it does not matter which keyboard composed it.
 * Nothing is trimmed or cut; a NUL counts like any character.
 *
 * @returns null when it is not 8 to 1024 bytes of well-formed Unicode (all lone surrogates would hash alike)
 * @see RFC 8265 section 4 (OpaqueString), NIST SP 800-63B section 5.1.1.2
 */
export function normalizePassword (password: string): string | null {
  if (password.length > LONGEST || !password.isWellFormed()) return null
  const normalized = password.normalize('NFKC')
  const bytes = Buffer.byteLength(normalized)
  return bytes < MIN_BYTES || bytes > MAX_BYTES ? null : normalized
}

/** @returns null for a hash that cannot be read, or that it would be too costly to verify */
async function affordableParameters (hash: string): Promise<ParsedHashOptions | null> {
  try {
    const parameters = await hashing.parametersOf(hash)
    const { memoryCost, timeCost, parallelism } = parameters
    const isAffordable = memoryCost <= HIGHEST_ARGON2_COST.memoryCost && timeCost <= HIGHEST_ARGON2_COST.timeCost && parallelism <= HIGHEST_ARGON2_COST.parallelism
    return isAffordable ? parameters : null
  } catch {
    return null
  }
}
