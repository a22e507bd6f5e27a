import { Signer } from '@fastify/cookie'
import t from 'tap'
import { BoundedMap } from '../lib/base/values.js'
import { LocalIdentityProvider } from '../lib/features/local/local-identity-provider.js'
import { type AuthPluginOptions, resolveOptions } from '../lib/options.js'
import { Passkeys } from '../lib/passkeys.js'
import { OidcProvider } from '../lib/providers/oidc.js'
import { SecondFactor } from '../lib/second-factor.js'
import { MemoryAuthStore } from '../lib/engines/memory/memory.js'
import { setEnv } from './helpers/environment.js'

const SECRET = 'the session secret of these tests'
const session = { secret: SECRET }
const local = new LocalIdentityProvider({ secret: 'the local secret of these tests, 32+' })

const provider = (name: string) => new OidcProvider({
  name,
  discoveryUrl: 'https://id.example/.well-known/openid-configuration',
  clientId: 'a',
  clientSecret: 'b'
})

const LIMITS = {
  network: 10,
  account: 20,
  start: 300,
  register: 60,
  callback: 300,
  reauthenticate: 10,
  mail: 30,
  code: 60,
  factor: 600,
  challenge: 3000,
  guest: 20,
  token: 30_000
}

t.test('options that are not given have a default', async t => {
  const resolved = resolveOptions({ session })

  t.match(resolved.site, { baseUrl: null, trustedOrigins: new Set() })
  t.strictSame(resolved.redirects.application, {
    login: null, reauthenticate: null, secondFactor: null, step: null, register: null, forgotPassword: null, account: null
  })
  t.strictSame({ ...resolved, site: null, redirects: null, store: null, accounts: null, signedRequests: null, session: null, listedSessions: null }, {
    site: null,
    redirects: null,
    providers: [],
    local: null,
    dataSecrets: null,
    mailTokens: null,
    store: null,
    accounts: null,
    signedRequests: null,
    session: null,
    signOutSecrets: null,
    listedSessions: null,
    remember: null,
    prefix: '/auth',
    linking: 'verified-email',
    onCreateUser: null,
    onSignIn: null,
    onLink: null,
    onDelete: null,
    onGuest: null,
    parts: {
      secondFactor: null,
      passkeys: null,
      oauthServer: null,
      apiKeys: null,
      connections: null,
      impersonation: null,
      guests: null,
      knownBrowsers: null
    },
    providerLabels: new BoundedMap(1000),
    sealer: null,
    layout: null,
    changePasswordPage: null,
    mailPages: null,
    rateLimit: { timeWindow: 900_000, ...LIMITS, login: 300 }
  })
  t.notOk('remember' in (resolved.session?.options ?? {}))
  t.equal(resolved.listedSessions, resolved.session?.rows.sessions)
  t.ok(resolved.store instanceof MemoryAuthStore)
  t.not(resolved.store, resolveOptions({ session }).store, 'each application has a store of its own')
})

t.test('options that are given are taken', async t => {
  const providers = [provider('a'), provider('b')]
  const store = new MemoryAuthStore()
  const cookie = { path: '/', domain: 'app.example' }
  const usual = { httpOnly: true, sameSite: 'lax', secure: true, maxAge: 7 * 24 * 60 * 60 * 1000 }

  const resolved = resolveOptions({
    baseUrl: 'https://app.example/app',
    providers,
    local,
    store,
    session: { ...session, cookieName: 'id', cookie },
    prefix: '/v1/sign-in',
    trustedOrigins: ['https://admin.app.example']
  })

  t.strictSame(resolved.providers, providers)
  t.equal(resolved.local, local)
  t.equal(resolved.store, store)
  t.strictSame(resolved.session?.options, {
    secret: [SECRET], cookieName: 'id', saveUninitialized: false, rolling: false, cookie: { ...usual, ...cookie }
  })
  t.equal(resolved.site.baseUrl, 'https://app.example/app')
  t.equal(resolved.prefix, '/v1/sign-in')
  t.strictSame(resolved.site.trustedOrigins, new Set(['https://admin.app.example']))
})

t.test('options that Fastify itself takes are let through', async t => {
  t.doesNotThrow(() => resolveOptions({ session, logLevel: 'warn', logSerializers: {} }))
})

t.test('the result is frozen, and lists changed afterwards change nothing', async t => {
  const providers = [provider('a')]
  const trustedOrigins = ['https://admin.app.example']
  const resolved = resolveOptions({ session, baseUrl: 'https://app.example', providers, trustedOrigins })

  providers.push(provider('b'))
  trustedOrigins.push('https://evil.example')

  t.ok(Object.isFrozen(resolved))
  t.ok(Object.isFrozen(resolved.providers))
  t.equal(resolved.providers.length, 1)
  t.strictSame([...resolved.site.trustedOrigins], ['https://admin.app.example'])
})

t.test('baseUrl loses its trailing slashes and nothing else', async t => {
  const resolved = (baseUrl: string) => resolveOptions({ session, baseUrl }).site.baseUrl

  t.equal(resolved('https://app.example'), 'https://app.example')
  t.equal(resolved('https://app.example/'), 'https://app.example')
  t.equal(resolved('HTTPS://App.Example:443//'), 'https://app.example')
  t.equal(resolved('http://localhost:3000'), 'http://localhost:3000')
  t.equal(resolved('https://app.example/a/b/'), 'https://app.example/a/b')
})

const OF_SETTING = 'a-setting-with-more-than-32-characters'

t.test('the secret of the session comes from the setting unless it is given', async t => {
  setEnv(t, { SVC_SESSION_SECRET: OF_SETTING })

  t.strictSame(resolveOptions({}).session?.options.secret, [OF_SETTING])
  t.match(resolveOptions({ session: { cookieName: 'id' } }).session?.options, { cookieName: 'id', secret: [OF_SETTING] })
  t.strictSame(resolveOptions({ session }).session?.options.secret, [SECRET])
})

t.test('the data secrets come from the setting unless they are given', async t => {
  setEnv(t, { SVC_AUTH_DATA_SECRET: `${'a'.repeat(32)} ${'b'.repeat(32)}` })

  t.strictSame(resolveOptions({ session }).dataSecrets, ['a'.repeat(32), 'b'.repeat(32)])
  t.strictSame(resolveOptions({ session, dataSecret: SECRET }).dataSecrets, [SECRET])
  t.strictSame(resolveOptions({ session, dataSecret: [SECRET, `${SECRET} before`] }).dataSecrets, [SECRET, `${SECRET} before`])
})

t.test('the days of remembered sessions become milliseconds, and @fastify/session does not get them', async t => {
  for (const [days, milliseconds] of [[1, 86_400_000], [30, 2_592_000_000], [400, 34_560_000_000]] as const) {
    const resolved = resolveOptions({ session: { ...session, remember: { days } } })

    t.equal(resolved.remember, milliseconds)
    t.notOk('remember' in Object(resolved.session?.options))
  }
})

t.test('the secret of the session may be a list, or an object that signs', async t => {
  const secrets = [SECRET, `${SECRET} of last year`]
  const signer = new Signer(SECRET)

  t.strictSame(resolveOptions({ session: { secret: secrets } }).session?.options.secret, secrets)
  t.equal(resolveOptions({ session: { secret: signer } }).session?.options.secret, signer)
})

t.test('an application with a session of its own needs no secret, and cannot have a second session', async t => {
  t.equal(resolveOptions({}, { session: true }).session, null)
  t.equal(resolveOptions({ session: undefined } as object, { session: true }).session, null)
  for (const given of [session, {}, null]) {
    t.throws(() => resolveOptions({ session: given } as object, { session: true }), {
      name: 'OptionsError',
      message: /^session must be absent: the application has registered @fastify\/session itself/
    })
  }
})

t.test('an option that is undefined has its default', async t => {
  const without = (names: readonly string[]) => Object.fromEntries(names.map(name => [name, undefined]))
  const names = ['cookieName', 'cookiePrefix', 'algorithm', 'saveUninitialized', 'rolling', 'idGenerator', 'store', 'remember']
  const cookie = without(['maxAge', 'expires', 'path', 'domain', 'secure', 'httpOnly', 'sameSite', 'partitioned'])

  const resolved = resolveOptions({ session: { ...session, ...without(names), cookie }, rateLimit: { login: undefined, timeWindow: undefined } })
  const usual = resolveOptions({ session })

  t.strictSame(resolved.session?.options, usual.session?.options)
  t.strictSame(resolved.rateLimit, usual.rateLimit)
  const { prefix } = resolveOptions({ session, prefix: undefined })
  t.equal(prefix, '/auth')
})

t.test('the path of the cookie may be one that covers the routes', async t => {
  for (const [prefix, path] of [['/auth', '/'], ['/auth', '/auth'], ['/api/auth', '/api'], ['/api/auth', '/api/'], ['/api/auth', '/api/auth']] as const) {
    t.doesNotThrow(() => resolveOptions({ session: { ...session, cookie: { path } }, prefix }), `${path} covers ${prefix}`)
  }
})

t.test('how identities are linked, the hook and the pages are taken as they are', async t => {
  const given = {
    linking: () => true,
    onCreateUser: () => {},
    onSignIn: () => {},
    changePasswordPage: '/password?from=app#form'
  }
  const pages = {
    loginPage: '/sign-in?from=app#form',
    registerPage: '/join?from=app#form',
    forgotPasswordPage: '/forgot?from=app#form',
    accountPage: '/account?from=app#form',
    reauthenticatePage: '/confirm?from=app#form'
  }

  t.match(resolveOptions({ session, ...given, ...pages }), {
    ...given,
    redirects: {
      application: {
        login: pages.loginPage,
        register: pages.registerPage,
        forgotPassword: pages.forgotPasswordPage,
        account: pages.accountPage,
        reauthenticate: pages.reauthenticatePage
      }
    }
  })
  t.equal(resolveOptions({ session, linking: 'never' }).linking, 'never')
})

t.test('some rate limits may be given, or all switched off', async t => {
  const store = class { incr () {} child () { return this } }
  const { rateLimit } = resolveOptions({ session, rateLimit: { login: 5, timeWindow: 1000, store } })

  t.strictSame(rateLimit, { timeWindow: 1000, ...LIMITS, login: 5, store })
  t.equal(resolveOptions({ session, rateLimit: { store: 'memory' } }).rateLimit?.store, 'memory')
  t.equal(resolveOptions({ session, rateLimit: false }).rateLimit, null)
  for (const given of [store, 'memory'] as const) {
    t.throws(() => resolveOptions({ session, rateLimit: { store: given } }, { rateLimit: true }), {
      name: 'OptionsError',
      message: /^rateLimit\.store must be absent: the application has registered @fastify\/rate-limit itself/
    })
  }
  t.match(resolveOptions({ session, rateLimit: { login: 5 } }, { rateLimit: true }).rateLimit, { login: 5 })
})

const STORE_METHODS = [
  'findUser', 'links', 'factors', 'findCredential', 'status', 'users', 'countUsers', 'insert', 'change', 'close'
] as const

/** A store and a provider that lack one thing. */
const storeWithout = (method: string) => Object.assign(new MemoryAuthStore(), { [method]: undefined })
const providerLike = { name: 'mine', authorizationUrl: async () => new URL('https://id.example'), authenticate: async () => { throw new Error('not called') } }

const MISTAKES: Array<[what: string, options: object, message: RegExp]> = [
  [
    'an unknown option',
    { prefx: '/id' },
    /^fastify-svc-auth has no option "prefx"; expected one of baseUrl, providers, local, store, session, dataSecret, prefix, trustedOrigins/
  ],
  ['a short data secret', { dataSecret: 'short' }, /^dataSecret must be at least 32 characters; set SVC_AUTH_DATA_SECRET/],
  ['no baseUrl with a provider', { providers: [provider('a')] }, /^baseUrl is required once a provider is registered/],
  ...[
    null, '', 'app.example', '/app', 1, {}, new URL('https://app.example'), 'ftp://app.example', 'javascript:1',
    'file:///app', 'https://user@app.example', 'https://:password@app.example', 'https://app.example?a=b',
    'https://app.example/#a', 'https://'
  ]
    .map((baseUrl): [string, object, RegExp] => [
      `baseUrl ${String(baseUrl)}`,
      { baseUrl },
      /^baseUrl must be the public http: or https: URL of the application/
    ]),
  ...[{}, 'google', new Set()].map((providers): [string, object, RegExp] => [
    `providers ${String(providers)}`,
    { providers, baseUrl: 'https://app.example' },
    /^providers must be a list of providers/
  ]),
  ...[null, undefined, 'google', {}, OidcProvider, { ...providerLike, authenticate: undefined }, { ...providerLike, authorizationUrl: 'https://id.example' }]
    .map((provider): [string, object, RegExp] => [
      'what is no provider',
      { providers: [provider], baseUrl: 'https://app.example' },
      /^providers must hold objects of a provider class/
    ]),
  ...[undefined, 'Mine', 'a/b'].map((name): [string, object, RegExp] => [
    'a name that cannot be in a URL',
    { providers: [{ ...providerLike, name }], baseUrl: 'https://app.example' },
    /^name of a provider must be/
  ]),
  [
    'a provider that is called local',
    { providers: [{ ...providerLike, name: 'local' }], baseUrl: 'https://app.example' },
    /^name of a provider must not be "local"/
  ],
  [
    'a provider with signOut and no method for it',
    { providers: [{ ...providerLike, signOut: true }], baseUrl: 'https://app.example', dataSecret: 'x'.repeat(32) },
    /^providers must hold objects of a provider class, .* and authenticate, endSessionUrl where signOut is true, and verifyLogoutToken/
  ],
  [
    'a provider with backChannelLogout and no method for it',
    { providers: [{ ...providerLike, backChannelLogout: true }], baseUrl: 'https://app.example' },
    /^providers must hold objects of a provider class, .* and verifyLogoutToken where backChannelLogout is$/
  ],
  [
    'a provider with signOut and no data secret',
    { providers: [{ ...providerLike, signOut: true, endSessionUrl () {} }], baseUrl: 'https://app.example' },
    /^dataSecret is required with signOut of a provider, because it encrypts ID tokens in sessions; set it, or SVC_AUTH_DATA_SECRET/
  ],
  [
    'two providers of one name',
    { providers: [provider('a'), provider('b'), provider('a')], baseUrl: 'https://app.example' },
    /^providers must have different names, but two are called "a"$/
  ],
  ...[null, {}, true, 'local', LocalIdentityProvider, { ...local }].map((local): [string, object, RegExp] => [
    'what is no local provider',
    { local },
    /^local must be a LocalIdentityProvider/
  ]),
  ...[
    {},
    'sqlite:./users.db',
    true,
    MemoryAuthStore,
    ...STORE_METHODS.map(storeWithout)
  ].map((store): [string, object, RegExp] => ['what is no store', { store }, /^store must be an AuthStore/]),
  ...[{}, new Map(), () => {}, true].flatMap(member => ['sessions', 'entries', 'attempts', 'revocations'].map((name): [string, object, RegExp] => [
    'a store with a member that lacks methods',
    { store: Object.assign(new MemoryAuthStore(), { [name]: member }) },
    new RegExp(`^store\\.${name} must be null or have the methods [a-z]+`)
  ])),
  [
    'a store with sessions and without entries',
    { store: Object.assign(new MemoryAuthStore(), { entries: null }) },
    /^store\.sessions needs store\.entries/
  ],
  ...['secret', true, [], null].map((session): [string, object, RegExp] => [
    'what are no session options',
    { session },
    /^session must be an object of options for @fastify\/session$/
  ]),
  ...['id', null, []].map((cookie): [string, object, RegExp] => [
    'what are no cookie options',
    { session: { ...session, cookie } },
    /^session\.cookie must be an object \{ maxAge, expires, path, domain, secure, httpOnly, sameSite, partitioned \}$/
  ]),
  ...[
    {}, { secret: undefined }, { secret: null }, { secret: '' }, { secret: 'too short' }, { secret: [] },
    { secret: [SECRET, 'too short'] }, { secret: {} }, { secret: { sign: () => '' } }, { secret: { unsign: () => '' } },
    { secret: Buffer.alloc(32) }
  ]
    .map((session): [string, object, RegExp] => ['no good secret', { session }, /^session\.secret must be at least 32 characters.*; set SVC_SESSION_SECRET/]),
  ...[null, true, 30, []].map((remember): [string, object, RegExp] => [
    `session.remember ${JSON.stringify(remember)}`,
    { session: { ...session, remember } },
    /^session\.remember must be an object \{ days \}$/
  ]),
  ...[{}, { days: 0 }, { days: 401 }, { days: 1.5 }, { days: '30' }].map((remember): [string, object, RegExp] => [
    `session.remember ${JSON.stringify(remember)}`,
    { session: { ...session, remember } },
    /^session\.remember\.days must be a whole number from 1 to 400$/
  ]),
  [
    'another unit of session.remember',
    { session: { ...session, remember: { days: 30, hours: 1 } } },
    /^session\.remember has no option "hours"; expected one of days$/
  ],
  ...([
    [{ maxAge: '7d' }, /^session\.cookie\.maxAge must be a number of milliseconds above 0/],
    [{ maxAge: 0 }, /^session\.cookie\.maxAge must be/],
    [{ maxAge: NaN }, /^session\.cookie\.maxAge must be/],
    [{ expires: 'tomorrow' }, /^session\.cookie\.expires must be a Date$/],
    [{ sameSite: 'Lax' }, /^session\.cookie\.sameSite must be 'lax', 'strict', 'none' or a boolean$/],
    [{ secure: 'yes' }, /^session\.cookie\.secure must be true, false or 'auto'$/],
    [{ httpOnly: 1 }, /^session\.cookie\.httpOnly must be true or false$/],
    [{ partitioned: 'yes' }, /^session\.cookie\.partitioned must be true or false$/],
    [{ domain: 'https://app.example' }, /^session\.cookie\.domain must be the name of a host, such as app\.example$/],
    [{ maxage: 5 }, /^session\.cookie has no option "maxage"; it is called maxAge$/],
    [{ ttl: 5 }, /^session\.cookie has no option "ttl"; expected one of maxAge, /],
    [{ path: null }, /^session\.cookie\.path must be a path, such as \/$/],
    [{ sameSite: 'none', secure: false }, /^session\.cookie\.sameSite is 'none', so browsers accept the cookie only over https/]
  ] as const).map(([cookie, message]): [string, object, RegExp] => [`the cookie ${JSON.stringify(cookie)}`, { session: { ...session, cookie } }, message]),
  ...([
    [{ cookiename: 'id' }, /^session has no option "cookiename"; it is called cookieName$/],
    [{ name: 'id' }, /^session has no option "name"; expected one of secret, /],
    [{ cookieName: 'my session' }, /^session\.cookieName must be a name of letters, digits and hyphens/],
    [{ cookieName: '' }, /^session\.cookieName must be/],
    [{ cookieName: 1 }, /^session\.cookieName must be/],
    [{ cookiePrefix: 1 }, /^session\.cookiePrefix must be text$/],
    [{ algorithm: 'sha257' }, /^session\.algorithm must be the name of a hash function/],
    [{ rolling: 'no' }, /^session\.rolling must be true or false$/],
    [{ saveUninitialized: 0 }, /^session\.saveUninitialized must be true or false$/],
    [{ idGenerator: 'uuid' }, /^session\.idGenerator must be a function$/],
    [{ cookieName: '__Host-id', cookie: { domain: 'app.example' } }, /^session\.cookieName begins with __Host-, .* without session\.cookie\.domain/],
    [{ cookieName: '__host-id', cookie: { path: '/auth' } }, /^session\.cookieName begins with __Host-/],
    [{ cookieName: '__Secure-id', cookie: { secure: false } }, /^session\.cookieName begins with __Secure-, so browsers accept the cookie only over https/]
  ] as const).map(([options, message]): [string, object, RegExp] => [`session ${JSON.stringify(options)}`, { session: { ...session, ...options } }, message]),
  [
    'a __Host- cookie over http',
    { baseUrl: 'http://app.example', session: { ...session, cookieName: '__Host-id' } },
    /^session\.cookieName begins with __Host-, so browsers accept the cookie only over https/
  ],
  ...[
    ['/auth', '/app'], ['/authors', '/auth'], ['/auth', '/auth/local'], ['/api/auth', '/ap'], ['/auth', '/Auth'],
    ['/auth', '']
  ]
    .map(([prefix, path]): [string, object, RegExp] => [
      `the cookie of ${path} under ${prefix}`,
      { prefix, session: { ...session, cookie: { path } } },
      /^session\.cookie\.path must cover the routes under/
    ]),
  ...['', '/', 'auth', '/auth/', '//auth', '/a//b', '/:name', '/*', '/a b', '/a?b', '/a#b', '/ä', '/a\n', '/a%2fb', '/..', '/a/./b', 1, ['/auth']]
    .map((prefix): [string, object, RegExp] => [`prefix ${JSON.stringify(prefix)}`, { prefix }, /^prefix must be a path such as \/auth/]),
  ...[
    'https://admin.app.example',
    {},
    new Set(),
    ['admin.app.example'],
    ['https://admin.app.example/'],
    ['https://admin.app.example/path'],
    ['https://Admin.app.example'],
    ['https://admin.app.example:443'],
    ['*'],
    ['https://*.app.example'],
    ['https://*'],
    ['https://app.*:8443'],
    ['http://*.localhost:3000'],
    ['null'],
    [''],
    [null],
    [1],
    ['https://user@admin.app.example'],
    ['http://admin.app.example'],
    ['http://10.0.0.1:3000'],
    ['http://localhost.app.example'],
    ['javascript:1'],
    ['https://fine.example', 'fine.example']
  ]
    .map((trustedOrigins): [string, object, RegExp] => [
      `trustedOrigins ${String(trustedOrigins)}`,
      { trustedOrigins },
      /^trustedOrigins must be a list of origins/
    ]),
  ...['always', 'verified_email', '', true, {}, []].map((linking): [string, object, RegExp] => [
    `linking ${JSON.stringify(linking)}`,
    { linking },
    /^linking must be 'verified-email', 'never' or a function/
  ]),
  ...[null, 'hook', true, {}].map((onCreateUser): [string, object, RegExp] => [
    `onCreateUser ${JSON.stringify(onCreateUser)}`,
    { onCreateUser },
    /^onCreateUser must be a function/
  ]),
  ...[null, 'hook', true, {}].map((onLink): [string, object, RegExp] => [`onLink ${JSON.stringify(onLink)}`, { onLink }, /^onLink must be a function/]),
  ...[null, 'hook', true, {}].map((onSignIn): [string, object, RegExp] => [
    `onSignIn ${JSON.stringify(onSignIn)}`,
    { onSignIn },
    /^onSignIn must be a function/
  ]),
  ...[
    '', 'login', '//login', '/\\login', 'https://app.example/login', '/a/../login', '/log in', '/ü', 1, null, ['/login']
  ].flatMap(page => [
    'loginPage', 'registerPage', 'forgotPasswordPage', 'accountPage', 'reauthenticatePage', 'changePasswordPage'
  ].map((option): [string, object, RegExp] => [
    `${option} ${JSON.stringify(page)}`, { [option]: page }, new RegExp(`^${option} must be a path of this application`)
  ])),
  ...[5, [], null].map((rateLimit): [string, object, RegExp] => [
    `rateLimit ${JSON.stringify(rateLimit)}`,
    { rateLimit },
    /^rateLimit must be true, false or an object \{ timeWindow, network, login, account/
  ]),
  ...[
    { login: 0 }, { account: 1.5 }, { reauthenticate: 0 }, { register: '5' }, { callback: NaN }, { network: 0 }, { start: 0 }
  ].map((rateLimit): [string, object, RegExp] => [
    `rateLimit ${JSON.stringify(rateLimit)}`,
    { rateLimit },
    new RegExp(`^rateLimit\\.${Object.keys(rateLimit).join()} must be a whole number from 1$`)
  ]),
  ['a passkey as second factor', { secondFactor: new Passkeys({ name: 'Shop' }) }, /^secondFactor must be new SecondFactor\(\{ issuer: 'Shop' \}\) of /],
  ['a second factor as passkeys', { passkeys: new SecondFactor({ issuer: 'Shop' }) }, /^passkeys must be new Passkeys\(\{ name: 'Shop' \}\) of /],
  ['a negative time window', { rateLimit: { timeWindow: -1 } }, /^rateLimit\.timeWindow must be a whole number of milliseconds from 1$/],
  ['a limit of another name', { rateLimit: { logins: 5 } }, /^rateLimit has no option "logins"; it is called login$/],
  ['a limit that every object has', { rateLimit: { toString: 5 } }, /^rateLimit has no option "toString"; expected one of timeWindow, /],
  ...[{}, () => {}, 'database', class { incr () {} }, class { child () {} }].map((store): [string, object, RegExp] => [
    `rateLimit.store ${String(store)}`,
    { rateLimit: { store } },
    /^rateLimit\.store must be 'memory' or a class with incr and child$/
  ])
]

for (const [what, options, message] of MISTAKES) {
  t.test(`${what} is refused with a sentence that names the option`, async t => {
    const resolve = () => resolveOptions({ session, ...options } as AuthPluginOptions)
    const refused = t.throws(resolve, { name: 'OptionsError', code: 'invalid_options', message })

    t.notOk(String(refused).includes('too short') || String(refused).includes(SECRET), 'no secret is printed')
  })
}
