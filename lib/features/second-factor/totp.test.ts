import fc from 'fast-check'
import t from 'tap'
import { bytesOf } from './codes.js'
import { newTotpSecret, stepAt, totpCode, totpStep, totpUri } from './totp.js'
import { anyCharacter, holds } from '../../../test/helpers/properties.js'

/** The secret of RFC 4226 appendix D and RFC 6238 appendix B: the ASCII text 12345678901234567890. */
const SECRET = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'

const secrets = fc.string({ unit: fc.constantFrom(...'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'), minLength: 32, maxLength: 32 })
const times = fc.integer({ min: 0, max: Date.UTC(2200, 0) })

t.test('a secret in base32 is its bytes', async t => {
  t.equal(bytesOf(SECRET).toString(), '12345678901234567890')
})

t.test('codes are those of RFC 4226 appendix D', async t => {
  t.strictSame(Array.from({ length: 10 }, (_, count) => totpCode(SECRET, count)), [
    '755224', '287082', '359152', '969429', '338314', '254676', '287922', '162583', '399871', '520489'
  ])
})

t.test('codes are the last six digits of those of RFC 6238 appendix B', async t => {
  for (const [seconds, code] of [
    [59, '94287082'], [1111111109, '07081804'], [1111111111, '14050471'], [1234567890, '89005924'], [2000000000, '69279037'],
    [20000000000, '65353130']
  ] as const) {
    t.equal(totpCode(SECRET, stepAt(seconds * 1000)), code.slice(2), `${seconds}`)
  }
})

t.test('a secret has 20 random bytes in base32', async t => {
  const made = new Set(Array.from({ length: 100 }, newTotpSecret))

  t.equal(made.size, 100)
  for (const secret of made) t.match(secret, /^[A-Z2-7]{32}$/)
  t.equal(new Set([...made].join('')).size, 32, 'of all characters')
  t.equal(bytesOf(newTotpSecret()).length, 20)
})

t.test('the URI has the secret, the application and the user, escaped', async t => {
  const uri = totpUri({ issuer: 'Shop', account: 'ada@example.com', secret: SECRET })
  t.equal(uri, `otpauth://totp/Shop:ada%40example.com?secret=${SECRET}&issuer=Shop`)
  t.equal(
    totpUri({ issuer: 'A+B & C: ?', account: '%41/../é#:', secret: SECRET }),
    `otpauth://totp/A%2BB%20%26%20C%20%3F:%2541%2F..%2F%C3%A9%23?secret=${SECRET}&issuer=A%2BB%20%26%20C%20%3F`
  )
})

t.test('an app reads from the URI what was put into it, without colons', async t => {
  const names = fc.string({ unit: anyCharacter, maxLength: 20 })
  await holds(t, fc.property(names, names, secrets, (issuer, account, secret) => {
    const { protocol, host, pathname, searchParams } = new URL(totpUri({ issuer, account, secret }))
    const [by = '', of = '', ...others] = decodeURIComponent(pathname.slice(1)).split(':')
    const read = { protocol, host, by, of, query: [...searchParams], others }
    const [issuerOf, accountOf] = [issuer, account].map(name => name.replaceAll(':', ''))
    const expected = {
      protocol: 'otpauth:', host: 'totp', by: issuerOf, of: accountOf, query: [['secret', secret], ['issuer', issuerOf]], others: []
    }
    return JSON.stringify(read) === JSON.stringify(expected)
  }), 3000)
  t.doesNotThrow(() => totpUri({ issuer: '\ud800', account: '\udfff', secret: SECRET }))
})

t.test('a code is of its step as long as the step is within the tolerance', async t => {
  await holds(t, fc.property(secrets, times, fc.integer({ min: 0, max: 3 }), fc.integer({ min: -6, max: 6 }), (secret, now, tolerance, drift) => {
    const step = stepAt(now) + drift
    const found = totpStep(secret, totpCode(secret, step), { now, tolerance })
    if (Math.abs(drift) > tolerance) return found === null || totpCode(secret, found) === totpCode(secret, step)
    // Two steps may have the same code: the newest counts.
    return found !== null && found >= step && totpCode(secret, found) === totpCode(secret, step)
  }), 3000)
})

t.test('attack 89: a code of two steps before or after is wrong, one of the step beside is right', async t => {
  const now = 1_111_111_111_000
  for (const [drift, isRight] of [[-2, false], [-1, true], [0, true], [1, true], [2, false]] as const) {
    const step = stepAt(now) + drift
    t.equal(totpStep(SECRET, totpCode(SECRET, step), { now, tolerance: 1 }), isRight ? step : null, `${drift}`)
  }
})

t.test('a code that two steps share is of the newest', async t => {
  const step = 910_737
  t.strictSame([step, step + 1].map(step => totpCode(SECRET, step)), ['911617', '911617'])

  t.equal(totpStep(SECRET, '911617', { now: step * 30_000, tolerance: 1 }), step + 1)
})

t.test('attack 89: a text that is no code is of no step, and breaks nothing', async t => {
  const now = 59_000
  const code = totpCode(SECRET, 1)
  const others = ['', '0', ` ${code}`, `${code} `, `${code}0`, code.slice(1), '２８７０８２', '1e5', '287\u{1f511}', code.padEnd(1_000_000, '0')]
  for (const text of others) t.equal(totpStep(SECRET, text, { now, tolerance: 1 }), null, text.slice(0, 10))
  t.equal(totpStep(SECRET, code, { now, tolerance: 1 }), 1)
  t.equal(totpStep(SECRET, totpCode(SECRET, 0), { now: 0, tolerance: 1 }), 0, 'nor does a clock at its beginning')
})
