import { mock } from 'node:test'
import type { Test } from 'tap'

/** Lets the clock of this process go ahead by some milliseconds until the end of the test. Timers go on as before. */
export function advanceClock (t: Test, milliseconds: number): void {
  // Assigned, since t.intercept notes where each look at the clock comes from.
  const { now } = Date
  Date.now = () => now() + milliseconds
  t.teardown(() => { Date.now = now })
}

/**
 * Stops timers and `performance.now` of this process until the end of the test.
 *
 * @returns a function that lets some milliseconds pass
 */
export function stopTime (t: Test): (milliseconds: number) => void {
  let now = performance.now()
  t.intercept(performance, 'now', { value: () => now })
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => { mock.timers.reset() })
  return milliseconds => {
    now += milliseconds
    mock.timers.tick(milliseconds)
  }
}
