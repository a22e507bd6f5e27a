import t from 'tap'
import {
  Auth0Provider, FacebookProvider, GitHubProvider, GoogleProvider, MicrosoftProvider, OidcProvider, providersFromEnv
} from '../../lib/index.js'
import { checksFor } from './contract.js'

const OIDC = { OIDC_NAME: 'company', OIDC_DISCOVERY_URL: 'https://id.example/.well-known/openid-configuration' }

function pair (prefix: string): Record<string, string> {
  return { [`${prefix}_CLIENT_ID`]: `${prefix}-id`, [`${prefix}_CLIENT_SECRET`]: `${prefix}-secret` }
}

t.test('each pair of settings makes its provider', async t => {
  t.strictSame(providersFromEnv({}), [])
  const cases = [
    ['GOOGLE', 'google', GoogleProvider, {}],
    ['GITHUB', 'github', GitHubProvider, {}],
    ['MICROSOFT', 'microsoft', MicrosoftProvider, {}],
    ['FACEBOOK', 'facebook', FacebookProvider, {}],
    ['AUTH0', 'auth0', Auth0Provider, { AUTH0_DOMAIN: 'tenant.eu.auth0.com' }],
    ['GITLAB', 'gitlab', OidcProvider, {}],
    ['KEYCLOAK', 'keycloak', OidcProvider, { KEYCLOAK_ISSUER: 'https://id.example/realms/main' }],
    ['OKTA', 'okta', OidcProvider, { OKTA_ISSUER: 'https://example.okta.com/' }],
    ['COGNITO', 'cognito', OidcProvider, { COGNITO_ISSUER: 'https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_a1B2c3D4e' }],
    ['OIDC', 'company', OidcProvider, OIDC]
  ] as const
  for (const [prefix, name, type, more] of cases) {
    const [provider, ...others] = providersFromEnv({ ...pair(prefix), ...more })
    t.equal(provider?.name, name)
    t.type(provider, type)
    t.strictSame(others, [])
  }
  const all = Object.assign({}, ...cases.map(([prefix, , , more]) => ({ ...pair(prefix), ...more })))
  t.strictSame(providersFromEnv(all).map(({ name }) => name), cases.map(([, name]) => name))
})

t.test('the settings are those of the process unless others are given', async t => {
  t.intercept(process, 'env', { value: pair('GITHUB') })
  t.strictSame(providersFromEnv().map(({ name }) => name), ['github'])
})

t.test('id and secret reach the provider', async t => {
  const [github] = providersFromEnv(pair('GITHUB'))
  const url = await github?.authorizationUrl({ redirectUri: 'https://app.example/auth/github/callback', state: 's', nonce: 'n', codeVerifier: 'v'.repeat(43) })
  t.equal(url?.searchParams.get('client_id'), 'GITHUB-id')
})

t.test('MICROSOFT_TENANT is the tenant', async t => {
  t.throws(() => providersFromEnv({ ...pair('MICROSOFT'), MICROSOFT_TENANT: 'contoso' }), { code: 'invalid_options', message: /tenant/ })
  t.equal(providersFromEnv({ ...pair('MICROSOFT'), MICROSOFT_TENANT: 'organizations' }).length, 1)
  t.equal(providersFromEnv({ ...pair('MICROSOFT'), MICROSOFT_TENANT: '' }).length, 1)
})

t.test('GITLAB_ISSUER is a host of one\'s own, and an issuer must be an https: URL', async t => {
  const asked: string[] = []
  t.intercept(globalThis, 'fetch', { value: async (url: string) => { asked.push(url); return Response.json({}) } })
  for (const issuer of ['https://example.com/gitlab/', 'https://example.com/gitlab']) {
    const [gitlab] = providersFromEnv({ ...pair('GITLAB'), GITLAB_ISSUER: issuer })
    await t.rejects(async () => gitlab?.authorizationUrl(checksFor('gitlab')))
  }
  t.strictSame(new Set(asked), new Set(['https://example.com/gitlab/.well-known/openid-configuration']))
  for (const issuer of ['example.okta.com', 'http://example.okta.com']) {
    t.throws(() => providersFromEnv({ ...pair('OKTA'), OKTA_ISSUER: issuer }), { code: 'invalid_options', message: /^OKTA_ISSUER must be an https: URL/ })
  }
})

t.test('blanks around a setting, as a file brings them along, are removed', async t => {
  const [github] = providersFromEnv({ GITHUB_CLIENT_ID: ' the-id\n', GITHUB_CLIENT_SECRET: '\tthe-secret\r\n' })
  const url = await github?.authorizationUrl({ redirectUri: 'https://app.example/auth/github/callback', state: 's', nonce: 'n', codeVerifier: 'v'.repeat(43) })
  t.equal(url?.searchParams.get('client_id'), 'the-id')
  t.strictSame(providersFromEnv({ GITHUB_CLIENT_ID: ' ', GITHUB_CLIENT_SECRET: '\n' }), [])
})

t.test('a setting with quotes around it, or with blanks or control characters in it, is refused by its name', async t => {
  const all = {
    ...pair('GOOGLE'), ...pair('AUTH0'), AUTH0_DOMAIN: 'tenant.eu.auth0.com', ...pair('MICROSOFT'), MICROSOFT_TENANT: 'common', ...pair('OIDC'), ...OIDC
  }
  for (const name of Object.keys(all)) {
    for (const value of ['"hunter2"', "'hunter2'", 'hunter 2', 'hunter2\u0007', 'hunter\u200b2']) {
      const refused = t.throws(() => providersFromEnv({ ...all, [name]: value }), {
        name: 'OptionsError', code: 'invalid_options', message: new RegExp(`^${name} must be the value alone: no quotes`)
      }, `${name}=${value}`)
      t.notMatch(String(refused), /hunter/)
    }
  }
  t.strictSame(providersFromEnv({ UNRELATED: '"quoted"', MICROSOFT_TENANT: '"common"' }), [], 'others are not looked at')
})

t.test('a setting without its other half is a mistake, and an empty one counts as absent', async t => {
  for (const [env, message] of [
    [{ GOOGLE_CLIENT_ID: 'x' }, 'GOOGLE_CLIENT_SECRET is not set, but GOOGLE_CLIENT_ID is'],
    [{ GITHUB_CLIENT_SECRET: 'the-secret' }, 'GITHUB_CLIENT_ID is not set, but GITHUB_CLIENT_SECRET is'],
    [{ ...pair('FACEBOOK'), FACEBOOK_CLIENT_SECRET: '' }, 'FACEBOOK_CLIENT_SECRET is not set, but FACEBOOK_CLIENT_ID is'],
    [pair('AUTH0'), 'AUTH0_DOMAIN is not set, but AUTH0_CLIENT_ID is'],
    [pair('KEYCLOAK'), 'KEYCLOAK_ISSUER is not set, but KEYCLOAK_CLIENT_ID is'],
    [pair('OKTA'), 'OKTA_ISSUER is not set, but OKTA_CLIENT_ID is'],
    [pair('COGNITO'), 'COGNITO_ISSUER is not set, but COGNITO_CLIENT_ID is'],
    [{ ...pair('OIDC'), OIDC_NAME: 'x' }, 'OIDC_DISCOVERY_URL is not set, but OIDC_CLIENT_ID is'],
    [{ ...pair('OIDC'), ...OIDC, OIDC_NAME: '' }, 'OIDC_NAME is not set, but OIDC_CLIENT_ID is']
  ] as const) {
    t.throws(() => providersFromEnv(env), { code: 'invalid_options', message: new RegExp(message) })
    t.throws(() => providersFromEnv(env), { message: /^((?!the-secret).)*$/ })
  }
  t.strictSame(providersFromEnv({ GOOGLE_CLIENT_ID: '', GOOGLE_CLIENT_SECRET: '', AUTH0_DOMAIN: 'tenant.eu.auth0.com', MICROSOFT_TENANT: 'common' }), [])
})
