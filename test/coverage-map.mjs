// What tap measures the coverage of, whichever test runs: all of lib/ but the tests in it, and no example.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const LIB = fileURLToPath(new URL('../lib', import.meta.url))
const FILES = readdirSync(LIB, { recursive: true }).filter(name => /(?<!\.(?:test|long))\.ts$/.test(name)).map(name => join(LIB, name))

export default () => FILES
