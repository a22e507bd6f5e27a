/** Something to time, again and again. */
export interface Trial<Input> {
  /** What the next call is made with. */
  choose (): Input
  /** The only part that is timed. */
  call (input: Input): unknown
  /** Throws unless the call has done its work. */
  check (result: unknown, input: Input): void
  /** Undoes what the calls of a turn have left behind. */
  undo (inputs: Input[]): unknown
}

export interface Repetitions {
  /** In each round every trial has one turn, in an order that chance decides: what else the machine does hits all alike. */
  rounds: number
  /** Calls in a turn. */
  calls: number
}

/**
 * Times one call after the other.
 *
 * @returns microseconds that a call takes: the median over all calls but those of the first rounds, when code is not yet compiled
 */
export async function latencies<Input> (trials: ReadonlyArray<Trial<Input>>, { rounds, calls }: Repetitions): Promise<Map<Trial<Input>, number>> {
  const times = new Map(trials.map(trial => [trial, new Array<number>()]))
  await takeTurns(trials, rounds, async (trial, isWarm) => {
    const results: unknown[] = []
    const inputs = Array.from({ length: calls }, () => trial.choose())
    for (const input of inputs) {
      const start = performance.now()
      results.push(await trial.call(input))
      const end = performance.now()
      if (isWarm) times.get(trial)?.push((end - start) * 1000)
    }
    await finish(trial, inputs, results)
  })
  return medians(times)
}

/**
 * Times calls of which so many are under way at any time.
 *
 * @returns microseconds from one call done to the next: the median over all turns but the first ones
 */
export async function throughputs<Input> (trials: ReadonlyArray<Trial<Input>>, { rounds, calls, inFlight }: Repetitions & { inFlight: number }): Promise<Map<Trial<Input>, number>> {
  const times = new Map(trials.map(trial => [trial, new Array<number>()]))
  await takeTurns(trials, rounds, async (trial, isWarm) => {
    const results: unknown[] = []
    const inputs = Array.from({ length: calls }, () => trial.choose())
    const waiting = inputs.entries()
    const start = performance.now()
    await Promise.all(Array.from({ length: inFlight }, async () => {
      for (const [index, input] of waiting) results[index] = await trial.call(input)
    }))
    const end = performance.now()
    if (isWarm) times.get(trial)?.push((end - start) * 1000 / calls)
    await finish(trial, inputs, results)
  })
  return medians(times)
}

async function takeTurns<Input> (trials: ReadonlyArray<Trial<Input>>, rounds: number, turn: (trial: Trial<Input>, isWarm: boolean) => Promise<void>): Promise<void> {
  const warmUp = Math.ceil(rounds / 10)
  for (let round = 0; round < warmUp + rounds; round++) {
    for (const trial of shuffled(trials)) await turn(trial, round >= warmUp)
  }
}

async function finish<Input> (trial: Trial<Input>, inputs: Input[], results: unknown[]): Promise<void> {
  for (const [index, input] of inputs.entries()) trial.check(results[index], input)
  await trial.undo(inputs)
}

export function shuffled<T> (items: readonly T[]): T[] {
  return items.map(item => ({ item, place: Math.random() })).sort((a, b) => a.place - b.place).map(({ item }) => item)
}

function medians<K> (samples: ReadonlyMap<K, number[]>): Map<K, number> {
  return new Map(Array.from(samples, ([key, values]) => [key, median(values)]))
}

export function median (values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? NaN
}
