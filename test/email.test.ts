import t from 'tap'
import { canonicalEmail, shownEmail, typedEmail } from '../lib/email.js'

t.test('one mailbox has one spelling', async t => {
  const spellings = {
    'ada@example.com': [
      'ada@example.com', 'Ada@Example.COM', ' ada@example.com ', '\tada@example.com\r\n', '\u00a0ada@example.com\u3000',
      '\ufeffada@example.com'
    ],
    'josé@example.com': ['jos\u00e9@example.com', 'jose\u0301@example.com', 'JOSE\u0301@EXAMPLE.COM'],
    'k@example.com': ['k@example.com', 'K@example.com'],
    'å@example.com': ['\u00e5@example.com', '\u00c5@example.com', 'a\u030a@example.com', 'A\u030a@example.com'],
    'ω@example.com': ['\u03c9@example.com', '\u03a9@example.com'],
    'ada@xn--bcher-kva.example': [
      'ada@bücher.example', 'ada@BÜCHER.example', 'ada@bu\u0308cher.example', 'ada@xn--bcher-kva.example',
      'ada@XN--BCHER-KVA.example', 'ada@bücher。example'
    ],
    'ada@xn--strae-oqa.example': ['ada@straße.example', 'ada@STRAẞE.example', 'ada@xn--strae-oqa.example']
  }

  for (const [canonical, inputs] of Object.entries(spellings)) {
    t.strictSame(inputs.filter(input => canonicalEmail(input) !== canonical), [], canonical)
  }
})

t.test('attack 44: addresses that look alike stay different', async t => {
  const different = [
    'i@example.com', 'İ@example.com', 'ı@example.com', 'ß@example.com', 'ss@example.com', 'strasse@example.com',
    'straße@example.com', 'а@example.com', 'a@example.com', 'a@strasse.example', 'a@straße.example', 'a@ı.example',
    'a@İ.example', 'a@i.example', 'a.b@example.com', 'ab@example.com', 'a+b@example.com'
  ]

  const canonical = different.map(input => canonicalEmail(input))

  t.notOk(canonical.includes(null))
  t.equal(new Set(canonical).size, different.length)
})

t.test('plain addresses of many kinds are taken', async t => {
  const inputs = [
    "o'brien@example.com", 'a.b+c_d-e@sub.example.com', '!#$&*/=^?`{}~@example.com', 'a-b@example.com',
    'a-@example.com', 'ada@xn--bcher-kva.xn--p1ai', 'a@localhost', '用户@例子.公司', '.a.@example.com', '1@2.example'
  ]

  t.strictSame(inputs.filter(input => canonicalEmail(input) === null), [])
})

t.test('attack 44: what is not one plain address is refused', async t => {
  const refused = [
    '', ' ', 'ada', 'ada.example.com', '@', 'ada@', '@example.com', 'ada@@example.com', 'a@b@example.com', 'ada@example.com@evil.example',
    'a@x,b@y', 'a@x;b@y', 'a,b@example.com', 'a;b@example.com', 'ada@example.com,evil.example', 'mailto:ada@example.com',
    '"a@evil x"@y', '"ada"@example.com', "ada@'example\".com", 'a\\b@example.com', '<b>@x', 'Ada <ada@example.com>',
    '(comment)ada@example.com', 'ada@example.com(comment)', 'ada@[127.0.0.1]', 'ada@[::1]', 'a[b@example.com',
    'a＠x', 'a\ufe6bx', 'ada＠evil.example@example.com', 'ﬁ@example.com', '①@example.com', 'ａda@example.com', 'ada@ﬁ.example', 'ada@ｅxample.com', 'ſ@example.com',
    'a@x\r\nBcc:b', 'a\r\n@x', 'a@x\nb', 'a\t@x', 'a b@example.com', 'ada@exam ple.com', 'a\u0000@example.com',
    'ada@example.com\u0000', 'a\u007f@example.com', 'a\u0085@example.com',
    'a\u00a0b@example.com', 'a\u2003b@example.com', 'a\u2028b@example.com', 'a\u200b@example.com',
    'a\u200d@example.com', 'ada@example\u200b.com', 'ada@example.com\u200b', 'a\u00ad@example.com',
    'ada@exam\u00adple.com', '\u2060ada@example.com', '\u202eada@example.com', 'a\ufeffb@example.com',
    'a\ue000@example.com', 'a\u0378@example.com', 'a\u{e0041}@example.com',
    'a\ud800@example.com', 'ada@example.com\udc00', 'ada@\ud800.example',
    'ada@example.com.', 'ada@.example.com', 'ada@example..com', 'ada@.', 'ada@。', 'ada@example。。com',
    'ada@example.com/path', 'ada@example.com?query', 'ada@example.com#hash', 'ada@example.com:25', 'ada@example%2ecom',
    'ada@exa|mple.com', 'ada@exa^mple.com', 'ada@xn--a', 'ada@xn--', 'ada@XN--A.example', 'ada@example.xn--',
    'ada@xn--example-', 'ada@xn--K-.example', 'ada@xn--\u00fc.example'
  ]

  t.strictSame(refused.filter(input => canonicalEmail(input) !== null), [])
})

t.test('attack 44: an address that normalisation would turn into another one is refused', async t => {
  const signs = [
    '\u212a@example.com', '\u212b@example.com', '\u2126@example.com', 'ada@\u212a.example', 'ada@\u212bngstrom.example',
    '\uf900@example.com', '\u0958@example.com', 'a\u0344@example.com'
  ]

  t.strictSame(signs.filter(input => canonicalEmail(input) !== null), [])
})

t.test('attack 44: a local part that mail software reads as more than a mailbox is refused', async t => {
  const refused = [
    '=?utf-8?q?boss?=@example.com', 'a=?utf-8?b?Yg==?=@example.com', '-oQ/tmp@example.com', '-f@example.com',
    'a%evil.example@example.com', '|id@example.com', 'a|b@example.com'
  ]

  t.strictSame(refused.filter(input => canonicalEmail(input) !== null), [])
})

t.test('attack 44: what separates, quotes or comments addresses in a header is refused anywhere', async t => {
  const inputs = [...',;:<>()[]"\\\ufffd'].flatMap(character => [
    `a${character}b@example.com`,
    `${character}ab@example.com`,
    `ab@exa${character}mple.com`,
    `ab@example.com${character}`
  ])

  t.strictSame(inputs.filter(input => canonicalEmail(input) !== null), [])
})

t.test('attack 44: invisible characters are refused anywhere', async t => {
  const invisible = [
    '\u200b', '\u200c', '\u200d', '\u2060', '\ufeff', '\u00ad', '\u034f', '\u061c', '\u115f', '\u1160', '\u17b4',
    '\u180b', '\u180e', '\u202e', '\u2066', '\ufe00', '\ufe0f', '\u{e0020}', '\u{e0100}'
  ]
  const inputs = invisible.flatMap(character => [`a${character}b@example.com`, `ab${character}@example.com`, `ab@exam${character}ple.com`])

  t.strictSame(inputs.filter(input => canonicalEmail(input) !== null), [])
})

t.test('attack 44: a number is not rewritten to an address of the network', async t => {
  const inputs = ['ada@0x7f.1', 'ada@2130706433', 'ada@127.1', 'ada@0177.0.0.1', 'ada@1.2.3.04', 'ada@127。1']

  t.strictSame(inputs.filter(input => ![null, input].includes(canonicalEmail(input))), [])
})

t.test('attack 44: 254 characters are taken, 255 are not', async t => {
  const ofLength = (length: number) => 'ada@example.com'.padStart(length, 'a')

  t.equal(canonicalEmail(ofLength(254)), ofLength(254))
  t.equal(canonicalEmail(ofLength(255)), null)
  t.equal(canonicalEmail(`  ${ofLength(254)}  `), ofLength(254), 'spaces around do not count')
  t.equal(canonicalEmail('a'.repeat(250) + '@bücher.example'), null)
  t.equal(canonicalEmail(`${'a'.repeat(50)}@${'ü'.repeat(200)}`), null, 'the ASCII form of the domain counts')
  t.equal(canonicalEmail(`${' '.repeat(2000)}ada@example.com`), null, 'nor is a very long input looked at')
})

t.test('the canonical form of a canonical form is itself', async t => {
  const inputs = [
    'Ada@Example.COM', 'JOSE\u0301@BÜCHER.example', 'İ@İ.example', 'ΑΣ@example.com', 'ẞ@ẞ.example', 'ΐ@example.com',
    'a@ΑΣ.example', 'Ά\u0345@example.com'
  ]

  const canonical = inputs.map(canonicalEmail)

  t.notOk(canonical.includes(null))
  t.strictSame(canonical.map(email => canonicalEmail(email ?? '')), canonical)
})

t.test('attack 44: what copying adds around an address is removed from what a user types, and from nothing else', async t => {
  const around = ['\u200b', '\u202a', '\u202c', '\u2066', '\u2069', '\u200e', '\u200f', '\u00ad', '\ufeff', '\u2060', ' ', '\u00a0', '\u3000', '\u3164', '\n']
  for (const mark of around) {
    t.equal(typedEmail(`${mark}Ada@Example.com${mark}`), 'ada@example.com', JSON.stringify(mark))
    t.equal(typedEmail(`ada${mark}b@example.com`), canonicalEmail(`ada${mark}b@example.com`), 'not inside')
  }
  t.equal(canonicalEmail('\u200bada@example.com'), null, 'a provider means another mailbox')
  const others = ['mailto:ada@example.com', 'Ada <ada@example.com>', 'ada', '\0ada@example.com', 'ada@example.com\ud800']
  for (const text of ['', ' ', '\u200b', '\u202a'.repeat(100_000), ...others]) {
    t.equal(typedEmail(text), null, text.slice(0, 30))
  }
})

t.test('the domain of an address is shown as people write it, where nobody takes it for another one', async t => {
  const shown = {
    'ada@xn--bcher-kva.example': 'ada@bücher.example',
    'ada@xn--strae-oqa.example': 'ada@straße.example',
    'ada@xn--fsqu00a.xn--0zwm56d': 'ada@例子.测试',
    'ada@xn--hgbk6aj7f53bba.example': 'ada@آزمایشی.example'
  }
  for (const [email, text] of Object.entries(shown)) t.equal(shownEmail(email), text)
  // Cyrillic and Greek letters that look like Latin ones, a dotless i, two scripts in one label.
  for (const text of ['аррӏе.example', 'ραypal.example', 'ıcloud.example', 'exаmple.example', 'привет.example', 'λόγος.example', 'gi\u0307thub.example']) {
    const email = String(canonicalEmail(`ada@${text}`))
    t.match(email, '@xn--')
    t.equal(shownEmail(email), email, text)
  }
  for (const text of ['ada@example.com', 'Ada', '', 'ada@', 'a@b@xn--bcher-kva.example.']) t.equal(shownEmail(text).length > text.length, false, text)
})
