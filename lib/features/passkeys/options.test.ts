import t from 'tap'
import { Passkeys, type PasskeysOptions } from '../../passkeys.js'

const around = (baseUrl: string | null, ...trusted: string[]): Parameters<Passkeys['ceremonies']>[0] => {
  return { baseUrl, trustedOrigins: new Set(trusted) }
}

t.test('options of a wrong form are refused with a sentence', async t => {
  const mistakes: Array<[unknown, RegExp]> = [
    [undefined, /^Passkeys takes an object of options, such as \{ name: 'Shop' \}$/],
    [{}, /^Passkeys: name must be the name of the application, such as 'Shop'$/],
    [{ name: '' }, /^Passkeys: name must be/],
    [{ name: 'Shop', origins: [] }, /^Passkeys has no option "origins"; expected one of name, rpId, relatedOrigins, createOnSignIn$/],
    [{ name: 'Shop', relatedOrigins: 'https://app.test' }, /^Passkeys: relatedOrigins must be a list of origins/],
    [{ name: 'Shop', relatedOrigins: [5] }, /^Passkeys: relatedOrigins must be a list of origins/]
  ]
  for (const [options, message] of mistakes) {
    t.throws(() => new Passkeys(options as PasskeysOptions), { name: 'OptionsError', message })
  }
})

t.test('passkeys are for the host of baseUrl, or for a domain that it is in', async t => {
  const rpIdFor = (baseUrl: string, rpId?: string): string => {
    return new Passkeys({ name: 'Shop', rpId }).ceremonies(around(baseUrl)).relyingParty.rpId
  }
  t.equal(rpIdFor('https://accounts.app.example:8443/shop'), 'accounts.app.example')
  t.equal(rpIdFor('https://accounts.app.example', 'app.example'), 'app.example')
  t.equal(rpIdFor('https://accounts.app.example', 'accounts.app.example'), 'accounts.app.example')
  t.equal(rpIdFor('http://localhost:3000'), 'localhost')
  t.equal(rpIdFor('http://shop.localhost:3000'), 'shop.localhost')

  for (const rpId of ['example', 'other.example', 'p.example', 'a.accounts.app.example', 'ACCOUNTS.app.example', 'https://app.example']) {
    t.throws(() => rpIdFor('https://accounts.app.example', rpId as string), {
      name: 'OptionsError', message: /^Passkeys: rpId must be the host of baseUrl, accounts\.app\.example, or a domain/
    }, `${rpId}`)
  }
  t.throws(() => rpIdFor('http://shop.localhost', 'localhost'), { message: /^Passkeys: rpId must be the host/ })
  for (const rpId of ['', 5]) {
    t.throws(() => rpIdFor('https://app.example', rpId as string), { message: /^Passkeys: rpId must be a domain, such as app\.example$/ })
  }
})

t.test('passkeys need a baseUrl where browsers have them', async t => {
  const passkeys = new Passkeys({ name: 'Shop' })

  t.throws(() => passkeys.ceremonies(around(null)), { name: 'OptionsError', message: /^baseUrl is required with passkeys/ })
  for (const baseUrl of ['http://app.example', 'http://127.0.0.1:3000', 'https://192.0.2.1', 'https://[::1]:3000', 'http://localhost.app.example']) {
    t.throws(() => passkeys.ceremonies(around(baseUrl)), {
      name: 'OptionsError', message: /^baseUrl must be an https: URL with a host name, or on this machine http:\/\/localhost, with passkeys/
    }, baseUrl)
  }
})

t.test('a related origin must be a trusted one', async t => {
  const passkeys = new Passkeys({ name: 'Shop', relatedOrigins: ['https://app.test', 'https://app.invalid'] })

  t.throws(() => passkeys.ceremonies(around('https://app.example', 'https://app.test')), {
    name: 'OptionsError', message: /^Passkeys: relatedOrigins has https:\/\/app\.invalid, which must be in trustedOrigins as well/
  })
  t.strictSame(passkeys.ceremonies(around('https://app.example', 'https://app.test', 'https://app.invalid', 'https://admin.example')).relyingParty, {
    name: 'Shop', rpId: 'app.example', origin: 'https://app.example', relatedOrigins: ['https://app.test', 'https://app.invalid'], createOnSignIn: false
  })
})
