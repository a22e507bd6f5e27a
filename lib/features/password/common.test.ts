import t from 'tap'
import { common } from '../../passwords.js'
import { COMMON_PASSWORDS } from './common-passwords.js'
import { COMMON_WORDS } from './common-words.js'
import { localProvider } from '../../../test/helpers/app.js'

const REFUSAL = /^This password is one of the most used, or made of a common word/
const CONTEXT = { email: 'ada.lovelace@engines.example', issuer: 'https://shop.example', language: 'en' }
const check = common({ words: ['Bücherei', 'acme'] })

const EASY: Array<[why: string, passwords: string[]]> = [
  ['a common word', ['football', 'princess', 'Sunshine', 'ILOVEYOU', 'starwars']],
  ['a common word with digits and signs', ['dragon99', 'Monkey123!', '1sunshine', 'summer2024!', '!!shadow!!', 'charlie-07']],
  ['a common word spelled with digits and signs', ['p@ssw0rd', 'Pa$$w0rd1', '5un5h1ne', 'dr4g0n12', 'w3lc0me!', 'f00tba11']],
  ['what is repeated', ['aaaaaaaa', 'abababab', 'hahahahaha', 'hello1hello1', 'passwordpassword', 'xyzzyxyzzy', ' '.repeat(9)]],
  ['runs', ['12345678', '1234567890', '87654321', 'qwertyuiop', 'asdfghjkl', '1q2w3e4r', 'zaq12wsx', '1qaz2wsx', 'abcd1234', 'qweasdzxc', 'aaaabbbb',
    'poiuytrewq', '11112222', 'abc123456', '!@#$%^&*']],
  ['a run and a common word', ['qwerlove', 'asdfdragon1', 'dragon12345']],
  ['years and dates', ['19841984', '20242025', '24121984', '19841224', '1984-2024']],
  ['the address', ['ada.lovelace', 'lovelace', 'AdaLovelace1', 'ada@engines.example', 'lovelace1984']],
  ['the issuer and the words of the application', ['shopshop', 'Shop2024!', 'acmeshop', 'bücherei', 'B\u00fccherei99', 'acme-ada-12']]
]

const HARD = [
  'correct horse', 'correct horse battery staple', 'dragon football', 'sunshine princess', 'dragon13579', 'pxq7vnw2', 'kV3#tRm9',
  '83925174', '92-84-71-03', 'tr0ub4dor&3', '\u0441\u043e\u043b\u043d\u0446\u0435 \u0441\u0432\u0435\u0442\u0438\u0442',
  '\u{1f600}\u{1f680}\u{1f40e}\u{1f50b}\u{1f4ce}', 'lovelace engines rattle', 'a'.repeat(65), `${'1234567890'.repeat(7)}x`
]

for (const [why, passwords] of EASY) {
  t.test(`attack 41: a password is refused that is made of ${why}`, async t => {
    for (const password of passwords) t.match(await check(password, CONTEXT), REFUSAL, password)
  })
}

t.test('other passwords are accepted', async t => {
  for (const password of HARD) t.equal(await check(password, CONTEXT), true, password)
})

t.test('the names of other users are not refused', async t => {
  t.equal(await check('lovelace', { ...CONTEXT, email: 'grace@example.com', issuer: 'app' }), true)
  t.equal(await common()('acmeacme1', CONTEXT), true)
})

t.test('the identity provider passes its issuer and the address', async t => {
  const local = localProvider({ issuer: 'https://bookshelf.example', password: { check: common() } })

  for (const password of ['bookshelf', 'lovelace', 'ｆｏｏｔｂａｌｌ']) {
    await t.rejects(local.hashPassword(password, CONTEXT), { code: 'weak_password', message: REFUSAL })
  }
  t.match(await local.hashPassword('correct horse', CONTEXT), /^\$argon2id/)
})

t.test('attack 41: each of the 10,000 most used passwords is refused, however its letters are written', async t => {
  const passwords = COMMON_PASSWORDS.trim().split(/\s/)

  t.strictSame(passwords, [...new Set(passwords)].sort())
  t.equal(passwords.length, 10_000)
  t.strictSame(passwords.filter(password => Buffer.byteLength(password) < 8 || password !== password.normalize('NFKC').toLowerCase()), [])
  const accepted: string[] = []
  for (const password of passwords) if (await check(password, CONTEXT) === true) accepted.push(password)
  t.strictSame(accepted, [])
  t.match(await check('ReDWingS', CONTEXT), REFUSAL)
})

t.test('the words are sorted, different, of lower-case letters, and at least three long', async t => {
  const words = COMMON_WORDS.trim().split(/\s/)

  t.strictSame(words, [...new Set(words)].sort())
  t.strictSame(words.filter(word => !/^[a-z]{3,}$/.test(word)), [])
  t.ok(words.length >= 1000)
})

t.test('the longest password that is compared takes milliseconds', async t => {
  const start = performance.now()
  for (const password of ['dragon1a'.repeat(8).slice(1), `${'qwertyuiopa'.repeat(5)}bcdefghi`]) await check(password, CONTEXT)
  t.ok(performance.now() - start < 500)
})

t.test('a mistake in the options is refused with a sentence that names the option', async t => {
  const mistakes: Array<[options: object, message: RegExp]> = [
    [{ word: [] }, /^common has no option "word"; it is called words$/],
    ...['shop', null, [''], [5], {}].map((words): [object, RegExp] => [{ words }, /^common: words must be a list of words, such as \['shop'\]$/])
  ]
  for (const [options, message] of mistakes) t.throws(() => common(options), { name: 'OptionsError', message })
})
