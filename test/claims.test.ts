import t from 'tap'
import { authorizationClaims, isPlainObject, isText, isVerified, jsonDataOf, mergeClaims, plainJsonObject } from '../lib/claims.js'

const INVALID = { name: 'AuthError', code: 'invalid_claims', statusCode: 400 }

t.test('claims of every JSON kind are copied as they are', async t => {
  const claims = {
    text: 'ünïcödé 👩‍💻',
    empty: '',
    number: -1.5,
    zero: 0,
    large: 1e300,
    yes: true,
    no: false,
    nothing: null,
    list: [1, [2, { three: [] }]],
    object: { nested: { deeper: {} } }
  }

  t.strictSame(plainJsonObject(claims), claims)
  t.strictSame(authorizationClaims(claims), claims)
  t.strictSame(jsonDataOf(claims), claims)
})

t.test('a copy shares nothing with what was passed in', async t => {
  for (const copied of [plainJsonObject, authorizationClaims, jsonDataOf]) {
    const claims = { list: [{ a: 1 }], object: { b: [2] } }

    const copy = copied(claims)
    claims.list.push({ a: 3 })
    claims.object.b.push(4)

    t.strictSame(copy, { list: [{ a: 1 }], object: { b: [2] } }, copied.name)
  }
})

t.test('claims without a prototype become ordinary ones', async t => {
  const claims: Record<string, unknown> = Object.assign(Object.create(null), { a: Object.assign(Object.create(null), { b: 1 }) })

  const copy = plainJsonObject(claims)

  t.strictSame(copy, { a: { b: 1 } })
  t.equal(Object.getPrototypeOf(copy), Object.prototype)
  t.equal(Object.getPrototypeOf(copy.a), Object.prototype)
})

t.test('attack 52: claims that are not a plain object are refused', async t => {
  for (const claims of [
    undefined, null, 'role', 1, true, [], ['role'], () => {}, new Date(), new Map(), new (class Claims {})(),
    Object.create({ inherited: true })
  ]) {
    t.throws(() => plainJsonObject(claims), { ...INVALID, message: 'claims must be a plain object.' })
    t.throws(() => authorizationClaims(claims), INVALID)
  }
})

/** Not JSON, though some of it would pass for it. */
const NOT_JSON: unknown[] = [
  undefined, NaN, Infinity, -Infinity, 1n, Symbol('a'), () => {}, new Date(0), new Map(), new Set(), /a/,
  Buffer.from('a'), new Uint8Array(1), new (class Role {})(), Object.create({ role: 'admin' }), Promise.resolve(1),
  new URL('https://app.example')
]

t.test('attack 52: what is not JSON is refused, at any depth, and the claim is named', async t => {
  for (const value of NOT_JSON) {
    t.throws(() => plainJsonObject({ odd: value }), { ...INVALID, message: /^claims\.odd is not JSON/ })
    t.throws(() => plainJsonObject({ fine: 1, list: [1, { odd: value }] }), { ...INVALID, message: /^claims\.list\[1\]\.odd is not JSON/ })
  }
})

t.test('attack 52: toJSON is not called but refused', async t => {
  const claims = { toJSON: () => ({ role: 'admin' }) }

  t.throws(() => plainJsonObject(claims), INVALID)
  t.throws(() => plainJsonObject({ nested: claims }), INVALID)
  t.strictSame(plainJsonObject({ toJSON: 'a claim of this name' }), { toJSON: 'a claim of this name' })
})

t.test('a list with holes is refused or filled, not kept with its holes', async t => {
  const holes: unknown[] = [1]
  holes[2] = 3

  let list: unknown
  try {
    list = plainJsonObject({ holes }).holes
  } catch (error) {
    return t.match(error, INVALID)
  }
  t.equal(Object.keys(Object(list)).length, 3)
})

t.test('attack 52: cycles and deep nesting are refused; 32 levels are taken', async t => {
  const cycle: Record<string, unknown> = {}
  cycle.self = cycle
  const ring: unknown[] = []
  ring.push([ring])
  const nested = (depth: number) => Array.from({ length: depth }).reduce<unknown>(inner => [inner], 'bottom')
  const nestedObjects = (depth: number) => Array.from({ length: depth }).reduce<unknown>(inner => ({ inner }), 'bottom')

  t.throws(() => plainJsonObject(cycle), { ...INVALID, message: /nested deeper than 32 levels or contains itself/ })
  t.throws(() => plainJsonObject({ ring }), INVALID)
  t.throws(() => plainJsonObject({ deep: nested(33) }), INVALID)
  t.throws(() => plainJsonObject({ deep: nestedObjects(33) }), INVALID)
  t.throws(() => plainJsonObject({ deep: nested(100_000) }), INVALID)
  t.strictSame(plainJsonObject({ deep: nested(32) }), { deep: nested(32) })
  t.strictSame(plainJsonObject({ deep: nestedObjects(32) }), { deep: nestedObjects(32) })
})

t.test('attack 57: NUL and half a surrogate pair are refused in values and in names', async t => {
  for (const text of ['a\u0000b', '\u0000', '\ud800', 'a\udc00b', '\udc00\ud800']) {
    t.throws(() => plainJsonObject({ odd: text }), { ...INVALID, message: /^claims\.odd holds a NUL character or half a surrogate pair/ })
    t.throws(() => plainJsonObject({ list: [text] }), INVALID)
    t.throws(() => plainJsonObject({ [text]: 1 }), { ...INVALID, message: /^a name in claims holds a NUL/ })
    t.throws(() => plainJsonObject({ nested: { [text]: 1 } }), INVALID)
  }
})

t.test('attack 54: names that reach a prototype are refused, at any depth', async t => {
  for (const name of ['__proto__', 'constructor', 'prototype']) {
    const claims: unknown = JSON.parse(`{"${name}":{"admin":true}}`)

    t.throws(() => plainJsonObject(claims), { ...INVALID, message: `"${name}" cannot be the name of a claim.` })
    t.throws(() => authorizationClaims(claims), INVALID)
    t.throws(() => plainJsonObject({ list: [claims] }), INVALID)
    t.throws(() => plainJsonObject({ nested: { claims } }), INVALID)
    t.notOk('admin' in {})
  }
})

t.test('identity claims cannot be granted; inside another claim their names are fine', async t => {
  for (const name of ['sub', 'email', 'email_verified', 'name', 'picture']) {
    t.throws(() => authorizationClaims({ role: 'member', [name]: 'x' }), { ...INVALID, message: new RegExp(`^"${name}" is an identity claim`) })
    t.strictSame(plainJsonObject({ [name]: 'x' }), { [name]: 'x' })
    t.strictSame(authorizationClaims({ profile: { [name]: 'x' } }), { profile: { [name]: 'x' } })
  }
})

t.test('of foreign data the JSON is kept and the rest left out', async t => {
  const odd = Object.fromEntries(NOT_JSON.map((value, index) => [`odd-${index}`, value]))
  const cycle: unknown[] = []
  cycle.push(cycle)

  const data = jsonDataOf({ ...odd, cycle, nul: '\u0000', half: '\ud800', inside: { fine: 1, odd: NaN }, fine: [1] })

  t.strictSame(data, { fine: [1] })
})

t.test('attack 54: foreign names that reach a prototype are left out, with the claim that holds them', async t => {
  const foreign: Record<string, unknown> = JSON.parse(
    '{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}},"prototype":1,' +
      '"nested":{"__proto__":{"admin":true}},"list":[{"constructor":1}],"role":"member"}'
  )

  const data = jsonDataOf(foreign)

  t.strictSame(data, { role: 'member' })
  t.equal(Object.getPrototypeOf(data), Object.prototype)
  t.notOk('admin' in data)
  t.notOk('admin' in {})
})

t.test('attack 57: foreign names that no store can keep are left out', async t => {
  t.strictSame(jsonDataOf({ 'a\u0000b': 1, '\ud800': 1, nested: { '\u0000': 1 }, fine: 1 }), { fine: 1 })
})

t.test('authorization claims lie over identity claims', async t => {
  const identity = { sub: '1', name: 'Ada', role: 'from the provider', tier: 1 }
  const authorization = { role: 'admin', flags: ['a'] }

  const claims = mergeClaims(identity, authorization)

  t.strictSame(claims, { sub: '1', name: 'Ada', role: 'admin', tier: 1, flags: ['a'] })
  t.strictSame(identity, { sub: '1', name: 'Ada', role: 'from the provider', tier: 1 })
  t.strictSame(authorization, { role: 'admin', flags: ['a'] })
})

t.test('attack 18: only true and "true" are verified', async t => {
  const values = [
    true, 'true', false, 'false', 'TRUE', 'True', ' true', 1, '1', 'yes', 'on', [], ['true'], [true], {}, null,
    // eslint-disable-next-line no-new-wrappers
    undefined, new Boolean(true), new String('true')
  ]

  t.strictSame(values.filter(isVerified), [true, 'true'])
})

t.test('a plain object is one that JSON or a literal makes', async t => {
  t.ok([{}, JSON.parse('{}'), Object.create(null), structuredClone({})].every(isPlainObject))
  t.notOk([null, undefined, [], 'a', 1, () => {}, new Date(), new (class {})(), Object.create({})].some(isPlainObject))
})

t.test('text is a string that is not empty and that every store can keep', async t => {
  t.ok(['a', ' ', '0', '😀', '\u0001'].every(isText))
  t.notOk(['', undefined, null, 0, true, [], {}, 'a\u0000', '\ud800'].some(isText))
})
