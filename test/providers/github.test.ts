import t, { type Test } from 'tap'
import { Accounts, GitHubProvider, type ProviderOptions } from '../../lib/index.js'
import { BAD_CREDENTIALS, type GitHubEmail, GitHubStandIn, type GitHubTokenError, RATE_LIMITS, apiError, tokenError } from '../fakes/github.js'
import { html, json } from '../fakes/lies.js'
import { Browser } from '../helpers/browser.js'
import { BASE_URL, appWith, checksFor, errorsIn, failurePage, providerContract, responseOf, signIn, storeWith } from './contract.js'

const TOKEN = 'POST github.com/login/oauth/access_token'
const USER = 'GET api.github.com/user'
const EMAILS = 'GET api.github.com/user/emails'
const CHECKS = checksFor('github')

const start = async (t: Test, host?: string) => new GitHubStandIn(host).start(t)

function providerOf ({ clientId, clientSecret, fetch }: GitHubStandIn, options: Partial<ProviderOptions> & { baseUrl?: string } = {}): GitHubProvider {
  return new GitHubProvider({ clientId, clientSecret, fetch, ...options })
}

async function authenticate (
  standIn: GitHubStandIn,
  {
    provider = providerOf(standIn),
    changes = {}
  }: { provider?: GitHubProvider, changes?: Record<string, string | null> } = {}
) {
  return provider.authenticate({ ...CHECKS, parameters: await responseOf(standIn, provider, changes) })
}

providerContract(t, {
  start,
  provider: providerOf,
  claims: { sub: '583231', login: 'ada-example', name: 'Ada Example', email: 'ada@example.com', picture: 'https://avatars.example/u/583231?v=4' },
  changeProfile: standIn => {
    Object.assign(standIn.user, { login: 'ada-renamed', name: 'Ada Lovelace', avatar_url: 'https://avatars.example/u/583231?v=5' })
    standIn.emails = [{ email: 'ada@new.example', primary: true, verified: true, visibility: 'public' }]
  },
  changedClaims: { sub: '583231', login: 'ada-renamed', name: 'Ada Lovelace', email: 'ada@new.example', picture: 'https://avatars.example/u/583231?v=5' },
  hideEmail: standIn => { standIn.emails = [] },
  endpoints: [TOKEN, USER, EMAILS]
})

t.test('requests are what GitHub documents', async t => {
  t.test('the authorization request has scopes with a space between them, a challenge, and no nonce', async t => {
    const url = await providerOf(await start(t)).authorizationUrl(CHECKS)
    t.equal(url.origin + url.pathname, 'https://github.com/login/oauth/authorize')
    t.strictSame(Object.fromEntries(url.searchParams), {
      client_id: 'Ov23liExample0000001',
      redirect_uri: CHECKS.redirectUri,
      response_type: 'code',
      scope: 'read:user user:email',
      state: CHECKS.state,
      // base64url(SHA-256(codeVerifier))
      code_challenge: '7w_YNF9DSfIdPf_pRjSq646_kPr-2-o9NAl16JGghdM',
      code_challenge_method: 'S256'
    })
  })

  t.test('extra parameters and other scopes are sent', async t => {
    const provider = providerOf(await start(t), { scopes: ['user', 'read:org'], authorizationParams: { allow_signup: 'false', prompt: 'select_account' } })
    const { searchParams } = await provider.authorizationUrl(CHECKS)
    t.match(Object.fromEntries(searchParams), { scope: 'user read:org', allow_signup: 'false', prompt: 'select_account' })
  })

  t.test('each has the headers that it needs, and the secret and the token stand in no URL', async t => {
    const standIn = await start(t)
    const { tokens } = await authenticate(standIn)

    const [token, user, emails] = standIn.requests.filter(({ headers }) => headers.accept !== 'text/html')
    t.match(token?.headers, { accept: 'application/json', 'content-type': /^application\/x-www-form-urlencoded/ })
    t.match(Object.fromEntries(token?.form ?? []), {
      client_id: standIn.clientId,
      client_secret: standIn.clientSecret,
      redirect_uri: CHECKS.redirectUri,
      code_verifier: CHECKS.codeVerifier
    })
    for (const request of [user, emails]) {
      t.match(request?.headers, { accept: 'application/vnd.github+json', authorization: `Bearer ${tokens.accessToken}`, 'user-agent': 'fastify-svc-auth' })
      t.notOk(request?.headers['x-github-api-version'], 'no version, which would be retired one day')
    }
    t.equal(emails?.query.get('per_page'), '100')
    const urls = standIn.requests.map(({ path, query }) => `${path}?${query}`).join('\n')
    t.notOk(urls.includes(standIn.clientSecret))
    t.notOk(urls.includes(tokens.accessToken))
  })

  t.test('a server that does not know PKCE does not stop the sign-in', async t => {
    const standIn = await start(t)
    standIn.knowsPkce = false
    t.equal((await authenticate(standIn)).identity.subject, '583231')
  })

  t.test('the tokens are handed on, those of a GitHub App with all that they have', async t => {
    const standIn = await start(t)
    t.match((await authenticate(standIn)).tokens, { accessToken: /^gho_/ })
    standIn.isGitHubApp = true
    t.match((await authenticate(standIn)).tokens, { accessToken: /^ghu_/, refreshToken: /^ghr_/, expiresIn: 28800 })
  })
})

t.test('the subject is the numeric id', async t => {
  for (const id of [1, 2 ** 31 + 7, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER]) {
    t.test(`${id}`, async t => {
      const standIn = await start(t)
      standIn.user.id = id
      const { identity } = await authenticate(standIn)
      t.equal(identity.subject, String(id))
      t.equal(identity.claims.sub, String(id))
    })
  }

  for (const id of ['583231', '', 0, -1, 1.5, 1e21, 2 ** 53, null, true, [583231], {}, undefined]) {
    t.test(`an id that is ${JSON.stringify(id) ?? 'absent'} is provider_error`, async t => {
      const standIn = await start(t)
      standIn.user.id = id
      await t.rejects(authenticate(standIn), { code: 'provider_error' })
    })
  }

  t.test('a person who takes over a login is another user', async t => {
    const standIn = await start(t)
    const { app, browser } = await appWith(t, providerOf(standIn))
    await signIn(browser, standIn, 'github')
    const before = (await browser.get('/me')).json().principal
    standIn.user.id = 583232
    standIn.emails = []

    const other = new Browser(app)
    await signIn(other, standIn, 'github')

    const after = (await other.get('/me')).json().principal
    t.equal(after.claims.login, before.claims.login)
    t.not(after.userId, before.userId)
  })
})

t.test('what GitHub does not tell is left out', async t => {
  const standIn = await start(t)
  for (const nothing of [null, '', 7, undefined]) {
    Object.assign(standIn.user, { name: nothing, avatar_url: nothing, login: nothing })
    const { identity } = await authenticate(standIn)
    t.strictSame(identity.claims, { sub: '583231', email: 'ada@example.com' }, JSON.stringify(nothing))
  }
})

t.test('the e-mail address is the primary one if it is verified', async t => {
  const entry = (email: string, flags: Partial<GitHubEmail>): GitHubEmail => ({ email, primary: false, verified: false, visibility: null, ...flags })
  const verified = entry('other@example.org', { verified: true })

  t.test('the primary address is found wherever it stands among a hundred', async t => {
    const standIn = await start(t)
    const others = Array.from({ length: 99 }, (_, i) => entry(`other-${i}@example.org`, { verified: true }))
    standIn.emails = [...others, entry('ada@example.com', { primary: true, verified: true })]
    const { identity } = await authenticate(standIn)
    t.strictSame([identity.claims.email, identity.emailVerified], ['ada@example.com', true])
  })

  t.test('the primary address may be a noreply address', async t => {
    const standIn = await start(t)
    standIn.emails = [verified, entry('583231+ada-example@users.noreply.github.com', { primary: true, verified: true })]
    t.equal((await authenticate(standIn)).identity.claims.email, '583231+ada-example@users.noreply.github.com')
  })

  t.test('the primary address is used whatever the public profile shows', async t => {
    const standIn = await start(t)
    standIn.user.email = 'public@example.org'
    const { identity } = await authenticate(standIn)
    t.strictSame([identity.claims.email, identity.emailVerified], ['ada@example.com', true])
  })

  t.test('the verification of the address is known to the linking code and does not become a claim', async t => {
    const { identity } = await authenticate(await start(t))
    t.equal(identity.emailVerified, true)
    t.notOk('email_verified' in identity.claims)
  })

  const cases: Record<string, (standIn: GitHubStandIn) => void> = {
    'the primary one is unverified': standIn => { standIn.emails = [verified, entry('victim@example.com', { primary: true })] },
    'there is no primary one': standIn => { standIn.emails = [verified] },
    'the list is empty': standIn => { standIn.emails = [] },
    'the public one is in the list as unverified': standIn => {
      standIn.user.email = 'victim@example.com'
      standIn.emails = [verified, entry('victim@example.com', { primary: true })]
    },
    'the public one is all there is': standIn => {
      standIn.user.email = 'victim@example.com'
      standIn.emails = []
    },
    'the person does not grant user:email': standIn => {
      standIn.user.email = 'victim@example.com'
      standIn.grants = ['read:user']
    },
    'the person grants nothing': standIn => { standIn.grants = [] },
    'a GitHub App may not read addresses': standIn => {
      standIn.user.email = 'victim@example.com'
      standIn.isGitHubApp = true
    },
    'the flags are no booleans': standIn => {
      const odd = [
        { primary: true, verified: 'false' },
        { primary: true, verified: 1 },
        { primary: 'no', verified: true },
        { primary: 1, verified: true },
        { primary: true, verified: null }
      ]
      standIn.lies.set(EMAILS, () => json(200, odd.map(flags => ({ email: 'victim@example.com', ...flags }))))
    },
    'the entries are no entries': standIn => {
      standIn.lies.set(
        EMAILS,
        () => json(
          200,
          [
            null,
            'victim@example.com',
            7,
            [],
            { primary: true, verified: true },
            { email: null, primary: true, verified: true },
            { email: '', primary: true, verified: true }
          ]
        )
      )
    }
  }
  for (const [name, prepare] of Object.entries(cases)) {
    t.test(`there is no e-mail address when ${name}: the sign-in goes on without`, async t => {
      const standIn = await start(t)
      prepare(standIn)
      const { store, userId } = await storeWith('victim@example.com')
      const { browser } = await appWith(t, providerOf(standIn), { store })

      t.equal((await signIn(browser, standIn, 'github')).headers.location, '/')

      const { principal } = (await browser.get('/me')).json()
      t.strictSame(principal.claims, { sub: '583231', login: 'ada-example', name: 'Ada Example', picture: 'https://avatars.example/u/583231?v=4' })
      t.not(principal.userId, userId)
      t.match(await store.findUser({ userId: principal.userId }), { email: null, emailVerified: false })
      t.equal((await store.links(userId)).length, 1, 'nothing is linked to the owner of the address')
    })
  }

  t.test('there is no e-mail address without the scope', async t => {
    const standIn = await start(t)
    const { identity } = await authenticate(standIn, { provider: providerOf(standIn, { scopes: ['read:user'] }) })
    t.strictSame([identity.claims.email, identity.emailVerified], [undefined, false])
  })

  t.test('the scope user is enough for the e-mail address', async t => {
    const standIn = await start(t)
    t.equal((await authenticate(standIn, { provider: providerOf(standIn, { scopes: ['user'] }) })).identity.claims.email, 'ada@example.com')
  })
})

t.test('the e-mail address leads to the account that has it', async t => {
  t.test('the e-mail address leads to the account if both sides verified it', async t => {
    const standIn = await start(t)
    const { store, userId } = await storeWith('ada@example.com')
    await new Accounts(store).grant(userId, { role: 'admin' })
    const { browser } = await appWith(t, providerOf(standIn), { store })

    t.equal((await signIn(browser, standIn, 'github')).headers.location, '/')

    const { principal } = (await browser.get('/me')).json()
    t.equal(principal.userId, userId)
    t.equal(principal.claims.role, 'admin')
    t.notOk('email_verified' in principal.claims)
  })

  t.test('the e-mail address does not lead to an account that did not verify it', async t => {
    const standIn = await start(t)
    const { store, userId } = await storeWith('ada@example.com', { emailVerified: false })
    const { browser } = await appWith(t, providerOf(standIn), { store })

    t.equal((await signIn(browser, standIn, 'github')).headers.location, failurePage('account_exists'))

    t.equal((await browser.get('/me')).json().principal, null)
    t.equal((await store.links(userId)).length, 1)
  })
})

t.test('iss in the callback is checked if it is there', async t => {
  t.test('iss need not be in the callback', async t => {
    const standIn = await start(t)
    standIn.sendsIss = false
    t.equal((await authenticate(standIn)).identity.subject, '583231')
  })

  t.test('iss is accepted when it names GitHub', async t => {
    const standIn = await start(t)
    t.equal((await authenticate(standIn, { changes: { iss: 'https://github.com/login/oauth' } })).identity.subject, '583231')
  })

  for (const iss of [
    '', 'https://evil.example', 'https://github.com', 'https://github.com/login/oauth/',
    'https://GITHUB.com/login/oauth', 'http://github.com/login/oauth', 'https://github.contoso.example/login/oauth'
  ]) {
    t.test(`iss "${iss}" is refused, and no token is asked for`, async t => {
      const standIn = await start(t)
      await t.rejects(authenticate(standIn, { changes: { iss } }), { code: 'provider_error' })
      t.strictSame(standIn.backChannelRequests(), [])
    })
  }

  t.test('iss is refused when it comes twice', async t => {
    const standIn = await start(t)
    const provider = providerOf(standIn)
    const parameters = await responseOf(standIn, provider)
    parameters.append('iss', 'https://github.com/login/oauth')
    await t.rejects(provider.authenticate({ ...CHECKS, parameters }), { code: 'provider_error' })
    t.strictSame(standIn.backChannelRequests(), [])
  })

  t.test('a foreign iss ends the sign-in in the application too', async t => {
    const standIn = await start(t)
    const { browser } = await appWith(t, providerOf(standIn))
    const login = await browser.get('/auth/github/login', { referer: `${BASE_URL}/sign-in` })
    const callback = new URL(await standIn.authorize(login.headers.location ?? ''), BASE_URL)
    callback.searchParams.set('iss', 'https://evil.example')

    const landing = await browser.get(callback.pathname + callback.search)

    t.match(landing.headers.location, /^\/sign-in\?error=(provider_error|invalid_state)$/)
    t.equal((await browser.get('/me')).json().principal, null)
    t.strictSame(standIn.backChannelRequests(), [])
  })
})

t.test('errors in the callback have their code', async t => {
  for (const sendsIssOnErrors of [true, false]) {
    t.test(`a denial ${sendsIssOnErrors ? 'with' : 'without'} iss is access_denied`, async t => {
      const standIn = await start(t)
      Object.assign(standIn, { consents: false, sendsIssOnErrors })
      await t.rejects(authenticate(standIn), { code: 'access_denied' })
    })
  }

  t.test('a suspended application is provider_error, and an error in the log', async t => {
    const standIn = await start(t)
    standIn.isSuspended = true
    const { browser, lines } = await appWith(t, providerOf(standIn))
    t.equal((await signIn(browser, standIn, 'github')).headers.location, failurePage('provider_error'))
    t.match(errorsIn(lines)[0], /application_suspended/)
  })

  t.test('a callback URL that is not registered is provider_error at the one that is, and named in the log', async t => {
    const standIn = await start(t)
    const { browser, lines } = await appWith(t, providerOf(standIn), { baseUrl: 'https://wrong.example' })
    const login = await browser.get('/auth/github/login', { referer: 'https://wrong.example/sign-in' })
    const answer = await standIn.fetch(login.headers.location ?? '', { redirect: 'manual' })
    const registered = new URL(answer.headers.get('location') ?? '')
    t.equal(registered.origin, BASE_URL)

    const landing = await browser.get(registered.pathname + registered.search)

    t.equal(landing.headers.location, failurePage('provider_error'))
    t.match(errorsIn(lines)[0], /redirect_uri_mismatch/)
  })

  t.test('a callback URL that is not registered is invalid_state at an address that started nothing', async t => {
    const standIn = await start(t)
    const { browser } = await appWith(t, providerOf(standIn))
    const landing = await browser.get('/auth/github/callback?error=redirect_uri_mismatch&error_description=The+redirect_uri+MUST+match&state=unknown')
    t.match([landing.statusCode, landing.json().code], [400, 'invalid_state'])
  })
})

t.test('errors of the token endpoint come with status 200', async t => {
  const cases: Array<[error: GitHubTokenError, logged: RegExp | null]> = [
    ['incorrect_client_credentials', /clientSecret/],
    ['redirect_uri_mismatch', /baseUrl/],
    // The browser's back button is nobody's mistake.
    ['bad_verification_code', null]
  ]
  for (const [error, logged] of cases) {
    t.test(`${error} is provider_error, and in the log ${logged === null ? 'it is everyday' : 'an error that says what to look at'}`, async t => {
      const standIn = await start(t)
      standIn.lies.set(TOKEN, () => json(200, tokenError(error)))
      const { browser, lines } = await appWith(t, providerOf(standIn))

      t.equal((await signIn(browser, standIn, 'github')).headers.location, failurePage('provider_error'))

      t.equal((await browser.get('/me')).json().principal, null)
      t.ok(lines.some(line => JSON.parse(line).code === 'provider_error'), 'it is logged')
      if (logged === null) t.strictSame(errorsIn(lines), [])
      else t.match(errorsIn(lines).join(''), logged)
      t.strictSame(standIn.backChannelRequests(), [TOKEN])
    })
  }

  t.test('a code that was used is provider_error, and everyday in the log', async t => {
    const standIn = await start(t)
    const { browser, lines } = await appWith(t, providerOf(standIn))
    const first = await browser.get('/auth/github/login')
    const second = await browser.get('/auth/github/login', { referer: `${BASE_URL}/sign-in` })
    const callback = new URL(await standIn.authorize(first.headers.location ?? ''), BASE_URL)
    await browser.get(callback.pathname + callback.search)
    callback.searchParams.set('state', new URL(second.headers.location ?? '').searchParams.get('state') ?? '')

    const landing = await browser.get(callback.pathname + callback.search)

    t.equal(landing.headers.location, failurePage('provider_error'))
    t.strictSame(standIn.backChannelRequests(), [TOKEN, USER, EMAILS, TOKEN])
    t.strictSame(errorsIn(lines), [])
  })

  t.test('an expired code is everyday in the log', async t => {
    const standIn = await start(t)
    standIn.codesExpire = true
    const { browser, lines } = await appWith(t, providerOf(standIn))
    t.equal((await signIn(browser, standIn, 'github')).headers.location, failurePage('provider_error'))
    t.strictSame(errorsIn(lines), [])
  })

  t.test('an unverified primary address is provider_error, and the log says what the person can do', async t => {
    const standIn = await start(t)
    standIn.demandsVerifiedEmail = true
    standIn.emails = [{ email: 'ada@example.com', primary: true, verified: false, visibility: null }]
    const { browser, lines } = await appWith(t, providerOf(standIn))
    t.equal((await signIn(browser, standIn, 'github')).headers.location, failurePage('provider_error'))
    t.match(lines.join(''), /verif/)
  })

  t.test('an unknown client is provider_error', async t => {
    const standIn = await start(t)
    const parameters = await responseOf(standIn, providerOf(standIn))
    const stranger = providerOf(standIn, { clientId: 'Ov23liExample0000002' })
    await t.rejects(stranger.authenticate({ ...CHECKS, parameters }), { code: 'provider_error' })
  })

  t.test('an answer that is form-encoded is provider_error', async t => {
    const standIn = await start(t)
    standIn.lies.set(TOKEN, ({ body }) => {
      return { status: 200, headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: new URLSearchParams(JSON.parse(body)).toString() }
    })
    await t.rejects(authenticate(standIn), { code: 'provider_error' })
  })
})

t.test('errors of the API have their code', async t => {
  for (const endpoint of [USER, EMAILS]) {
    for (const answer of RATE_LIMITS) {
      const { status, headers } = answer
      const sign = 'retry-after' in headers ? 'Retry-After' : headers['x-ratelimit-remaining'] === '0' ? 'nothing remaining' : 'words'
      t.test(`a rate limit of ${endpoint}, ${status} with ${sign}, is provider_unavailable`, async t => {
        const standIn = await start(t)
        standIn.lies.set(endpoint, () => answer)
        await t.rejects(authenticate(standIn), { code: 'provider_unavailable' })
      })
    }

    t.test(`a token that ${endpoint} does not take is provider_error`, async t => {
      const standIn = await start(t)
      standIn.lies.set(endpoint, () => BAD_CREDENTIALS)
      await t.rejects(authenticate(standIn), { code: 'provider_error' })
    })
  }

  t.test('a user that may not be read is provider_error', async t => {
    const refusals = [
      apiError(403, 'Resource not accessible by integration'),
      apiError(404, 'Not Found'),
      { status: 403, headers: { 'content-type': 'text/plain' }, body: 'Request forbidden by administrative rules.' }
    ]
    for (const refusal of refusals) {
      const standIn = await start(t)
      standIn.lies.set(USER, () => refusal)
      await t.rejects(authenticate(standIn), { code: 'provider_error' }, refusal.body)
    }
  })

  t.test('addresses that may not be read, whatever the words, count as absent', async t => {
    for (const refusal of [
      apiError(403, 'Resource not accessible by integration'),
      apiError(403, 'This organization has an IP allow list.'),
      apiError(404, 'Not Found'),
      { status: 403, headers: {}, body: 'Forbidden' }
    ]) {
      const standIn = await start(t)
      standIn.lies.set(EMAILS, () => refusal)
      t.match(await authenticate(standIn), { identity: { emailVerified: false, claims: { login: String } } }, refusal.body)
    }
  })

  t.test('addresses that are not a list are provider_error: an e-mail must not come and go', async t => {
    for (const answer of [json(200, { email: 'ada@example.com' }), json(200, null), json(200, 'ada@example.com'), html(200, 'Unicorn!')]) {
      const standIn = await start(t)
      standIn.lies.set(EMAILS, () => answer)
      await t.rejects(authenticate(standIn), { code: 'provider_error' }, answer.body)
    }
  })

  t.test('no secret, code or token reaches the log', async t => {
    for (const endpoint of [TOKEN, USER, EMAILS]) {
      const standIn = await start(t)
      standIn.lies.set(endpoint, () => BAD_CREDENTIALS)
      const { browser, lines } = await appWith(t, providerOf(standIn))
      await signIn(browser, standIn, 'github')
      const secrets = standIn.requests.flatMap(({ form, headers }) => [
        form.get('code'),
        form.get('code_verifier'),
        form.get('client_secret'),
        headers.authorization?.replace('Bearer ', '')
      ])
      for (const secret of secrets) t.notOk(secret !== null && secret !== undefined && lines.join('').includes(secret), endpoint)
    }
  })
})

t.test('the option baseUrl names another GitHub', async t => {
  const ENDPOINTS = {
    'github.com': [TOKEN, USER, EMAILS],
    'github.contoso.example': [
      'POST github.contoso.example/login/oauth/access_token',
      'GET github.contoso.example/api/v3/user',
      'GET github.contoso.example/api/v3/user/emails'
    ],
    'github.contoso.example:8443': [
      'POST github.contoso.example:8443/login/oauth/access_token',
      'GET github.contoso.example:8443/api/v3/user',
      'GET github.contoso.example:8443/api/v3/user/emails'
    ],
    'octo-example.ghe.com': [
      'POST octo-example.ghe.com/login/oauth/access_token',
      'GET api.octo-example.ghe.com/user',
      'GET api.octo-example.ghe.com/user/emails'
    ]
  }
  for (const [host, endpoints] of Object.entries(ENDPOINTS)) {
    for (const baseUrl of [`https://${host}`, `https://${host}/`]) {
      t.test(`${baseUrl} is where a person signs in, with its own iss or without`, async t => {
        for (const sendsIss of [true, false]) {
          const standIn = await start(t, host)
          standIn.sendsIss = sendsIss
          const { browser } = await appWith(t, providerOf(standIn, { baseUrl }))
          t.equal((await signIn(browser, standIn, 'github')).headers.location, '/')
          t.equal((await browser.get('/me')).json().principal.claims.email, 'ada@example.com')
          t.strictSame(standIn.backChannelRequests(), endpoints)
        }
      })
    }
  }

  t.test('the iss of another GitHub is refused', async t => {
    for (const host of ['github.contoso.example', 'octo-example.ghe.com']) {
      const standIn = await start(t, host)
      const provider = providerOf(standIn, { baseUrl: `https://${host}` })
      await t.rejects(authenticate(standIn, { provider, changes: { iss: 'https://github.com/login/oauth' } }), { code: 'provider_error' })
      t.strictSame(standIn.backChannelRequests(), [])
    }
  })

  const wrong = [
    '', 'github.contoso.example', 'http://github.contoso.example', 'ftp://github.contoso.example',
    'https://ada@github.contoso.example', 'https://github.contoso.example/api/v3', 'https://github.contoso.example?x',
    'https://github.contoso.example#x', 'https://', 42, null
  ]
  for (const baseUrl of wrong) {
    t.test(`${JSON.stringify(baseUrl)} is refused at construction`, async t => {
      t.throws(
        () => new GitHubProvider({ clientId: 'a', clientSecret: 'the-secret', baseUrl: baseUrl as never }),
        { code: 'invalid_options', message: /^github: baseUrl/ }
      )
    })
  }
})

t.test('options are checked at construction', async t => {
  const wrong: Array<[object, RegExp]> = [
    [{ clientId: '' }, /^github: clientId/],
    [{ clientSecret: undefined }, /^github: clientSecret/],
    [{ scopes: 'user' }, /^github: scopes/],
    [{ authorizationParams: { state: 'x' } }, /^github: authorizationParams/],
    [{ timeout: 0 }, /^github: timeout/],
    [{ host: 'github.contoso.example' }, /^github has no option "host"/]
  ]
  for (const [change, message] of wrong) {
    t.throws(() => new GitHubProvider({ clientId: 'a', clientSecret: 'the-secret', ...change } as never), { code: 'invalid_options', message })
  }
})
