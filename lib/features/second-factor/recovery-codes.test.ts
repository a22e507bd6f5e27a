import { hash } from 'node:crypto'
import t from 'tap'
import { codeShape, newRecoveryCodes, recoveryHash } from './codes.js'

t.test('ten different codes of 24 characters of Crockford base32 are made, in groups of four', async t => {
  const sets = Array.from({ length: 20 }, newRecoveryCodes)

  for (const codes of sets) t.equal(codes.length, 10)
  for (const code of sets.flat()) t.match(code, /^[0-9A-HJKMNP-TV-Z]{4}(?:-[0-9A-HJKMNP-TV-Z]{4}){5}$/)
  t.equal(new Set(sets.flat()).size, 200)
  t.equal(new Set(sets.flat().join('').replaceAll('-', '')).size, 32, 'of all characters')
})

t.test('a code has the same hash as it is shown and as it is typed', async t => {
  const [code = '', other = ''] = newRecoveryCodes()
  const typed = codeShape(code.toLowerCase().replaceAll('-', ' ').replaceAll('0', 'o').replaceAll('1', 'l'))

  t.equal(recoveryHash(typed?.code ?? ''), recoveryHash(code))
  t.not(recoveryHash(other), recoveryHash(code))
  t.equal(recoveryHash('ABCD-EFGH-JKMN-PQRS-TVWX-YZ01'), hash('sha256', 'ABCDEFGHJKMNPQRSTVWXYZ01', 'base64url'))
})
