import { createHash, createHmac, generateKeyPairSync } from 'node:crypto'
import { type CryptoKey, SignJWT, exportJWK, exportSPKI, generateKeyPair, importJWK } from 'jose'
import t, { type Test } from 'tap'
import { AuthError, OidcProvider } from '../../lib/index.js'
import { FAILURES, json } from '../fakes/lies.js'
import { type FakeOpenIdProvider, startFakeOpenIdProvider } from '../fakes/openid-provider.js'
import { advanceClock } from '../helpers/clock.js'
import { freePort } from '../helpers/loopback.js'
import { startOpenIdProvider } from '../helpers/openid-provider.js'
import { some } from '../helpers/thorough.js'

const CHECKS = { redirectUri: 'https://app.example/auth/fake/callback', state: 'the-state', nonce: 'the-nonce', codeVerifier: 'a'.repeat(43) }

/** One sign-in, as the flow runs it. */
async function signIn (
  fake: FakeOpenIdProvider,
  {
    provider = fake.provider(),
    callback = {}
  }: { provider?: OidcProvider, callback?: Record<string, string | null> } = {}
) {
  const url = await provider.authorizationUrl(CHECKS)
  const { searchParams: parameters } = new URL(fake.consent(url.href, callback), 'https://app.example')
  return provider.authenticate({ ...CHECKS, parameters })
}

async function refusal (t: Test, attempt: Promise<unknown>): Promise<AuthError> {
  try {
    await attempt
  } catch (error) {
    if (error instanceof AuthError) return error
    throw error
  }
  return t.fail('it was accepted') as never
}

t.test('an identity has the claims of the ID token and the tokens of the token response', async t => {
  const fake = await startFakeOpenIdProvider(t)
  fake.profile = { sub: 'ada', email: 'ada@example.com', email_verified: true, name: 'Ada', picture: 'https://id.example/ada.png', role: 'admin', locale: 'en' }

  const { identity, tokens } = await signIn(fake)

  t.strictSame(identity, {
    subject: 'ada',
    emailVerified: true,
    claims: { sub: 'ada', email: 'ada@example.com', email_verified: true, name: 'Ada', picture: 'https://id.example/ada.png' }
  })
  t.match(tokens, { accessToken: 'the-access-token', refreshToken: 'the-refresh-token', expiresIn: 600, scope: 'openid', idToken: String })
})

t.test('a token response with no more than what is required is enough', async t => {
  const fake = await startFakeOpenIdProvider(t)
  fake.lies.set('/token', answer => {
    const { expires_in: _, scope, refresh_token: __, ...required } = JSON.parse(answer.body)
    return json(200, required)
  })
  t.strictSame(Object.keys((await signIn(fake)).tokens), ['accessToken', 'idToken'])
})

t.test('email_verified is true for JSON true and the string "true" only', async t => {
  const fake = await startFakeOpenIdProvider(t)
  const provider = fake.provider()
  for (const value of [true, 'true']) {
    fake.profile = { ...fake.profile, email_verified: value }
    const { identity } = await signIn(fake, { provider })
    t.strictSame([identity.emailVerified, identity.claims.email_verified], [true, true], JSON.stringify(value))
  }
  for (const value of ['TRUE', 'false', 1, '1', [], {}, false, null]) {
    fake.profile = { ...fake.profile, email_verified: value }
    const { identity } = await signIn(fake, { provider })
    t.strictSame([identity.emailVerified, identity.claims.email_verified], [false, false], JSON.stringify(value))
  }
})

t.test('claims of a wrong type are left out, and no e-mail is never a verified one', async t => {
  const fake = await startFakeOpenIdProvider(t)
  fake.metadata.userinfo_endpoint = undefined
  fake.profile = { sub: 'ada', email: ['ada@example.com'], email_verified: true, name: 7, picture: '' }

  const { identity } = await signIn(fake)

  t.strictSame(identity, { subject: 'ada', emailVerified: false, claims: { sub: 'ada' } })
})

t.test('userinfo fills in what the ID token lacks', async t => {
  t.test('userinfo is asked for what the ID token lacks; what the ID token says stands', async t => {
    const fake = await startFakeOpenIdProvider(t)
    fake.profile = { sub: 'ada', name: 'Ada' }
    fake.userinfo = { name: 'Somebody else', email: 'ada@example.com', email_verified: true }
    const { identity } = await signIn(fake)
    t.strictSame(identity.claims, { sub: 'ada', email: 'ada@example.com', email_verified: true, name: 'Ada' })
    t.equal(identity.emailVerified, true)
  })

  t.test('userinfo is not asked for what no scope asked for', async t => {
    const fake = await startFakeOpenIdProvider(t)
    fake.profile = { sub: 'ada' }
    await signIn(fake, { provider: fake.provider({ scopes: ['openid'] }) })
    t.notOk(fake.requests.includes('GET /userinfo'))
  })

  t.test('userinfo never vouches for another address than its own', async t => {
    const fake = await startFakeOpenIdProvider(t)
    fake.profile = { sub: 'ada', email: 'victim@example.com' }
    fake.userinfo = { email: 'ada@example.com', email_verified: true, name: 'Ada' }
    const { identity } = await signIn(fake)
    t.strictSame([identity.claims.email, identity.emailVerified], ['victim@example.com', false])
  })

  t.test('userinfo is asked whether the address is verified, if the ID token does not say', async t => {
    const fake = await startFakeOpenIdProvider(t)
    fake.profile = { sub: 'ada', email: 'ada@example.com', name: 'Ada', picture: 'https://id.example/ada.png' }
    fake.userinfo = { email_verified: true }
    t.match((await signIn(fake)).identity, { emailVerified: true, claims: { email_verified: true } })
  })

  t.test('userinfo fills in what the ID token has as null or empty', async t => {
    const fake = await startFakeOpenIdProvider(t)
    fake.profile = { sub: 'ada', email: 'ada@example.com', email_verified: true, name: 'Ada' }
    fake.idTokenClaims = { email: null, email_verified: null, name: '' }
    t.match((await signIn(fake)).identity, { emailVerified: true, claims: { email: 'ada@example.com', name: 'Ada' } })
  })

  t.test('userinfo does not overrule the ID token about one address', async t => {
    const fake = await startFakeOpenIdProvider(t)
    fake.profile = { sub: 'ada', email: 'ada@example.com', email_verified: false }
    fake.userinfo = { email_verified: true, name: 'Ada' }
    const { identity } = await signIn(fake)
    t.match(identity, { emailVerified: false, claims: { email_verified: false, name: 'Ada' } })
  })

  t.test('the address of userinfo is not vouched for by the ID token', async t => {
    const fake = await startFakeOpenIdProvider(t)
    fake.profile = { sub: 'ada' }
    fake.idTokenClaims = { email_verified: true }
    fake.userinfo = { email: 'victim@example.com' }
    t.equal((await signIn(fake)).identity.emailVerified, false)
  })

  t.test('userinfo of another subject is refused', async t => {
    const fake = await startFakeOpenIdProvider(t)
    fake.profile = { sub: 'ada' }
    fake.userinfo = { sub: 'eve', email: 'ada@example.com', email_verified: true }
    t.equal((await refusal(t, signIn(fake))).code, 'provider_error')
  })

  t.test('userinfo that is signed is verified', async t => {
    const fake = await startFakeOpenIdProvider(t)
    fake.profile = { sub: 'ada' }
    fake.metadata.userinfo_signing_alg_values_supported = ['RS256']
    const signed = async (key = fake.key) => new SignJWT({
      iss: fake.issuer,
      aud: fake.clientId,
      sub: 'ada',
      email: 'ada@example.com'
    }).setProtectedHeader({ alg: 'RS256', kid: 'key-1' }).sign(key)
    fake.lies.set('/userinfo', async () => ({ status: 200, headers: { 'content-type': 'application/jwt' }, body: await signed() }))
    t.equal((await signIn(fake)).identity.claims.email, 'ada@example.com')

    const foreignKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
    fake.lies.set(
      '/userinfo',
      async () => ({
        status: 200,
        headers: { 'content-type': 'application/jwt' },
        body: await signed(await importJWK(foreignKey.export({ format: 'jwk' }), 'RS256') as CryptoKey)
      })
    )
    t.equal((await refusal(t, signIn(fake))).code, 'provider_error')

    // What the provider sent is its failure, and no mistake of ours with a stack in the log.
    delete fake.metadata.userinfo_signing_alg_values_supported
    const { code, cause } = await refusal(t, signIn(fake))
    t.match({ code, cause }, { code: 'provider_error', cause: { name: 'ProviderFailure', cause: undefined } })
  })
})

t.test('an ID token with a wrong claim is refused', async t => {
  const now = () => Math.floor(Date.now() / 1000)
  const b64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const hmac = (fake: FakeOpenIdProvider, secret: string) => (payload: object) => {
    fake.metadata.id_token_signing_alg_values_supported = ['RS256', 'HS256', 'none']
    const input = `${b64({ alg: 'HS256' })}.${b64(payload)}`
    return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
  }
  const cases: Record<string, (fake: FakeOpenIdProvider) => unknown> = {
    'without a signature': fake => {
      fake.metadata.id_token_signing_alg_values_supported = ['RS256', 'none']
      fake.forgeIdToken = payload => `${b64({ alg: 'none' })}.${b64(payload)}.`
    },
    'signed with the client secret': fake => { fake.forgeIdToken = hmac(fake, fake.clientSecret) },
    'signed with the public key as a secret': async fake => {
      const spki = await exportSPKI(await importJWK(fake.jwk, 'RS256') as CryptoKey)
      fake.forgeIdToken = hmac(fake, spki)
    },
    'signed by an unknown key': fake => {
      const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
      fake.forgeIdToken = async payload => new SignJWT(payload).setProtectedHeader({ alg: 'RS256', kid: 'key-1' }).sign(privateKey)
    },
    'with an unknown kid': fake => { fake.forgeIdToken = payload => fake.signedIdToken(payload, { alg: 'RS256', kid: '../../x' }) },
    'changed after it was signed': fake => {
      fake.forgeIdToken = async payload => {
        const [header, , signature] = (await fake.signedIdToken(payload)).split('.')
        return `${header}.${b64({ ...payload, sub: 'eve' })}.${signature}`
      }
    },
    'that is no token': fake => { fake.forgeIdToken = () => 'nonsense' },
    'of another issuer': fake => { fake.idTokenClaims = { iss: `${fake.issuer}/` } },
    'for another audience': fake => { fake.idTokenClaims = { aud: 'another-app' } },
    'for several audiences without azp': fake => { fake.idTokenClaims = { aud: [fake.clientId, 'another-app'] } },
    'of another authorized party': fake => { fake.idTokenClaims = { azp: 'another-app' } },
    'that has expired': fake => { fake.idTokenClaims = { exp: now() - 60 } },
    'that never expires': fake => { fake.idTokenClaims = { exp: undefined } },
    'that is issued in the future': fake => { fake.idTokenClaims = { iat: now() + 3600 } },
    'with the hash of another access token': fake => { fake.idTokenClaims = { at_hash: 'h3xmplQ9tK0b1cd2ef3gHw' } },
    'with a hash that is none': fake => { fake.idTokenClaims = { at_hash: ['h3xmplQ9tK0b1cd2ef3gHw'] } },
    'without a nonce': fake => { fake.idTokenClaims = { nonce: undefined } },
    'with the nonce of another sign-in': fake => { fake.idTokenClaims = { nonce: 'another' } },
    'with a list of nonces': fake => { fake.idTokenClaims = { nonce: [CHECKS.nonce] } },
    'without a subject': fake => { fake.idTokenClaims = { sub: undefined } },
    'with a number as its subject': fake => { fake.idTokenClaims = { sub: 0 } }
  }
  for (const [name, lie] of Object.entries(cases)) {
    t.test(`an ID token ${name} is refused`, async t => {
      const fake = await startFakeOpenIdProvider(t)
      await lie(fake)
      const { code, cause } = await refusal(t, signIn(fake))
      t.equal(code, 'provider_error')
      t.type(cause, Error)
    })
  }

  t.test('an ID token is accepted when the clock of the provider is half a minute off', async t => {
    const fake = await startFakeOpenIdProvider(t)
    for (const claims of [{ iat: now() + 25, nbf: now() + 25 }, { exp: now() - 25 }]) {
      fake.idTokenClaims = claims
      t.equal((await signIn(fake)).identity.subject, 'ada')
    }
    fake.idTokenClaims = { nbf: now() + 35 }
    t.equal((await refusal(t, signIn(fake))).code, 'provider_error')
  })

  t.test('an ID token with the hash of the access token is accepted, whatever the algorithm', async t => {
    for (const alg of ['RS256', 'RS384', 'RS512', 'PS256', 'ES256', 'ES384']) {
      const fake = await startFakeOpenIdProvider(t)
      const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
      fake.metadata.id_token_signing_alg_values_supported = [alg]
      fake.lies.set('/jwks', async () => json(200, { keys: [{ ...await exportJWK(publicKey), kid: 'key-1' }] }))
      const digest = createHash(`sha${alg.slice(-3)}`).update('the-access-token').digest()
      fake.idTokenClaims = { at_hash: digest.subarray(0, digest.length / 2).toString('base64url') }
      fake.forgeIdToken = async payload => new SignJWT(payload).setProtectedHeader({ alg, kid: 'key-1' }).sign(privateKey)
      t.equal((await signIn(fake)).identity.subject, 'ada', alg)

      fake.idTokenClaims = { at_hash: digest.toString('base64url') }
      t.equal((await refusal(t, signIn(fake))).code, 'provider_error', alg)
    }
  })

  t.test('an ID token is not refused for its at_hash where OpenID Connect Core defines no hash for the algorithm', async t => {
    for (const alg of ['EdDSA', 'Ed25519']) {
      const fake = await startFakeOpenIdProvider(t)
      const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
      fake.metadata.id_token_signing_alg_values_supported = ['RS256', alg]
      fake.lies.set('/jwks', async () => json(200, { keys: [{ ...await exportJWK(publicKey), kid: 'key-1' }] }))
      fake.forgeIdToken = async payload => new SignJWT(payload).setProtectedHeader({ alg, kid: 'key-1' }).sign(privateKey)
      for (const hash of ['sha256', 'sha512']) {
        const digest = createHash(hash).update('the-access-token').digest()
        fake.idTokenClaims = { at_hash: digest.subarray(0, digest.length / 2).toString('base64url') }
        t.equal((await signIn(fake)).identity.subject, 'ada', `${alg}, ${hash}`)
      }
    }
  })
})

t.test('an ID token of oidc-provider that is signed by EdDSA signs in', async t => {
  for (const alg of ['EdDSA', 'Ed25519'] as const) {
    const { privateKey } = await generateKeyPair('EdDSA', { extractable: true })
    const idp = await startOpenIdProvider(t, {
      redirectUris: [CHECKS.redirectUri],
      client: { id_token_signed_response_alg: alg },
      configuration: { jwks: { keys: [{ ...await exportJWK(privateKey), use: 'sig' }] } }
    })
    const provider = idp.provider()
    const { searchParams: parameters } = await idp.authorize((await provider.authorizationUrl(CHECKS)).href)
    t.equal((await provider.authenticate({ ...CHECKS, parameters })).identity.subject, 'ada', alg)
  }
})

t.test('max_age in authorizationParams bounds the age of the sign-in', async t => {
  const seconds = (ago: number) => Math.floor(Date.now() / 1000) - ago

  t.test('max_age is checked against the auth_time of the ID token', async t => {
    const fake = await startFakeOpenIdProvider(t)
    const provider = fake.provider({ authorizationParams: { max_age: '600' } })
    t.equal((await provider.authorizationUrl(CHECKS)).searchParams.get('max_age'), '600')
    for (const ago of [-20, 0, 600]) {
      fake.idTokenClaims = { auth_time: seconds(ago) }
      t.equal((await signIn(fake, { provider })).identity.subject, 'ada', `${ago} seconds ago`)
    }
    for (const authTime of [undefined, seconds(660), seconds(-60), Date.now(), String(seconds(0)), null, -1]) {
      fake.idTokenClaims = { auth_time: authTime }
      t.equal((await refusal(t, signIn(fake, { provider }))).code, 'provider_error', JSON.stringify(authTime) ?? 'absent')
    }
    for (const authTime of [undefined, seconds(-60)]) {
      fake.idTokenClaims = { auth_time: authTime }
      t.equal((await signIn(fake)).identity.subject, 'ada', 'auth_time does not count without it')
    }
  })

  t.test('max_age is answered by oidc-provider with an auth_time', async t => {
    const idp = await startOpenIdProvider(t, { redirectUris: [CHECKS.redirectUri] })
    const provider = idp.provider({ authorizationParams: { max_age: '0' } })
    const { searchParams: parameters } = await idp.authorize((await provider.authorizationUrl(CHECKS)).href)
    t.equal((await provider.authenticate({ ...CHECKS, parameters })).identity.subject, 'ada')
  })
})

t.test('a token response with an error is refused', async t => {
  t.test('an error beside tokens is refused, whatever the status', async t => {
    const fake = await startFakeOpenIdProvider(t)
    for (const status of [200, 201, 400]) {
      fake.lies.set('/token', answer => json(status, { ...JSON.parse(answer.body), error: 'server_says_no', error_description: 'not you' }))
      t.equal((await refusal(t, signIn(fake))).code, 'provider_error', String(status))
    }
    fake.lies.set('/token', answer => json(200, { ...JSON.parse(answer.body), error: 'server_says_no', error_description: 'not you' }))
    t.match(await refusal(t, signIn(fake)), { cause: { message: 'server_says_no: not you' } })
  })

  t.test('an error that is null or empty does not count as one', async t => {
    const fake = await startFakeOpenIdProvider(t)
    for (const error of [null, '']) {
      fake.lies.set('/token', answer => json(200, { ...JSON.parse(answer.body), error }))
      t.equal((await signIn(fake)).identity.subject, 'ada', JSON.stringify(error))
    }
  })
})

t.test('attack 160: an authorization response with a wrong parameter is refused, as what it is', async t => {
  const cases: Record<string, [callback: Record<string, string | null>, code: string]> = {
    'without iss, where the provider announces it': [{ iss: null }, 'provider_error'],
    'with the iss of another provider': [{ iss: 'https://evil.example' }, 'provider_error'],
    'with an empty iss': [{ iss: '' }, 'provider_error'],
    'without a code': [{ code: null }, 'provider_error'],
    'with another state': [{ state: 'another' }, 'provider_error'],
    'with a code that the provider does not know': [{ code: 'guessed' }, 'provider_error'],
    'when the person said no': [{ code: null, error: 'access_denied' }, 'access_denied'],
    'when the person said no without iss, where the provider announces it': [{ code: null, iss: null, error: 'access_denied' }, 'provider_error'],
    ...Object.fromEntries([
      'consent_required', 'login_required', 'interaction_required', 'account_selection_required'
    ].map(error => [`with ${error}`, [{ code: null, error }, 'access_denied']])),
    'when a rule of the provider said no': [{ code: null, error: 'unauthorized' }, 'not_allowed'],
    ...Object.fromEntries([
      ['access_denied', 'User is not assigned to the client application.'],
      ['access_denied', 'AADSTS50105: Your administrator has configured the application to block users unless they are assigned.'],
      ['interaction_required', "AADSTS50105: The signed in user 'ada' is not assigned to a role for the application."],
      ['access_denied', 'AADSTS53003: Access has been blocked by Conditional Access policies.']
    ].map(([error = '', words = '']) => [`by ${error} and "${words}"`, [{ code: null, error, error_description: words }, 'not_allowed']])),
    'when the person said no in the words of Entra': [
      { code: null, error: 'access_denied', error_description: 'AADSTS65004: User declined to consent to access the app.' }, 'access_denied'
    ],
    'with an error of another kind in the words of a rule': [
      { code: null, error: 'invalid_request', error_description: 'the user is not assigned to it' }, 'provider_error'
    ],
    'when the provider is overloaded': [{ code: null, error: 'temporarily_unavailable' }, 'provider_unavailable'],
    'with any other error': [{ code: null, error: '<script>', error_description: 'line\r\nbreak' }, 'provider_error']
  }
  for (const [name, [callback, code]] of Object.entries(cases)) {
    t.test(`an authorization response ${name} is ${code}`, async t => {
      const fake = await startFakeOpenIdProvider(t)
      const error = await refusal(t, signIn(fake, { callback }))
      t.equal(error.code, code)
      t.notMatch(error.message, /script|break/)
      t.notMatch(String(error.cause), /[\r\n]/)
    })
  }

  t.test('an authorization response with a foreign or empty iss is refused, also if the provider announces none', async t => {
    const fake = await startFakeOpenIdProvider(t)
    fake.metadata.authorization_response_iss_parameter_supported = undefined
    for (const iss of ['https://evil.example', '']) {
      t.equal((await refusal(t, signIn(fake, { callback: { iss } }))).code, 'provider_error')
    }
    t.notOk(fake.requests.includes('POST /token'))
  })

  t.test('an authorization response with two codes is refused', async t => {
    const fake = await startFakeOpenIdProvider(t)
    const provider = fake.provider()
    const { searchParams: parameters } = new URL(fake.consent((await provider.authorizationUrl(CHECKS)).href), 'https://app.example')
    parameters.append('code', 'another')
    t.equal((await refusal(t, provider.authenticate({ ...CHECKS, parameters }))).code, 'provider_error')
    t.notOk(fake.requests.includes('POST /token'))
  })
})

t.test('an answer that cannot be used ends the sign-in with its code', async t => {
  for (const [number, path] of ['/.well-known/openid-configuration', '/token', '/jwks', '/userinfo'].entries()) {
    for (const [name, [code, lie]] of some(Object.entries(FAILURES), 4, number)) {
      t.test(`${name} at ${path} is ${code}, and the next sign-in works`, async t => {
        const fake = await startFakeOpenIdProvider(t)
        fake.profile = { sub: 'ada', name: 'Ada' }
        const provider = fake.provider({ timeout: 2000 })
        fake.lies.set(path, lie)
        const error = await refusal(t, signIn(fake, { provider }))
        t.equal(error.code, code)

        fake.lies.clear()
        t.equal((await signIn(fake, { provider })).identity.subject, 'ada')
      })
    }
  }

  t.test('the words of an answer are shortened to a line for the log', async t => {
    const fake = await startFakeOpenIdProvider(t)
    fake.lies.set('/token', () => json(400, { error: 'invalid_request', error_description: `a\r\nb\u2028c ${'x'.repeat(100_000)}` }))
    const { message } = (await refusal(t, signIn(fake))).cause as Error
    t.match(message, /^invalid_request: a b c x+$/)
    t.equal(message.length, 300)
  })

  t.test('a wrong secret is recognised behind a challenge too', async t => {
    const fake = await startFakeOpenIdProvider(t)
    fake.lies.set('/token', () => json(401, { error: 'invalid_client' }, { 'www-authenticate': 'Basic realm="id"' }))
    t.match(await refusal(t, signIn(fake)), { code: 'provider_error', cause: { message: /clientSecret.*invalid_client/ } })
  })

  t.test('a token type that is not Bearer is provider_error', async t => {
    const fake = await startFakeOpenIdProvider(t)
    fake.lies.set('/token', answer => json(200, { ...JSON.parse(answer.body), token_type: 'mac' }))
    t.equal((await refusal(t, signIn(fake))).code, 'provider_error')
  })

  t.test('a provider that is not there is provider_unavailable', async t => {
    const provider = new OidcProvider({
      name: 'gone',
      discoveryUrl: `http://127.0.0.1:${await freePort()}/.well-known/openid-configuration`,
      clientId: 'a',
      clientSecret: 'b',
      allowInsecureRequests: true
    })
    t.equal((await refusal(t, provider.authorizationUrl(CHECKS))).code, 'provider_unavailable')
  })
})

t.test('a fetch that throws something odd did not reach the provider', async t => {
  const fake = await startFakeOpenIdProvider(t)
  const odd = { toString: () => 'not an error' }
  t.equal((await refusal(t, signIn(fake, { provider: fake.provider({ fetch: async () => { throw odd } }) }))).code, 'provider_unavailable')
})

t.test('discovery is fetched once and checked', async t => {
  t.test('the discovery document is fetched once for many sign-ins at once, and the keys with it', async t => {
    const fake = await startFakeOpenIdProvider(t)
    const provider = fake.provider()
    await Promise.all(Array.from({ length: 20 }, () => provider.authorizationUrl(CHECKS)))
    await signIn(fake, { provider })
    await signIn(fake, { provider })
    t.equal(fake.requests.filter(request => request.startsWith('GET /.well-known/')).length, 1)
    t.equal(fake.requests.filter(request => request === 'GET /jwks').length, 1)
  })

  t.test('a discovery document of another issuer is refused', async t => {
    const fake = await startFakeOpenIdProvider(t)
    fake.metadata.issuer = 'https://evil.example'
    const { code, cause } = await refusal(t, signIn(fake))
    t.equal(code, 'provider_error')
    t.match(cause, { message: `(the issuer is "https://evil.example", expected "${fake.issuer}/"; if that is right, set the option issuer to it)` })
  })

  t.test('a discovery document that no sign-in can use is refused before any redirect, and not kept', async t => {
    const useless: Array<[string, unknown]> = ['authorization_endpoint', 'token_endpoint', 'jwks_uri', 'userinfo_endpoint'].flatMap(endpoint => {
      return [
        'javascript:alert(1)', 'file:///etc/passwd', 'nonsense', 7, null, 'https://user:password@id.example/x'
      ].map((url): [string, unknown] => [endpoint, url])
    })
    useless.push(['authorization_endpoint', undefined], ['token_endpoint', undefined], ['jwks_uri', undefined])
    useless.push(['id_token_signing_alg_values_supported', 'RS256'], ['token_endpoint_auth_methods_supported', { post: true }])
    const fake = await startFakeOpenIdProvider(t)
    const { metadata } = fake
    for (const [member, value] of useless) {
      const provider = fake.provider()
      fake.metadata = { ...metadata, [member]: value }
      t.equal((await refusal(t, provider.authorizationUrl(CHECKS))).code, 'provider_error', `${member} ${value}`)

      fake.metadata = metadata
      t.ok(await provider.authorizationUrl(CHECKS), `${member} ${value}, mended`)
    }
  })

  t.test('a discovery document that announces nothing has the defaults of the standard', async t => {
    const fake = await startFakeOpenIdProvider(t)
    fake.profile = { ...fake.profile, name: 'Ada' }
    for (const member of [
      'id_token_signing_alg_values_supported',
      'token_endpoint_auth_methods_supported',
      'userinfo_endpoint'
    ]) fake.metadata[member] = undefined
    t.equal((await signIn(fake)).identity.subject, 'ada')
  })

  t.test('discovery over plain http is refused unless it is permitted', async t => {
    const fake = await startFakeOpenIdProvider(t)
    const issuer = 'https://id.example'
    const fetch = async () => Response.json({ ...fake.metadata, issuer })
    const provider = fake.provider({ allowInsecureRequests: false, discoveryUrl: `${issuer}/.well-known/openid-configuration`, fetch })
    t.match(await refusal(t, provider.authorizationUrl(CHECKS)), { code: 'provider_error', cause: { message: /authorization_endpoint that is an https: URL/ } })
  })

  t.test('discovery over plain http is for development servers only', async t => {
    const fake = await startFakeOpenIdProvider(t)
    t.throws(() => fake.provider({ allowInsecureRequests: false }), /discoveryUrl must be an https: URL/)
  })

  t.test('discovery asks for the URL that was given, with its query and the slash at its end', async t => {
    const fake = await startFakeOpenIdProvider(t)
    const asked: string[] = []
    const noting: typeof fetch = async url => { asked.push(String(url)); return Response.json(fake.metadata) }
    const urls = ['', '/', '?appid=1', '/?appid=1&b=%20'].map(suffix => `${fake.issuer}/.well-known/openid-configuration${suffix}`)
    for (const discoveryUrl of urls) t.ok(await fake.provider({ discoveryUrl, fetch: noting }).authorizationUrl(CHECKS))
    t.strictSame(asked, urls)
  })

  t.test('a provider that redirects from the URL without a slash works with the slash, and the log names the URL', async t => {
    const fake = await startFakeOpenIdProvider(t)
    const document = `${fake.issuer}/.well-known/openid-configuration`
    fake.lies.set('/.well-known/openid-configuration', () => ({ status: 301, headers: { location: `${document}/` }, body: '' }))
    fake.lies.set('/.well-known/openid-configuration/', () => json(200, fake.metadata))
    t.equal((await signIn(fake, { provider: fake.provider({ discoveryUrl: `${document}/` }) })).identity.subject, 'ada')
    const { code, cause } = await refusal(t, signIn(fake))
    t.equal(code, 'provider_error')
    t.match(String(cause), new RegExp(`: ${document}: .*status 301`))
  })

  t.test('discovery that fails names the URL in the log, whatever the failure', async t => {
    const fake = await startFakeOpenIdProvider(t)
    const discoveryUrl = `${fake.issuer}/.well-known/openid-configuration?appid=1`
    for (const [name, [code, lie]] of Object.entries(FAILURES)) {
      fake.lies.set('/.well-known/openid-configuration', lie)
      const failure = await refusal(t, signIn(fake, { provider: fake.provider({ discoveryUrl, timeout: 400 }) }))
      t.equal(failure.code, code, name)
      t.ok(String(failure.cause).startsWith(`ProviderFailure: ${discoveryUrl}: `), `${name}: ${String(failure.cause)}`)
    }
  })

  t.test('the document may name an issuer that differs from the URL by the slash at its end, as must the ID token', async t => {
    const fake = await startFakeOpenIdProvider(t)
    const path = `${fake.issuer}/application/o/app`
    for (const [issuer, discovery] of [[`${path}/`, path], [path, `${path}/`], [`${fake.issuer}/`, fake.issuer], [path, path]]) {
      fake.metadata.issuer = issuer
      fake.lies.set(`${new URL(String(discovery)).pathname.replace(/^\/$/, '')}/.well-known/openid-configuration`, () => json(200, fake.metadata))
      const provider = fake.provider({ discoveryUrl: `${discovery}/.well-known/openid-configuration` })
      fake.idTokenClaims = { iss: issuer }
      const callback = { iss: String(issuer) }
      t.equal((await signIn(fake, { provider, callback })).identity.subject, 'ada', String(issuer))

      const almost = String(issuer).endsWith('/') ? String(issuer).slice(0, -1) : `${issuer}/`
      t.equal((await refusal(t, signIn(fake, { provider, callback: { iss: almost } }))).code, 'provider_error', 'iss of the response')
      fake.idTokenClaims = { iss: almost }
      t.equal((await refusal(t, signIn(fake, { provider, callback }))).code, 'provider_error', 'iss of the ID token')
    }
  })

  t.test('the document must not name an issuer that differs by more than a slash, nor by one from the option issuer', async t => {
    const fake = await startFakeOpenIdProvider(t)
    const issuer = `${fake.issuer}/a`
    fake.lies.set('/a/.well-known/openid-configuration', () => json(200, fake.metadata))
    const discoveryUrl = `${issuer}/.well-known/openid-configuration`
    for (const other of [
      `${issuer}//`, `${issuer}/b`, `${issuer}/?`, `${issuer}?`, `${issuer}#`, `${issuer}/#`, `${fake.issuer}/A`,
      fake.issuer, `${issuer}%2F`, `${issuer}/;`
    ]) {
      fake.metadata.issuer = other
      t.equal((await refusal(t, fake.provider({ discoveryUrl }).authorizationUrl(CHECKS))).code, 'provider_error', other)
    }
    for (const other of ['nonsense', 7, ['x'], null]) {
      fake.metadata.issuer = other
      t.equal((await refusal(t, fake.provider({ discoveryUrl }).authorizationUrl(CHECKS))).code, 'provider_error', JSON.stringify(other))
    }
    fake.metadata.issuer = `${issuer}/`
    t.equal((await refusal(t, fake.provider({ discoveryUrl, issuer }).authorizationUrl(CHECKS))).code, 'provider_error')
  })
})

t.test('the option issuer says which issuer to expect', async t => {
  t.test('the option issuer is what the document, the response and the ID token must name', async t => {
    const fake = await startFakeOpenIdProvider(t)
    const issuer = 'https://tenant.example/v2.0'
    Object.assign(fake.metadata, { issuer })
    fake.idTokenClaims = { iss: issuer }
    const provider = fake.provider({ issuer })

    t.equal((await signIn(fake, { provider, callback: { iss: issuer } })).identity.subject, 'ada')
    t.equal((await refusal(t, signIn(fake, { provider }))).code, 'provider_error')
    t.equal((await refusal(t, signIn(fake, { provider: fake.provider(), callback: { iss: issuer } }))).code, 'provider_error')
    fake.idTokenClaims = {}
    t.equal((await refusal(t, signIn(fake, { provider, callback: { iss: issuer } }))).code, 'provider_error')
  })

  t.test('an issuer with {tenantid} stands for the tenant of each ID token', async t => {
    const TENANT = '8eaef023-2b34-4da1-9baa-8bc8c9d6a490'
    const fake = await startFakeOpenIdProvider(t)
    const issuer = 'https://login.example/{tenantid}/v2.0'
    fake.metadata = { ...fake.metadata, issuer, authorization_response_iss_parameter_supported: undefined }
    const provider = fake.provider({ issuer })
    const attempt = async (claims: Record<string, unknown>) => {
      fake.idTokenClaims = claims
      return signIn(fake, { provider, callback: { iss: null } })
    }

    t.equal((await attempt({ tid: TENANT, iss: `https://login.example/${TENANT}/v2.0` })).identity.subject, 'ada')
    for (const claims of [
      { iss: issuer },
      { tid: '{tenantid}', iss: issuer },
      { tid: 'x', iss: 'https://login.example/x/v2.0' },
      { tid: TENANT, iss: issuer }
    ]) {
      t.equal((await refusal(t, attempt(claims))).code, 'provider_error', JSON.stringify(claims))
    }
  })

  t.test('an issuer with {tenantid} is compared with that of the key', async t => {
    const TENANT = '8eaef023-2b34-4da1-9baa-8bc8c9d6a490'
    const fake = await startFakeOpenIdProvider(t)
    const issuer = 'https://login.example/{tenantid}/v2.0'
    fake.metadata = { ...fake.metadata, issuer, authorization_response_iss_parameter_supported: undefined }
    fake.idTokenClaims = { tid: TENANT, iss: `https://login.example/${TENANT}/v2.0` }
    fake.forgeIdToken = payload => fake.signedIdToken(payload, { alg: 'RS256' })
    t.equal((await refusal(t, signIn(fake, { provider: fake.provider({ issuer }), callback: { iss: null } }))).code, 'provider_error')
  })
})

t.test('with userinfo: false the ID token is all there is', async t => {
  const fake = await startFakeOpenIdProvider(t)
  fake.profile = { sub: 'ada' }
  fake.userinfo = { email: 'ada@example.com', email_verified: true }
  const { identity } = await signIn(fake, { provider: fake.provider({ userinfo: false }) })
  t.strictSame(identity, { subject: 'ada', claims: { sub: 'ada' }, emailVerified: false })
  t.notOk(fake.requests.includes('GET /userinfo'))
})

t.test('keys are chosen and fetched anew as needed', async t => {
  t.test('two keys that both fit verify nothing', async t => {
    const fake = await startFakeOpenIdProvider(t)
    fake.lies.set('/jwks', () => json(200, { keys: [fake.jwk, fake.jwk] }))
    t.equal((await refusal(t, signIn(fake))).code, 'provider_error')
  })

  t.test('keys that are missing are asked for again at once, and a minute later', async t => {
    const fake = await startFakeOpenIdProvider(t)
    const provider = fake.provider()
    fake.lies.set('/jwks', () => json(200, { keys: [] }))
    t.equal((await refusal(t, signIn(fake, { provider }))).code, 'provider_error')
    t.equal(fake.requests.filter(request => request === 'GET /jwks').length, 2)
    fake.lies.clear()
    t.equal((await refusal(t, signIn(fake, { provider }))).code, 'provider_error')

    fake.idTokenClaims = { iat: Math.floor(Date.now() / 1000) }
    advanceClock(t, 61_000)
    t.equal((await signIn(fake, { provider })).identity.subject, 'ada')
    t.equal(fake.requests.filter(request => request === 'GET /jwks').length, 3)
  })

  t.test('keys are fetched anew after five minutes', async t => {
    const fake = await startFakeOpenIdProvider(t)
    const provider = fake.provider()
    await signIn(fake, { provider })
    advanceClock(t, 299_000)
    await signIn(fake, { provider })
    t.equal(fake.requests.filter(request => request === 'GET /jwks').length, 1)
    advanceClock(t, 2000)
    await signIn(fake, { provider })
    t.equal(fake.requests.filter(request => request === 'GET /jwks').length, 2)
  })

  const odd: Readonly<Record<string, unknown>> = {
    'is null': null,
    'is a text': 'key-1',
    'lacks what its type requires': { kty: 'RSA', kid: 'key-1' },
    'has a coordinate of a wrong type': { kty: 'EC', kid: 'key-1', crv: 'P-256', x: 1, y: [] },
    'has key_ops that are not a list': { kty: 'RSA', kid: 'key-1', n: 'AQAB', e: 'AQAB', key_ops: 5 },
    'is of an unknown type': { kty: 'lattice', kid: 'key-1' },
    'is a secret': { kty: 'oct', kid: 'key-1', k: 'c2VjcmV0' }
  }
  for (const [what, key] of Object.entries(odd)) {
    t.test(`a key beside the right one that ${what} does not end a sign-in`, async t => {
      const fake = await startFakeOpenIdProvider(t)
      fake.lies.set('/jwks', () => json(200, { keys: [key, { ...fake.jwk, use: null, key_ops: null }] }))
      for (const kid of [{ kid: 'key-1' }, {}]) {
        fake.forgeIdToken = payload => fake.signedIdToken(payload, { alg: 'RS256', ...kid })
        t.equal((await signIn(fake)).identity.subject, 'ada')
      }
    })
  }

  t.test('an answer without a list of keys is refused', async t => {
    const fake = await startFakeOpenIdProvider(t)
    fake.lies.set('/jwks', () => json(200, { keys: { 'key-1': fake.jwk } }))
    t.equal((await refusal(t, signIn(fake))).code, 'provider_error')
  })
})

t.test('a provider that requires pushed requests of a client gets them by the option', async t => {
  const idp = await startOpenIdProvider(t, {
    redirectUris: [CHECKS.redirectUri],
    client: { require_pushed_authorization_requests: true },
    configuration: { features: { pushedAuthorizationRequests: { enabled: true } } }
  })
  const signInBy = async (options: { pushedAuthorizationRequests?: boolean }) => {
    const provider = idp.provider(options)
    const url = await provider.authorizationUrl(CHECKS)
    const { searchParams: parameters } = await idp.authorize(url.href)
    return { sent: [...url.searchParams.keys()], ...await provider.authenticate({ ...CHECKS, parameters }) }
  }

  t.equal((await refusal(t, signInBy({}))).code, 'provider_error')
  const { sent, identity } = await signInBy({ pushedAuthorizationRequests: true })

  t.strictSame(sent, ['client_id', 'request_uri'])
  t.equal(identity.subject, 'ada')
})

t.test('a pushed request that the metadata have no endpoint for is refused before any redirect', async t => {
  const fake = await startFakeOpenIdProvider(t)
  const { code, cause } = await refusal(t, signIn(fake, { provider: fake.provider({ pushedAuthorizationRequests: true }) }))
  t.equal(code, 'provider_error')
  t.match(Object(cause).message, /pushed_authorization_request_endpoint/)
})

t.test('the log names the endpoint that failed', async t => {
  for (const path of ['/token', '/jwks', '/userinfo', '/par']) {
    for (const [name, [, lie]] of some(Object.entries(FAILURES), 4)) {
      const fake = await startFakeOpenIdProvider(t)
      fake.metadata.pushed_authorization_request_endpoint = `${fake.issuer}/par`
      fake.profile = { sub: 'ada' }
      fake.lies.set(path, lie)
      const provider = fake.provider({ pushedAuthorizationRequests: path === '/par', timeout: 1500 })
      t.match((await refusal(t, signIn(fake, { provider }))).cause, { endpoint: `${fake.issuer}${path}` }, `${name} at ${path}`)
    }
  }
})

t.test('a clock that differs by more than the tolerance is named', async t => {
  const fake = await startFakeOpenIdProvider(t)
  const now = Math.floor(Date.now() / 1000)
  for (const claims of [{ iat: now + 60 }, { nbf: now + 60 }, { exp: now - 60 }]) {
    fake.idTokenClaims = claims
    t.match(Object((await refusal(t, signIn(fake))).cause).message, /check the clock of this machine/)
  }
})

t.test('a used or expired code is an everyday failure, as each provider calls it', async t => {
  const fake = await startFakeOpenIdProvider(t)
  for (const error of ['invalid_grant', 'invalid_code', 'code_already_used', 'bad_verification_code']) {
    fake.lies.set('/token', () => json(400, { error }))
    t.match((await refusal(t, signIn(fake))).cause, { isEveryday: true, endpoint: `${fake.issuer}/token` }, error)
  }
})

t.test('a mistake in a class is not taken for a network that is down, and keeps its stack', async t => {
  class Mistaken extends OidcProvider {
    protected override identityOf (): never {
      throw new TypeError('Cannot read properties of undefined')
    }
  }
  const fake = await startFakeOpenIdProvider(t)
  const provider = new Mistaken({
    name: 'mistaken',
    discoveryUrl: `${fake.issuer}/.well-known/openid-configuration`,
    clientId: fake.clientId,
    clientSecret: fake.clientSecret,
    allowInsecureRequests: true
  })
  const { code, cause } = await refusal(t, signIn(fake, { provider }))
  t.equal(code, 'provider_error')
  t.match(cause, { cause: { name: 'TypeError', stack: /identityOf/ } })
})

t.test('requests go through the fetch that was given', async t => {
  const fake = await startFakeOpenIdProvider(t)
  const seen: string[] = []
  const provider = fake.provider({ fetch: async (url, init) => { seen.push(String(url)); return fetch(url, init) } })
  await signIn(fake, { provider })
  t.strictSame(seen, ['/.well-known/openid-configuration', '/token', '/jwks'].map(path => fake.issuer + path))
})

t.test('options are checked at construction', async t => {
  const options = { name: 'a', discoveryUrl: 'https://id.example/.well-known/openid-configuration', clientId: 'a', clientSecret: 'b' }
  const wrong: Array<[object, RegExp]> = [
    [{ discoveryUrl: undefined }, /a: discoveryUrl/],
    [{ discoveryUrl: 'https://id.example/' }, /a: discoveryUrl must end in/],
    [{ discoveryUrl: 'ftp://id.example/.well-known/openid-configuration' }, /a: discoveryUrl/],
    [{ scopes: ['email'] }, /a: scopes must contain "openid"/],
    [{ userinfo: 'no' }, /a: userinfo/],
    [{ discoveryUrl: 'https://svc:hidden@id.example/.well-known/openid-configuration' }, /a: discoveryUrl must be an https: URL without user info(?!.*hidden)/],
    [{ discoveryUrl: 'https://id.example/.well-known/openid-configuration#x' }, /a: discoveryUrl must be .*hash/],
    [{ issuer: 'id.example' }, /a: issuer must be an https: URL/],
    [{ issuer: 'http://id.example' }, /a: issuer must be an https: URL/],
    [{ allowInsecureRequests: 'yes' }, /a: allowInsecureRequests/],
    ...['', '-1', '1.5', '1e3', 'soon', ' 1'].map((maxAge): [object, RegExp] => [
      { authorizationParams: { max_age: maxAge } },
      /a: (max_age in authorizationParams must be a whole number of seconds|authorizationParams must be an object of strings)/
    ])
  ]
  for (const [change, message] of wrong) {
    t.throws(() => new OidcProvider({ ...options, ...change } as never), { code: 'invalid_options', message })
  }
})
