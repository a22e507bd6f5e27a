import fc from 'fast-check'
import type { Test } from 'tap'

/** What part of the runs are enough before each commit. `npm run test:all` does them all. */
const SHARE = process.env.TEST_ALL === undefined ? 1 / 30 : 1

/** Asserts that a property holds, and reports a counterexample where it does not. */
export async function holds<T> (t: Test, property: fc.IRawProperty<T>, numRuns: number): Promise<void> {
  t.equal(await fc.asyncDefaultReportMessage(await fc.check(property, { numRuns: Math.ceil(numRuns * SHARE) })), undefined)
}
