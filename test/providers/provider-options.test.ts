import { generateKeyPairSync } from 'node:crypto'
import t from 'tap'
import { AppleProvider, Auth0Provider, FacebookProvider, GitHubProvider, GoogleProvider, MicrosoftProvider, OidcProvider } from '../../lib/index.js'
import { assertProviderName, checkedProviderOptions } from '../../lib/providers/provider-options.js'

const P256 = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const NEEDED = { name: 'dev', clientId: 'the-app', clientSecret: 'zxcvbnm' }

/** As somebody without types calls it. */
const checked = (options: object) => checkedProviderOptions({ ...NEEDED, ...options }, ['openid', 'email'], {})

t.test('options that are not given have a default', async t => {
  t.strictSame(checked({}), { ...NEEDED, scopes: ['openid', 'email'], authorizationParams: {}, timeout: 5000, fetch: globalThis.fetch })
})

t.test('options that are given are taken', async t => {
  const options = {
    ...NEEDED,
    scopes: ['openid', 'groups'],
    authorizationParams: { prompt: 'login', hd: 'app.example' },
    timeout: 60_000,
    fetch: async () => new Response()
  }

  t.strictSame(checked(options), options)
  t.equal(checked({ timeout: 1 }).timeout, 1)
})

t.test('a mistake names the provider and the option, and prints no secret', async t => {
  const mistakes: Array<[object, RegExp]> = [
    [
      { hostedDomain: 'a' },
      /^dev has no option "hostedDomain"; expected one of clientId, clientSecret, scopes, .*, fetch, or one that only this provider has$/
    ],
    [{ clientID: 'a' }, /^dev has no option "clientID"; it is called clientId$/],
    [{ scope: 'openid' }, /^dev has no option "scope"; it is called scopes$/],
    ...[undefined, '', null, 1, {}, 'a\u0000'].map((clientId): [object, RegExp] => [{ clientId }, /^dev: clientId must be/]),
    ...[undefined, '', null, 1, {}, 'a\ud800'].map((clientSecret): [object, RegExp] => [{ clientSecret }, /^dev: clientSecret must be/]),
    ...[
      'openid', null, {}, [''], ['openid', 1], [null], new Set(['openid'])
    ].map((scopes): [object, RegExp] => [{ scopes }, /^dev: scopes must be a list of strings$/]),
    ...['prompt=login', null, [], ['a'], { prompt: 1 }, { prompt: '' }, { prompt: undefined }, new Map(), new URLSearchParams('a=b')]
      .map((authorizationParams): [object, RegExp] => [{ authorizationParams }, /^dev: authorizationParams must be an object of strings$/]),
    ...[0, -1, 60_001, 1.5, NaN, Infinity, '5000', null, 5000n].map((timeout): [object, RegExp] => [
      { timeout },
      /^dev: timeout must be a whole number of milliseconds from 1 to 60000$/
    ]),
    ...[null, 'fetch', {}, true].map((fetch): [object, RegExp] => [{ fetch }, /^dev: fetch must be a function$/])
  ]

  for (const [options, message] of mistakes) {
    const refused = t.throws(() => checked(options), { name: 'OptionsError', code: 'invalid_options', message })

    t.notOk(String(refused).includes(NEEDED.clientSecret))
  }
})

t.test('an id or a secret with a line feed, quotes or blanks around it is refused by name, as a setting is', async t => {
  const discoveryUrl = 'https://id.example/.well-known/openid-configuration'
  const apple = { clientId: 'a', teamId: 'b', keyId: 'c', privateKey: P256 }
  for (const mistaken of ['zxcvbnm\n', ' zxcvbnm', 'zxcvbnm\t', '"zxcvbnm"', "'zxcvbnm'", '\u201czxcvbnm\u201d', 'zxc\nvbnm', '\ufeffzxcvbnm']) {
    for (const option of ['clientId', 'clientSecret']) {
      const message = new RegExp(`^dev: ${option} must be .* without quotes`)
      const refused = t.throws(() => checked({ [option]: mistaken }), { name: 'OptionsError', message })
      t.notOk(String(refused).includes('zxc'))
    }
    t.throws(() => new OidcProvider({ name: 'dev', discoveryUrl, clientId: 'a', clientSecret: mistaken }),
      { message: /^dev: clientSecret must be/ })
    for (const option of ['teamId', 'keyId']) {
      t.throws(() => new AppleProvider({ ...apple, [option]: mistaken }), { message: new RegExp(`^apple: ${option} must be`) })
    }
  }
  t.equal(checked({ clientSecret: 'blanks and "quotes" in it' }).clientSecret, 'blanks and "quotes" in it')
})

t.test('attack 8: parameters that the sign-in sets cannot be static', async t => {
  for (const parameter of [
    'client_id', 'redirect_uri', 'response_type', 'response_mode', 'scope', 'state', 'nonce', 'code_challenge',
    'code_challenge_method', 'request', 'request_uri'
  ]) {
    t.throws(
      () => checked({ authorizationParams: { prompt: 'login', [parameter]: 'x' } }),
      { name: 'OptionsError', message: `dev: authorizationParams must not contain "${parameter}"; the sign-in sets it` }
    )
  }
})

t.test('attack 25: a name that can be a segment of a URL is taken', async t => {
  for (const name of ['google', 'a', '1', 'auth0', 'my-idp', 'a-1-b', 'a'.repeat(63)]) {
    t.doesNotThrow(() => assertProviderName(name), name)
    t.equal(checked({ name }).name, name)
  }
})

t.test('attack 25: other names are refused, and the option is named', async t => {
  const names = [
    '', '..', '.', 'a/b', '/', ':x', '*', 'A B', 'a b', 'Google', 'a_b', 'a.b', '-a', 'a-', 'a--b', 'a%2fb', 'a?b',
    'a#b', 'ä', '\u0661', 'a\n', 'a\u0000', '__proto__', 'a'.repeat(64), undefined, null, 1, {}, ['google']
  ]

  for (const name of names) {
    t.throws(() => assertProviderName(name), { name: 'OptionsError', message: /^name of a provider must be/ })
    t.throws(() => checked({ name }), { name: 'OptionsError', message: /^name of a provider must be/ })
  }
})

t.test('attack 25: the name of the built-in provider, and names that mean something else, are refused', async t => {
  for (const name of ['local', 'application', 'login', 'constructor']) {
    t.throws(() => assertProviderName(name), { name: 'OptionsError', message: /^name of a provider must not be/ }, name)
  }
})

t.test('lists that are changed after they were given change nothing', async t => {
  const scopes = ['openid', 'email']
  const authorizationParams = { prompt: 'login' }
  const options = checked({ scopes, authorizationParams })
  scopes.push('admin')
  Object.assign(authorizationParams, { prompt: 'none', state: 'fixed' })
  t.strictSame([options.scopes, options.authorizationParams], [['openid', 'email'], { prompt: 'login' }])
})

t.test('what a built-in class fixes cannot be chosen', async t => {
  const client = { clientId: 'a', clientSecret: 'b' }
  const wrong: Array<[() => unknown, RegExp]> = [
    [() => new GoogleProvider({ ...client, name: 'other' } as never), /google has no option "name"/],
    [
      () => new GoogleProvider({
        ...client,
        discoveryUrl: 'https://evil.example/.well-known/openid-configuration'
      } as never),
      /google has no option "discoveryUrl"/
    ],
    [
      () => new GoogleProvider({ ...client, authorizationParams: { hd: 'example.com' } }),
      /google: authorizationParams must not contain "hd".*set hostedDomain/
    ],
    [() => new GitHubProvider({ ...client, tokenEndpoint: 'https://evil.example' } as never), /github has no option "tokenEndpoint"/],
    [() => new MicrosoftProvider({ ...client, issuer: 'https://evil.example' } as never), /microsoft has no option "issuer"/],
    [() => new FacebookProvider({ ...client, name: 'other' } as never), /facebook has no option "name"/],
    [() => new Auth0Provider({ ...client, domain: 'tenant.eu.auth0.com', userinfo: true } as never), /auth0 has no option "userinfo"/]
  ]
  for (const [construct, message] of wrong) t.throws(construct, { code: 'invalid_options', message })
})
