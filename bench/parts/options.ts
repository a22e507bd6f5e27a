import { parseArgs } from 'node:util'

const DIALECTS = ['sqlite', 'postgres'] as const

export type Dialect = typeof DIALECTS[number]

/** What every bench can be told. */
export interface BenchOptions {
  /** How many users the databases have: one database each, the smallest first. */
  sizes: number[]
  dialects: Dialect[]
  /** Small sizes and few repetitions: shows that the bench works, the figures say nothing. */
  isShort: boolean
  /** The program of Node.js that runs what is measured, in `start`. */
  node: string
}

/** Reads `--users 1000,100000`, `--dialect sqlite,postgres`, `--short` and `--node path/to/node`. */
export function benchOptions (args = process.argv.slice(2)): BenchOptions {
  const { values } = parseArgs({
    args,
    options: { users: { type: 'string' }, dialect: { type: 'string' }, short: { type: 'boolean', default: false }, node: { type: 'string', default: process.execPath } }
  })
  const { short: isShort, users = isShort ? '100,1000' : '1000,100000,1000000', dialect = DIALECTS.join(), node } = values
  return {
    sizes: users.split(',').map(sizeOf).sort((a, b) => a - b),
    dialects: dialect.split(',').map(dialectOf),
    isShort,
    node
  }
}

function sizeOf (text: string): number {
  const size = Number(text)
  if (!Number.isSafeInteger(size) || size < 10) throw new TypeError(`--users has "${text}", expected whole numbers from 10 up`)
  return size
}

function dialectOf (text: string): Dialect {
  const dialect = DIALECTS.find(dialect => dialect === text)
  if (dialect === undefined) throw new TypeError(`--dialect has "${text}", expected ${DIALECTS.join(' or ')}`)
  return dialect
}
