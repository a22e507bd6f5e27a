import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import type * as argon2 from '@node-rs/argon2'
import { Once } from '../../base/concurrency.js'
import type { Complete } from '../../base/values.js'
import { type Caller, FairQueue } from '../../core/fair-queue.js'
import { AuthError, OptionsError, invalidRequest } from '../../errors.js'
import { type ChecksOf, optional, table, wholeNumber } from '../../option-checks.js'

/** Cost of a password hash (Argon2id, RFC 9106). */
export interface Argon2Options {
  /** KiB of memory per hash; default 19456. */
  memoryCost?: number | undefined
  /** Passes over the memory; default 2. */
  timeCost?: number | undefined
  /** Lanes; default 1. */
  parallelism?: number | undefined
}

type Argon2Cost = Complete<Argon2Options>

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

/** Four by default, and one for a setting that is not a number, as libuv reads it. */
const POOL_THREADS = Number.parseInt(process.env.UV_THREADPOOL_SIZE ?? '4', 10) || 1

/**
 * Hashes that run at a time: one more than there are cores, so that none is idle until the event
 * loop starts the next hash. One thread of the pool stays free for files, DNS and keys. More hashes
 * do not finish sooner, and each takes 19 MiB.
 */
export const RUNNING = Math.max(1, Math.min(POOL_THREADS - 1, availableParallelism() + 1, 8))

/** Hashes that wait. At 20 ms per hash and two cores the last one waits 2.5 s. */
export const WAITING = 256

const queue = new FairQueue({ running: RUNNING, waiting: WAITING, retryAfter: 3 })

/** The native module is loaded when the application is ready, or with the first password. */
const native = new Once<typeof argon2>(() => import('@node-rs/argon2').catch(withoutNative))

function withoutNative (cause: unknown): never {
  throw new Error(`Passwords need @node-rs/argon2 and its optional dependency ${nativePackage(process)}; install ` +
    'all packages on this platform, without --omit=optional, and if it is still missing, as with a lockfile of ' +
    'another platform, remove package-lock.json and node_modules first', { cause })
}

/** Names the package with the native module for a platform. */
export function nativePackage ({ platform, arch, report }: Pick<NodeJS.Process, 'platform' | 'arch' | 'report'>) {
  const libc = (): string => Object(report.getReport()).header.glibcVersionRuntime === undefined ? '-musl' : '-gnu'
  const abi = platform === 'linux' ? libc() + (arch === 'arm' ? 'eabihf' : '') : platform === 'win32' ? '-msvc' : ''
  return `@node-rs/argon2-${platform}-${arch}${abi}`
}

/**
 * Computes the password hashes of this process in the thread pool of Node.js, a few at a time.
 * `hash` and `verify` throw as {@link FairQueue.run} does.
 */
export const hashing = {
  /** Loads the native module, so that the first password does not wait for it. */
  async preload (): Promise<void> {
    await native.done()
  },

  async hash ({ password, cost }: { password: string, cost: Argon2Cost }, caller?: Caller): Promise<string> {
    const { hash } = await native.done()
    return queue.run(async () => hash(password, cost), caller)
  },

  async verify ({ password, hash }: { password: string, hash: string }, caller?: Caller): Promise<boolean> {
    const { verify } = await native.done()
    return queue.run(async () => verify(hash, password), caller)
  },

  /** As {@link FairQueue.refusalFor}. */
  refusalFor: (address: string) => queue.refusalFor(address)
}

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
  /** Whether the hash was made by another algorithm or cost than the current one. */
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

  #isCurrent ({ algorithm, version, memoryCost, timeCost, parallelism }: argon2.ParsedHashOptions): boolean {
    const cost = this.#cost
    return algorithm === ARGON2ID && version === VERSION_1_3 &&
      memoryCost === cost.memoryCost && timeCost === cost.timeCost && parallelism === cost.parallelism
  }
}

/**
 * Normalizes a password to NFKC, so that the same password typed on another keyboard matches.
 * Nothing is trimmed or cut; a NUL counts as a character. Returns null unless it is 8 to 1024 bytes
 * of well-formed Unicode: all lone surrogates would hash alike.
 *
 * @see NIST SP 800-63B-3 section 5.1.1.2; RFC 8265 section 4.2 has NFC, which unifies less
 */
export function normalizePassword (password: string): string | null {
  if (password.length > MAX_CHARACTERS || !password.isWellFormed()) return null
  const normalized = password.normalize('NFKC')
  const bytes = Buffer.byteLength(normalized)
  return bytes < MIN_BYTES || bytes > MAX_BYTES ? null : normalized
}

/** Refuses U+FFFD, to which invalid bytes decode: different passwords would become the same. */
export function assertText (password: string): void {
  if (!password.includes('\ufffd')) return
  throw invalidRequest('The password is not text; send it as UTF-8, without the character U+FFFD.')
}

/** Returns null for a hash that cannot be read, or that is too costly to verify. */
async function affordableParameters (hash: string): Promise<argon2.ParsedHashOptions | null> {
  const { parseOptions } = await native.done()
  try {
    const parameters = parseOptions(hash)
    const highest = HIGHEST_ARGON2_COST
    const isAffordable = parameters.memoryCost <= highest.memoryCost && parameters.timeCost <= highest.timeCost &&
      parameters.parallelism <= highest.parallelism
    return isAffordable ? parameters : null
  } catch {
    return null
  }
}
