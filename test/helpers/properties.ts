import fc from 'fast-check'
import type { Test } from 'tap'
import { isThorough } from './thorough.js'

/** Asserts that a property holds, and reports a counterexample where it does not. */
export async function holds<T> (t: Test, property: fc.IRawProperty<T>, numRuns: number): Promise<void> {
  t.equal(await fc.asyncDefaultReportMessage(await fc.check(property, { numRuns: isThorough ? numRuns : Math.ceil(numRuns / 30) })), undefined)
}

/** Runs a case of a property as a test; rejects with its first failure, so that the property reports a counterexample. */
export async function runCase (t: Test, run: (t: Test, fail: (reason: string) => void) => Promise<void>): Promise<void> {
  let failure: string | undefined
  const fail = (reason: string): void => { failure ??= reason }
  await t.test('a case', async t => run(t, fail).catch((error: Error) => fail(error.stack ?? error.message)))
  if (failure !== undefined) throw new Error(failure)
}

const SURROGATES = { from: 0xd800, count: 0x800 }

/**
 * Any character of Unicode but half a surrogate pair, as the unit of a string. That of fast-check, `binary`, makes a
 * table of all of them first, which takes longer than most properties.
 */
export const anyCharacter = fc.integer({ min: 0, max: 0x10ffff - SURROGATES.count }).map(
  number => String.fromCodePoint(number < SURROGATES.from ? number : number + SURROGATES.count),
  character => {
    const code = typeof character === 'string' ? character.codePointAt(0) : undefined
    if (code === undefined || String.fromCodePoint(code) !== character || /[\ud800-\udfff]/u.test(character)) throw new Error('not a character')
    return code < SURROGATES.from ? code : code - SURROGATES.count
  }
)
