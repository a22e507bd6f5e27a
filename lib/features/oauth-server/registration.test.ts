import t from 'tap'
import { readRegistration, registrationAnswer } from './registration.js'
import { OAuthError } from './token.js'

const SCHEMES: ReadonlySet<string> = new Set(['cursor'])

const REDIRECTS = { redirect_uris: ['https://client.example/cb'] }

/** Returns the error by which a registration is refused. */
function errorOf (body: unknown, schemes = SCHEMES): unknown {
  try {
    return readRegistration(body, schemes)
  } catch (error) {
    return error instanceof OAuthError ? error.error : error
  }
}

t.test('a client is registered with its name and its redirect URIs', async t => {
  const read = readRegistration({ client_name: ' Notes\u202e ', redirect_uris: ['http://localhost:3000/cb'] }, SCHEMES)

  t.strictSame(read, { name: 'Notes', redirectUris: ['http://localhost:3000/cb'] })
  t.strictSame(readRegistration(REDIRECTS, SCHEMES), { name: null, redirectUris: ['https://client.example/cb'] })
})

t.test('a redirect URI that cannot be used is dropped, and not the registration', async t => {
  const uris = ['http://client.example/cb', 'https://client.example/cb', 'javascript:alert(1)', 'myapp://cb', 7, 'com.example.app:/cb']

  t.strictSame(readRegistration({ redirect_uris: uris }, SCHEMES).redirectUris, ['https://client.example/cb', 'com.example.app:/cb'])
})

t.test('a client that registers as web may have a private scheme with a host', async t => {
  // Cursor
  const body = {
    application_type: 'web',
    redirect_uris: ['cursor://anysphere.cursor-mcp/oauth/callback'],
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code']
  }

  t.strictSame(readRegistration(body, SCHEMES).redirectUris, body.redirect_uris)
  t.equal(errorOf(body, new Set()), 'invalid_redirect_uri')
})

t.test('a registration is refused by the errors of RFC 7591', async t => {
  for (const body of [null, undefined, [], 'a', 7, [REDIRECTS]]) t.equal(errorOf(body), 'invalid_client_metadata')
  const unusable = ['http://client.example/cb', 'https://client.example/#a', ['https://client.example/cb']]
  for (const uris of [undefined, null, [], 'https://client.example/cb', unusable]) {
    t.equal(errorOf({ redirect_uris: uris }), 'invalid_redirect_uri', JSON.stringify(uris))
  }
  for (const metadata of [
    { grant_types: ['client_credentials'] }, { grant_types: [] }, { grant_types: 'authorization_code' }, { grant_types: null },
    { response_types: ['token'] }, { response_types: 'code' }
  ]) t.equal(errorOf({ ...REDIRECTS, ...metadata }), 'invalid_client_metadata', JSON.stringify(metadata))
})

t.test('every client is a public one, whatever authentication it asks for', async t => {
  for (const method of ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt', 7, undefined]) {
    const { redirectUris } = readRegistration({ ...REDIRECTS, token_endpoint_auth_method: method, grant_types: ['authorization_code', 'implicit'] }, SCHEMES)

    t.strictSame(registrationAnswer({ id: 'a', name: 'Notes', redirectUris, firstParty: false, kind: 'registered' }, 1_750_000_000_999), {
      client_id: 'a',
      client_id_issued_at: 1_750_000_000,
      client_name: 'Notes',
      redirect_uris: ['https://client.example/cb'],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none'
    })
  }
  t.notOk('client_name' in registrationAnswer({ id: 'a', name: null, redirectUris: [], firstParty: false, kind: 'registered' }, 0))
})
