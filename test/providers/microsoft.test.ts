import t, { type Test } from 'tap'
import { type AuthPluginOptions, GoogleProvider, MicrosoftProvider, type MicrosoftProviderOptions, type ProviderOptions } from '../../lib/index.js'
import { GoogleStandIn } from '../fakes/google.js'
import { CONTOSO, FABRIKAM, MicrosoftStandIn, PERSONAL, PERSONAL_KEY } from '../fakes/microsoft.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { isThorough, some } from '../helpers/thorough.js'
import { appWith, checksFor, errorsIn, failurePage, providerContract, signIn, storeWith } from './contract.js'

type Options = Partial<Omit<MicrosoftProviderOptions, 'clientKey'> & ProviderOptions>

const HOST = 'login.microsoftonline.com'
const OID = '1d5b7e90-6c2a-4f18-8e3b-a94c07d652f1'
const CLAIMS = { sub: 'Kd93hG-stand-in-pairwise_subject-2u1Ls8QvYb', tid: CONTOSO, oid: OID, email: 'edith@contoso.example' }
const CHECKS = checksFor('microsoft')

async function start (t: Test, options: ConstructorParameters<typeof MicrosoftStandIn>[0] = {}): Promise<MicrosoftStandIn> {
  return new MicrosoftStandIn(options).start(t)
}

function provider ({ clientId, clientSecret, fetch }: MicrosoftStandIn, options: Options = {}): MicrosoftProvider {
  return new MicrosoftProvider({ clientId, clientSecret, fetch, ...options })
}

/** Someone else, of another tenant. */
function person (tid: string, number: number): Record<string, unknown> {
  return {
    sub: `pairwise-subject-${number}`,
    tid,
    oid: `00000000-0000-4000-8000-00000000000${number}`,
    name: `AdmittedUser ${number}`,
    preferred_username: `person-${number}@${tid}.example`,
    email: `person-${number}@${tid}.example`
  }
}

providerContract(t, {
  start,
  provider,
  claims: CLAIMS,
  changeProfile: ({ profile }) => { Object.assign(profile, { name: 'Edith Clarke', email: 'edith.clarke@contoso.example' }) },
  changedClaims: { ...CLAIMS, email: 'edith.clarke@contoso.example' },
  hideEmail: ({ profile }) => { delete profile.email },
  endpoints: [`GET ${HOST}/common/v2.0/.well-known/openid-configuration`, `POST ${HOST}/common/oauth2/v2.0/token`, `GET ${HOST}/common/discovery/v2.0/keys`]
})

t.test('the tenant is checked at construction and at each sign-in', async t => {
  for (const [tenant, segment] of Object.entries({ common: 'common', organizations: 'organizations', [CONTOSO]: CONTOSO, [CONTOSO.toUpperCase()]: CONTOSO })) {
    t.test(`the tenant may be ${tenant}`, async t => {
      const entra = await start(t)
      const { browser } = await appWith(t, provider(entra, { tenant }))

      t.equal((await signIn(browser, entra, 'microsoft')).headers.location, '/')

      t.strictSame((await browser.get('/me')).json().principal.claims, CLAIMS)
      const paths = entra.requests.map(({ path }) => path.toLowerCase())
      t.ok(paths.every(path => path.startsWith(`/${segment}/`)), paths.join(' '))
    })
  }

  for (const tenant of [
    'consumers', 'contoso.onmicrosoft.com', '', ' ', '../x', 'common/', 'common?x', `${CONTOSO}x`, `x${CONTOSO}`,
    `${CONTOSO}\n`, `{${CONTOSO}}`, CONTOSO.replaceAll('-', ''), '{tenantid}', 7, null, ['common']
  ]) {
    t.test(`the tenant must not be ${JSON.stringify(tenant)}`, async t => {
      const entra = await start(t)
      t.throws(() => provider(entra, { tenant: tenant as string }), { code: 'invalid_options', message: /microsoft.*tenant/ })
    })
  }

  t.test('a provider without the scope that brings the oid is refused', async t => {
    const entra = await start(t)
    t.throws(() => provider(entra, { scopes: ['openid', 'email'] }), { code: 'invalid_options', message: /microsoft: scopes must contain "profile"/ })
    t.ok(provider(entra, { scopes: ['openid', 'profile', 'offline_access'] }))
  })

  t.test('the tenant is common unless given, and admits personal accounts', async t => {
    const entra = await start(t)
    entra.profile = person(PERSONAL, 1)
    const { browser } = await appWith(t, provider(entra))
    t.equal((await signIn(browser, entra, 'microsoft')).headers.location, '/')
    t.equal((await browser.get('/me')).json().principal.claims.tid, PERSONAL)
  })

  t.test('a user of another tenant is not even admitted by Entra', async t => {
    const entra = await start(t)
    entra.profile = person(FABRIKAM, 1)
    const { browser } = await appWith(t, provider(entra, { tenant: CONTOSO }))
    await t.rejects(signIn(browser, entra, 'microsoft'), /AADSTS50020/)
  })
})

t.test('an ID token with a wrong claim is refused', async t => {
  const issuer = (tid: string) => `https://${HOST}/${tid}/v2.0`
  const cases: Record<string, [tenant: string, claims: Record<string, unknown>, signWith?: string]> = {
    'of another tenant, where one is configured': [CONTOSO, { tid: FABRIKAM, iss: issuer(FABRIKAM) }],
    'of a personal account, where a tenant is configured': [CONTOSO, { tid: PERSONAL, iss: issuer(PERSONAL) }],
    'of another tenant, with the issuer of the one that is configured': [CONTOSO, { tid: FABRIKAM }],
    'with the issuer of another tenant, where one is configured': [CONTOSO, { iss: issuer(FABRIKAM) }],
    'without tid, where a tenant is configured': [CONTOSO, { tid: undefined }],
    'with the issuer of another tenant': ['common', { iss: issuer(FABRIKAM) }],
    'with the issuer of another tenant under organizations': ['organizations', { iss: issuer(FABRIKAM) }],
    'of another tenant, with the issuer of ours': ['common', { tid: FABRIKAM }],
    'with the issuer of version 1': ['common', { iss: `https://sts.windows.net/${CONTOSO}/` }],
    'with the issuer of another cloud': ['common', { iss: `https://login.microsoftonline.us/${CONTOSO}/v2.0` }],
    'with the issuer of another host': ['common', { iss: `https://evil.example/${CONTOSO}/v2.0` }],
    'without tid': ['common', { tid: undefined }],
    'with neither tid nor a filled issuer': ['common', { tid: undefined, iss: issuer('{tenantid}') }],
    'whose tid is undefined in words': ['common', { tid: undefined, iss: issuer('undefined') }],
    'whose tid is the gap of the template': ['common', { tid: '{tenantid}', iss: issuer('{tenantid}') }],
    'whose tid is no GUID': ['common', { tid: 'contoso', iss: issuer('contoso') }],
    'whose tid is a path': ['common', { tid: '../x', iss: issuer('../x') }],
    'whose tid leads a GUID up the path': ['common', { tid: `../${CONTOSO}`, iss: issuer(`../${CONTOSO}`) }],
    'whose tid ends in a line break': ['common', { tid: `${CONTOSO}\n`, iss: issuer(`${CONTOSO}\n`) }],
    'whose tid is a pattern of replacement': ['common', { tid: '$&', iss: issuer('{tenantid}') }],
    'whose tid is empty': ['common', { tid: '', iss: issuer('') }],
    'whose tid is a list': ['common', { tid: [CONTOSO] }],
    'whose tid is a number': ['common', { tid: 7, iss: issuer('7') }],
    'of a work account, signed with the key for personal ones': ['common', {}, PERSONAL_KEY],
    'signed with a key that is not published': ['common', {}, 'entra-unknown'],
    'for another application': ['common', { aud: '11111111-2222-4333-8444-555555555555' }],
    'without oid': ['common', { oid: undefined }],
    'whose oid is empty': ['common', { oid: '' }],
    'whose oid is a number': ['common', { oid: 7 }],
    'without oid, where a tenant is configured': [CONTOSO, { oid: undefined }],
    'without sub': ['common', { sub: undefined }]
  }
  for (const [name, [tenant, claims, signWith = '']] of some(Object.entries(cases), 3)) {
    t.test(`an ID token ${name} is refused`, async t => {
      const entra = await start(t)
      const { app, browser } = await appWith(t, provider(entra, { tenant }))
      Object.assign(entra, { idTokenClaims: claims, signWith })

      t.equal((await signIn(browser, entra, 'microsoft')).headers.location, failurePage('provider_error'))

      t.equal((await browser.get('/me')).json().principal, null)
      for (const tid of [CONTOSO, FABRIKAM, PERSONAL]) t.equal(await app.auth.findUser({ provider: 'microsoft', subject: `${tid}.${OID}` }), null)
      const asked = new Set(entra.requests.map(({ host, path }) => `${host} ${path.split('/', 2)[1]}`))
      t.strictSame([...asked], [`${HOST} ${tenant}`], 'nothing out of the token became part of a request')

      Object.assign(entra, { idTokenClaims: {}, signWith: '' })
      t.equal((await signIn(browser, entra, 'microsoft')).headers.location, '/', 'an honest one is taken after that')
    })
  }

  t.test('an ID token is refused in each of several tries, whatever was accepted before', async t => {
    const entra = await start(t)
    const { app } = await appWith(t, provider(entra))
    for (const [claims, location] of [
      [{}, '/'],
      [{ iss: issuer(FABRIKAM) }, failurePage('provider_error')],
      [{ tid: FABRIKAM, iss: issuer(FABRIKAM), email: 'someone@fabrikam.example' }, '/'],
      [{ tid: FABRIKAM }, failurePage('provider_error')],
      [{ iss: issuer(FABRIKAM) }, failurePage('provider_error')],
      [{}, '/']
    ] as const) {
      entra.idTokenClaims = claims
      t.equal((await signIn(new Browser(app), entra, 'microsoft')).headers.location, location)
    }
  })
})

t.test('claims are sub, tid, oid and email, and nothing else that a directory says', async t => {
  const entra = await start(t)
  entra.idTokenClaims = {
    email_verified: true,
    xms_edov: true,
    verified_primary_email: ['edith@contoso.example'],
    upn: 'edith@contoso.example',
    picture: 'https://example.org/edith.png',
    groups: ['admins'],
    roles: ['admin'],
    role: 'admin',
    hd: 'contoso.example'
  }
  const { app, browser } = await appWith(t, provider(entra))
  await signIn(browser, entra, 'microsoft')
  const { userId, claims } = (await browser.get('/me')).json().principal
  t.strictSame(claims, CLAIMS)
  t.match(await app.auth.links(userId), [{ provider: 'microsoft', subject: `${CONTOSO}.${OID}`, claims: CLAIMS }])
})

t.test('a sign-in name that looks like an address does not count as one', async t => {
  const entra = await start(t)
  delete entra.profile.email
  entra.idTokenClaims = { upn: 'edith@contoso.example', unique_name: 'edith@contoso.example' }
  const { browser } = await appWith(t, provider(entra))
  await signIn(browser, entra, 'microsoft')
  const { email: _, ...claims } = CLAIMS
  t.strictSame((await browser.get('/me')).json().principal.claims, claims)
})

t.test('attack 14: an address that a hostile tenant wrote down opens no account', async t => {
  const VICTIM = 'grace@example.com'
  const lies = [
    { email_verified: true },
    { email_verified: 'true' },
    { xms_edov: true },
    { xms_edov: '1' },
    { xms_edov: 1 },
    { email_verified: true, xms_edov: true, verified_primary_email: [VICTIM] }
  ]

  /** An application with Google and Microsoft, and the hostile tenant's person with the address of the victim. */
  async function startBoth (t: Test, claims: Record<string, unknown> = {}) {
    const [google, entra] = [await new GoogleStandIn().start(t), await start(t)]
    entra.profile = { ...person(FABRIKAM, 6), email: VICTIM, preferred_username: VICTIM }
    entra.idTokenClaims = claims
    const { clientId, clientSecret, fetch } = google
    const microsoft = provider(entra)
    const { app } = await appWith(t, microsoft, { providers: [new GoogleProvider({ clientId, clientSecret, fetch }), microsoft] })
    return { google, entra, app }
  }

  for (const claims of lies) {
    t.test(`an address with ${JSON.stringify(claims)} does not open the account of its owner`, async t => {
      const { google, entra, app } = await startBoth(t, claims)
      const victim = new Browser(app)
      await signIn(victim, google, 'google')
      const { principal } = (await victim.get('/me')).json()
      const before = [await app.auth.findUser({ email: VICTIM }), await app.auth.links(principal.userId)]
      t.match(before, [{ userId: principal.userId, emailVerified: true }, [{ provider: 'google' }]])

      const attacker = new Browser(app)
      for (let attempt = 0; attempt < 2; attempt++) {
        t.equal((await signIn(attacker, entra, 'microsoft')).headers.location, failurePage('account_exists'))
        t.equal((await attacker.get('/me')).json().principal, null)
      }

      t.strictSame([await app.auth.findUser({ email: VICTIM }), await app.auth.links(principal.userId)], before)
      t.strictSame((await victim.get('/me')).json().principal, principal)
    })

    t.test(`an address with ${JSON.stringify(claims)} is not kept from its owner who comes later`, async t => {
      const { google, entra, app } = await startBoth(t, claims)
      const attacker = new Browser(app)
      t.equal((await signIn(attacker, entra, 'microsoft')).headers.location, '/')
      t.equal(await app.auth.findUser({ email: VICTIM }), null)

      const victim = new Browser(app)
      t.equal((await signIn(victim, google, 'google')).headers.location, '/')

      const [mine, theirs] = await Promise.all([victim, attacker].map(async browser => (await browser.get('/me')).json().principal.userId))
      t.not(mine, theirs)
      t.equal((await app.auth.findUser({ email: VICTIM }))?.userId, mine)
      t.strictSame((await app.auth.links(mine)).map(({ provider }) => provider), ['google'])
    })
  }
})

t.test('attack 14: a rule of the application may vouch for its own tenant, and for that one only', async t => {
  const RULES: Record<string, [rule: AuthPluginOptions['linking'], contoso: string, fabrikam: string]> = {
    'verified-email': ['verified-email', failurePage('account_exists'), failurePage('account_exists')],
    never: ['never', failurePage('account_exists'), failurePage('account_exists')],
    'its own tenant': [
      (existing, { provider, claims }) => existing.emailVerified && provider === 'microsoft' && claims.tid === CONTOSO,
      '/',
      failurePage('account_exists')
    ]
  }
  for (const [name, [linking, contoso, fabrikam]] of Object.entries(RULES)) {
    t.test(`with the rule ${name}, Contoso may sign in or not, and Fabrikam never`, async t => {
      for (const [tid, landing] of [[CONTOSO, contoso], [FABRIKAM, fabrikam]] as const) {
        const entra = await start(t)
        entra.profile = { ...person(tid, 6), email: 'grace@example.com' }
        const { store, userId } = await storeWith('grace@example.com')
        const { browser } = await appWith(t, provider(entra), { store, ...(linking && { linking }) })

        t.equal((await signIn(browser, entra, 'microsoft')).headers.location, landing)

        t.equal((await browser.get('/me')).json().principal?.userId, landing === '/' ? userId : undefined)
      }
    })
  }
})

t.test('attack 15: the same sub, or the same oid, in two tenants is two users', async t => {
  for (const shared of ['sub', 'oid', 'sub and oid']) {
    t.test(`${shared} in two tenants is two users`, async t => {
      const entra = await start(t)
      const { app } = await appWith(t, provider(entra))
      const userIds = new Set<string>()
      for (const [index, tid] of [CONTOSO, FABRIKAM, PERSONAL].entries()) {
        const other = person(tid, index + 1)
        entra.profile = { ...other, ...(shared.includes('sub') && { sub: CLAIMS.sub }), ...(shared.includes('oid') && { oid: OID }) }
        const browser = new Browser(app)
        t.equal((await signIn(browser, entra, 'microsoft')).headers.location, '/')
        const { userId, claims } = (await browser.get('/me')).json().principal
        t.equal(claims.tid, tid)
        userIds.add(userId)
      }
      t.equal(userIds.size, 3)
    })
  }
})

t.test('a person stays the same user when a new client id changes every sub', async t => {
  const entra = await start(t)
  const { app, browser } = await appWith(t, provider(entra))
  await signIn(browser, entra, 'microsoft')
  const { userId } = (await browser.get('/me')).json().principal
  entra.profile.sub = 'pairwise-subject-for-the-new-client'

  await signIn(browser, entra, 'microsoft')

  t.match((await browser.get('/me')).json().principal, { userId, claims: { sub: 'pairwise-subject-for-the-new-client', oid: OID } })
  t.equal((await app.auth.links(userId)).length, 1)
})

t.test('many sign-ins of several tenants download discovery and keys once', async t => {
  const entra = await start(t)
  const { app } = await appWith(t, provider(entra))
  for (let round = 0; round < 3; round++) {
    for (const [index, tid] of [CONTOSO, FABRIKAM, PERSONAL].entries()) {
      entra.profile = person(tid, index + 1)
      entra.signWith = tid === PERSONAL ? '' : `entra-${1 + round % 2}`
      t.equal((await signIn(new Browser(app), entra, 'microsoft')).headers.location, '/')
    }
  }
  const token = `POST ${HOST}/common/oauth2/v2.0/token`
  t.strictSame(
    entra.backChannelRequests().filter(request => request !== token),
    [`GET ${HOST}/common/v2.0/.well-known/openid-configuration`, `GET ${HOST}/common/discovery/v2.0/keys`]
  )
  t.equal(entra.backChannelRequests().length, 2 + 9)
})

/** Entra has new keys since the last sign-in, and enough time has passed to ask for them. */
async function startWithNewKeys (t: Test) {
  const entra = await start(t)
  const { app, browser } = await appWith(t, provider(entra))
  await signIn(browser, entra, 'microsoft')
  entra.keys = ['entra-3', PERSONAL_KEY]
  entra.signWith = 'entra-3'
  advanceClock(t, 61_000)
  return { entra, app }
}

t.test('new keys are picked up by every tenant, with one download', async t => {
  const { entra, app } = await startWithNewKeys(t)

  for (const [index, tid] of [CONTOSO, FABRIKAM, CONTOSO].entries()) {
    entra.profile = person(tid, index + 1)
    t.equal((await signIn(new Browser(app), entra, 'microsoft')).headers.location, '/')
  }

  t.equal(entra.backChannelRequests().filter(request => request.endsWith('/keys')).length, 2)
})

t.test('many people who sign in while the keys change all come in, with one more download', async t => {
  const { entra, app } = await startWithNewKeys(t)

  const landings = await Promise.all(Array.from({ length: isThorough ? 60 : 10 }, async () => signIn(new Browser(app), entra, 'microsoft')))

  t.ok(landings.every(({ headers }) => headers.location === '/'))
  t.equal(entra.backChannelRequests().filter(request => request.endsWith('/keys')).length, 2)
})

t.test('a sign-in whose keys another one replaces while its signature is verified is not lost', async t => {
  const [verifying, verified, asking, answered] = Array.from({ length: 4 }, () => Promise.withResolvers<void>())
  const entra = await start(t)
  const fetch: typeof globalThis.fetch = async (url, init) => {
    if (!String(url).endsWith('/keys')) return entra.fetch(url, init)
    if (entra.backChannelRequests().some(request => request.endsWith('/keys'))) {
      asking?.resolve()
      await answered?.promise
    }
    return entra.fetch(url, init)
  }
  const { app, browser } = await appWith(t, provider(entra, { fetch }))
  await signIn(browser, entra, 'microsoft')
  const verify = crypto.subtle.verify.bind(crypto.subtle)
  t.intercept(crypto.subtle, 'verify', {
    value: async (...given: Parameters<typeof verify>) => {
      verifying?.resolve()
      await verified?.promise
      return verify(...given)
    }
  })

  const first = signIn(new Browser(app), entra, 'microsoft')
  await verifying?.promise
  advanceClock(t, 301_000)
  const second = signIn(new Browser(app), entra, 'microsoft')
  await asking?.promise
  verified?.resolve()
  t.equal((await first).headers.location, '/')
  answered?.resolve()
  t.equal((await second).headers.location, '/')
})

t.test('a key may sign for its own issuer only, also when it was fetched for another tenant', async t => {
  const entra = await start(t)
  const { app } = await appWith(t, provider(entra))
  entra.profile = person(PERSONAL, 1)
  t.equal((await signIn(new Browser(app), entra, 'microsoft')).headers.location, '/')
  entra.profile = person(CONTOSO, 2)
  entra.signWith = PERSONAL_KEY
  t.equal((await signIn(new Browser(app), entra, 'microsoft')).headers.location, failurePage('provider_error'))
})

t.test('attack 160: the tenant organizations refuses a personal account, whichever key signs for it', async t => {
  const entra = await start(t)
  const { app, browser, lines } = await appWith(t, provider(entra, { tenant: 'organizations' }))
  const iss = (tid: string) => `https://${HOST}/${tid}/v2.0`
  const attempts = [[PERSONAL, 'not_allowed'], [PERSONAL.toUpperCase(), 'provider_error']] as const
  for (const [tid, code] of attempts) {
    Object.assign(entra, { idTokenClaims: { tid, iss: iss(tid) }, signWith: 'entra-1' })
    t.equal((await signIn(browser, entra, 'microsoft')).headers.location, failurePage(code), tid)
    t.equal(await app.auth.findUser({ provider: 'microsoft', subject: `${tid}.${OID}` }), null)
  }
  t.equal((await browser.get('/me')).json().principal, null)
  t.match(lines.join(''), /"reason":"the ID token belongs to a personal account"/)
  Object.assign(entra, { idTokenClaims: {}, signWith: '' })
  t.equal((await signIn(browser, entra, 'microsoft')).headers.location, '/', 'a work account signs in')
})

t.test('PKCE is used although Entra does not announce it', async t => {
  const entra = await start(t)
  const { searchParams } = await provider(entra).authorizationUrl(CHECKS)
  t.equal(searchParams.get('code_challenge_method'), 'S256')
  t.match(searchParams.get('code_challenge'), /^[\w-]{43}$/)
  t.equal(searchParams.get('scope')?.split(' ').sort().join(' '), 'email openid profile')
  t.equal(searchParams.get('response_mode') ?? 'query', 'query', 'a form_post would come without the session cookie')
})

t.test('userinfo is never asked, whatever the ID token lacks', async t => {
  const entra = await start(t)
  for (const claim of ['name', 'email', 'preferred_username']) delete entra.profile[claim]
  const { browser } = await appWith(t, provider(entra))
  t.equal((await signIn(browser, entra, 'microsoft')).headers.location, '/')
  t.notOk(entra.requests.some(({ host }) => host === 'graph.microsoft.com'))
})

t.test('a person with a personal account who says no is not signed in', async t => {
  const entra = await start(t)
  entra.profile = person(PERSONAL, 1)
  entra.consents = false
  const { browser } = await appWith(t, provider(entra))
  t.equal((await signIn(browser, entra, 'microsoft')).headers.location, failurePage('access_denied'))
})

t.test('a secret that has expired is provider_error, and the log says what to look at', async t => {
  const entra = await start(t)
  entra.secretHasExpired = true
  const { browser, lines } = await appWith(t, provider(entra))

  t.equal((await signIn(browser, entra, 'microsoft')).headers.location, failurePage('provider_error'))

  t.match(JSON.parse(errorsIn(lines)[0] ?? '{}').err?.message, /clientSecret/)
})

t.test('a national cloud has its own host and issuer', async t => {
  const US = { host: 'login.microsoftonline.us', graphHost: 'graph.microsoft.us' }
  const baseUrl = `https://${US.host}`

  for (const tenant of ['common', 'organizations', CONTOSO]) {
    t.test(`the national cloud has its own host and issuer, with the tenant ${tenant}`, async t => {
      const entra = await start(t, US)
      const { browser } = await appWith(t, provider(entra, { baseUrl, tenant }))
      t.equal((await signIn(browser, entra, 'microsoft')).headers.location, '/')
      t.strictSame((await browser.get('/me')).json().principal.claims, CLAIMS)
      t.ok(entra.requests.every(({ host }) => host === US.host))
    })

    t.test(`the national cloud takes no token of the global one, with the tenant ${tenant}`, async t => {
      const entra = await start(t, US)
      entra.idTokenClaims = { iss: `https://${HOST}/${CONTOSO}/v2.0` }
      const { browser } = await appWith(t, provider(entra, { baseUrl, tenant }))
      t.equal((await signIn(browser, entra, 'microsoft')).headers.location, failurePage('provider_error'))
    })
  }

  t.test('a national cloud whose documents name another host is refused', async t => {
    const entra = await start(t, US)
    const path = `GET ${US.host}/common/v2.0/.well-known/openid-configuration`
    entra.lies.set(path, answer => ({ ...answer, body: answer.body.replace(`"issuer":"https://${US.host}/`, `"issuer":"https://${HOST}/`) }))
    const { browser } = await appWith(t, provider(entra, { baseUrl }))
    t.equal((await signIn(browser, entra, 'microsoft')).headers.location, failurePage('provider_error'))
  })

  t.test('the URL of a national cloud may be written with a slash', async t => {
    const entra = await start(t, US)
    const { browser } = await appWith(t, provider(entra, { baseUrl: `${baseUrl}/` }))
    t.equal((await signIn(browser, entra, 'microsoft')).headers.location, '/')
  })

  t.test('the URL of a national cloud must be https', async t => {
    const entra = await start(t, US)
    for (const wrong of ['', 'login.microsoftonline.us', `http://${US.host}`, `https://eve:pw@${US.host}`, `${baseUrl}?a=b`, `${baseUrl}#a`, 7, null]) {
      t.throws(() => provider(entra, { baseUrl: wrong as string }), { code: 'invalid_options', message: /microsoft.*baseUrl/ }, JSON.stringify(wrong))
    }
  })
})

t.test('the discovery document of common has the templated issuer and no other', async t => {
  for (const issuer of [
    `https://${HOST}/${CONTOSO}/v2.0`,
    `https://${HOST}/common/v2.0`,
    'https://evil.example/{tenantid}/v2.0',
    `https://${HOST}/{tenantid}/v1.0`
  ]) {
    const entra = await start(t)
    entra.lies.set(
      `GET ${HOST}/common/v2.0/.well-known/openid-configuration`,
      answer => ({ ...answer, body: JSON.stringify({ ...JSON.parse(answer.body), issuer }) })
    )
    const { browser } = await appWith(t, provider(entra))
    t.equal((await signIn(browser, entra, 'microsoft')).headers.location, failurePage('provider_error'), issuer)
  }
})

t.test('the discovery document of a tenant has the issuer of that tenant and no other', async t => {
  for (const tid of [FABRIKAM, '{tenantid}', 'common']) {
    const entra = await start(t)
    entra.lies.set(
      `GET ${HOST}/${CONTOSO}/v2.0/.well-known/openid-configuration`,
      answer => ({ ...answer, body: JSON.stringify({ ...JSON.parse(answer.body), issuer: entra.issuer(tid) }) })
    )
    const { browser } = await appWith(t, provider(entra, { tenant: CONTOSO }))
    t.equal((await signIn(browser, entra, 'microsoft')).headers.location, failurePage('provider_error'), tid)
  }
})
