import t from 'tap'
import {
  boolean, callable, checkedOptions, listOf, matching, mustBe, oneOf, optional, table, tableOrBoolean, text, wholeNumber
} from '../lib/option-checks.js'

const isText = (value: unknown): value is string => typeof value === 'string'

const OPTIONS = {
  name: text,
  seconds: optional(wholeNumber(1, 60, 'seconds'), 5),
  attempts: optional(wholeNumber(1), 3),
  isOpen: optional(boolean, false),
  hook: optional(callable('(user) => void'), null),
  log: optional(callable(), null),
  kind: optional(oneOf('first', 'second', 'third'), 'first'),
  tags: optional(listOf('a list of tags', isText), []),
  host: optional(matching('the name of a host', /^[a-z.]+$/), null),
  secret: optional(mustBe('a long text', (value): value is string => isText(value) && value.length > 20), null),
  cookie: table({ path: optional(text, '/'), age: table({ days: optional(wholeNumber(1, 400), 7) }) }),
  limits: tableOrBoolean({ login: optional(wholeNumber(1), 10) })
}

const checked = (options: unknown) => checkedOptions('Shop', options, OPTIONS, "{ name: 'a' }")

const DEFAULTS = {
  name: 'a',
  seconds: 5,
  attempts: 3,
  isOpen: false,
  hook: null,
  log: null,
  kind: 'first',
  tags: [],
  host: null,
  secret: null,
  cookie: { path: '/', age: { days: 7 } },
  limits: { login: 10 }
}

t.test('an option that is absent or undefined has its default, at every depth', async t => {
  const undefinedOnes = Object.fromEntries(Object.keys(OPTIONS).map(name => [name, undefined]))

  t.strictSame(checked({ name: 'a' }), DEFAULTS)
  t.strictSame(checked({ ...undefinedOnes, name: 'a' }), DEFAULTS)
  t.strictSame(checked({ name: 'a', cookie: { path: undefined, age: {} }, limits: {} }), DEFAULTS)
  t.strictSame(checked({ name: 'a', limits: true }), DEFAULTS, 'true is the default spelt out')
})

t.test('options that are given are taken, frozen, and lists are copied', async t => {
  const tags = ['new']
  const given = { name: 'a', seconds: 60, isOpen: true, hook: () => {}, kind: 'third', tags, cookie: { path: '/shop' }, limits: false }
  const options = checked(given)
  tags.push('later')

  t.strictSame(options, { ...DEFAULTS, ...given, tags: ['new'], cookie: { path: '/shop', age: { days: 7 } }, limits: null })
  for (const part of [options, options.cookie, options.cookie.age]) t.ok(Object.isFrozen(part))
})

const SECRET = 'a short secret'

const MISTAKES: Array<[options: unknown, message: string]> = [
  ...[undefined, null, 'a', [], new Map()].map((options): [unknown, string] =>
    [options, "Shop takes an object of options, such as { name: 'a' }"]),
  ...[{}, { name: '' }, { name: 1 }, { name: null }, { name: 'a\0' }].map((options): [unknown, string] =>
    [options, 'Shop: name must be a non-empty string']),
  ...[0, 61, 1.5, NaN, '5', null, 5n].map((seconds): [unknown, string] =>
    [{ name: 'a', seconds }, 'Shop: seconds must be a whole number of seconds from 1 to 60']),
  ...[0, Infinity].map((attempts): [unknown, string] => [{ name: 'a', attempts }, 'Shop: attempts must be a whole number from 1']),
  [{ name: 'a', isOpen: 'yes' }, 'Shop: isOpen must be true or false'],
  [{ name: 'a', hook: {} }, 'Shop: hook must be a function (user) => void'],
  [{ name: 'a', log: console }, 'Shop: log must be a function'],
  [{ name: 'a', kind: 'fourth' }, "Shop: kind must be 'first', 'second' or 'third'"],
  ...['new', [1]].map((tags): [unknown, string] => [{ name: 'a', tags }, 'Shop: tags must be a list of tags']),
  [{ name: 'a', host: 'https://a' }, 'Shop: host must be the name of a host'],
  [{ name: 'a', secret: SECRET }, 'Shop: secret must be a long text'],
  [{ name: 'a', cookie: '/' }, 'Shop: cookie must be an object { path, age }'],
  [{ name: 'a', cookie: { path: 1 } }, 'Shop: cookie.path must be a non-empty string'],
  [{ name: 'a', cookie: { domain: 'a' } }, 'Shop: cookie has no option "domain"; expected one of path, age'],
  [{ name: 'a', cookie: { age: { days: 0 } } }, 'Shop: cookie.age.days must be a whole number from 1 to 400'],
  [{ name: 'a', limits: 1 }, 'Shop: limits must be true, false or an object { login }'],
  [{ name: 'a', limits: { login: 0 } }, 'Shop: limits.login must be a whole number from 1'],
  [{ name: 'a', colour: undefined }, `Shop has no option "colour"; expected one of ${Object.keys(OPTIONS).join(', ')}`],
  [{ name: 'a', toString: 1 }, `Shop has no option "toString"; expected one of ${Object.keys(OPTIONS).join(', ')}`],
  [{ name: 'a', is_open: true }, 'Shop has no option "is_open"; it is called isOpen'],
  [{ name: 'a', Tag: [] }, 'Shop has no option "Tag"; it is called tags']
]

for (const [options, message] of MISTAKES) {
  t.test(`a mistake is refused with the sentence: ${message}`, async t => {
    const refused = t.throws(() => checked(options), { name: 'OptionsError', code: 'invalid_options', message })

    t.notOk(String(refused).includes(SECRET), 'no value is shown')
  })
}
