import t from 'tap'
import { SecondFactor, type SecondFactorOptions } from '../../second-factor.js'

t.test('options of a wrong form are refused with a sentence', async t => {
  const days = /^SecondFactor: trustedBrowser\.days must be a whole number from 1 to 365$/
  const issuer = /^SecondFactor: issuer must be the name of the application without a colon, such as 'Shop'$/
  const mistakes: Array<[unknown, RegExp]> = [
    [undefined, /^SecondFactor takes an object of options, such as \{ issuer: 'Shop' \}$/],
    ['Shop', /^SecondFactor takes an object of options/],
    [{}, issuer],
    [{ issuer: '' }, issuer],
    [{ issuer: 'Shop: Berlin' }, issuer],
    [{ issuer: 'Shop', app: 'Shop' }, /^SecondFactor has no option "app"; expected one of issuer, tolerance, required, trusts, connections, trustedBrowser$/],
    [{ issuer: 'Shop', tolerance: 3 }, /^SecondFactor: tolerance must be a whole number from 0 to 2$/],
    [{ issuer: 'Shop', tolerance: -1 }, /^SecondFactor: tolerance must be/],
    [{ issuer: 'Shop', required: true }, /^SecondFactor: required must be a function$/],
    [{ issuer: 'Shop', trusts: 'entra' }, /^SecondFactor: trusts must be a function$/],
    ...[30, null].map((trustedBrowser): [unknown, RegExp] =>
      [{ issuer: 'Shop', trustedBrowser }, /^SecondFactor: trustedBrowser must be an object \{ days \}$/]),
    [{ issuer: 'Shop', trustedBrowser: { days: 30, hours: 1 } }, /^SecondFactor: trustedBrowser has no option "hours"; expected one of days$/],
    ...[{}, { days: 0 }, { days: 366 }, { days: 1.5 }, { days: '30' }].map((trustedBrowser): [unknown, RegExp] =>
      [{ issuer: 'Shop', trustedBrowser }, days])
  ]
  for (const [options, message] of mistakes) {
    t.throws(() => new SecondFactor(options as SecondFactorOptions), { name: 'OptionsError', message }, JSON.stringify(options))
  }
})

t.test('options that are good, and those that are undefined, are taken', async t => {
  for (const trustedBrowser of [undefined, { days: 1 }, { days: 365 }]) {
    for (const tolerance of [undefined, 0, 1, 2] as const) t.doesNotThrow(() => new SecondFactor({ issuer: 'Shop', tolerance, trustedBrowser }))
  }
})
