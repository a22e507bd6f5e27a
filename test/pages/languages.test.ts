import type { FastifyRequest } from 'fastify'
import t from 'tap'
import { ERRORS } from '../../lib/errors.js'
import { Pages, type Texts, ar, de, en, es, fr, ja } from '../../lib/pages.js'
import { sentenceOf } from '../../lib/core/pages/failure.js'
import { dateIn, filled } from '../../lib/core/pages/elements.js'
import { common } from '../../lib/passwords.js'
import { foreignMarkIn } from '../helpers/foreign-marks.js'
import { ADA, registerAt, startMailApp } from '../helpers/mail-app.js'
import { readerOf } from './page.js'

/** The texts of a language by their paths. */
function textsOf (texts: object, path = ''): Array<[path: string, text: string]> {
  return Object.entries(texts).flatMap(([name, text]): Array<[string, string]> =>
    typeof text === 'string' ? [[`${path}${name}`, text]] : textsOf(text, `${path}${name}.`))
}

const placeholdersOf = (text = ''): string[] => Array.from(text.matchAll(/\{\w+\}/g), ([name]) => name).sort()
const english = new Map(textsOf(en))

/** Words that are the same in English. */
const SAME = ['de common.name', 'de direction', 'de factors.passkey', 'es direction', 'fr direction',
  'de oauth.deviceCode', 'fr oauth.deviceCode', 'ja direction']

for (const texts of [de, es, fr, ar, ja]) {
  t.test(`the pages in ${texts.language} have each text, in that language, with the names that are replaced`, async t => {
    const translated = textsOf(texts)
    t.strictSame(translated.map(([path]) => path).sort(), [...english.keys()].sort())
    for (const [path, text] of translated) {
      t.strictSame(placeholdersOf(text), placeholdersOf(english.get(path)), path)
      if (!SAME.includes(`${texts.language} ${path}`)) t.not(text, english.get(path), path)
      t.equal(text, text.trim(), path)
      t.equal(foreignMarkIn(text, texts.language), undefined, `${path}: the punctuation of its script`)
    }
  })
}

t.test('each error that a browser may see has a sentence in each language', async t => {
  const shown = Object.keys(ERRORS).filter(code => sentenceOf(en, code) !== en.errors.other)
  t.strictSame(Object.keys(ERRORS).filter(code => !shown.includes(code)).sort(),
    ['claim_not_allowed', 'insufficient_scope', 'invalid_claims', 'invalid_ttl', 'unknown_user', 'unsupported'])
  for (const texts of [en, de, es, fr, ar, ja]) {
    const sentences = Object.values(texts.errors)
    t.equal(new Set(sentences).size, sentences.length, `${texts.language}: each is another sentence`)
    for (const sentence of sentences) t.match(sentence, /^[\p{Lu}\p{Lo}¿¡].*[.。]$/u)
  }
})

t.test('a language without a text, and other wrong options, are refused with a sentence', async t => {
  const without = { ...en, signIn: { ...en.signIn, title: undefined } } as unknown as Texts
  const mistakes: Array<[object, RegExp]> = [
    [{ name: 'Shop', languages: [without] }, /^Pages: languages must be a list of languages/],
    [{ name: 'Shop', languages: [] }, /^Pages: languages must be/],
    [{ name: 'Shop', languages: ['en'] }, /^Pages: languages must be/],
    [{ name: 'Shop', languages: en }, /^Pages: languages must be/],
    [{}, /^Pages: name must be the name of the application/],
    [{ name: '' }, /^Pages: name must be/],
    [{ name: 'Shop', colour: 'red' }, /^Pages has no option "colour"; expected one of name, logo/],
    [{ name: 'Shop', links: ['/privacy'] }, /^Pages: links must be a list of \{ label, href \}/]
  ]
  for (const [options, message] of mistakes) {
    t.throws(() => new Pages(options as { name: string }), { name: 'OptionsError', message })
  }
  t.throws(() => new Pages('Shop' as never), { message: /^Pages takes an object of options/ })
})

t.test('a list of languages that is changed afterwards changes no page', async t => {
  const languages = [de, en]
  const { look } = new Pages({ name: 'Shop', languages })
  languages.shift()

  t.equal(look.textsFor({ url: '/', headers: { 'accept-language': 'de' } } as FastifyRequest), de)
})

t.test('dates are written as in the region of the browser, and other parts of its language play no part', async t => {
  const { look } = new Pages({ name: 'Shop', languages: [en, de, ar, ja] })
  const dateFor = (accepted: string): string =>
    dateIn(look.textsFor({ url: '/', headers: { 'accept-language': accepted } } as FastifyRequest).language, new Date('2026-01-05'))
  for (const [accepted, date] of [
    ['en', 'January 5, 2026'], ['en-US', 'January 5, 2026'], ['en-GB,en;q=0.5', '5 January 2026'], ['EN-gb', '5 January 2026'],
    ['de-DE', '5. Januar 2026'], ['de-AT', '5. Jänner 2026'], ['fr-CA, de-AT', '5. Jänner 2026'],
    ['de-u-ca-buddhist', '5. Januar 2026'], ['de-AT-u-ca-buddhist', '5. Januar 2026'], ['de-x', '5. Januar 2026'],
    [`de-${'a'.repeat(900)}`, '5. Januar 2026'], ['de-', '5. Januar 2026'], ['nl', 'January 5, 2026'],
    ['ar', '5 يناير 2026'], ['ar-EG', '٥ يناير ٢٠٢٦'], ['ja-JP', '2026年1月5日']
  ] as const) {
    t.equal(dateFor(accepted), `${date} (UTC)`, accepted.slice(0, 30))
  }
  const swiss = new Pages({ name: 'Shop', languages: [{ ...de, language: 'de-CH' }] })
  t.equal(swiss.look.textsFor({ url: '/', headers: { 'accept-language': 'de' } } as FastifyRequest).language, 'de-CH')
})

t.test('the page of a link has its date in the region of the browser', async t => {
  const app = await startMailApp(t, { pages: new Pages({ name: 'Shop' }) })
  const token = await registerAt(app)
  const page = await readerOf(t, app.browser).open(`/auth/local/verify-email?token=${token}`, { 'accept-language': 'en-GB' })
  t.equal(page.lang, 'en-GB')
  t.match(page.text, new RegExp(`on \\d+ \\p{L}+ ${new Date().getUTCFullYear()} \\(UTC\\)\\.`, 'u'))
})

t.test('password.check learns the language of the page, and what common says is in it', async t => {
  const asked: string[] = []
  const check = (password: string, { language }: { language: string }): boolean => asked.push(`${password} ${language}`) === 0
  const weak = { ...ADA, error_next: '/auth/pages/register' }
  const [own, usual] = [
    await startMailApp(t, { pages: new Pages({ name: 'Shop' }) }, { password: { check } }),
    await startMailApp(t, { pages: new Pages({ name: 'Shop' }) }, { password: { check: common() } })
  ]
  for (const [accepted, texts] of [['de-AT', de], ['fr', fr], ['es', es], ['en-GB', en], ['ar', ar], ['ja', ja], ['nl', en]] as const) {
    const headers = { 'accept-language': accepted }
    await own.browser.submit('/auth/local/register', weak, headers)
    t.equal(asked.at(-1), `${ADA.password} ${texts.language}`)
    const refused = await usual.browser.submit('/auth/local/register', { ...weak, password: 'password1' }, headers)
    t.match(refused.body, texts.errors.common_password)
  }
  const withoutPages = await startMailApp(t, {}, { sendMail: undefined, password: { check } })
  await withoutPages.browser.post('/auth/local/register', ADA, { 'accept-language': 'de' })
  t.equal(asked.at(-1), `${ADA.password} en`)
})

t.test('the label of a button has the words that are seen: who speaks to the browser says them', async t => {
  for (const { language, account, common, oauth, keys } of [en, de, es, fr, ar, ja]) {
    for (const [label, words] of [
      [account.removeMethod, account.remove], [account.endSession, common.signOut], [oauth.endLabel, oauth.end], [keys.endLabel, keys.end]
    ] as const) t.match(label.toLowerCase(), words.toLowerCase(), language)
  }
})

t.test('from right to left, a name is isolated where it is shown without an element of its own', async t => {
  const { connectionTest, signIn, account, oauth } = ar
  for (const text of [connectionTest.title, signIn.withProvider, account.add, oauth.title]) t.match(text, /\u2068\{\w+\}\u2069/)
})

t.test('a name in braces without a value stays as it is', async t => {
  t.equal(filled('{one} and {two}', { one: '1' }), '1 and {two}')
})
