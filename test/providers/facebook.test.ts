import { createHmac } from 'node:crypto'
import t, { type Test } from 'tap'
import { FacebookProvider, type FacebookProviderOptions, MemoryAuthStore } from '../../lib/index.js'
import { FacebookStandIn, type GraphError, asJavaScript, graphError } from '../fakes/facebook.js'
import { type Answer, json } from '../fakes/lies.js'
import { BASE_URL, appWith, checksFor, errorsIn, failurePage, providerContract, responseOf, signIn, storeWith } from './contract.js'

const TOKEN = 'POST graph.facebook.com/v24.0/oauth/access_token'
const ME = 'GET graph.facebook.com/v24.0/me'
const CHECKS = checksFor('facebook')
const PICTURE = 'https://lookaside.example/profilepic/?asid=10220000000000001&ext=1797600000&hash=AbExample'
const CLAIMS = { sub: '10220000000000001', name: 'Ada Example', email: 'ada@example.com', picture: PICTURE }

const start = async (t: Test) => new FacebookStandIn().start(t)

function providerOf ({ clientId, clientSecret, fetch }: FacebookStandIn, options: Partial<FacebookProviderOptions> = {}): FacebookProvider {
  return new FacebookProvider({ clientId, clientSecret, fetch, ...options })
}

async function authenticate (standIn: FacebookStandIn, provider = providerOf(standIn)) {
  const parameters = await responseOf(standIn, provider)
  return provider.authenticate({ ...CHECKS, parameters })
}

providerContract(t, {
  start,
  provider: providerOf,
  claims: CLAIMS,
  changeProfile: standIn => {
    standIn.user = {
      id: '10220000000000001',
      name: 'Ada Lovelace',
      email: 'ada@new.example',
      picture: { data: { url: 'https://lookaside.example/profilepic/?hash=AbNew' } }
    }
  },
  changedClaims: { sub: '10220000000000001', name: 'Ada Lovelace', email: 'ada@new.example', picture: 'https://lookaside.example/profilepic/?hash=AbNew' },
  hideEmail: standIn => { standIn.grantsEmail = false },
  endpoints: [TOKEN, ME]
})

t.test('requests are what Facebook documents', async t => {
  t.test('the authorization request has scopes, a challenge, and no nonce', async t => {
    const url = await providerOf(await start(t)).authorizationUrl(CHECKS)
    t.equal(url.origin + url.pathname, 'https://www.facebook.com/v24.0/dialog/oauth')
    const { scope, ...others } = Object.fromEntries(url.searchParams)
    t.strictSame(scope?.split(/[ ,]/), ['email', 'public_profile'])
    t.strictSame(others, {
      client_id: '1200000000000042',
      redirect_uri: CHECKS.redirectUri,
      response_type: 'code',
      state: CHECKS.state,
      // base64url(SHA-256(codeVerifier))
      code_challenge: '7w_YNF9DSfIdPf_pRjSq646_kPr-2-o9NAl16JGghdM',
      code_challenge_method: 'S256'
    })
  })

  t.test('extra parameters and other scopes are sent', async t => {
    const standIn = await start(t)
    const provider = providerOf(standIn, { scopes: ['public_profile'], authorizationParams: { auth_type: 'rerequest' } })
    const { searchParams } = await provider.authorizationUrl(CHECKS)
    t.match(Object.fromEntries(searchParams), { scope: 'public_profile', auth_type: 'rerequest' })
    t.notOk('email' in (await authenticate(standIn, provider)).identity.claims)
  })

  t.test('a challenge that Facebook does not look at does not stop the sign-in', async t => {
    const standIn = await start(t)
    standIn.checksChallenge = false
    t.equal((await authenticate(standIn)).identity.subject, CLAIMS.sub)
  })

  t.test('secret and token stand in no URL, only the proof of both', async t => {
    const standIn = await start(t)
    const { tokens } = await authenticate(standIn)

    const [token, me] = standIn.requests.filter(({ headers }) => headers.accept !== 'text/html')
    t.match(Object.fromEntries(token?.form ?? []), {
      client_id: standIn.clientId,
      client_secret: standIn.clientSecret,
      redirect_uri: CHECKS.redirectUri,
      code_verifier: CHECKS.codeVerifier
    })
    t.strictSame(Object.fromEntries(token?.query ?? []), {})
    t.equal(me?.headers.authorization, `Bearer ${tokens.accessToken}`)
    t.strictSame(Object.fromEntries(me?.query ?? []), {
      fields: 'id,name,email,picture.width(200).height(200)',
      appsecret_proof: createHmac('sha256', standIn.clientSecret).update(tokens.accessToken).digest('hex')
    })
    const urls = standIn.requests.map(({ path, query }) => `${path}?${query}`).join('\n')
    t.notOk(urls.includes(standIn.clientSecret))
    t.notOk(urls.includes(tokens.accessToken))
  })

  t.test('the proof is there for an application that requires it', async t => {
    const standIn = await start(t)
    standIn.requiresProof = true
    t.strictSame((await authenticate(standIn)).identity.claims, CLAIMS)
  })

  t.test('the token is handed on with its lifetime, and no scope is made up', async t => {
    const { tokens } = await authenticate(await start(t))
    t.match(tokens, { accessToken: /^EAAG/, expiresIn: 5183944 })
    t.strictSame(Object.keys(tokens).sort(), ['accessToken', 'expiresIn'])
  })
})

t.test('the subject is the id as it is', async t => {
  for (const id of ['4', '10220000000000001', '98765432109876543210', '007']) {
    t.test(`the id ${id} is the subject`, async t => {
      const standIn = await start(t)
      standIn.user.id = id
      const { identity } = await authenticate(standIn)
      t.equal(identity.subject, id)
      t.equal(identity.claims.sub, id)
    })
  }

  for (const id of [583231, 1022000000000001, 0, '', null, true, ['10220000000000001'], {}, undefined]) {
    t.test(`an id that is ${JSON.stringify(id) ?? 'absent'} is provider_error`, async t => {
      const standIn = await start(t)
      standIn.user.id = id
      const { browser } = await appWith(t, providerOf(standIn))
      t.equal((await signIn(browser, standIn, 'facebook')).headers.location, failurePage('provider_error'))
      t.equal((await browser.get('/me')).json().principal, null)
    })
  }
})

t.test('the picture is the address that Facebook gives', async t => {
  const cases: Record<string, [picture: unknown, expected: string | undefined]> = {
    'is taken out of its wrapping': [{ data: { is_silhouette: false, url: 'https://lookaside.example/1' } }, 'https://lookaside.example/1'],
    'is left out when it is missing': [undefined, undefined],
    'is left out when it is null': [null, undefined],
    'is left out when it is a string': ['https://lookaside.example/1', undefined],
    'is left out when it is a list': [[{ data: { url: 'https://lookaside.example/1' } }], undefined],
    'is left out when its data is missing': [{}, undefined],
    'is left out when its data is null': [{ data: null }, undefined],
    'is left out when its data is a string': [{ data: 'https://lookaside.example/1' }, undefined],
    'is left out when its url is missing': [{ data: { is_silhouette: false } }, undefined],
    'is left out when its url is empty': [{ data: { url: '' } }, undefined],
    'is left out when its url is not a string': [{ data: { url: { href: 'https://lookaside.example/1' } } }, undefined]
  }
  for (const [name, [picture, expected]] of Object.entries(cases)) {
    t.test(`the picture ${name}`, async t => {
      const standIn = await start(t)
      standIn.user.picture = picture
      const { picture: found, ...rest } = (await authenticate(standIn)).identity.claims
      t.equal(found, expected)
      t.strictSame(rest, { sub: CLAIMS.sub, name: CLAIMS.name, email: CLAIMS.email })
    })
  }

  t.test('the picture of a user without one is the silhouette that Facebook shows', async t => {
    const standIn = await start(t)
    standIn.user.picture = { data: { is_silhouette: true, url: 'https://lookaside.example/silhouette' } }
    t.equal((await authenticate(standIn)).identity.claims.picture, 'https://lookaside.example/silhouette')
  })
})

t.test('what Facebook does not tell is left out', async t => {
  const standIn = await start(t)
  for (const nothing of [undefined, null, '', 7, ['ada@example.com']]) {
    standIn.user = { id: CLAIMS.sub, name: nothing, email: nothing, picture: nothing }
    const { identity } = await authenticate(standIn)
    t.strictSame(identity, { subject: CLAIMS.sub, claims: { sub: CLAIMS.sub }, emailVerified: false }, JSON.stringify(nothing))
  }
})

t.test('the e-mail address never counts as verified', async t => {
  t.test('the e-mail address is absent when the account has none', async t => {
    const standIn = await start(t)
    delete standIn.user.email
    const { browser } = await appWith(t, providerOf(standIn))
    t.equal((await signIn(browser, standIn, 'facebook')).headers.location, '/')
    const { email: _, ...rest } = CLAIMS
    t.strictSame((await browser.get('/me')).json().principal.claims, rest)
  })

  t.test('the e-mail address is unverified, whatever flags come with it', async t => {
    const standIn = await start(t)
    standIn.lies.set(ME, ({ body }) => json(200, { ...JSON.parse(body), verified: true, email_verified: true, is_verified: true }))
    const { identity } = await authenticate(standIn)
    t.equal(identity.emailVerified, false)
    t.strictSame(identity.claims, CLAIMS)
  })

  t.test('the e-mail address does not become that of the new user', async t => {
    const standIn = await start(t)
    const store = new MemoryAuthStore()
    const { browser } = await appWith(t, providerOf(standIn), { store })
    await signIn(browser, standIn, 'facebook')
    const { userId } = (await browser.get('/me')).json().principal
    t.match(await store.findUser({ userId }), { email: null, emailVerified: false, name: 'Ada Example' })
  })

  t.test('an e-mail address that a user has verified elsewhere leads to account_exists', async t => {
    const standIn = await start(t)
    const { store, userId } = await storeWith('ada@example.com')
    const { browser } = await appWith(t, providerOf(standIn), { store })

    t.equal((await signIn(browser, standIn, 'facebook')).headers.location, failurePage('account_exists'))

    t.equal((await browser.get('/me')).json().principal, null)
    t.equal((await store.links(userId)).length, 1)
  })
})

t.test('the option graphVersion is checked and used', async t => {
  t.test('graphVersion stands in every path', async t => {
    const standIn = await start(t)
    const { browser } = await appWith(t, providerOf(standIn, { graphVersion: 'v23.0' }))
    t.equal((await signIn(browser, standIn, 'facebook')).headers.location, '/')
    t.strictSame(standIn.requests.map(({ method, host, path }) => `${method} ${host}${path}`), [
      'GET www.facebook.com/v23.0/dialog/oauth',
      'POST graph.facebook.com/v23.0/oauth/access_token',
      'GET graph.facebook.com/v23.0/me'
    ])
  })

  for (const graphVersion of ['', '23', '23.0', 'v23', 'v23.', 'V23.0', 'v23.0/', 'v23.0/me', '../x', ' v23.0', 'v23.0\n', 'v23.0?x', 23, null]) {
    t.test(`graphVersion ${JSON.stringify(graphVersion)} is refused at construction`, async t => {
      t.throws(
        () => new FacebookProvider({ clientId: 'a', clientSecret: 'the-secret', graphVersion: graphVersion as never }),
        { code: 'invalid_options', message: /^facebook: graphVersion/ }
      )
    })
  }
})

t.test('errors in the callback have their code', async t => {
  const landingOf = async (t: Test, parameters: Record<string, string>) => {
    const standIn = await start(t)
    const { browser, lines } = await appWith(t, providerOf(standIn))
    const login = await browser.get('/auth/facebook/login', { referer: `${BASE_URL}/sign-in` })
    const state = new URL(login.headers.location ?? '').searchParams.get('state') ?? ''
    const landing = await browser.get(`/auth/facebook/callback?${new URLSearchParams({ ...parameters, state })}`)
    t.equal((await browser.get('/me')).json().principal, null)
    t.strictSame(standIn.backChannelRequests(), [], 'no token was asked for')
    return { landing, lines }
  }

  const denials = {
    'as it is today': { error: 'access_denied', error_code: '200', error_description: 'Permissions error', error_reason: 'user_denied' },
    'as it used to be': { error: 'access_denied', error_description: 'The user denied your request.' },
    'without error, as other failures come': { error_code: '200', error_message: 'Permissions error', error_reason: 'user_denied' }
  }
  for (const [form, denial] of Object.entries(denials)) {
    t.test(`a denial ${form} is access_denied, and everyday in the log`, async t => {
      const { landing, lines } = await landingOf(t, denial)
      t.equal(landing.headers.location, failurePage('access_denied'))
      t.strictSame(errorsIn(lines), [])
    })
  }

  t.test('error_code and error_message without error are provider_error, and an error in the log', async t => {
    const standIn = await start(t)
    standIn.dialogFailure = { error_code: '1349048', error_message: 'Can\'t Load URL: <b>somewhere</b>' }
    const { browser, lines } = await appWith(t, providerOf(standIn))

    const landing = await signIn(browser, standIn, 'facebook')

    t.equal(landing.headers.location, failurePage('provider_error'))
    t.notMatch(landing.body + JSON.stringify(landing.headers), /Load URL/)
    t.ok(errorsIn(lines).length > 0)
    t.strictSame(standIn.backChannelRequests(), [])
  })

  t.test('an error_code alone is provider_error, and the log has it', async t => {
    const { landing, lines } = await landingOf(t, { error_code: '1349048' })
    t.equal(landing.headers.location, failurePage('provider_error'))
    t.match(errorsIn(lines).join(''), /1349048/)
  })

  t.test('a callback without anything is provider_error', async t => {
    t.equal((await landingOf(t, {})).landing.headers.location, failurePage('provider_error'))
  })
})

t.test('errors of the Graph API have their code', async t => {
  interface Case extends GraphError {
    at: string
    code: number
    /** Whether only the operator can do something about it; null where nobody said. */
    isOperators: boolean | null
    ends: 'provider_error' | 'provider_unavailable'
  }
  const type = 'OAuthException'
  const cases: Record<string, Case> = {
    'a used code': {
      at: TOKEN,
      message: 'This authorization code has been used.',
      type,
      code: 100,
      error_subcode: 36009,
      ends: 'provider_error',
      isOperators: false
    },
    'an expired code': {
      at: TOKEN,
      message: 'This authorization code has expired.',
      type,
      code: 100,
      error_subcode: 36007,
      ends: 'provider_error',
      isOperators: false
    },
    'another redirect URI': {
      at: TOKEN,
      message: 'Error validating verification code. Please make sure your redirect_uri is identical to the one you used',
      type,
      code: 100,
      error_subcode: 36008,
      ends: 'provider_error',
      isOperators: null
    },
    'a wrong secret': { at: TOKEN, message: 'Error validating client secret.', type, code: 1, ends: 'provider_error', isOperators: true },
    'an ended session': {
      at: ME,
      message: 'Error validating access token: Session has expired on Tuesday',
      type,
      code: 190,
      error_subcode: 463,
      ends: 'provider_error',
      isOperators: null
    },
    'a missing proof': {
      at: ME,
      message: 'API calls from the server require an appsecret_proof argument',
      type: 'GraphMethodException',
      code: 100,
      ends: 'provider_error',
      isOperators: null
    }
  }
  for (const at of [TOKEN, ME]) {
    for (const code of [4, 17, 32]) {
      cases[`too many calls (${code}) at ${at}`] = {
        at,
        message: `(#${code}) Application request limit reached`,
        type,
        code,
        ends: 'provider_unavailable',
        isOperators: null
      }
    }
  }
  for (const [name, { at, ends, isOperators, ...error }] of Object.entries(cases)) {
    for (const isJavaScript of [false, true]) {
      t.test(`${name} is ${ends}${isJavaScript ? ', as text/javascript too' : ''}, and the log has its numbers but not its message`, async t => {
        const standIn = await start(t)
        const answer = graphError(error)
        standIn.lies.set(at, () => isJavaScript ? asJavaScript(answer) : answer)
        const { browser, lines } = await appWith(t, providerOf(standIn))

        t.equal((await signIn(browser, standIn, 'facebook')).headers.location, failurePage(ends))

        t.equal((await browser.get('/me')).json().principal, null)
        const log = lines.join('')
        t.notOk(log.includes(error.message))
        t.ok(log.includes(error.type))
        t.match(log, new RegExp(`\\b${error.code}\\b`))
        if (error.error_subcode !== undefined) t.match(log, new RegExp(`\\b${error.error_subcode}\\b`))
        if (isOperators !== null) t.equal(errorsIn(lines).length > 0, isOperators)
      })
    }
  }

  t.test('too many calls is provider_unavailable with any status', async t => {
    for (const status of [400, 403, 429]) {
      const standIn = await start(t)
      standIn.lies.set(
        ME,
        () => graphError(
          { message: '(#4) Application request limit reached', type, code: 4 },
          { status, headers: { 'x-app-usage': '{"call_count":100}' } }
        )
      )
      await t.rejects(authenticate(standIn), { code: 'provider_unavailable' }, String(status))
    }
  })

  t.test('a message that quotes the token reaches no log', async t => {
    const standIn = await start(t)
    standIn.tokensExpire = true
    const { browser, lines } = await appWith(t, providerOf(standIn))
    t.equal((await signIn(browser, standIn, 'facebook')).headers.location, failurePage('provider_error'))
    const token = standIn.requests.at(-1)?.headers.authorization?.replace('Bearer ', '') ?? ''
    t.match(token, /^EAAG/)
    t.notOk(lines.join('').includes(token))
    t.match(lines.join(''), /\b190\b/)
  })

  for (const status of [400, 401, 403, 500, 503]) {
    t.test(`no words of an error with status ${status} reach the log`, async t => {
      const error = {
        message: 'said-in-message',
        type,
        code: 2,
        error_user_title: 'said-in-title',
        error_user_msg: 'said-in-user-message',
        error_data: { quoted: 'said-in-data' }
      }
      for (const at of [TOKEN, ME]) {
        for (const as of [(answer: Answer) => answer, asJavaScript]) {
          const standIn = await start(t)
          standIn.lies.set(at, () => as(graphError(error, { status })))
          const { browser, lines } = await appWith(t, providerOf(standIn))
          t.equal((await signIn(browser, standIn, 'facebook')).headers.location, failurePage(status < 500 ? 'provider_error' : 'provider_unavailable'))
          t.notMatch(lines.join(''), /said-in/, at)
        }
      }
    })
  }

  t.test('an error that is not an object is provider_error', async t => {
    for (const error of [null, 7, [], {}, { code: '4' }, { code: null, type: 7, error_subcode: {} }, { type: 'x\r\ny'.repeat(1000) }]) {
      for (const at of [TOKEN, ME]) {
        const standIn = await start(t)
        standIn.lies.set(at, () => json(400, { error }))
        await t.rejects(authenticate(standIn), { code: 'provider_error' }, JSON.stringify(error).slice(0, 60))
      }
    }
  })

  t.test('an error with status 200 is provider_error', async t => {
    for (const at of [TOKEN, ME]) {
      const standIn = await start(t)
      standIn.lies.set(at, () => json(200, { error: { message: 'm', type, code: 190 } }))
      await t.rejects(authenticate(standIn), { code: 'provider_error' })
    }
  })

  t.test('no secret, code or token reaches the log', async t => {
    for (const at of [TOKEN, ME]) {
      const standIn = await start(t)
      standIn.lies.set(at, () => graphError({ message: 'no', type, code: 190 }))
      const { browser, lines } = await appWith(t, providerOf(standIn))
      await signIn(browser, standIn, 'facebook')
      const secrets = standIn.requests.flatMap(({ form, query, headers }) => [
        form.get('code'),
        form.get('code_verifier'),
        form.get('client_secret'),
        query.get('appsecret_proof'),
        headers.authorization?.replace('Bearer ', '')
      ])
      for (const secret of secrets) t.notOk(secret !== null && secret !== undefined && lines.join('').includes(secret), at)
    }
  })
})

t.test('answers that call themselves text/javascript count as JSON', async t => {
  t.test('answers of type text/javascript are read as the JSON that they are', async t => {
    const standIn = await start(t)
    standIn.answersAsJavaScript = true
    t.strictSame((await authenticate(standIn)).identity.claims, CLAIMS)
  })

  t.test('answers of type text/javascript are failures when they say so', async t => {
    const standIn = await start(t)
    Object.assign(standIn, { answersAsJavaScript: true, codesExpire: true })
    const { browser, lines } = await appWith(t, providerOf(standIn))
    t.equal((await signIn(browser, standIn, 'facebook')).headers.location, failurePage('provider_error'))
    t.match(lines.join(''), /\b36007\b/)
    t.strictSame(errorsIn(lines), [], 'an old code is everyday')
  })
})

t.test('options are checked at construction', async t => {
  const wrong: Array<[object, RegExp]> = [
    [{ clientId: '' }, /^facebook: clientId/],
    [{ clientSecret: undefined }, /^facebook: clientSecret/],
    [{ scopes: 'email' }, /^facebook: scopes/],
    [{ authorizationParams: { redirect_uri: 'x' } }, /^facebook: authorizationParams/],
    [{ timeout: 0 }, /^facebook: timeout/],
    [{ version: 'v23.0' }, /^facebook has no option "version"/]
  ]
  for (const [change, message] of wrong) {
    t.throws(() => new FacebookProvider({ clientId: 'a', clientSecret: 'the-secret', ...change } as never), { code: 'invalid_options', message })
  }
})
