import t, { type Test } from 'tap'
import { newTotpSecret, stepAt, totpCode, totpStep, totpUri } from '../../lib/features/second-factor/totp.js'
import { totp } from '../../lib/testing.js'

const secret = newTotpSecret()
const NOW = 1_800_000_000_000

/** Stops the clock at {@link NOW}. */
const stopClock = (t: Test): void => { t.intercept(Date, 'now', { value: () => NOW }) }

t.test('totp returns the present code of a secret, as it is shown or typed', async t => {
  stopClock(t)
  t.equal(totp(secret), totpCode(secret, stepAt(NOW)))
  t.equal(totp(secret.toLowerCase().replace(/.{4}/g, '$& ')), totp(secret))
})

t.test('totp returns the present code of a URI', async t => {
  stopClock(t)
  t.equal(totp(totpUri({ issuer: 'Shop', account: 'ada@example.com', secret })), totp(secret))
})

t.test('totp returns the code of another step', async t => {
  stopClock(t)
  for (const step of [-1, 0, 1]) {
    t.equal(totpStep(secret, totp(secret, { step }), { now: NOW, tolerance: 1 }), stepAt(NOW) + step)
  }
  t.equal(totp(secret, { step: undefined }), totp(secret))
})

t.test('totp says what it takes', async t => {
  for (const other of ['', 'not base32!', '0189', 'ABC', 'https://app.example/?code=1', undefined, null, 7]) {
    t.throws(() => totp(other as string), { name: 'OptionsError', message: /^totp takes a secret in base32 or an otpauth: URI/ }, String(other))
  }
  for (const step of [0.5, NaN, Infinity, '1']) {
    t.throws(() => totp(secret, { step: step as number }), { name: 'OptionsError', message: /^step must be a whole number/ })
  }
  t.throws(() => totp(secret, { steps: 1 } as object), { name: 'OptionsError', message: /^totp has no option "steps"; it is called step$/ })
})
