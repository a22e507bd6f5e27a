import type { Test } from 'tap'

/** Rounds that do not count come first, a tenth of those that do. */
const WARM_UP = 0.1

/** How much longer than the fastest kind another one may take: a slow machine makes less of a difference than this. */
const SAME = 2

/**
 * Asserts that requests of several kinds take the same time, whatever else the machine does meanwhile: the kinds take turns, in a random order
 * in each round, and their medians are compared.
 *
 * @param time asks once, and returns the milliseconds that the answer took
 */
export async function assertSameTime<T> (
  t: Test, kinds: Readonly<Record<string, T>>, rounds: number, time: (kind: T, round: number) => Promise<number>
): Promise<void> {
  const times = Object.entries(kinds).map(([name, kind]) => ({ name, kind, measured: [] as number[] }))
  const warmUp = Math.ceil(rounds * WARM_UP)
  for (let round = 0; round < warmUp + rounds; round++) {
    for (const { kind, measured } of inRandomOrder(times)) {
      const taken = await time(kind, round)
      if (round >= warmUp) measured.push(taken)
    }
  }
  const medians = times.map(({ name, measured }) => ({ name, ms: median(measured) }))
  const fastest = Math.min(...medians.map(({ ms }) => ms))
  for (const { name, ms } of medians) t.ok(ms < fastest * SAME, `${name}: ${ms.toFixed(2)} ms, the fastest ${fastest.toFixed(2)} ms`)
}

/** The milliseconds that something takes. */
export async function timed (work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

function median (values: readonly number[]): number {
  return Float64Array.from(values).sort()[Math.floor(values.length / 2)] ?? NaN
}

function inRandomOrder<T> (values: readonly T[]): T[] {
  return values.map(value => ({ value, place: Math.random() })).sort((a, b) => a.place - b.place).map(({ value }) => value)
}
