import t, { type Test } from 'tap'
import { Auth0Provider, type Auth0ProviderOptions, OidcProvider, type ProviderOptions } from '../../lib/index.js'
import { Auth0StandIn } from '../fakes/auth0.js'
import { startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { BASE_URL, appWith, checksFor, errorsIn, failurePage, providerContract, signIn } from './contract.js'

type Options = Partial<Omit<Auth0ProviderOptions, 'clientKey'> & ProviderOptions>

const DOMAIN = 'tenant.eu.auth0.com'
const CLAIMS = {
  sub: 'auth0|66f0a1b2c3d4e5f607182930',
  email: 'mary@example.com',
  email_verified: true,
  name: 'Mary Example',
  picture: 'https://s.gravatar.com/avatar/5f0c7127cb2f4e5d?s=480&d=https%3A%2F%2Fcdn.auth0.com%2Favatars%2Fme.png',
  given_name: 'Mary',
  family_name: 'Example',
  nickname: 'mary',
  updated_at: '2026-11-20T09:30:11.154Z',
  role: 'editor',
  'https://app.example/plan': 'gold'
}
const CHECKS = checksFor('auth0')

async function start (t: Test): Promise<Auth0StandIn> {
  return new Auth0StandIn().start(t)
}

function provider ({ clientId, clientSecret, fetch }: Auth0StandIn, options: Options = {}): Auth0Provider {
  return new Auth0Provider({ domain: DOMAIN, clientId, clientSecret, fetch, ...options })
}

providerContract(t, {
  start,
  provider,
  claims: CLAIMS,
  changeProfile: auth0 => {
    Object.assign(auth0.profile, { name: 'Mary Somerville', picture: 'https://example.org/mary.png' })
    auth0.customClaims = { role: 'editor', 'https://app.example/plan': 'silver' }
  },
  changedClaims: { ...CLAIMS, name: 'Mary Somerville', picture: 'https://example.org/mary.png', 'https://app.example/plan': 'silver' },
  hideEmail: ({ profile }) => { delete profile.email; delete profile.email_verified },
  endpoints: [`GET ${DOMAIN}/.well-known/openid-configuration`, `POST ${DOMAIN}/oauth/token`, `GET ${DOMAIN}/.well-known/jwks.json`]
})

t.test('an Auth0Provider is an OidcProvider of the name auth0', async t => {
  const subject = provider(await start(t))
  t.type(subject, OidcProvider)
  t.equal(subject.name, 'auth0')
  t.equal((await subject.authorizationUrl(CHECKS)).searchParams.get('scope')?.split(' ').sort().join(' '), 'email openid profile')
})

t.test('the domain must be a host of https', async t => {
  for (const domain of [DOMAIN, `https://${DOMAIN}`, `https://${DOMAIN}/`, 'Tenant.EU.Auth0.com', `HTTPS://${DOMAIN.toUpperCase()}/`, `  ${DOMAIN}\n`]) {
    t.test(`the domain may be written ${JSON.stringify(domain)}`, async t => {
      const auth0 = await start(t)
      const { browser } = await appWith(t, provider(auth0, { domain }))
      t.equal((await signIn(browser, auth0, 'auth0')).headers.location, '/')
      t.strictSame((await browser.get('/me')).json().principal.claims, CLAIMS)
      t.equal(auth0.backChannelRequests()[0], `GET ${DOMAIN}/.well-known/openid-configuration`)
    })
  }

  const refused = [
    '', '   ', 7, null, undefined, `${DOMAIN}/path`, `https://${DOMAIN}/.well-known/openid-configuration`,
    `${DOMAIN}?a=b`, `https://${DOMAIN}/?a=b`, `${DOMAIN}#a`,
    `eve@${DOMAIN}`, `https://eve:pw@${DOMAIN}`, `http://${DOMAIN}`, `ftp://${DOMAIN}`, 'https://', 'two words.example', `${DOMAIN}\\..\\evil`
  ]
  for (const domain of refused) {
    t.test(`the domain must not be ${JSON.stringify(domain) ?? 'absent'}`, async t => {
      const auth0 = await start(t)
      t.throws(() => provider(auth0, { domain: domain as string }), { code: 'invalid_options', message: /auth0.*domain/ })
    })
  }

  t.test('the domain may be http for a development server only', async t => {
    const asked: string[] = []
    const fetch = async (url: string | URL | Request) => {
      asked.push(String(url))
      const origin = 'http://127.0.0.1:9999'
      return Response.json({
        issuer: `${origin}/`,
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        jwks_uri: `${origin}/jwks`
      })
    }
    const auth0 = await start(t)
    const url = await provider(auth0, { domain: 'http://127.0.0.1:9999', allowInsecureRequests: true, fetch }).authorizationUrl(CHECKS)
    t.equal(url.origin, 'http://127.0.0.1:9999')
    t.strictSame(asked, ['http://127.0.0.1:9999/.well-known/openid-configuration'])
    t.throws(() => provider(auth0, { domain: 'http://127.0.0.1:9999' }), { code: 'invalid_options', message: /auth0.*allowInsecureRequests/ })
  })

  t.test('the domain may be a custom one, which is the issuer then', async t => {
    const auth0 = await start(t)
    const { browser } = await appWith(t, provider(auth0, { domain: 'login.example.com' }))
    t.equal((await signIn(browser, auth0, 'auth0')).headers.location, '/')
    t.strictSame((await browser.get('/me')).json().principal.claims, CLAIMS)
    t.notOk(auth0.requests.some(({ host }) => host === DOMAIN))
  })

  t.test('the domain is the only issuer of ID tokens: neither another one nor one without the slash will do', async t => {
    for (const iss of ['https://login.example.com/', `https://${DOMAIN}`, `https://${DOMAIN}//`]) {
      const auth0 = await start(t)
      auth0.idTokenClaims = { iss }
      const { browser } = await appWith(t, provider(auth0))
      t.equal((await signIn(browser, auth0, 'auth0')).headers.location, failurePage('provider_error'), iss)
    }
  })
})

t.test('custom claims reach the principal within limits', async t => {
  t.test('custom claims of any JSON type reach the principal as they were written', async t => {
    const auth0 = await start(t)
    auth0.customClaims = {
      role: 'editor',
      'https://app.example/roles': ['editor', 'reviewer'],
      'https://app.example/tenant': { id: 7, plan: { name: 'gold', seats: [1, 2, { of: null }] }, active: false },
      level: 0,
      org_id: 'org_4tStandIn0000000',
      org_name: 'example'
    }
    const { app, browser } = await appWith(t, provider(auth0))
    await signIn(browser, auth0, 'auth0')
    const { 'https://app.example/plan': _, ...rest } = CLAIMS
    const { userId, claims } = (await browser.get('/me')).json().principal
    t.strictSame(claims, { ...rest, ...auth0.customClaims })
    t.strictSame((await app.auth.links(userId))[0]?.claims, claims)
  })

  t.test('custom claims are gone at the next sign-in once they are not added any more', async t => {
    const auth0 = await start(t)
    const { app, browser } = await appWith(t, provider(auth0))
    await signIn(browser, auth0, 'auth0')
    t.equal((await browser.get('/me')).json().principal.claims.role, 'editor')
    auth0.customClaims = {}

    const again = new Browser(app)
    await signIn(again, auth0, 'auth0')

    const { role: _, 'https://app.example/plan': __, ...rest } = CLAIMS
    t.strictSame((await again.get('/me')).json().principal.claims, rest)
  })

  t.test('custom claims are bounded, for each session holds them', async t => {
    const auth0 = await start(t)
    const { browser } = await appWith(t, provider(auth0))
    auth0.customClaims = { 'https://app.example/groups': Array.from({ length: 600 }, (_, index) => `group of number ${index}`) }
    t.equal((await signIn(browser, auth0, 'auth0')).headers.location, '/')
    t.equal((await browser.get('/me')).json().principal.claims['https://app.example/groups'].length, 600)

    auth0.customClaims = { 'https://app.example/groups': Array.from({ length: 4000 }, (_, index) => `group of number ${index}`) }
    t.equal((await signIn(browser, auth0, 'auth0')).headers.location, failurePage('provider_error'))
  })

  t.test('custom claims do not include those of the protocol', async t => {
    const auth0 = await start(t)
    const protocol = {
      nbf: 1_700_000_000,
      azp: auth0.clientId,
      c_hash: 'c',
      s_hash: 's',
      sid: 'a-session',
      jti: 'an-id',
      auth_time: 1_700_000_000,
      acr: 'an-acr',
      amr: ['mfa']
    }
    auth0.idTokenClaims = protocol
    auth0.hashesAccessTokens = true
    const { browser } = await appWith(t, provider(auth0))
    t.equal((await signIn(browser, auth0, 'auth0')).headers.location, '/')
    t.strictSame((await browser.get('/me')).json().principal.claims, CLAIMS, 'nor iss, aud, exp, iat and nonce, which are always there')
  })

  t.test('custom claims that reach for a prototype are dropped, and nothing is polluted', async t => {
    const auth0 = await start(t)
    auth0.customClaims = JSON.parse(
      '{ "__proto__": { "admin": true }, "constructor": { "prototype": { "admin": true } }, "prototype": { "admin": ' +
        'true }, "role": "editor", "https://app.example/plan": "gold" }'
    )
    let issued = ''
    auth0.lies.set(`POST ${DOMAIN}/oauth/token`, answer => {
      issued = Buffer.from(String(JSON.parse(answer.body).id_token).split('.')[1] ?? '', 'base64url').toString()
      return answer
    })
    const app = await startApp(t, { baseUrl: BASE_URL, providers: [provider(auth0)] }, {}, app => {
      app.get('/admin', { preHandler: app.auth.requireClaims({ admin: true }) }, async () => 'admin')
    })
    const browser = new Browser(app)

    t.equal((await signIn(browser, auth0, 'auth0')).headers.location, '/')

    t.match(issued, '"__proto__":{"admin":true},"constructor":{')
    const me = await browser.get('/me')
    t.strictSame(me.json().principal.claims, CLAIMS)
    t.notMatch(me.body, /__proto__|constructor|prototype/)
    t.equal((await browser.get('/admin')).statusCode, 403)
    t.equal(Reflect.get({}, 'admin'), undefined)
  })

  t.test('custom claims that reach for a prototype further down do not pollute either', async t => {
    const auth0 = await start(t)
    auth0.customClaims = JSON.parse('{ "role": "editor", "https://app.example/plan": "gold", "nested": { "__proto__": { "admin": true } } }')
    const { browser } = await appWith(t, provider(auth0))

    t.equal((await signIn(browser, auth0, 'auth0')).headers.location, '/')

    const me = await browser.get('/me')
    t.notMatch(me.body, /__proto__/)
    t.equal(me.json().principal.claims.role, 'editor')
    t.equal(Reflect.get({}, 'admin'), undefined)
  })

  t.test('custom claims give way to what the application grants, and are back once that is withdrawn', async t => {
    const auth0 = await start(t)
    const { app, browser } = await appWith(t, provider(auth0))
    await signIn(browser, auth0, 'auth0')
    const { userId, claims } = (await browser.get('/me')).json().principal
    t.equal(claims.role, 'editor')

    await app.auth.grant(userId, { role: 'admin' })
    await signIn(browser, auth0, 'auth0')
    t.strictSame((await browser.get('/me')).json().principal.claims, { ...CLAIMS, role: 'admin' })
    t.equal((await app.auth.links(userId))[0]?.claims.role, 'editor')

    await app.auth.withdraw(userId, ['role'])
    await signIn(browser, auth0, 'auth0')
    t.strictSame((await browser.get('/me')).json().principal.claims, CLAIMS)
  })
})

t.test('standard claims of a wrong type are left out, not passed on like custom ones', async t => {
  const auth0 = await start(t)
  auth0.idTokenClaims = { name: 7, picture: ['https://example.org/mary.png'], email: ['mary@example.com'], email_verified: true }
  const { browser } = await appWith(t, provider(auth0))
  t.equal((await signIn(browser, auth0, 'auth0')).headers.location, '/')
  const { claims } = (await browser.get('/me')).json().principal
  t.strictSame([claims.name, claims.picture, claims.email], [undefined, undefined, undefined])
})

t.test('email_verified is true or false, whatever the connection wrote', async t => {
  for (const [value, expected] of [['true', true], [1, false], ['yes', false]] as const) {
    const auth0 = await start(t)
    auth0.idTokenClaims = { email_verified: value }
    const { browser } = await appWith(t, provider(auth0))
    await signIn(browser, auth0, 'auth0')
    t.equal((await browser.get('/me')).json().principal.claims.email_verified, expected)
  }
})

t.test('userinfo is not asked, even if the ID token lacks name and picture', async t => {
  const auth0 = await start(t)
  for (const claim of ['name', 'picture', 'email', 'email_verified']) delete auth0.profile[claim]
  const { browser } = await appWith(t, provider(auth0))
  t.equal((await signIn(browser, auth0, 'auth0')).headers.location, '/')
  t.notOk(auth0.backChannelRequests().includes(`GET ${DOMAIN}/userinfo`))
})

t.test('updated_at is passed on as the text that it is', async t => {
  const auth0 = await start(t)
  auth0.profile.updated_at = '2026-02-28T23:59:59.999Z'
  const { browser } = await appWith(t, provider(auth0))
  await signIn(browser, auth0, 'auth0')
  t.equal((await browser.get('/me')).json().principal.claims.updated_at, '2026-02-28T23:59:59.999Z')
})

t.test('a Rule that says unauthorized is not_allowed, and its reason is in the log only', async t => {
  const auth0 = await start(t)
  auth0.deniedByRule = 'user is blocked <b>since Monday</b>'
  const { browser, lines } = await appWith(t, provider(auth0))

  const landing = await signIn(browser, auth0, 'auth0')

  t.equal(landing.headers.location, failurePage('not_allowed'))
  t.notMatch(JSON.stringify([landing.headers, landing.body]), /Monday/)
  t.match(lines.join(''), /user is blocked <b>since Monday<\/b>/)
  t.notOk(auth0.backChannelRequests().includes(`POST ${DOMAIN}/oauth/token`))
})

t.test('access_denied of the token endpoint is a wrong secret and not a denial', async t => {
  const auth0 = await start(t)
  const { browser } = await appWith(t, provider(auth0, { clientSecret: 'not-the-secret' }))
  auth0.lies.set(`POST ${DOMAIN}/oauth/token`, answer => {
    t.match([answer.status, JSON.parse(answer.body)], [401, { error: 'access_denied', error_description: 'Unauthorized' }])
    return answer
  })

  t.equal((await signIn(browser, auth0, 'auth0')).headers.location, failurePage('provider_error'))
})

t.test('an ID token that is signed with the secret is refused, and the log says which setting to change', async t => {
  const auth0 = await start(t)
  auth0.signsWithSecret = true
  const { browser, lines } = await appWith(t, provider(auth0))

  t.equal((await signIn(browser, auth0, 'auth0')).headers.location, failurePage('provider_error'))

  t.equal((await browser.get('/me')).json().principal, null)
  t.match(JSON.parse(errorsIn(lines)[0] ?? '{}').err?.message, /RS256/)
})

t.test('a subject may be any name that a directory gives its people', async t => {
  const auth0 = await start(t)
  const { app } = await appWith(t, provider(auth0))
  const userIds = new Set<string>()
  const subjects = [
    'samlp|conn|mary@example.com', 'samlp|conn|MARY@example.com', 'waad|Zx1_two words',
    'google-oauth2|108204268033311374519', 'github|583231', 'ad|Example/Märy', `ad|${'x'.repeat(252)}`
  ]
  for (const [index, sub] of subjects.entries()) {
    auth0.profile = { ...auth0.profile, sub, email: `mary-${index}@example.com` }
    const browser = new Browser(app)
    t.equal((await signIn(browser, auth0, 'auth0')).headers.location, '/')
    const { userId, claims } = (await browser.get('/me')).json().principal
    t.equal(claims.sub, sub)
    t.equal((await app.auth.findUser({ provider: 'auth0', subject: sub }))?.userId, userId)
    userIds.add(userId)
  }
  t.equal(userIds.size, subjects.length)
})

t.test('a subject of more than 255 characters is refused', async t => {
  const auth0 = await start(t)
  auth0.profile.sub = `ad|${'x'.repeat(253)}`
  const { browser } = await appWith(t, provider(auth0))
  t.equal((await signIn(browser, auth0, 'auth0')).headers.location, failurePage('provider_error'))
})

t.test('an address that the connection does not vouch for opens no account', async t => {
  const auth0 = await start(t)
  const { app, browser } = await appWith(t, provider(auth0))
  await signIn(browser, auth0, 'auth0')
  const { userId } = (await browser.get('/me')).json().principal
  for (const value of [false, 'false', 'TRUE', 1, '1', undefined]) {
    auth0.idTokenClaims = { sub: 'samlp|evil|1', email_verified: value }
    const stranger = new Browser(app)
    t.equal((await signIn(stranger, auth0, 'auth0')).headers.location, failurePage('account_exists'), JSON.stringify(value) ?? 'absent')
    t.equal((await stranger.get('/me')).json().principal, null)
  }
  t.strictSame((await app.auth.links(userId)).map(({ subject }) => subject), [CLAIMS.sub])
})
