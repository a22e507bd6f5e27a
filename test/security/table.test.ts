import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const ROOT = new URL('../../', import.meta.url)
const THREATS = new URL('docs/threats.md', ROOT)

const table = await readFile(THREATS, 'utf8')
const rows = Array.from(table.matchAll(/^\| (\d+) \|.*\| (.*) \|$/gm), ([, number = '', tests = '']) => ({ number, tests }))

/** The numbers of the attacks that the package defends against. */
const ATTACKS = [
  ...numbers(1, 97), 99, ...numbers(101, 108), 112, 113, ...numbers(116, 172), ...numbers(174, 176)
]

function numbers (first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index)
}

t.test('docs/threats.md has one row for each attack', async t => {
  t.strictSame(rows.map(({ number }) => Number(number)).sort((one, other) => one - other), ATTACKS)
})

for (const { number, tests } of rows) {
  t.test(`the tests that docs/threats.md names for attack ${number} are there`, async t => {
    const files = Array.from(tests.matchAll(/\]\(([^)]+)\)/g), ([, path = '']) => new URL(path, THREATS))
    t.ok(files.length > 0)
    for (const file of files.filter(({ pathname }) => /\.(?:test|long)\.ts$/.test(pathname))) {
      t.match(await readFile(file, 'utf8'), new RegExp(`attack ${number}\\b`), fileURLToPath(file).slice(fileURLToPath(ROOT).length))
    }
  })
}
