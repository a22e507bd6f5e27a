import type { Test } from 'tap'

/** Lets the clock of this process go ahead by some milliseconds until the end of the test. Timers go on as before. */
export function advanceClock (t: Test, milliseconds: number): void {
  const { now } = Date
  t.intercept(Date, 'now', { value: () => now() + milliseconds })
}
