import { randomBytes } from 'node:crypto'
import type { ParsedHashOptions } from '@node-rs/argon2'
import { AuthError } from '../errors.js'
import { Once } from '../base/once.js'
import { type Argon2Cost, isAffordable } from './argon2-cost.js'
import type { Caller } from './fair-queue.js'
import { hashing } from './hashing.js'

/** How a PHC string names Argon2id, and version 1.3 (RFC 9106 section 3.1). */
const ARGON2ID = 2
const VERSION_1_3 = 1

const MIN_BYTES = 8
const MAX_BYTES = 1024

/** Characters above which a password is too long in any form: NFKC shortens to a third at most. */
const MAX_CHARACTERS = MAX_BYTES * 4

/** The result of comparing a password with a stored hash. */
export interface PasswordVerdict {
  /** Whether the password is the one that was hashed. */
  matches: boolean
  /** Whether the hash was made with a cost that is not the current one. */
  outdated: boolean
}

/** Hashes and verifies passwords with Argon2id; hashes are PHC strings. */
export class PasswordHasher {
  readonly #cost: Argon2Cost
  /** The hash of a random password, which no user has. */
  readonly #decoy = new Once(() => hashing.hash({ password: randomBytes(16).toString('hex'), cost: this.#cost }))

  constructor (cost: Argon2Cost) {
    this.#cost = cost
  }

  /** Hashes a password; throws `weak_password` when its length is not 8 to 1024 bytes. */
  async hash (password: string, caller?: Caller): Promise<string> {
    const normalized = normalizePassword(password)
    if (normalized === null) throw new AuthError('weak_password')
    return hashing.hash({ password: normalized, cost: this.#cost }, caller)
  }

  /**
   * Compares a password with a stored hash. Takes the same time when there is no hash, when the
   * hash is unreadable and when the password is not allowed: the time must not tell which e-mails
   * have an account. Refuses a very long password at once for every e-mail, so that it does not
   * wait in memory.
   */
  async verify (hash: string | null, password: string, caller?: Caller): Promise<PasswordVerdict> {
    if (password.length > MAX_CHARACTERS) return { matches: false, outdated: false }
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
 * Normalizes a password to NFKC, so that the same password typed on another keyboard matches.
 * Nothing is trimmed or cut; a NUL counts as a character.
 *
 * @returns null unless it is 8 to 1024 bytes of well-formed Unicode (all lone surrogates would hash
 *   alike)
 * @see RFC 8265 section 4 (OpaqueString), NIST SP 800-63B section 5.1.1.2
 */
export function normalizePassword (password: string): string | null {
  if (password.length > MAX_CHARACTERS || !password.isWellFormed()) return null
  const normalized = password.normalize('NFKC')
  const bytes = Buffer.byteLength(normalized)
  return bytes < MIN_BYTES || bytes > MAX_BYTES ? null : normalized
}

/** @returns null for a hash that cannot be read, or that is too costly to verify */
async function affordableParameters (hash: string): Promise<ParsedHashOptions | null> {
  try {
    const parameters = await hashing.parametersOf(hash)
    return isAffordable(parameters) ? parameters : null
  } catch {
    return null
  }
}
