/**
 * Whether the tests look at all of a large set of cases (`npm run test:all`) or at a part that finds most mistakes
 * (`npm test`).
 */
export const isThorough = process.env.TEST_ALL !== undefined

/** Takes each `step`th of the cases, from the one at `first` on; all of them in `test:all`. */
export function some<T> (cases: readonly T[], step: number, first = 0): readonly T[] {
  return isThorough ? cases : cases.filter((_, index) => index % step === first % step)
}
