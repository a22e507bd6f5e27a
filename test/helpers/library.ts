import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

const LIB = join(import.meta.dirname, '../../lib')

/** The text of each file of the library, by its path in `lib/`, without the tests that are beside what they test. */
export const LIBRARY: ReadonlyMap<string, string> = new Map(readdirSync(LIB, { recursive: true, encoding: 'utf8' })
  .filter(file => /(?<!\.(?:test|long))\.ts$/.test(file))
  .map(file => [file, readFileSync(join(LIB, file), 'utf8')]))
