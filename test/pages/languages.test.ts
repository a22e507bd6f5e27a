import type { FastifyRequest } from 'fastify'
import t from 'tap'
import { ERRORS } from '../../lib/errors.js'
import { Pages, type Texts, de, en, es, fr } from '../../lib/pages.js'
import { sentenceOf } from '../../lib/pages/failure.js'
import { filled } from '../../lib/pages/texts.js'

/** The texts of a language by their paths. */
function textsOf (texts: object, path = ''): Array<[path: string, text: string]> {
  return Object.entries(texts).flatMap(([name, text]): Array<[string, string]> =>
    typeof text === 'string' ? [[`${path}${name}`, text]] : textsOf(text, `${path}${name}.`))
}

const placeholdersOf = (text = ''): string[] => Array.from(text.matchAll(/\{\w+\}/g), ([name]) => name).sort()
const english = new Map(textsOf(en))

/** Words that are the same in English. */
const SAME = ['de common.name', 'de direction', 'de factors.passkey', 'es direction', 'fr direction']

for (const texts of [de, es, fr]) {
  t.test(`the pages in ${texts.language} have each text, in that language, with the names that are replaced`, async t => {
    const translated = textsOf(texts)
    t.strictSame(translated.map(([path]) => path).sort(), [...english.keys()].sort())
    for (const [path, text] of translated) {
      t.strictSame(placeholdersOf(text), placeholdersOf(english.get(path)), path)
      if (!SAME.includes(`${texts.language} ${path}`)) t.not(text, english.get(path), path)
      t.equal(text, text.trim(), path)
    }
  })
}

t.test('each error that a browser may see has a sentence in each language', async t => {
  const shown = Object.keys(ERRORS).filter(code => sentenceOf(en, code) !== en.errors.other)
  t.strictSame(Object.keys(ERRORS).filter(code => !shown.includes(code)).sort(),
    ['claim_not_allowed', 'insufficient_scope', 'invalid_claims', 'invalid_ttl', 'unknown_user', 'unsupported'])
  for (const texts of [en, de, es, fr]) {
    const sentences = Object.values(texts.errors)
    t.equal(new Set(sentences).size, sentences.length, `${texts.language}: each is another sentence`)
    for (const sentence of sentences) t.match(sentence, /^[\p{Lu}¿¡].*[.]$/u)
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

  t.equal(look.textsFor({ headers: { 'accept-language': 'de' } } as FastifyRequest), de)
})

t.test('a name in braces without a value stays as it is', async t => {
  t.equal(filled('{one} and {two}', { one: '1' }), '1 and {two}')
})
