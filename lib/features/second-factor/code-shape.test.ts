import fc from 'fast-check'
import t from 'tap'
import { codeShape, newRecoveryCodes, normalCode } from './codes.js'
import { anyCharacter, holds } from '../../../test/helpers/properties.js'

const RECOVERY = 'ABCDEFGHJKMNPQRSTVWXYZ01'
const SHOWN = 'ABCD-EFGH-JKMN-PQRS-TVWX-YZ01'

t.test('attack 89: six digits of any script are a code of an app, without blanks, hyphens and format characters', async t => {
  t.strictSame(codeShape('000000'), { kind: 'totp', code: '000000' })
  for (const text of [
    '123456', '123 456', ' 123 456 ', '1\t2\n3\u00a04\u202f5\u30006', '123-456', '123\u2011456', '123\u2013456', '123\u2212456', '123\uff0d456', '-123456',
    '１２３４５６', '12345６', '١٢٣٤٥٦', '۱۲۳۴۵۶', '१२३४५६', '১২৩৪৫৬', '๑๒๓๔๕๖', '𝟏𝟐𝟑𝟒𝟓𝟔', '𞥑𞥒𞥓𞥔𞥕𞥖', '①②③④⑤⑥', '12३٤５6',
    '123\u200b456', '\ufeff123456', '\u200e123456\u200f', '\u2066123456\u2069', '\u202d123\u00ad456\u202c', '123\u2060456', '1\u200d2\u200c3456'
  ]) t.strictSame(codeShape(text), { kind: 'totp', code: '123456' }, JSON.stringify(text))
})

t.test('each decimal digit that Unicode knows is one of ten in a row', async t => {
  const digits = Array.from({ length: 0x110000 }, (_, point) => point < 0xd800 || point > 0xdfff ? String.fromCodePoint(point) : '')
    .filter(char => /\p{Nd}/u.test(char))
  const wrong = digits.filter((digit, index) => normalCode(digit) !== String(index % 10))
  t.ok(digits.length > 600)
  t.strictSame(wrong, [])
})

t.test('attack 91: a recovery code may be typed in lower case, without dashes, with letters that pass for digits', async t => {
  for (const text of [
    SHOWN, RECOVERY, SHOWN.toLowerCase(), SHOWN.replaceAll('-', ' '), ` ${SHOWN}\n`, SHOWN.replaceAll('-', '\u2013'), SHOWN.replaceAll('-', '\u2011'),
    SHOWN.replace('0', 'O').replace('1', 'I'), SHOWN.replace('0', 'o').replace('1', 'l'), SHOWN.replace('1', 'L'), SHOWN.replace('1', 'i'),
    `\u2066${SHOWN}\u2069`, SHOWN.replaceAll('-', '\u200b'), SHOWN.replaceAll('-', '\u00ad'), SHOWN.replace('0', '٠').replace('1', '१'),
    SHOWN.replace('A', 'Ａ').replace('B', 'ｂ').replace('0', '０'), SHOWN.replace('K', '\u212a'), SHOWN.replaceAll('-', '\u2212')
  ]) t.strictSame(codeShape(text), { kind: 'recovery', code: RECOVERY }, JSON.stringify(text))
})

t.test('attack 89: anything else is no code', async t => {
  for (const text of [
    null, undefined, true, 0, 123456, 123456n, {}, [], ['123456'], '', ' ', '12345', '1234567', '1e5', '1e5000', '+12345', '-12345', '12345.',
    '123,456', '123.456', '123_456', '0x1234', '１２３４５', '١٢٣٤٥٦٧', '一二三四五六', 'ⅠⅡⅢⅣⅤⅥ', '½23456', '123456\0', '123\ufffd456', '123\ud800456',
    RECOVERY.slice(1), `${RECOVERY}0`, RECOVERY.replace('V', 'U'), RECOVERY.replace('1', 'ı'), RECOVERY.replace('A', 'А'), RECOVERY.replace('A', 'Á'),
    RECOVERY.replace('A', '*'), `${SHOWN}_`, ''.padEnd(24, '-'),
    '1'.repeat(1_000_000), ' '.repeat(1_000_000), `123456${' '.repeat(1_000_000)}`, new String('123456') // eslint-disable-line no-new-wrappers
  ]) t.equal(codeShape(text), null, String(text).slice(0, 30))
})

t.test('six digits with blanks, hyphens and format characters anywhere, and nothing else of that kind, are a code of an app', async t => {
  const blanks = fc.string({ unit: fc.constantFrom(' ', '\t', '\u00a0', '-', '\u2011', '\u200b', '\u200f'), maxLength: 4 })
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
    fc.string({ unit: anyCharacter, maxLength: 70 }),
    fc.string({ unit: fc.constantFrom(...'0123456789abcdefghijklmnopqrstuvwxyzOILU- \u2013\u017f\u212a\u0131\u200f٣Ａ'), minLength: 20, maxLength: 30 }),
    fc.string({ unit: fc.constantFrom(...'0123456789 -６٣\u200b'), maxLength: 9 })
  )
  await holds(t, fc.property(texts, text => {
    const shape = codeShape(text)
    if (shape === null) return true
    const isNormal = (shape.kind === 'totp' ? /^[0-9]{6}$/ : /^[0-9A-HJKMNP-TV-Z]{24}$/).test(shape.code)
    return isNormal && JSON.stringify(codeShape(shape.code)) === JSON.stringify(shape)
  }), 9000)
})
