/**
 * The column of tests in docs/threats.md: each row links the files with a test whose name begins with the
 * number of the attack. `npm run threats` writes it.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = join(import.meta.dirname, '../..')
export const THREATS = join(ROOT, 'docs/threats.md')

const ROW = /^(?<attack>\| (?<number>\d+) \|.*\|)(?: [^|]*)? \|$/gm

/**
 * The files of tests by the numbers that the names of their tests begin with, such as `attack 22, attack 38: …`,
 * also where the number is given to what makes the names.
 */
export const TESTS_OF = new Map<string, Set<string>>()

for (const file of globSync('{lib,test}/**/*.{test,long,browser}.ts', { cwd: ROOT }).sort()) {
  for (const [, names = ''] of readFileSync(join(ROOT, file), 'utf8').matchAll(/['"`](attack \d+(?:, attack \d+)*)(?:: |['"`])/g)) {
    for (const [number] of names.matchAll(/\d+/g)) TESTS_OF.set(number, (TESTS_OF.get(number) ?? new Set()).add(file))
  }
}

/** Returns the numbers of the rows of a text. */
export function attacksIn (text: string): string[] {
  return Array.from(text.matchAll(ROW), ({ groups }) => String(groups?.number))
}

/** Returns the text with the tests of each row. */
export function withTests (text: string): string {
  return text.replaceAll(ROW, (_row, attack: string, number: string) => `${attack} ${Array.from(TESTS_OF.get(number) ?? [], linkTo).join(', ')} |`)
}

function linkTo (file: string): string {
  const name = file.replace(/^(?:test|lib\/features|lib)\//, '').replace(/(?:\.test|\.browser)?\.ts$/, '')
  return `[${name}](../${file})`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(THREATS, withTests(readFileSync(THREATS, 'utf8')))
