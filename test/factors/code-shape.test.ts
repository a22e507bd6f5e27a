import fc from 'fast-check'
import t from 'tap'
import { codeShape, newRecoveryCodes } from '../../lib/factors/codes.js'
import { holds } from '../helpers/properties.js'

const RECOVERY = 'ABCDEFGHJKMNPQRSTVWXYZ01'
const SHOWN = 'ABCD-EFGH-JKMN-PQRS-TVWX-YZ01'

t.test('attack 89: six ASCII digits are a code of an app, blanks passed over', async t => {
  for (const [text, code] of [
    ['000000', '000000'], ['123456', '123456'], ['123 456', '123456'], [' 123 456 ', '123456'], ['1\t2\n3\u00a04\u202f5\u30006', '123456']
  ] as const) t.strictSame(codeShape(text), { kind: 'totp', code }, JSON.stringify(text))
})

t.test('attack 91: a recovery code may be typed in lower case, without dashes, with letters that pass for digits', async t => {
  for (const text of [
    SHOWN, RECOVERY, SHOWN.toLowerCase(), SHOWN.replaceAll('-', ' '), ` ${SHOWN}\n`, SHOWN.replaceAll('-', '\u2013'), SHOWN.replaceAll('-', '\u2011'),
    SHOWN.replace('0', 'O').replace('1', 'I'), SHOWN.replace('0', 'o').replace('1', 'l'), SHOWN.replace('1', 'L'), SHOWN.replace('1', 'i')
  ]) t.strictSame(codeShape(text), { kind: 'recovery', code: RECOVERY }, JSON.stringify(text))
})

t.test('attack 89: anything else is no code', async t => {
  for (const text of [
    null, undefined, true, 0, 123456, 123456n, {}, [], ['123456'], '', ' ', '12345', '1234567', '1e5', '1e5000', '+12345', '-12345', '12345.',
    '123-456', '123,456', '0x1234', '１２３４５６', '١٢٣٤٥٦', '12345６', '123456\0', '123\u200b456',
    RECOVERY.slice(1), `${RECOVERY}0`, RECOVERY.replace('V', 'U'), RECOVERY.replace('S', 'ſ'), RECOVERY.replace('K', '\u212a'), RECOVERY.replace('1', 'ı'),
    RECOVERY.replace('A', 'Ａ'), RECOVERY.replace('A', '*'), `${SHOWN}_`, ''.padEnd(24, '-'),
    '1'.repeat(1_000_000), ' '.repeat(1_000_000), `123456${' '.repeat(1_000_000)}`, new String('123456') // eslint-disable-line no-new-wrappers
  ]) t.equal(codeShape(text), null, String(text).slice(0, 30))
})

t.test('six digits with blanks anywhere, and nothing else of that kind, are a code of an app', async t => {
  const blanks = fc.string({ unit: fc.constantFrom(' ', '\t', '\u00a0'), maxLength: 4 })
  const digits = fc.string({ unit: fc.constantFrom(...'0123456789'), maxLength: 8 })
  await holds(t, fc.property(digits, fc.array(blanks, { minLength: 9, maxLength: 9 }), (digits, between) => {
    const text = between.map((blank, index) => blank + (digits[index] ?? '')).join('')
    return JSON.stringify(codeShape(text)) === JSON.stringify(digits.length === 6 ? { kind: 'totp', code: digits } : null)
  }), 3000)
})

t.test('each new recovery code has the shape of one', async t => {
  for (const code of newRecoveryCodes()) t.strictSame(codeShape(code), { kind: 'recovery', code: code.replaceAll('-', '') })
})

t.test('any text is null or a code in its normal form, which is its own normal form', async t => {
  const texts = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 70 }),
    fc.string({ unit: fc.constantFrom(...'0123456789abcdefghijklmnopqrstuvwxyzOILU- \u2013\u017f\u212a\u0131'), minLength: 20, maxLength: 30 }),
    fc.string({ unit: fc.constantFrom(...'0123456789 -６'), maxLength: 9 })
  )
  await holds(t, fc.property(texts, text => {
    const shape = codeShape(text)
    if (shape === null) return true
    const isNormal = (shape.kind === 'totp' ? /^[0-9]{6}$/ : /^[0-9A-HJKMNP-TV-Z]{24}$/).test(shape.code)
    return isNormal && JSON.stringify(codeShape(shape.code)) === JSON.stringify(shape)
  }), 9000)
})
