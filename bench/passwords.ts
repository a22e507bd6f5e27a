import { execFileSync } from 'node:child_process'
import { LocalIdentityProvider } from '../dist/index.js'
import { common } from '../dist/passwords.js'
import { machine } from './parts/machine.js'
import { type Trial, latencies, median } from './parts/measure.js'
import { benchOptions } from './parts/options.js'
import { figure, table } from './parts/table.js'

/** Shows what the check `common` takes of a registration, beside the hash. */

const { isShort } = benchOptions()

const ENTRY = new URL('../dist/passwords.js', import.meta.url).href
const CONTEXT = { language: 'en', email: 'ada.lovelace@example.com', issuer: 'https://app.example' }
const PASSWORDS = { 'refused, 11 characters': 'P@ssw0rd-24', 'accepted, 28 characters': 'correct horse battery staple', 'accepted, 64 characters': 'dragon1a'.repeat(8).slice(1) + 'x' }

/** A program that imports the checks and asks one: prints the milliseconds of both. */
const FIRST = `
  const start = performance.now()
  const { common } = await import(${JSON.stringify(ENTRY)})
  const check = common()
  const imported = performance.now()
  await check('correct horse', ${JSON.stringify(CONTEXT)})
  console.log(JSON.stringify([imported - start, performance.now() - imported]))
`

console.log(`${machine('@node-rs/argon2')}\n`)

const firsts = Array.from({ length: isShort ? 2 : 21 }, (): number[] => JSON.parse(execFileSync(process.execPath, ['--input-type=module', '-e', FIRST], { encoding: 'utf8' })))
const medianOf = (index: number): string => figure(median(firsts.map(times => times[index] ?? NaN)))
console.log(table(['once', 'ms'], [['import of fastify-svc-auth/passwords', medianOf(0)], ['the first check', medianOf(1)]]) + '\n')

const check = common({ words: ['shop'] })
const local = new LocalIdentityProvider({ secret: 'a secret for the bench of passwords' })
const trial = (call: () => unknown): Trial<undefined> => ({ choose: () => undefined, call, check () {}, undo () {} })
const trials: Array<[name: string, trial: Trial<undefined>]> = [
  ...Object.entries(PASSWORDS).map(([name, password]): [string, Trial<undefined>] => [`common: ${name}`, trial(() => check(password, CONTEXT))]),
  ['the hash of a password', trial(() => local.hashPassword('correct horse', CONTEXT))]
]
const times = await latencies(trials.map(([, trial]) => trial), isShort ? { rounds: 2, calls: 2 } : { rounds: 50, calls: 20 })
console.log(table(['each', 'µs'], trials.map(([name, trial]) => [name, figure(times.get(trial) ?? NaN)])) + '\n')
