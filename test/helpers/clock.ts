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

/**
 * Lets the time of this process pass faster, by timers and clocks.
 *
 * @returns a function that lets it pass as usual again; clocks stay ahead until the end of the test
 */
export function hastenTime (t: Test, factor: number): () => void {
  const [{ now }, { setTimeout }, elapsed] = [Date, globalThis, performance.now.bind(performance)]
  const start = elapsed()
  let end = Infinity
  const gained = (): number => (Math.min(elapsed(), end) - start) * (factor - 1)
  Date.now = () => Math.floor(now() + gained())
  performance.now = () => elapsed() + gained()
  const hastened = (callback: (...args: unknown[]) => void, milliseconds = 0, ...args: unknown[]) =>
    setTimeout(callback, end === Infinity ? milliseconds / factor : milliseconds, ...args)
  Object.assign(globalThis, { setTimeout: hastened })
  t.teardown(() => {
    Date.now = now
    Reflect.deleteProperty(performance, 'now')
    Object.assign(globalThis, { setTimeout })
  })
  return () => { end = elapsed() }
}
