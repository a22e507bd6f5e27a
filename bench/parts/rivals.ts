import autocannon from 'autocannon'
import { shuffled, median } from './measure.js'
import type { Question } from './server.js'
import { figure, table } from './table.js'

/** Somebody who does the same as others. */
export interface Rival {
  name: string
  /** Does it for so many seconds, as often as possible: how often a second. */
  rate (seconds: number): Promise<number>
}

/** So many requests, or computations, are under way at a time. */
export const CONNECTIONS = 16

/** An application that is asked over HTTP, from the bench's own process: each question must be answered with 200 and a text that contains `expected`. */
export function application (name: string, origin: string, choose: () => Question, expected: string): Rival {
  return {
    name,
    async rate (seconds) {
      const { requests, duration, errors, timeouts, mismatches, non2xx } = await autocannon({
        url: origin,
        connections: CONNECTIONS,
        duration: seconds,
        sampleInt: 50,
        requests: [{ setupRequest: request => ({ ...request, ...choose() }) }],
        verifyBody: body => String(body).includes(expected)
      })
      if (errors + timeouts + mismatches + non2xx > 0) throw new Error(`${name} failed: ${JSON.stringify({ errors, timeouts, mismatches, non2xx })}`)
      return requests.total / duration
    }
  }
}

/** Lets them take turns, in a new random order each round: who does how many in a second, and what share of that the first one does. */
export async function rivalry (rivals: readonly Rival[], { isShort, rounds = 9, seconds = 1 }: { isShort: boolean, rounds?: number, seconds?: number }): Promise<string> {
  const rates = new Map(rivals.map(rival => [rival, new Array<number>()]))
  const turn = isShort ? 0.1 : seconds
  for (const rival of shuffled(rivals)) await rival.rate(turn) // Warms up.
  for (let round = 0; round < (isShort ? 1 : rounds); round++) {
    for (const rival of shuffled(rivals)) rates.get(rival)?.push(await rival.rate(turn))
  }
  const [ours = []] = rates.values()
  const rows = Array.from(rates, ([{ name }, theirs]) => [name, figure(median(theirs)), median(theirs.map((rate, round) => (ours[round] ?? NaN) / rate)).toFixed(2)])
  return table(['', 'a second', 'ours to it'], rows) + '\n'
}
