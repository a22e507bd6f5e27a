import t from 'tap'
import { checkedIdentity } from '../../lib/providers/identity.js'

t.test('an identity without a usable subject is refused', async t => {
  for (const subject of ['', 'a'.repeat(256), 'ada\0', 'ada\ud800', 7, null, undefined, { sub: 'ada' }]) {
    t.throws(
      () => checkedIdentity({ subject: subject as never, claims: { sub: 'ada' }, emailVerified: false }),
      { code: 'provider_error' },
      JSON.stringify(subject)
    )
  }
  for (const sub of ['', 'a'.repeat(256), 'ada\0', 7, { sub: 'ada' }]) {
    t.throws(() => checkedIdentity({ subject: 'ada', claims: { sub: sub as never }, emailVerified: false }), { code: 'provider_error' }, JSON.stringify(sub))
  }
  t.equal(checkedIdentity({ subject: 'a'.repeat(255), claims: {} as never, emailVerified: false }).claims.sub, 'a'.repeat(255))
})

t.test('the subject of a link need not be the sub of the claims', async t => {
  t.strictSame(
    checkedIdentity({ subject: 'tenant.ada', claims: { sub: 'ada' }, emailVerified: false }),
    { subject: 'tenant.ada', claims: { sub: 'ada' }, emailVerified: false }
  )
})

t.test('claims become plain JSON data, and reach no prototype', async t => {
  const claims = JSON.parse('{"sub":"ada","__proto__":{"admin":true},"constructor":1,"name":"Ada","email":"ada@example.com","nested":{"a":[1]}}')
  const identity = checkedIdentity({ subject: 'ada', claims: { ...claims, odd: () => {}, __proto__: null }, emailVerified: true })
  t.strictSame(identity, { subject: 'ada', emailVerified: true, claims: { sub: 'ada', name: 'Ada', email: 'ada@example.com', nested: { a: [1] } } })
})

t.test('what a provider sends as null or empty is absent, and nothing else is', async t => {
  const { claims } = checkedIdentity({
    subject: 'ada',
    claims: { name: null, picture: '', nickname: '', plan: null, seats: 0, isNew: false, teams: [], more: {} },
    emailVerified: false
  })
  t.strictSame(claims, { sub: 'ada', seats: 0, isNew: false, teams: [], more: {} })
})

t.test('an e-mail that is not a string counts as absent, and is never verified', async t => {
  for (const email of [['ada@example.com'], '', 'ada@example.com\0', undefined]) {
    const identity = checkedIdentity({ subject: 'ada', claims: { sub: 'ada', email: email as never }, emailVerified: true })
    t.strictSame(identity, { subject: 'ada', emailVerified: false, claims: { sub: 'ada' } })
  }
  t.equal(checkedIdentity({ subject: 'ada', claims: { sub: 'ada', email: 'a@example.com' }, emailVerified: 'true' as never }).emailVerified, false)
})

t.test('claims of 16384 characters are taken, longer ones end the sign-in', async t => {
  const identityWith = (length: number) => checkedIdentity({
    subject: 'ada',
    claims: { groups: ['a'.repeat(length - '{"groups":[""],"sub":"ada"}'.length)] },
    emailVerified: false
  })
  t.equal(JSON.stringify(identityWith(16_384).claims).length, 16_384)
  t.throws(() => identityWith(16_385), { code: 'provider_error', cause: { message: /longer than 16384 characters/ } })
})

t.test('an e-mail that is not one plain address is never a verified one', async t => {
  for (const email of [
    'evil@evil.test,boss@example.com', 'boss@example.com ; evil@evil.test', 'Boss <boss@example.com>', 'boss',
    'boss@\uff45xample.com', 'a@b@example.com', 'boss@example.com\r\nbcc: evil@evil.test'
  ]) {
    const { emailVerified, claims } = checkedIdentity({ subject: 'eve', claims: { email, email_verified: true }, emailVerified: true })
    t.strictSame([emailVerified, claims.email_verified, claims.email], [false, false, email], email)
  }
  for (const email of ['boss@example.com', ' Boss@EXAMPLE.com ', 'boss@b\u00fccher.example']) {
    const { emailVerified, claims } = checkedIdentity({ subject: 'boss', claims: { email, email_verified: true }, emailVerified: true })
    t.strictSame([emailVerified, claims.email_verified, claims.email], [true, true, email], email)
  }
})

t.test('a picture is an https: URL', async t => {
  const pictureOf = (picture: unknown) => checkedIdentity({ subject: 'ada', claims: { picture }, emailVerified: false }).claims.picture
  for (const picture of ['https://id.example/ada.png', 'https://id.example/a?size=200#b']) t.equal(pictureOf(picture), picture)
  t.equal(pictureOf('https://id.example/"><script>\n'), 'https://id.example/%22%3E%3Cscript%3E', 'written as browsers send it')
  for (const picture of [
    'http://id.example/ada.png', 'javascript:alert(1)', 'data:image/png;base64,AA==', 'blob:https://id.example/1',
    '//id.example/a.png', '/a.png', 'a.png', 'https://', 'view-source:https://id.example', '', 7,
    ['https://id.example/a.png'], { url: 'https://id.example/a.png' }
  ]) {
    t.equal(pictureOf(picture), undefined, JSON.stringify(picture))
  }
})

t.test('control and bidirectional characters are removed from names', async t => {
  const claimsOf = (claims: Record<string, unknown>) => checkedIdentity({ subject: 'ada', claims, emailVerified: false }).claims
  for (const character of [
    '\0', '\x07', '\n', '\r', '\t', '\x1b', '\x7f', '\x85', '\u061c', '\u200e', '\u200f', '\u2028', '\u2029', '\u202a',
    '\u202b', '\u202c', '\u202d', '\u202e', '\u2066', '\u2067', '\u2068', '\u2069'
  ]) {
    t.equal(claimsOf({ name: `Ada${character} Love${character}lace` }).name, 'Ada Lovelace', encodeURIComponent(character))
  }
  t.strictSame(
    claimsOf({ nickname: 'a\u202eb', given_name: '\u0007', family_name: 'L\n', preferred_username: ['\u202e'] }),
    { sub: 'ada', nickname: 'ab', family_name: 'L', preferred_username: ['\u202e'] }
  )
  for (const name of [
    'Zo\u00eb', '\u0639\u0644\u06cc\u200c\u0631\u0636\u0627', '\u{1f469}\u200d\u{1f4bb}', '\u5f20\u4f1f'
  ]) t.equal(claimsOf({ name }).name, name)
})
