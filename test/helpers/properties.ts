import fc from 'fast-check'
import type { Test } from 'tap'
import { isThorough } from './thorough.js'

/** Asserts that a property holds, and reports a counterexample where it does not. */
export async function holds<T> (t: Test, property: fc.IRawProperty<T>, numRuns: number): Promise<void> {
  t.equal(await fc.asyncDefaultReportMessage(await fc.check(property, { numRuns: isThorough ? numRuns : Math.ceil(numRuns / 30) })), undefined)
}
