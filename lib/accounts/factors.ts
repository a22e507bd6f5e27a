import { isDeepStrictEqual } from 'node:util'
import {
  type Account, type Factor, type FactorKind, type User, userOf, withFactors, withKeysEnded, withSessionsEnded
} from './account.js'
import { AuthError } from '../errors.js'
import type { Rule } from './auth-store.js'
import { isAtGeneration } from './identities.js'

/** See {@link Accounts.attemptFactor}. */
const MAX_ATTEMPTS = 10
const WINDOW_MS = 15 * 60_000

/** What became of an attempt at a code. */
export type FactorAttempt = {
  /** The user as they are now. */
  user: User
} & ({
  /** The attempt counted. */
  isRefused: false
  /** The factor that took the code, as it is now; null for a wrong code. */
  spent: Factor | null
} | {
  /** There were too many attempts. */
  isRefused: true
  /** Seconds after which an attempt is allowed again, at least 1. */
  retryAfter: number
  /** Whether it is the first refusal in fifteen minutes: the one that the user is told of. */
  isFirst: boolean
})

/**
 * Returns the factor that a code is of, as it is after the code; null for a wrong code. Like a
 * {@link Rule} it has no effects and may be called again.
 */
export type FactorSpending = (factors: readonly Factor[]) => Factor | null

/** A change that {@link Accounts.changeFactors} makes. */
export interface FactorChange {
  /** As for {@link Accounts}. */
  generation?: number
  /** The kinds of factors that the user must still have; default any. */
  kinds?: readonly FactorKind[] | undefined
  /** Whether it ends all sessions of the user. */
  endsSessions: boolean
  /** Whether it ends all API keys of the user; default false. */
  endsKeys?: true
  /**
   * Returns the factors as they are from now on; null to write nothing. Like a {@link Rule} it has
   * no effects and may be called again.
   */
  change: (factors: readonly Factor[], account: Account) => readonly Factor[] | null
}

export function attemptFactor (generation: number, spend: FactorSpending, now: number): Rule<FactorAttempt | null> {
  return account => {
    if (account === null || !isAtGeneration(account, generation)) return { result: null }
    assertNoLostFactor(account)
    const user = userOf(account)
    // A clock that was set back must not refuse attempts until it is as late as before.
    const isRecent = (time: number): boolean => Math.abs(now - time) < WINDOW_MS
    const noted = account.extras.factor_attempts
    const { at, told } = noted?.generation === generation ? noted : { at: [], told: undefined }
    const counted = at.filter(isRecent)
    const wasTold = told !== undefined && isRecent(told)
    const isRefused = counted.length >= MAX_ATTEMPTS
    const attempts = {
      generation,
      at: isRefused ? counted : [...counted, now],
      ...(wasTold ? { told } : isRefused && { told: now })
    }
    const changed = { ...account, extras: { ...account.extras, factor_attempts: attempts } }
    if (!isRefused) {
      const spent = spend(account.factors)
      const factors = account.factors.map(factor => factor.id === spent?.id ? spent : factor)
      return { result: { isRefused, spent, user }, account: { ...changed, factors } }
    }
    const retryAfter = Math.max(1, Math.ceil((Math.min(...counted) + WINDOW_MS - now) / 1000))
    const result = { isRefused, user, retryAfter, isFirst: !wasTold }
    return wasTold ? { result } : { result, account: changed }
  }
}

export function changeFactorsRule (
  { generation, kinds, endsSessions, endsKeys, change }: FactorChange, now: number
): Rule<User | null> {
  return account => {
    if (account === null || !isAtGeneration(account, generation)) return { result: null }
    if (kinds !== undefined && !isDeepStrictEqual(account.extras.factors ?? [], kinds)) return { result: null }
    const factors = change(account.factors, account)
    if (factors === null) return { result: null }
    // Only who removes all factors changes an account that has lost one.
    if (factors.length > 0) assertNoLostFactor(account)
    const changed = withFactors(endsKeys ? withKeysEnded(account) : account, factors)
    const left = endsSessions ? withSessionsEnded(changed, now) : changed
    return { result: userOf(left), account: left }
  }
}

/** Returns a {@link FactorChange} of one factor; null of `change` writes nothing. */
export function changeOf (id: string, change: (present: Factor) => Factor | null): FactorChange['change'] {
  return factors => {
    const present = factors.find(factor => factor.id === id)
    const changed = present === undefined ? null : change(present)
    return changed && factors.map(factor => factor === present ? changed : factor)
  }
}

/** Returns the factors that are left; recovery codes go with the last one that they stand for. */
export function withoutFactors (factors: readonly Factor[], isRemoved: (factor: Factor) => boolean): Factor[] {
  const left = factors.filter(factor => !isRemoved(factor))
  return left.some(({ kind }) => kind !== 'recovery') ? left : []
}

function assertNoLostFactor ({ extras, factors }: Account): void {
  assertNoneLost(extras, factors)
}

/**
 * Refuses a list of factors without one of a kind that the user has: it is not complete, which is
 * never "no factor".
 */
export function assertNoneLost ({ factors: kinds = [] }: Pick<User, 'factors'>, factors: readonly Factor[]): void {
  if (kinds.every(kind => factors.some(factor => factor.kind === kind))) return
  throw new AuthError('unavailable', { cause: new Error('the table of factors lacks one that the user has') })
}

/** The hashes of the recovery codes that were not used. */
export function hashesIn ({ hashes }: Factor['data']): string[] {
  return Array.isArray(hashes) ? hashes : []
}
