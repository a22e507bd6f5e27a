import fc from 'fast-check'
import type { Test } from 'tap'

/** Asserts that a property holds; says of one that does not what it is that breaks it. */
export async function holds<T> (t: Test, property: fc.IRawProperty<T>, numRuns: number): Promise<void> {
  t.equal(await fc.asyncDefaultReportMessage(await fc.check(property, { numRuns })), undefined)
}
