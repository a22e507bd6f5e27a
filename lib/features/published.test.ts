import Fastify, { type FastifyInstance } from 'fastify'
import t from 'tap'
import authPlugin from '../index.js'
import { Pages } from '../pages.js'
import { Passkeys } from '../passkeys.js'
import { SESSION_SECRET, localProvider, startApp } from '../../test/helpers/app.js'
import { ecKey } from '../../test/helpers/signing-key.js'

const URL = '/.well-known/change-password'
const PAGE = '/account/password?from=manager#form'

t.test('a password manager is redirected to the page of the application, without a session', async t => {
  for (const options of [{}, { local: localProvider() }, { prefix: '/sign/in' }, { baseUrl: 'https://app.example' }]) {
    const app = await startApp(t, { ...options, changePasswordPage: PAGE })

    for (const accept of ['text/html', 'application/json', '*/*']) {
      const { statusCode, headers, body } = await app.inject({ url: `${URL}?next=https://evil.example`, headers: { accept } })
      t.match([statusCode, headers.location, body], [302, PAGE, ''])
      t.equal(headers['set-cookie'], undefined)
      t.equal(headers['cache-control'], 'no-store, no-transform')
    }
    t.equal((await app.inject(`/auth${URL}`)).statusCode, 404)
  }
})

t.test('the page is under the path of baseUrl, the route is not', async t => {
  for (const changePasswordPage of ['/password', '/shop/password']) {
    const app = await startApp(t, { baseUrl: 'https://app.example/shop', changePasswordPage })
    t.equal((await app.inject(URL)).headers.location, '/shop/password')
  }
})

t.test('without the option there is no route, and the application can have its own', async t => {
  const app = await startApp(t, {}, {}, app => { app.get(URL, async () => 'its own') })

  t.equal((await app.inject(URL)).body, 'its own')
  t.equal((await (await startApp(t)).inject(URL)).statusCode, 404)
})

t.test('in a context with a prefix, where the route cannot be at the root, the option is refused', async t => {
  const register = (prefix: string) => {
    const app = Fastify()
    t.teardown(() => app.close())
    return app.register(async scope => {
      await scope.register(authPlugin, { session: { secret: SESSION_SECRET }, changePasswordPage: PAGE })
    }, { prefix }).ready()
  }

  await t.rejects(async () => register('/api'), { name: 'OptionsError', message: /^changePasswordPage needs the route .* prefix \/api of the context/ })
  await t.resolves(async () => register('/'))
})

t.test('what the application compiles its own schemas with is not asked', async t => {
  const app = Fastify()
  t.teardown(() => app.close())
  const refuse = () => { throw new Error('this schema is not of the application') }
  app.setValidatorCompiler(refuse).setSerializerCompiler(refuse)

  await app.register(authPlugin, { session: { secret: SESSION_SECRET }, changePasswordPage: PAGE })

  t.equal((await app.inject(URL)).statusCode, 302)
})

const RELATED = '/.well-known/webauthn'
const passkeys = new Passkeys({ name: 'Shop', relatedOrigins: ['https://app.test'] })
const OF_PASSKEYS = { baseUrl: 'https://app.example', trustedOrigins: ['https://app.test'], passkeys }

t.test('attack 107: browsers find the origins whose pages may use the passkeys, and none without the option', async t => {
  const app = await startApp(t, OF_PASSKEYS)
  const { statusCode, headers, body } = await app.inject(RELATED)
  t.match([statusCode, headers], [200, { 'content-type': 'application/json; charset=utf-8', 'set-cookie': undefined }])
  t.strictSame(JSON.parse(body), { origins: ['https://app.example', 'https://app.test'] })

  const alone = { ...OF_PASSKEYS, passkeys: new Passkeys({ name: 'Shop' }) }
  for (const options of [{}, alone]) t.equal((await (await startApp(t, options)).inject(RELATED)).statusCode, 404)
  const both = await startApp(t, { ...OF_PASSKEYS, changePasswordPage: PAGE })
  t.strictSame([(await both.inject(URL)).statusCode, (await both.inject(RELATED)).statusCode], [302, 200])
})

t.test('related origins need a registration at the root', async t => {
  const app = Fastify()
  t.teardown(() => app.close())
  await t.rejects(async () => app.register(async scope => {
    await scope.register(authPlugin, { session: { secret: SESSION_SECRET }, ...OF_PASSKEYS })
  }, { prefix: '/api' }).ready(), { message: /^relatedOrigins of Passkeys needs the route \/\.well-known\/webauthn/ })
})

const METADATA = '/.well-known/openid-configuration'
const BASE_URL = 'https://app.example'
const issuing = (issuer: string, signingKey = ecKey()) => localProvider({ secret: undefined, signingKey, issuer })

t.test('the metadata of an issuer that is a URL of the application are below it, for everyone and for caches', async t => {
  for (const [issuer, options, route, jwks] of [
    [BASE_URL, {}, METADATA, `${BASE_URL}/auth/local/jwks.json`],
    [`${BASE_URL}/`, {}, METADATA, `${BASE_URL}/auth/local/jwks.json`],
    [`${BASE_URL}/tokens`, { prefix: '/sign/in' }, `/tokens${METADATA}`, `${BASE_URL}/sign/in/local/jwks.json`],
    [`${BASE_URL}/shop`, { baseUrl: `${BASE_URL}/shop` }, METADATA, `${BASE_URL}/shop/auth/local/jwks.json`]
  ] as const) {
    const app = await startApp(t, { baseUrl: BASE_URL, local: issuing(issuer), ...options })

    const response = await app.inject({ url: route, headers: { 'sec-fetch-site': 'cross-site' } })

    t.match([response.statusCode, response.headers], [200, {
      'content-type': 'application/json; charset=utf-8', 'cache-control': 'public, max-age=300', 'set-cookie': undefined
    }])
    t.strictSame(response.json(), {
      issuer,
      jwks_uri: jwks,
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['ES256']
    }, 'no endpoint is in them')
    const keys = await app.inject(new globalThis.URL(jwks).pathname.replace(/^\/shop/, ''))
    t.equal(keys.statusCode, 200, 'the keys are where they say')
    t.equal(response.json().issuer, app.localIdp?.issuer)
  }
})

t.test('no metadata are published of an issuer that is not a URL of the application, and none with a secret', async t => {
  const elsewhere = ['svc-auth-local', 'https://app.example.org', 'https://id.app.example', `${BASE_URL}.evil.example`, `${BASE_URL}/:id`, `${BASE_URL}?a=b`]
  for (const options of [
    { local: issuing(BASE_URL) },
    { baseUrl: `${BASE_URL}/shop`, local: issuing(BASE_URL) },
    { baseUrl: BASE_URL, local: localProvider({ issuer: BASE_URL }) },
    ...elsewhere.map(issuer => ({ baseUrl: BASE_URL, local: issuing(issuer) }))
  ]) {
    const app = await startApp(t, options, {}, app => { app.get('/own', async () => 'its own') })
    for (const url of [METADATA, `/:id${METADATA}`, `/auth${METADATA}`]) t.equal((await app.inject(url)).statusCode, 404)
  }
})

t.test('in a context with a prefix, the metadata are published where the issuer is in it', async t => {
  const statusOf = async (issuer: string, url: string) => {
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(async scope => {
      await scope.register(authPlugin, { session: { secret: SESSION_SECRET }, baseUrl: BASE_URL, local: issuing(issuer) })
    }, { prefix: '/api' })
    return (await app.inject(url)).statusCode
  }

  t.equal(await statusOf(`${BASE_URL}/api`, `/api${METADATA}`), 200)
  for (const url of [METADATA, `/api${METADATA}`]) t.equal(await statusOf(BASE_URL, url), 404)
})

t.test('two registrations do not claim one path', async t => {
  const session = { secret: SESSION_SECRET }
  for (const [options, path, option] of [
    [{ changePasswordPage: PAGE }, URL, 'pages and changePasswordPage'],
    [OF_PASSKEYS, RELATED, 'relatedOrigins of Passkeys'],
    [{ baseUrl: BASE_URL, local: issuing(BASE_URL) }, METADATA, 'a signingKey with this issuer']
  ] as const) {
    const register = (first: object): FastifyInstance => {
      const app = Fastify()
      t.teardown(() => app.close())
      app.register(async scope => { await scope.register(authPlugin, { session, prefix: '/a', ...first }) })
      app.register(async scope => { await scope.register(authPlugin, { session: { ...session, cookieName: 'b' }, prefix: '/b', ...options }) })
      return app
    }
    const message = `the application has the route ${path} already; give ${option} to one registration of fastify-svc-auth, and mount no such route`
    await t.rejects(async () => register(options).ready(), { name: 'OptionsError', message })
    await t.resolves(async () => register({}).ready())
  }
})

const ENDPOINTS = '/.well-known/passkey-endpoints'

t.test('a password manager finds the page of passkeys: that of the plugin, or of the application', async t => {
  const own = { baseUrl: 'https://app.example/shop', passkeys: new Passkeys({ name: 'Shop' }) }
  const pages = new Pages({ name: 'Shop' })
  for (const [options, page] of [
    [{ ...own, pages }, 'https://app.example/shop/auth/pages/factors'],
    [{ ...own, secondFactorPage: '/account/passkeys' }, 'https://app.example/shop/account/passkeys'],
    [{ ...own, pages, secondFactorPage: '/account/passkeys' }, 'https://app.example/shop/account/passkeys']
  ] as const) {
    const { statusCode, headers, body } = await (await startApp(t, options)).inject(ENDPOINTS)
    t.match([statusCode, headers['content-type'], headers['set-cookie']], [200, 'application/json; charset=utf-8', undefined])
    t.strictSame(JSON.parse(body), { enroll: page, manage: page })
  }
  for (const options of [own, { ...own, passkeys: undefined, pages }]) {
    t.equal((await (await startApp(t, options)).inject(ENDPOINTS)).statusCode, 404)
  }
})

t.test('in a context with a prefix, password managers find no page of passkeys, and no mistake is made of it', async t => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(async scope => {
    await scope.register(authPlugin, {
      session: { secret: SESSION_SECRET }, baseUrl: 'https://app.example', passkeys: new Passkeys({ name: 'Shop' }), pages: new Pages({ name: 'Shop' })
    })
  }, { prefix: '/v1' })
  for (const url of [ENDPOINTS, `/v1${ENDPOINTS}`]) t.equal((await app.inject(url)).statusCode, 404)
})
