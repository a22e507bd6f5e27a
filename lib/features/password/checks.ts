import { createHash } from 'node:crypto'
import { withTimeout } from '../../base/concurrency.js'
import { limitedBody } from '../../core/fetching.js'
import { AuthError, OptionsError } from '../../errors.js'
import {
  type ChecksOf, callable, checkedOptions, hasMethods, mustBe, optional, wholeNumber
} from '../../option-checks.js'

/** What a {@link PasswordCheck} learns beside the password. */
export interface PasswordContext {
  /** The e-mail of the account in its canonical form. */
  email: string
  /** The `issuer` of the identity provider: the name of the application, or its URL. */
  issuer: string
  /** The language of the page of the plugin, such as `de`; `en` where there is none. */
  language: string
}

/**
 * The application's rule for new passwords, which are in NFKC and long enough already. True
 * accepts; false, or a sentence that says why, refuses with `weak_password`. Throw an {@link
 * AuthError} to refuse with another code, such as `breached_password`.
 */
export type PasswordCheck = (
  password: string, context: PasswordContext
) => boolean | string | Promise<boolean | string>

/**
 * Makes one check of several, asked one after the other until one refuses: put the one that asks a
 * server last.
 *
 * @throws OptionsError for a check that is not a function
 *
 * @example
 * ```ts
 * new LocalIdentityProvider({ password: { check: all(common({ words: ['shop'] }), breached()) } })
 * ```
 */
export function all (...checks: readonly PasswordCheck[]): PasswordCheck {
  if (!checks.every(check => typeof check === 'function')) {
    throw new OptionsError('all takes checks of passwords, such as all(common(), breached())')
  }
  return async (password, context) => {
    for (const check of checks) {
      const verdict = await check(password, context)
      if (verdict !== true) return verdict
    }
    return true
  }
}

const SERVICE = 'https://api.pwnedpasswords.com/range/'
const PREFIX_LENGTH = 5
const MAX_RESPONSE_BYTES = 1_048_576

/** The rest of a hash in capitals, and how often its password was seen. */
const ENTRY = /^([0-9A-F]{35}):(\d+)$/gm

/** Options of {@link breached}. */
export interface BreachedOptions {
  /** Milliseconds for the request and its response; default 2000. */
  timeout?: number | undefined
  /** Default the global one; for a proxy, or a copy of the service. */
  fetch?: typeof fetch | undefined
  /** Where a password that could not be looked up is reported; default `process.emitWarning`. */
  log?: WarningLog | undefined
}

/** A log such as `app.log`. */
export interface WarningLog {
  /** Logs an error. */
  warn (details: { err: unknown }, message: string): void
}

const OPTIONS = {
  timeout: optional(wholeNumber(1, 60_000, 'milliseconds'), 2000),
  fetch: optional(callable<typeof fetch>('such as the global fetch')),
  log: optional(
    mustBe('a log with a function warn, as app.log has', hasMethods<WarningLog>('warn')), { warn: emitWarning })
} satisfies ChecksOf<BreachedOptions>

/** The check of {@link breached}. */
export type BreachedCheck = PasswordCheck & {
  /** How many passwords were accepted because the service did not answer as it should. */
  readonly unanswered: number
}

/**
 * Makes a check that refuses passwords from data breaches with `breached_password`. Asks Pwned
 * Passwords, a free service of Have I Been Pwned, which receives five of the forty hexadecimal
 * digits of the password's SHA-1 hash. Accepts the password when the service does not answer in
 * time, or not as documented: otherwise its failures would end registrations.
 *
 * @throws OptionsError naming the option
 * @see https://haveibeenpwned.com/API/v3#PwnedPasswords
 */
export function breached (options: BreachedOptions = {}): BreachedCheck {
  const { timeout, fetch = globalThis.fetch, log } = checkedOptions('breached', options, OPTIONS, '{ timeout: 2000 }')
  const check: PasswordCheck & { unanswered: number } = Object.assign(async (password: string) => {
    const hash = createHash('sha1').update(password).digest('hex').toUpperCase()
    const [prefix, rest] = [hash.slice(0, PREFIX_LENGTH), hash.slice(PREFIX_LENGTH)]
    const timesSeen = await withTimeout(timeout, range(prefix, fetch, timeout), SERVICE).then(
      range => range.get(rest),
      (err: unknown) => {
        check.unanswered++
        log.warn({ err }, 'a new password could not be compared with those of data breaches, and was accepted')
      }
    )
    // An entry that pads the answer was seen 0 times.
    if (timesSeen !== undefined && timesSeen > 0) throw new AuthError('breached_password')
    return true
  }, { unanswered: 0 })
  return check
}

/** Returns how often passwords were seen whose hashes begin so, by the rest of the hash. */
async function range (
  prefix: string, fetch: typeof globalThis.fetch, timeout: number
): Promise<ReadonlyMap<string, number>> {
  const { status, body } = await fetch(new URL(prefix, SERVICE).href, {
    // The padding hides by the length of the answer which one it is.
    headers: { 'Add-Padding': 'true', 'User-Agent': 'fastify-svc-auth' },
    signal: AbortSignal.timeout(timeout),
    redirect: 'error'
  })
  const text = await limitedBody(body, MAX_RESPONSE_BYTES)
  if (text === null) throw new Error(`${SERVICE} answered with more than ${MAX_RESPONSE_BYTES} bytes`)
  const lines = text.matchAll(ENTRY)
  const entries = Array.from(lines, ([, rest = '', count]): [string, number] => [rest, Number(count)])
  // Each range has some hundred entries.
  if (status !== 200 || entries.length === 0) throw new Error(`${SERVICE} answered ${status} without a list of hashes`)
  return new Map(entries)
}

function emitWarning ({ err }: { err: unknown }, message: string): void {
  process.emitWarning(`${message}: ${String(err)}`, { code: 'SVC_AUTH_BREACHED_UNANSWERED' })
}
