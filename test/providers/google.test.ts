import t, { type Test } from 'tap'
import { GoogleProvider } from '../../lib/index.js'
import { GoogleStandIn } from '../fakes/google.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { BASE_URL, appWith, checksFor, failurePage, providerContract, responseOf, signIn } from './contract.js'

type Options = Partial<ConstructorParameters<typeof GoogleProvider>[0]>

const CLAIMS = {
  sub: '108204268033311374519',
  hd: 'example.com',
  email: 'grace@example.com',
  email_verified: true,
  name: 'Grace Example',
  picture: 'https://lh3.googleusercontent.com/a/ACg8ocGrace=s96-c'
}
const TOKEN_REQUEST = 'POST oauth2.googleapis.com/token'
const KEYS_REQUEST = 'GET www.googleapis.com/oauth2/v3/certs'
const USERINFO_REQUEST = 'GET openidconnect.googleapis.com/v1/userinfo'
const CHECKS = checksFor('google')

async function start (t: Test): Promise<GoogleStandIn> {
  return new GoogleStandIn().start(t)
}

function provider ({ clientId, clientSecret, fetch }: GoogleStandIn, options: Options = {}): GoogleProvider {
  return new GoogleProvider({ clientId, clientSecret, fetch, ...options })
}

providerContract(t, {
  start,
  provider,
  claims: CLAIMS,
  changeProfile: google => { Object.assign(google.profile, { name: 'Grace Hopper', picture: 'https://lh3.googleusercontent.com/a/another' }) },
  changedClaims: { ...CLAIMS, name: 'Grace Hopper', picture: 'https://lh3.googleusercontent.com/a/another' },
  hideEmail: ({ profile }) => { delete profile.email; delete profile.email_verified },
  endpoints: ['GET accounts.google.com/.well-known/openid-configuration', TOKEN_REQUEST, KEYS_REQUEST]
})

t.test('the authorization request goes to Google with the default scopes', async t => {
  const google = await start(t)
  const url = await provider(google).authorizationUrl(CHECKS)
  t.equal(url.origin + url.pathname, 'https://accounts.google.com/o/oauth2/v2/auth')
  t.equal(url.searchParams.get('scope'), 'openid email profile')
  t.equal(url.searchParams.get('hd'), null)
})

t.test('a hosted domain admits its own users alone', async t => {
  const cases: Record<string, [hostedDomain: string, hd: unknown, location: string]> = {
    'that is the one of the account is admitted': ['example.com', 'example.com', '/'],
    'is the same in upper case in the options': ['EXAMPLE.Com', 'example.com', '/'],
    'is the same in upper case in the token': ['example.com', 'Example.COM', '/'],
    'of * is any Workspace account': ['*', 'example.org', '/'],
    'other than that of the account is refused': ['example.com', 'example.org', failurePage('not_allowed')],
    'is not one of its subdomains': ['example.com', 'mail.example.com', failurePage('not_allowed')],
    'is not one that ends like it': ['example.com', 'evil-example.com', failurePage('not_allowed')],
    'is refused to an account without one, whatever its address': ['example.com', undefined, failurePage('not_allowed')],
    'of * is refused to an account without one': ['*', undefined, failurePage('not_allowed')],
    'is not one of a list': ['example.com', ['example.com'], failurePage('not_allowed')],
    'of * is not a list': ['*', ['example.com'], failurePage('not_allowed')],
    'of * is not an empty claim': ['*', '', failurePage('not_allowed')],
    'is not a claim of *': ['example.com', '*', failurePage('not_allowed')]
  }
  for (const [name, [hostedDomain, hd, location]] of Object.entries(cases)) {
    t.test(`a hosted domain ${name}`, async t => {
      const google = await start(t)
      google.idTokenClaims = { hd }
      const { app, browser } = await appWith(t, provider(google, { hostedDomain }))

      t.equal((await signIn(browser, google, 'google')).headers.location, location)

      const { principal } = (await browser.get('/me')).json()
      t.strictSame(principal?.claims.hd, location === '/' ? hd : undefined)
      t.equal(await app.auth.findUser({ provider: 'google', subject: CLAIMS.sub }) !== null, location === '/')
    })
  }

  t.test('the hosted domain is sent as a hint, and nothing in the login URL changes it', async t => {
    const google = await start(t)
    for (const hostedDomain of ['example.com', '*']) {
      const { browser } = await appWith(t, provider(google, { hostedDomain }))
      for (const query of ['', '?hd=evil.example', '?hd=', '?hd=*', '?hostedDomain=evil.example']) {
        const { location = '' } = (await browser.get(`/auth/google/login${query}`)).headers
        t.strictSame(new URL(location).searchParams.getAll('hd'), [hostedDomain], query)
      }
    }
  })

  t.test('a hosted domain in the login URL of an application without one is not passed on', async t => {
    const google = await start(t)
    const { browser } = await appWith(t, provider(google))
    const { location = '' } = (await browser.get('/auth/google/login?hd=evil.example')).headers
    t.equal(new URL(location).searchParams.has('hd'), false)
  })

  t.test('a hosted domain in the callback proves nothing, since it is not signed', async t => {
    const google = await start(t)
    google.profile.hd = 'example.org'
    const { browser } = await appWith(t, provider(google, { hostedDomain: 'example.com' }))
    const { location = '' } = (await browser.get('/auth/google/login', { referer: `${BASE_URL}/sign-in` })).headers
    const callback = await google.authorize(location)
    t.match(callback, 'hd=example.org')

    t.equal((await browser.get(callback.replace('hd=example.org', 'hd=example.com'))).headers.location, failurePage('not_allowed'))
  })

  t.test('a hosted domain at userinfo does not stand in for the claim of the ID token', async t => {
    const google = await start(t)
    google.idTokensAreBrief = true
    google.idTokenClaims = { hd: undefined }
    const { browser } = await appWith(t, provider(google, { hostedDomain: 'example.com' }))
    t.equal((await signIn(browser, google, 'google')).headers.location, failurePage('not_allowed'))
  })

  t.test('an empty hosted domain is refused at construction', async t => {
    const google = await start(t)
    for (const hostedDomain of ['', 7, null, ['example.com']]) {
      t.throws(
        () => provider(google, { hostedDomain: hostedDomain as string }),
        { code: 'invalid_options', message: /google.*hostedDomain/ },
        JSON.stringify(hostedDomain)
      )
    }
  })
})

t.test('a consumer account has no hd, and no claim of that name', async t => {
  const google = await start(t)
  delete google.profile.hd
  const { browser } = await appWith(t, provider(google))
  t.equal((await signIn(browser, google, 'google')).headers.location, '/')
  const { hd: _, ...claims } = CLAIMS
  t.strictSame((await browser.get('/me')).json().principal.claims, claims)
})

t.test('sign-ins work with and without the announcement of iss', async t => {
  for (const announcesIss of [true, false]) {
    const announced = announcesIss ? 'announced' : 'not announced'

    t.test(`${announced}: a person signs in`, async t => {
      const google = await start(t)
      google.announcesIss = announcesIss
      const { browser } = await appWith(t, provider(google))
      t.equal((await signIn(browser, google, 'google')).headers.location, '/')
    })

    for (const issOnErrors of [true, false]) {
      const denialIs = announcesIss && !issOnErrors ? 'refused (RFC 9207 section 2.4)' : 'access_denied'
      t.test(`${announced}: a denial ${issOnErrors ? 'with' : 'without'} iss is ${denialIs}`, async t => {
        const google = await start(t)
        Object.assign(google, { announcesIss, issOnErrors, consents: false })
        const { browser } = await appWith(t, provider(google))
        t.equal((await signIn(browser, google, 'google')).headers.location, failurePage(announcesIss && !issOnErrors ? 'provider_error' : 'access_denied'))
      })
    }

    t.test(`${announced}: a callback with the iss of another provider is refused before the code goes anywhere`, async t => {
      const google = await start(t)
      google.announcesIss = announcesIss
      const subject = provider(google)
      for (const iss of ['https://accounts.evil.example', 'https://accounts.google.com/', 'accounts.google.com', '']) {
        const callback = new URL(await google.authorize((await subject.authorizationUrl(CHECKS)).href), BASE_URL)
        callback.searchParams.set('iss', iss)
        await t.rejects(subject.authenticate({ ...CHECKS, parameters: callback.searchParams }), { code: 'provider_error' }, iss)
      }
      t.notOk(google.backChannelRequests().includes(TOKEN_REQUEST))
    })
  }

  t.test('announced: a callback without iss is refused, not announced: it is fine', async t => {
    for (const announcesIss of [true, false]) {
      const google = await start(t)
      google.announcesIss = announcesIss
      const subject = provider(google)
      const parameters = await responseOf(google, subject)
      parameters.delete('iss')
      const authentication = subject.authenticate({ ...CHECKS, parameters })
      if (announcesIss) await t.rejects(authentication, { code: 'provider_error' })
      else t.equal((await authentication).identity.subject, CLAIMS.sub)
    }
  })
})

t.test('an ID token with a wrong claim is refused', async t => {
  const cases: Record<string, (google: GoogleStandIn) => void> = {
    'with the issuer without https, which Google used long ago': google => { google.idTokenClaims = { iss: 'accounts.google.com' } },
    'with a slash behind the issuer': google => { google.idTokenClaims = { iss: 'https://accounts.google.com/' } },
    'for another application': google => { google.idTokenClaims = { aud: 'another.apps.googleusercontent.com', azp: 'another.apps.googleusercontent.com' } },
    'issued to another application': google => { google.idTokenClaims = { azp: 'another.apps.googleusercontent.com' } },
    'with a number as its subject': google => { google.idTokenClaims = { sub: 1082042680 } },
    'with an empty subject': google => { google.idTokenClaims = { sub: '' } },
    'signed with a key that Google does not publish': google => { google.signWith = 'google-unknown' }
  }
  for (const [name, lie] of Object.entries(cases)) {
    t.test(`an ID token ${name} is refused`, async t => {
      const google = await start(t)
      lie(google)
      const { app, browser } = await appWith(t, provider(google))
      t.equal((await signIn(browser, google, 'google')).headers.location, failurePage('provider_error'))
      t.equal((await browser.get('/me')).json().principal, null)
      t.equal(await app.auth.findUser({ provider: 'google', subject: CLAIMS.sub }), null)
    })
  }
})

t.test('name and picture that the ID token leaves out are asked of userinfo', async t => {
  const google = await start(t)
  google.idTokensAreBrief = true
  const { browser } = await appWith(t, provider(google))

  t.equal((await signIn(browser, google, 'google')).headers.location, '/')

  t.strictSame((await browser.get('/me')).json().principal.claims, CLAIMS)
  t.equal(google.backChannelRequests().at(-1), USERINFO_REQUEST)
})

t.test('the code reaches the token endpoint with its slash', async t => {
  const google = await start(t)
  const { browser } = await appWith(t, provider(google))
  const { location = '' } = (await browser.get('/auth/google/login')).headers
  const callback = await google.authorize(location)

  t.equal((await browser.get(callback)).headers.location, '/')

  const code = google.requests.find(({ path }) => path === '/token')?.form.get('code')
  t.match(code, /^4\/0A/)
  t.match(callback, 'code=4%2F0A')
  t.equal(code, new URL(callback, BASE_URL).searchParams.get('code'))
})

t.test('short scopes come back long, and are reported as they came', async t => {
  const google = await start(t)
  const subject = provider(google)
  const parameters = await responseOf(google, subject)

  const { identity, tokens } = await subject.authenticate({ ...CHECKS, parameters })

  t.strictSame(identity, { subject: CLAIMS.sub, claims: CLAIMS, emailVerified: true })
  t.equal(tokens.scope, 'openid https://www.googleapis.com/auth/userinfo.email https://www.googleapis.com/auth/userinfo.profile')
})

t.test('scopes may be asked for in their long form', async t => {
  const google = await start(t)
  const scopes = [
    'openid', 'https://www.googleapis.com/auth/userinfo.email', 'https://www.googleapis.com/auth/userinfo.profile',
    'https://www.googleapis.com/auth/calendar.readonly'
  ]
  const { browser } = await appWith(t, provider(google, { scopes }))
  t.equal((await signIn(browser, google, 'google')).headers.location, '/')
  t.strictSame((await browser.get('/me')).json().principal.claims, CLAIMS)
})

t.test('new keys are picked up, and not asked for more than once a minute', async t => {
  const google = await start(t)
  const { app, browser } = await appWith(t, provider(google))
  await signIn(browser, google, 'google')
  const downloads = () => google.backChannelRequests().filter(request => request === KEYS_REQUEST).length
  google.keys = ['google-2', 'google-3']
  google.signWith = 'google-3'

  t.equal((await signIn(new Browser(app), google, 'google')).headers.location, '/', 'at once')
  t.equal(downloads(), 2)

  google.signWith = 'google-1'
  t.equal((await signIn(new Browser(app), google, 'google')).headers.location, failurePage('provider_error'), 'a key that was withdrawn signs nothing any more')
  t.equal(downloads(), 2, 'not within a minute')

  advanceClock(t, 61_000)
  google.keys = ['google-1']
  t.equal((await signIn(new Browser(app), google, 'google')).headers.location, '/')
  t.equal(downloads(), 3)
})

t.test('the second published key is as good as the first', async t => {
  const google = await start(t)
  google.signWith = 'google-2'
  const { browser } = await appWith(t, provider(google))
  t.equal((await signIn(browser, google, 'google')).headers.location, '/')
})

t.test('an address that Google does not vouch for leads to no account', async t => {
  for (const value of [false, 'false', 1, undefined]) {
    t.test(`an address with email_verified ${JSON.stringify(value)} finds no user and belongs to none`, async t => {
      const google = await start(t)
      const { app, browser } = await appWith(t, provider(google))
      google.profile.email_verified = value

      t.equal((await signIn(browser, google, 'google')).headers.location, '/')

      t.not((await browser.get('/me')).json().principal.claims.email_verified, true)
      t.equal(await app.auth.findUser({ email: 'grace@example.com' }), null)
    })

    t.test(`an address with email_verified ${JSON.stringify(value)} does not open the account that has it`, async t => {
      const google = await start(t)
      const { app, browser } = await appWith(t, provider(google))
      await signIn(browser, google, 'google')
      const { userId } = (await browser.get('/me')).json().principal
      Object.assign(google.profile, { sub: '100000000000000000001', email_verified: value })

      const stranger = new Browser(app)
      t.equal((await signIn(stranger, google, 'google')).headers.location, failurePage('account_exists'))

      t.equal((await stranger.get('/me')).json().principal, null)
      t.strictSame((await app.auth.links(userId)).map(({ subject }) => subject), [CLAIMS.sub])
    })
  }

  t.test('an address is not vouched for by what userinfo says', async t => {
    const google = await start(t)
    const { app, browser } = await appWith(t, provider(google))
    google.idTokensAreBrief = true
    google.idTokenClaims = { email: 'victim@example.org', email_verified: undefined }
    t.equal((await signIn(browser, google, 'google')).headers.location, '/')
    t.equal(await app.auth.findUser({ email: 'victim@example.org' }), null)
  })
})

t.test('an expired code is nothing that the operator has to look at', async t => {
  const google = await start(t)
  google.codesExpire = true
  const { browser, lines } = await appWith(t, provider(google))

  t.equal((await signIn(browser, google, 'google')).headers.location, failurePage('provider_error'))

  t.notMatch(lines.join(''), /clientSecret|"level":50/)
  t.match(lines.join(''), /invalid_grant/)
})

t.test('a callback URL that Google finds different at the token request is named in the log', async t => {
  const google = await start(t)
  const subject = provider(google)
  const parameters = await responseOf(google, subject)
  const attempt = subject.authenticate({ ...CHECKS, parameters, redirectUri: `${CHECKS.redirectUri}/` })
  await t.rejects(attempt, { code: 'provider_error', cause: { message: /callback URL.*redirect_uri_mismatch/ } })
})
