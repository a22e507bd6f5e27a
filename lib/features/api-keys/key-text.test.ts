import { crc32 } from 'node:zlib'
import t from 'tap'
import { newKey, presentedKey } from './key-text.js'

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

t.test('a key has its prefix, an id, a secret and a checksum, and is read as it was made', t => {
  for (let count = 0; count < 200; count++) {
    const { keyId, hash, text } = newKey('shop_live')
    t.match(text, /^shop_live_[0-9A-Za-z]{50}$/)
    t.strictSame(presentedKey('shop_live', text), { keyId, hash })
    t.match(hash, /^[\w-]{43}$/)
    t.notMatch(text, hash)
  }
  t.end()
})

t.test('the checksum is the CRC-32 of all before it, in six digits of base 62', t => {
  const { text } = newKey('shop')
  const value = [...text.slice(-6)].reduce((sum, digit) => sum * 62 + DIGITS.indexOf(digit), 0)

  t.equal(value, crc32(text.slice(0, -6)))
  t.end()
})

t.test('a text with one other character, without one, or of another prefix is not a key', t => {
  const { text } = newKey('shop')
  for (let index = 0; index < text.length; index++) {
    const other = text[index] === 'a' ? 'b' : 'a'
    t.equal(presentedKey('shop', text.slice(0, index) + other + text.slice(index + 1)), null, `character ${index}`)
    t.equal(presentedKey('shop', text.slice(0, index) + text.slice(index + 1)), null, `without character ${index}`)
  }
  const others = ['', 'shop_', `${text} `, `${text}\n`, ` ${text}`, text.toUpperCase(), text.replace('shop', 'shoq')]
  for (const other of [...others, newKey('other').text]) t.equal(presentedKey('shop', other), null, JSON.stringify(other))
  t.end()
})

t.test('each digit is as likely as the others', t => {
  const counts = new Map<string, number>()
  for (let count = 0; count < 3000; count++) {
    for (const digit of newKey('shop').text.slice('shop_'.length, -6)) counts.set(digit, (counts.get(digit) ?? 0) + 1)
  }
  const expected = 3000 * 44 / 62
  // Ten standard deviations; the remainder of a byte would make eight digits a quarter likelier.
  const isEven = [...counts.values()].every(count => Math.abs(count - expected) < 10 * Math.sqrt(expected))

  t.equal(counts.size, 62)
  t.ok(isEven, JSON.stringify([...counts]))
  t.end()
})
