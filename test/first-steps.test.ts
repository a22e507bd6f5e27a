import fastifyCookie from '@fastify/cookie'
import responseValidation from '@fastify/response-validation'
import fastifySession from '@fastify/session'
import Fastify, { type FastifyInstance } from 'fastify'
import t from 'tap'
import authPlugin, {
  Auth0Provider, GitHubProvider, GoogleProvider, LocalIdentityProvider, MemoryAuthStore, OidcProvider, SqlAuthStore,
  providersFromEnv
} from '../lib/index.js'
import * as wholeModule from '../lib/index.js'
import { SESSION_SECRET, localProvider } from './helpers/app.js'
import { setEnv } from './helpers/environment.js'
import { Documentation } from './helpers/markdown.js'

/** What must be in no sentence. */
const SECRET = 'hunter2'

/** Of errors that are not ours the documentation says what they mean. */
const MESSAGES = (await Documentation.read()).section('Messages of the first steps')

const session = { secret: SESSION_SECRET }
const baseUrl = 'https://app.example'
const google = () => new GoogleProvider({ clientId: 'an-id', clientSecret: SECRET })

/** As somebody without types calls it. */
const register = (options?: object) => async (app: FastifyInstance): Promise<unknown> => app.register(authPlugin, options as object)
const make = (construct: (given: (options?: object) => never) => unknown) => async (): Promise<unknown> => construct(options => options as never)

type Mistake = [what: string, make: (app: FastifyInstance) => Promise<unknown>, name: string, sentence: string]

/**
 * What newcomers get wrong, and the sentence that they read. Of a driver that is not installed
 * test/store tells, of a port in use test/examples/demo.test.ts.
 */
const MISTAKES: Mistake[] = [
  // Settings
  ['no secret for sessions', register(),
    'OptionsError', 'session.secret must be at least 32 characters; set SVC_SESSION_SECRET, for example to the output of: openssl rand -hex 32'],
  ['a short secret for sessions', register({ session: { secret: SECRET } }),
    'OptionsError', 'session.secret must be at least 32 characters; set SVC_SESSION_SECRET, for example to the output of: openssl rand -hex 32'],
  ['no secret for tokens', make(() => new LocalIdentityProvider()),
    'OptionsError', 'LocalIdentityProvider: secret must be at least 32 characters; set LOCAL_IDP_SECRET, for example to the output of: openssl rand -hex 32'],
  ['a provider whose client id is not in the environment', make(() => new GoogleProvider({
    clientId: process.env.GOOGLE_CLIENT_ID ?? '',
    clientSecret: SECRET
  })),
  'OptionsError',
  'google: clientId must be the client id that the provider gave you, and there is none; set the environment variable ' +
    'that it comes from, or use providersFromEnv(), which leaves out a provider without settings'],
  ['a provider without secret', make(given => new GitHubProvider(given({ clientId: 'an-id' }))),
    'OptionsError',
    'github: clientSecret must be the client secret that the provider gave you, and there is none; set the ' +
      'environment variable that it comes from, or use providersFromEnv(), which leaves out a provider without settings'],
  ['a client id that is no text', make(given => new GitHubProvider(given({ clientId: 42, clientSecret: SECRET }))),
    'OptionsError', 'github: clientId must be the client id that the provider gave you, without quotes or blanks around it, and without ' +
      'control characters'],
  ['half of the settings of a provider', make(() => providersFromEnv({ GOOGLE_CLIENT_SECRET: SECRET })),
    'OptionsError',
    'GOOGLE_CLIENT_ID is not set, but GOOGLE_CLIENT_SECRET is; set GOOGLE_CLIENT_ID too, or unset GOOGLE_CLIENT_SECRET to leave out this provider'],

  // baseUrl
  ['no baseUrl', register({ session, providers: [google()] }),
    'OptionsError',
    'baseUrl is required once a provider is registered, because providers redirect users back to it; set it to the ' +
      'public URL of the application, such as https://app.example'],
  ['a baseUrl without scheme', register({ session, baseUrl: 'localhost:3000' }),
    'OptionsError', 'baseUrl must be the public http: or https: URL of the application without user info, query or hash, such as https://app.example'],

  // Options in the wrong place, or of another spelling
  ['the secret at the top', register({ secret: SECRET }),
    'OptionsError',
    'fastify-svc-auth has no option "secret"; the secret of sessions is session: { secret }, that of tokens local: new LocalIdentityProvider({ secret })'],
  ['the cookie at the top', register({ session, cookie: { secure: true } }),
    'OptionsError', 'fastify-svc-auth has no option "cookie"; it is an option of the session: session: { cookie }'],
  ['a client id at the top', register({ session, clientId: 'an-id' }),
    'OptionsError',
    'fastify-svc-auth has no option "clientId"; it is an option of a provider, such as providers: [new GoogleProvider({ clientId, clientSecret })]'],
  ['baseURL', register({ session, baseURL: baseUrl }),
    'OptionsError', 'fastify-svc-auth has no option "baseURL"; it is called baseUrl'],
  ['trusted_origins', register({ session, trusted_origins: [] }),
    'OptionsError', 'fastify-svc-auth has no option "trusted_origins"; it is called trustedOrigins'],
  ['provider', register({ session, provider: google() }),
    'OptionsError', 'fastify-svc-auth has no option "provider"; it is called providers'],
  ['an option that is not there', register({ session, redirectUri: baseUrl }),
    'OptionsError',
    'fastify-svc-auth has no option "redirectUri"; expected one of baseUrl, providers, local, store, session, dataSecret, ' +
      'prefix, trustedOrigins, linking, onCreateUser, onSignIn, onLink, onDelete, onGuest, loginPage, registerPage, forgotPasswordPage, accountPage, ' +
      'reauthenticatePage, secondFactorPage, changePasswordPage, secondFactor, passkeys, oauthServer, apiKeys, connections, impersonation, guests, notices, ' +
      'pages, rateLimit, ' +
      'logLevel, logSerializers'],
  ['an option of a provider that is not there', make(given => new GoogleProvider(given({ client_id: 'an-id', clientSecret: SECRET }))),
    'OptionsError', 'google has no option "client_id"; it is called clientId'],
  ['an option that the class of a provider sets', make(given => new GoogleProvider(given({ name: 'work', clientId: 'an-id', clientSecret: SECRET }))),
    'OptionsError', 'google has no option "name"; the class sets it'],
  ['an option of the local provider that is not there', make(given => new LocalIdentityProvider(given({ secrets: SECRET }))),
    'OptionsError', 'LocalIdentityProvider has no option "secrets"; it is called secret'],

  // Something else than what an option wants
  ['one provider', register({ session, baseUrl, providers: google() }),
    'OptionsError', 'providers must be a list of providers, such as [new OidcProvider({ ... })]'],
  ['the class of a provider', register({ session, baseUrl, providers: [GoogleProvider] }),
    'OptionsError', 'providers must hold objects of a provider class, and not the class: new GoogleProvider({ clientId, clientSecret })'],
  ['the name of a provider', register({ session, baseUrl, providers: ['google'] }),
    'OptionsError',
    'providers must hold objects of a provider class, such as new GoogleProvider({ clientId, clientSecret }), or with name, ' +
      'authorizationUrl and authenticate, endSessionUrl where signOut is true, and verifyLogoutToken where backChannelLogout is'],
  ['the local provider among the external ones', register({ session, baseUrl, providers: [localProvider()] }),
    'OptionsError', 'providers must hold objects of a provider class for external providers; the LocalIdentityProvider is the option local'],
  ['options for a local provider', register({ session, local: { secret: SECRET } }),
    'OptionsError', 'local must be a LocalIdentityProvider: new LocalIdentityProvider({ ... })'],
  ['a secret for a local provider', make(() => new LocalIdentityProvider(SECRET as never)),
    'OptionsError', 'LocalIdentityProvider takes an object of options, such as { secret }'],
  ['a URL for a store', register({ session, store: `postgres://app:${SECRET}@localhost/app` }),
    'OptionsError', 'store must be an AuthStore, such as new SqlAuthStore(); the store of sessions is session.store'],
  ['a store for users as one for sessions', register({ session: { ...session, store: new MemoryAuthStore() } }),
    'OptionsError',
    "session.store must be 'memory' or a store of sessions, an object with get, set and destroy, such as " +
      'new RedisStore({ client }); the store of users is the option store'],
  ...['redis://localhost', null].map((store): Mistake => [`${store} as a store for sessions`, register({ session: { ...session, store } }),
    'OptionsError',
    "session.store must be 'memory' or a store of sessions, an object with get, set and destroy, such as " +
      'new RedisStore({ client }); the store of users is the option store']),
  ['a secret for the session', register({ session: SECRET }),
    'OptionsError', 'session must be an object of options for @fastify/session'],
  ['a prefix without slash', register({ session, prefix: 'auth' }),
    'OptionsError', 'prefix must be a path such as /auth: it begins with a slash and does not end with one'],
  ['a database of another kind', make(() => new SqlAuthStore(`mysql://app:${SECRET}@localhost/app`)),
    'OptionsError',
    'target has the scheme "mysql:", which is not known; expected an SQLite file, a sqlite:, file: or postgres: URL, :memory:, or an existing engine'],
  ['an issuer as discovery URL', make(() => new OidcProvider({ name: 'id', discoveryUrl: 'https://id.example', clientId: 'an-id', clientSecret: SECRET })),
    'OptionsError', 'id: discoveryUrl must end in /.well-known/openid-configuration'],
  ['a tenant of Auth0 with a path', make(() => new Auth0Provider({ domain: 'https://tenant.eu.auth0.com/login', clientId: 'an-id', clientSecret: SECRET })),
    'OptionsError',
    'auth0: domain must be the https: URL of the tenant, or its host, such as tenant.eu.auth0.com (http: for a ' +
      'development server on this machine, with allowInsecureRequests), with nothing but a host and a port'],

  // Where and when it is registered
  ['registered twice', async app => { await app.register(authPlugin, { session }); await app.register(authPlugin, { session }) },
    'OptionsError',
    'this application has app.auth already; register fastify-svc-auth once, and no other plugin that decorates ' +
      '"auth": @fastify/auth does, so register that in another context, or use app.auth.anyOf instead'],
  ['registered twice, under two prefixes', async app => {
    await app.register(authPlugin, { session })
    await app.register(authPlugin, { session, prefix: '/id' })
  },
  'OptionsError',
  'this application has app.auth already; register fastify-svc-auth once, and no other plugin that decorates "auth": ' +
    '@fastify/auth does, so register that in another context, or use app.auth.anyOf instead'],
  ['registered again in a child context', async app => {
    await app.register(authPlugin, { session })
    await app.register(async child => { await child.register(authPlugin, { session }) })
  },
  'OptionsError',
  'this application has app.auth already; register fastify-svc-auth once, and no other plugin that decorates "auth": ' +
    '@fastify/auth does, so register that in another context, or use app.auth.anyOf instead'],
  ['registered in a context whose prefix has a parameter', async app => {
    await app.register(async child => { await child.register(authPlugin, { session }) }, { prefix: '/:tenant' })
  },
  'OptionsError',
  'prefix must be a path of letters, digits, ~ . _ and -, without parameters, also behind the prefix of the context, ' +
    'but together they are /:tenant/auth; register fastify-svc-auth outside that context'],
  ['called, as a plugin of another framework is', async app => app.register(authPlugin({ session } as never, {}) as never),
    'OptionsError', 'fastify-svc-auth is not called but registered: await app.register(authPlugin, { ... })'],
  ['called with nothing', async app => app.register(Reflect.apply(authPlugin, null, [])),
    'OptionsError', 'fastify-svc-auth is not called but registered: await app.register(authPlugin, { ... })'],
  ['options for a session that the application has registered', async app => {
    await app.register(fastifyCookie)
    await app.register(fastifySession, session)
    await app.register(authPlugin, { session })
  },
  'OptionsError', 'session must be absent: the application has registered @fastify/session itself, and that session is used'],
  ['beside sessions of another plugin', async app => { app.decorateRequest('session', null as never); await app.register(authPlugin, { session }) },
    'OptionsError',
    'this application has request.session already, and not of @fastify/session; remove the plugin that decorates ' +
      '"session", such as @fastify/secure-session, or register it in another context'],
  ['after @fastify/response-validation', async app => {
    await app.register(responseValidation)
    await app.register(authPlugin, { session })
  },
  'OptionsError', '@fastify/response-validation would change what the routes of fastify-svc-auth answer; register it after fastify-svc-auth'],
  ['registered after ready', async app => { await app.ready(); await app.register(authPlugin, { session }) },
    'FastifyError', 'Root plugin has already booted'],
  ['registered after listen', async app => { await app.listen({ host: '127.0.0.1', port: 0 }); await app.register(authPlugin, { session }) },
    'FastifyError', 'Root plugin has already booted'],
  ['app.auth before the plugin is there, because await is missing', async app => {
    app.register(authPlugin, { session })
    app.get('/me', { preHandler: app.auth.requireUser }, async () => 'me')
  },
  'TypeError', "Cannot read properties of undefined (reading 'requireUser')"],
  ['app.auth outside of the context in which it is registered', async app => {
    await app.register(async child => { await child.register(authPlugin, { session }) })
    app.get('/me', { preHandler: app.auth.requireUser }, async () => 'me')
  },
  'TypeError', "Cannot read properties of undefined (reading 'requireUser')"],

  // Guards
  ['a claim as a string', async app => { await app.register(authPlugin, { session }); app.auth.requireClaims('admin' as never) },
    'OptionsError', "requireClaims takes an object of claims, such as { role: 'admin' }"],
  ['a guard for tokens without a use', async app => { await app.register(authPlugin, { session }); app.auth.requireBearerFor({}) },
    'OptionsError', "requireBearerFor takes { purpose }, { audience } or both, such as { audience: 'reports' }"]
]

for (const [what, make, name, sentence] of MISTAKES) {
  t.test(`${what}: the error says it`, async t => {
    const app = Fastify()
    t.teardown(() => app.close())

    const failure = await make(app).then(() => null, (error: unknown) => error)

    t.match(failure, { name })
    t.ok(failure instanceof Error && failure.message === sentence, String(failure))
    t.notMatch(String(failure), SECRET)
    if (name !== 'OptionsError') t.ok(MESSAGES.table().some(([error]) => error === `\`${sentence}\``), 'the documentation says what it means')
  })
}

t.test('guards that are not called let no request pass, and say what they take', async t => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(authPlugin, { session, local: localProvider() })
  app.get('/claims', { preHandler: app.auth.requireClaims as never }, async () => 'in')
  app.get('/bearer', { preHandler: app.auth.requireBearerFor as never }, async () => 'in')

  const answers = await Promise.all(['/claims', '/bearer'].map(async url => (await app.inject(url)).json()))

  t.match(answers, [
    { statusCode: 500, message: "requireClaims takes an object of claims, such as { role: 'admin' }" },
    { statusCode: 500, message: "requireBearerFor takes an object of options, such as { audience: 'reports' }" }
  ])
})

t.test('without await a wrong option ends the start', async t => {
  const app = Fastify()
  t.teardown(() => app.close())
  app.register(authPlugin, {})
  await t.rejects(app.listen({ host: '127.0.0.1', port: 0 }), { name: 'OptionsError', message: /^session\.secret must be/ })
})

t.test('beside @fastify/response-validation, registered as the sentence says, a user registers and is signed in', async t => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(authPlugin, { session, local: localProvider() })
  await app.register(responseValidation)

  const registered = await app.inject({ method: 'POST', url: '/auth/local/register', payload: { email: 'ada@example.com', password: 'correct horse' } })
  t.equal(registered.statusCode, 201, registered.body)
  const cookies = Object.fromEntries(registered.cookies.map(({ name, value }) => [name, value]))
  t.match((await app.inject({ url: '/auth/session', cookies })).json(), { principal: { provider: 'local' } })
})

t.test('a handler that was registered before the plugin knows who is signed in', async t => {
  const app = Fastify()
  t.teardown(() => app.close())
  app.get('/me', async request => ({ principal: request.principal }))
  await app.register(authPlugin, { session, local: localProvider() })

  const { cookies: [cookie] } = await app.inject({
    method: 'POST',
    url: '/auth/local/register',
    payload: { email: 'ada@example.com', password: 'correct horse' }
  })
  const response = await app.inject({ url: '/me', cookies: { svc_session: cookie?.value ?? '' } })

  t.match(response.json(), { principal: { provider: 'local' } })
})

t.test('what require() gives can be registered as it is', async t => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(wholeModule as never, { session })
  t.strictSame(app.authProviders, [])
})

t.test('in a context with a prefix the routes, the callback and the cookie are under both', async t => {
  const provider = new GitHubProvider({ clientId: 'an-id', clientSecret: SECRET })
  for (const [prefix, path] of [['/api', '/api/auth'], ['/', '/auth']] as const) {
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(async child => {
      await child.register(authPlugin, { baseUrl, providers: [provider], session: { ...session, cookie: { path } } })
    }, { prefix })

    const response = await app.inject(`${path}/github/login`)

    t.equal(response.statusCode, 302)
    t.equal(new URL(String(response.headers.location)).searchParams.get('redirect_uri'), `${baseUrl}${path}/github/callback`)
  }
})

t.test('a baseUrl may have a path, which a proxy removes', async t => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(authPlugin, { session, baseUrl: `${baseUrl}/shop/`, providers: [new GitHubProvider({ clientId: 'an-id', clientSecret: SECRET })] })

  const { headers: { location } } = await app.inject('/auth/github/login')

  t.equal(new URL(String(location)).searchParams.get('redirect_uri'), `${baseUrl}/shop/auth/github/callback`)
})

t.test('an http: baseUrl is warned of in production, but not on this machine', async t => {
  const warningsFor = async (baseUrl: string, environment?: string) => {
    setEnv(t, { NODE_ENV: environment })
    const warnings: string[] = []
    const app = Fastify({ logger: { level: 'warn', stream: { write: (line: string) => { warnings.push(JSON.parse(line).msg) } } } })
    await app.register(authPlugin, { session, baseUrl })
    await app.close()
    return warnings.filter(warning => warning.startsWith('baseUrl'))
  }

  t.strictSame(
    await warningsFor('http://app.example', 'production'),
    [
      'baseUrl is an http: URL, so passwords and session cookies can be read on the network. Set it to the https: URL of the application.'
    ]
  )
  for (const url of [
    'https://app.example', 'http://localhost:3000', 'http://127.0.0.1:3000', 'http://[::1]:3000'
  ]) t.strictSame(await warningsFor(url, 'production'), [], url)
  t.strictSame(await warningsFor('http://app.example', 'development'), [])
})
