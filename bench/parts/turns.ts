import { figure, table } from './table.js'

/** Compares the times of requests of several kinds, which have turns, with those of the first kind. */

/** With 99 % a table of six kinds has one chance in twenty to show a difference where there is none. */
const CONFIDENCE = 0.99

/** A difference of more than this could be used over a network. */
const USABLE_PERCENT = 5

/**
 * Asks once for each kind in each round, in a random order, after some rounds that do not count.
 *
 * @param ask asks for the kind with this index and returns the milliseconds that it took
 * @returns the times of each round, in the order of the kinds
 */
export async function timeInTurns (
  { kinds, rounds, warmUp }: { kinds: number, rounds: number, warmUp: number },
  ask: (kind: number, round: number) => Promise<number>
): Promise<number[][]> {
  const measured: number[][] = []
  for (let round = 0; round < warmUp + rounds; round++) {
    const times = Array.from({ length: kinds }, () => NaN)
    for (const kind of inRandomOrder(kinds)) times[kind] = await ask(kind, round)
    if (round >= warmUp) measured.push(times)
  }
  return measured
}

/** A table of the kinds, each compared with the first. */
export function comparison (
  { title, kinds, resamples }: { title: string, kinds: readonly string[], resamples: number },
  rounds: readonly number[][]
): string {
  const rows = kinds.map((kind, index) => {
    const times = column(rounds, index)
    const cells = [kind, String(times.length), figure(quantile(times, 0.5)), figure(quantile(times, 0.95))]
    if (index === 0) return [...cells, '', '', '']
    const [lowest, highest] = likelyDifferences(rounds, index, resamples)
    const range = `${percent(lowest)} to ${percent(highest)}`
    return [...cells, percent(difference(rounds, index)), range, verdict(lowest, highest)]
  })
  const head = [title, 'n', 'median ms', '95 % ms', 'to the first', 'with 99 % confidence', 'difference']
  return table(head, rows)
}

/** A machine that has too much else to do cannot tell. */
function verdict (lowest: number, highest: number): string {
  const isSeen = lowest > 0 || highest < 0
  if (Math.max(-lowest, highest) < USABLE_PERCENT) return isSeen ? `below ${USABLE_PERCENT} %` : 'none'
  return isSeen ? 'A DIFFERENCE' : 'too noisy to tell'
}

/** Of the median of a kind to the median of the first, in per cent. */
function difference (rounds: readonly number[][], index: number): number {
  return (quantile(column(rounds, index), 0.5) / quantile(column(rounds, 0), 0.5) - 1) * 100
}

/**
 * A bootstrap: the differences if chance had drawn other rounds of those that were measured. Where
 * the middle 99 % of them lie on both sides of zero, no difference is seen.
 */
function likelyDifferences (
  rounds: readonly number[][],
  index: number,
  resamples: number
): [lowest: number, highest: number] {
  const drawn = (): number[][] => rounds.map(() => rounds[Math.floor(Math.random() * rounds.length)] ?? [])
  const differences = Array.from({ length: resamples }, () => difference(drawn(), index))
  const outside = (1 - CONFIDENCE) / 2
  return [quantile(differences, outside), quantile(differences, 1 - outside)]
}

function column (rounds: readonly number[][], index: number): number[] {
  return rounds.map(times => times[index] ?? NaN)
}

function quantile (values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.floor(share * sorted.length)] ?? NaN
}

function percent (value: number): string {
  return `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(1)} %`
}

function inRandomOrder (length: number): number[] {
  return Array.from({ length }, (_, index) => ({ index, place: Math.random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ index }) => index)
}
