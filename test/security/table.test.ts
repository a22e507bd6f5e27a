import { readFileSync } from 'node:fs'
import t from 'tap'
import { TESTS_OF, THREATS, attacksIn, withTests } from './threats.js'

const threats = readFileSync(THREATS, 'utf8')

t.test('docs/threats.md has one row for each attack that a test names, and each attack has a test', async t => {
  const byNumber = (one: string, other: string): number => Number(one) - Number(other)

  t.strictSame(attacksIn(threats).sort(byNumber), [...TESTS_OF.keys()].sort(byNumber))
})

t.test('docs/threats.md links the tests of each attack: `npm run threats` writes them', async t => {
  t.equal(threats, withTests(threats))
})

t.test('docs/threats.md says the defence of each attack', async t => {
  const rows = threats.split('\n').filter(line => /^\| \d/.test(line)).filter(row => row.split(/(?<!\\)\|/).length !== 6)
  t.strictSame(rows, [])
})
