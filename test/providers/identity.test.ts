import t from 'tap'
import { checkedIdentity } from '../../lib/providers/identity.js'

t.test('an identity without a usable subject is refused', async t => {
  for (const subject of ['', 'a'.repeat(256), 'ada\0', 'ada\ud800', 7, null, undefined, { sub: 'ada' }]) {
    t.throws(() => checkedIdentity({ subject: subject as never, claims: { sub: 'ada' }, emailVerified: false }), { code: 'provider_error' }, JSON.stringify(subject))
  }
  for (const sub of ['', 'a'.repeat(256), 'ada\0', 7, { sub: 'ada' }]) {
    t.throws(() => checkedIdentity({ subject: 'ada', claims: { sub: sub as never }, emailVerified: false }), { code: 'provider_error' }, JSON.stringify(sub))
  }
  t.equal(checkedIdentity({ subject: 'a'.repeat(255), claims: {} as never, emailVerified: false }).claims.sub, 'a'.repeat(255))
})

t.test('the subject of a link need not be the sub of the claims', async t => {
  t.strictSame(checkedIdentity({ subject: 'tenant.ada', claims: { sub: 'ada' }, emailVerified: false }), { subject: 'tenant.ada', claims: { sub: 'ada' }, emailVerified: false })
})

t.test('claims become plain JSON data, and reach no prototype', async t => {
  const claims = JSON.parse('{"sub":"ada","__proto__":{"admin":true},"constructor":1,"name":"Ada","email":"ada@example.com","nested":{"a":[1]}}')
  const identity = checkedIdentity({ subject: 'ada', claims: { ...claims, odd: () => {}, __proto__: null }, emailVerified: true })
  t.strictSame(identity, { subject: 'ada', emailVerified: true, claims: { sub: 'ada', name: 'Ada', email: 'ada@example.com', nested: { a: [1] } } })
})

t.test('what a provider sends as null or empty is absent, and nothing else is', async t => {
  const { claims } = checkedIdentity({ subject: 'ada', claims: { name: null, picture: '', nickname: '', plan: null, seats: 0, isNew: false, teams: [], more: {} }, emailVerified: false })
  t.strictSame(claims, { sub: 'ada', seats: 0, isNew: false, teams: [], more: {} })
})

t.test('an e-mail that is no string is none, and none is never verified', async t => {
  for (const email of [['ada@example.com'], '', 'ada@example.com\0', undefined]) {
    const identity = checkedIdentity({ subject: 'ada', claims: { sub: 'ada', email: email as never }, emailVerified: true })
    t.strictSame(identity, { subject: 'ada', emailVerified: false, claims: { sub: 'ada' } })
  }
  t.equal(checkedIdentity({ subject: 'ada', claims: { sub: 'ada', email: 'a@example.com' }, emailVerified: 'true' as never }).emailVerified, false)
})

t.test('claims of 16384 characters are taken, longer ones end the sign-in', async t => {
  const identityWith = (length: number) => checkedIdentity({ subject: 'ada', claims: { groups: ['a'.repeat(length - '{"groups":[""],"sub":"ada"}'.length)] }, emailVerified: false })
  t.equal(JSON.stringify(identityWith(16_384).claims).length, 16_384)
  t.throws(() => identityWith(16_385), { code: 'provider_error', cause: { message: /longer than 16384 characters/ } })
})
