import fastifySwagger, { type FastifyDynamicSwaggerOptions } from '@fastify/swagger'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import Fastify, { type FastifyInstance, type LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin, { type AuthPluginOptions, MemoryAuthStore, OidcProvider, openapiComponents } from '../../lib/index.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { mailbox } from '../../lib/testing.js'
import { LOCAL_SECRET, SESSION_SECRET, localProvider } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { OwnProvider, leaveFor, signInAt } from '../helpers/own-provider.js'
import { some } from '../helpers/thorough.js'
import { ecKey } from '../helpers/signing-key.js'

interface Answer {
  description: string
  headers?: Record<string, object>
  content?: Record<string, { schema: object }>
}

interface Operation {
  operationId: string
  summary: string
  tags: string[]
  security?: Array<Record<string, string[]>>
  requestBody?: { required: boolean, content: Record<string, { schema: { properties: object } }> }
  responses: Record<string, Answer>
}

interface OpenapiDocument {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: object, securitySchemes?: object }
}

/** One for all documents: it compiles the schema of a version of OpenAPI once. */
const validator = new Validator()
const VERSIONS = ['3.0.0', '3.0.3', '3.0.4', '3.1.0', '3.1.1', '3.2.0']
const INFO = { title: 'An application', version: '1.0.0' }
const BASE_URL = 'https://app.example'
const USER = { email: 'ada@example.com', password: 'correct horse' }

function unreachable (name: string, signOut = false): OidcProvider {
  const fetch = async () => { throw new TypeError('nothing is there') }
  return new OidcProvider({ name, discoveryUrl: 'https://id.example/.well-known/openid-configuration', clientId: 'a', clientSecret: 'b', fetch, signOut })
}

const mails = mailbox()
const withSigningKey = () => localProvider({ secret: undefined, signingKey: ecKey(), sendMail: mails.sendMail })
const everything = (): AuthPluginOptions => ({
  local: withSigningKey(),
  dataSecret: LOCAL_SECRET,
  baseUrl: BASE_URL,
  providers: [unreachable('first'), unreachable('my-second', true)],
  changePasswordPage: '/account/password'
})

/** An application that is documented, with the options of @fastify/swagger given. */
async function startDocumented (
  t: Test,
  swagger: FastifyDynamicSwaggerOptions,
  options: AuthPluginOptions = everything(),
  extend: (app: FastifyInstance) => void = () => {}
): Promise<FastifyInstance> {
  const app: FastifyInstance = Fastify()
  t.teardown(() => app.close())
  await app.register(fastifySwagger, swagger)
  await app.register(authPlugin, { session: { secret: SESSION_SECRET }, ...options })
  extend(app)
  await app.ready()
  return app
}

/** The document as it is served. */
function documentOf (app: FastifyInstance): OpenapiDocument {
  return JSON.parse(JSON.stringify(app.swagger()))
}

function operationsOf ({ paths }: OpenapiDocument): Array<[route: string, operation: Operation]> {
  return Object.entries(paths).flatMap(([path, methods]) => Object.entries(methods).map(
    ([method, operation]): [string, Operation] => [`${method} ${path}`, operation]
  ))
}

/** Every `$ref` in a document, however deep. */
function referencesIn (part: unknown): string[] {
  if (typeof part !== 'object' || part === null) return []
  return Object.entries(part).flatMap(([key, value]) => key === '$ref' ? [String(value)] : referencesIn(value))
}

t.test('@fastify/swagger documents every route with what it takes, its success and its errors', async t => {
  const app = await startDocumented(t, { openapi: { info: INFO } })
  const operations = operationsOf(documentOf(app))

  t.strictSame(operations.map(([route, { operationId, responses }]) => [route, operationId, Object.keys(responses).join(' ')]), [
    ['get /.well-known/change-password', 'authChangePasswordPage', '302 4XX 5XX'],
    ['get /auth/first/login', 'authFirstLogin', '200 302 400 401 403 429 502 503 4XX 5XX'],
    ['post /auth/first/login', 'authFirstStart', '200 303 400 401 403 429 502 503 4XX 5XX'],
    ['get /auth/first/callback', 'authFirstCallback', '302 400 401 403 409 429 502 503 4XX 5XX'],
    ['get /auth/my-second/login', 'authMySecondLogin', '200 302 400 401 403 429 502 503 4XX 5XX'],
    ['post /auth/my-second/login', 'authMySecondStart', '200 303 400 401 403 429 502 503 4XX 5XX'],
    ['get /auth/my-second/callback', 'authMySecondCallback', '302 400 401 403 409 429 502 503 4XX 5XX'],
    ['post /auth/local/register', 'authLocalRegister', '201 303 400 401 403 409 429 503 4XX 5XX'],
    ['post /auth/local/login', 'authLocalLogin', '200 303 400 401 403 429 503 4XX 5XX'],
    ['post /auth/local/reauthenticate', 'authLocalReauthenticate', '204 303 400 401 403 429 503 4XX 5XX'],
    ['post /auth/local/token', 'authLocalToken', '200 400 401 403 503 4XX 5XX'],
    ['post /auth/local/verify-token', 'authLocalVerifyToken', '200 400 401 403 503 4XX 5XX'],
    ['get /auth/local/jwks.json', 'authLocalJwks', '200 503 4XX 5XX'],
    ['post /auth/local/forgot-password', 'authLocalForgotPassword', '202 303 400 403 429 503 4XX 5XX'],
    ['get /auth/local/reset-password', 'authLocalResetPasswordPage', '200 302 400 401 503 4XX 5XX'],
    ['post /auth/local/reset-password', 'authLocalResetPassword', '204 303 400 401 403 409 429 503 4XX 5XX'],
    ['get /auth/local/verify-email', 'authLocalVerifyEmailPage', '200 302 400 401 503 4XX 5XX'],
    ['post /auth/local/verify-email', 'authLocalVerifyEmail', '202 204 303 400 401 403 409 429 503 4XX 5XX'],
    ['post /auth/local/change-password', 'authLocalChangePassword', '204 303 400 401 403 429 503 4XX 5XX'],
    ['post /auth/local/set-password', 'authLocalSetPassword', '204 303 400 401 403 409 429 503 4XX 5XX'],
    ['post /auth/local/change-email', 'authLocalChangeEmail', '202 303 400 401 403 429 503 4XX 5XX'],
    ['get /auth/local/change-email/confirm', 'authLocalChangeEmailPage', '200 302 400 401 503 4XX 5XX'],
    ['post /auth/local/change-email/confirm', 'authLocalChangeEmailConfirm', '204 303 400 401 403 409 429 503 4XX 5XX'],
    ['post /auth/local/delete-account', 'authLocalDeleteAccount', '204 303 400 401 403 409 429 503 4XX 5XX'],
    ['get /auth/session', 'authSession', '200 503 4XX 5XX'],
    ['post /auth/logout', 'authLogout', '200 204 303 400 403 503 4XX 5XX'],
    ['post /auth/local/revoke', 'authLocalRevoke', '200 204 303 400 403 503 4XX 5XX'],
    ['get /auth/my-second/signed-out', 'authMySecondSignedOut', '302 4XX 5XX'],
    ['post /auth/local/sessions/end', 'authLocalEndSession', '204 303 400 401 403 404 501 503 4XX 5XX']
  ])
  for (const [route, { summary, tags, responses }] of operations) {
    t.match(summary, /^[A-Z]/, route)
    t.strictSame(tags, ['auth'], route)
    for (const [status, { headers, content }] of Object.entries(responses)) {
      const isBare = status.startsWith('3') || ['202', '204'].includes(status)
      t.equal(content === undefined, isBare, `${route} has a body with ${status} or none`)
      t.equal(headers !== undefined && 'Location' in headers, status.startsWith('3'), `${route} leads on with ${status} or not`)
    }
  }

  const bodies = operations.flatMap(([route, { requestBody }]) => requestBody === undefined ? [] : [[route, ...Object.keys(requestBody.content)]])
  const formOrJson = ['application/x-www-form-urlencoded', 'application/json']
  t.strictSame(
    bodies,
    [
      'first/login', 'my-second/login', 'local/register', 'local/login', 'local/reauthenticate', 'local/verify-token', 'local/forgot-password',
      'local/reset-password', 'local/verify-email', 'local/change-password', 'local/set-password', 'local/change-email',
      'local/change-email/confirm', 'local/delete-account', 'logout', 'local/revoke',
      'local/sessions/end'
    ]
      .map(path => [`post /auth/${path}`, ...formOrJson])
  )
  const registration = operations.find(([route]) => route === 'post /auth/local/register')?.[1].requestBody
  t.strictSame(
    Object.keys(registration?.content['application/json']?.schema.properties ?? {}),
    ['email', 'password', 'name', 'role', 'email_verified', 'remember', 'next', 'error_next']
  )
})

t.test('a document is valid', async t => {
  const applications: Record<string, () => AuthPluginOptions> = {
    'with everything': everything,
    'with another prefix': () => ({ ...everything(), prefix: '/sign/in' }),
    'with second factors': () => ({ ...everything(), secondFactor: new SecondFactor({ issuer: 'Shop' }) }),
    'without passwords': () => ({ baseUrl: BASE_URL, providers: [unreachable('first')] }),
    'with addresses that are confirmed': () => ({ ...everything(), local: localProvider({ registration: { verify: 'required' }, sendMail () {} }) }),
    'with addresses that are confirmed first': () => ({ ...everything(), local: localProvider({ registration: { verify: 'first' }, sendMail () {} }) }),
    'with passwords and without registration': () => ({ local: localProvider({ registration: false }) })
  }
  const declarations = { 'declares our components': { components: openapiComponents }, 'declares none': {} }

  const cases = VERSIONS.flatMap(version => Object.entries(applications).flatMap(application =>
    Object.entries(declarations).map(declared => ({ version, application, declared }))))
  // Each version, each application and each declaration is among those of each commit.
  for (const { version, application: [application, options], declared: [declares, components] } of some(cases, 5)) {
    await t.test(`in OpenAPI ${version}, ${application}, when it ${declares}`, async t => {
      const document = documentOf(await startDocumented(
        t,
        { openapi: { openapi: version, info: INFO, ...components }, convertConstToEnum: false },
        options()
      ))
      const operations = operationsOf(document).map(([, operation]) => operation)

      t.strictSame(await validator.validate(structuredClone({ ...document })), { valid: true })
      t.ok(operations.length > 0)
      t.equal(new Set(operations.map(({ operationId }) => operationId)).size, operations.length, 'has each operationId once')
      t.notOk(
        operations.some(({ responses }) => Object.values(responses).some(
          ({ description }) => description === 'Default Response'
        )),
        'describes each answer'
      )
      const named = Object.keys(document.components.schemas).map(name => `#/components/schemas/${name}`)
      t.strictSame(referencesIn(document).filter(reference => !named.includes(reference)), [], 'defines what it refers to')
      const required = operations.flatMap(({ security = [] }) => security.flatMap(requirement => Object.keys(requirement)))
      t.strictSame(required.filter(name => !(name in Object(document.components.securitySchemes))), [], 'declares what it requires')
    })
  }
})

t.test('routes say what they ask for, once the application declares the security schemes', async t => {
  const securityWith = async (components?: object) => {
    const app = await startDocumented(t, { openapi: { info: INFO, ...(components && { components }) } }, { ...everything(), providers: [unreachable('first')] })
    return Object.fromEntries(operationsOf(documentOf(app)).map(([route, { security }]) => [route, security]))
  }
  const open = Object.fromEntries([
    'post /auth/local/register', 'post /auth/local/login', 'post /auth/local/verify-token', 'get /auth/local/jwks.json',
    'post /auth/local/forgot-password', 'get /auth/local/reset-password', 'post /auth/local/reset-password',
    'get /auth/local/verify-email'
  ].map(route => [route, []]))

  t.strictSame(await securityWith({ securitySchemes: openapiComponents.securitySchemes }), {
    'get /.well-known/change-password': [],
    ...open,
    'get /auth/session': [{}, { session: [] }],
    'post /auth/logout': [{}, { session: [] }],
    'get /auth/first/login': [{}, { session: [] }],
    'post /auth/first/login': [{}, { session: [] }],
    'get /auth/first/callback': [{ session: [] }],
    'post /auth/local/reauthenticate': [{ session: [] }],
    'post /auth/local/verify-email': [{}, { session: [] }],
    'post /auth/local/change-password': [{ session: [] }],
    'post /auth/local/set-password': [{ session: [] }],
    'post /auth/local/change-email': [{ session: [] }],
    'get /auth/local/change-email/confirm': [{}, { session: [] }],
    'post /auth/local/change-email/confirm': [{}, { session: [] }],
    'post /auth/local/delete-account': [{ session: [] }],
    'post /auth/local/token': [{ session: [] }],
    'post /auth/local/revoke': [{}, { session: [] }],
    'post /auth/local/sessions/end': [{ session: [] }]
  })
  t.match(await securityWith(), { ...open, 'post /auth/local/token': undefined, 'post /auth/local/revoke': undefined })
})

t.test('routes of the application can name the schemes, and give the cookie its name', async t => {
  const { session, bearer } = openapiComponents.securitySchemes
  const components = { ...openapiComponents, securitySchemes: { bearer, session: { ...session, name: '__Host-id' } } }
  const app = await startDocumented(t, { openapi: { info: INFO, components } }, everything(), app => {
    app.get('/reports', { schema: { security: [{ bearer: [] }] }, preHandler: app.auth.requireBearer }, async () => [])
  })
  const document = documentOf(app)

  t.strictSame(document.paths['/reports']?.get?.security, [{ bearer: [] }])
  t.match(document.components.securitySchemes, { bearer: { type: 'http', scheme: 'bearer' }, session: { type: 'apiKey', in: 'cookie', name: '__Host-id' } })
  t.strictSame(await validator.validate({ ...document }), { valid: true })
})

t.test('the cookie has the name that the session has by default', async t => {
  const browser = new Browser(await startDocumented(t, { openapi: { info: INFO } }))
  await browser.post('/auth/local/register', USER)

  t.strictSame([...browser.cookies.keys()], [openapiComponents.securitySchemes.session.name])
})

t.test('bodies have one schema each in the document, under the names that the application declares', async t => {
  const schemasWith = async (schemas?: Record<string, object>) => {
    const { paths } = documentOf(await startDocumented(t, { openapi: { info: INFO, ...(schemas && { components: { schemas } }) } }))
    const { 200: success, 401: failure } = paths['/auth/local/login']?.post?.responses ?? {}
    return [success, failure].map(answer => answer?.content?.['application/json']?.schema)
  }
  const { AuthError, Principal } = openapiComponents.schemas
  const inline = [{ title: 'Principal', required: Principal.required }, { title: 'AuthError', required: AuthError.required }]

  t.strictSame(await schemasWith({ AuthError, Principal }), [{ $ref: '#/components/schemas/Principal' }, { $ref: '#/components/schemas/AuthError' }])
  t.match(await schemasWith(), inline)
  t.match(await schemasWith({ AuthError: { type: 'string' }, Principal: { type: 'string' } }), inline, 'others of the same names are others')
})

t.test("the application's own transform, which may know another schema library only, is not asked about the routes", async t => {
  const asked: string[] = []
  const transform: FastifyDynamicSwaggerOptions['transform'] = ({ schema, url }) => {
    asked.push(url)
    return { schema, url: `/v1${url}` }
  }
  const app = await startDocumented(t, { openapi: { info: INFO }, transform }, { local: localProvider() }, app => { app.get('/reports', async () => []) })
  const paths = Object.keys(documentOf(app).paths)

  t.strictSame(asked, ['/reports'])
  t.ok(paths.includes('/auth/local/login'))
  t.ok(paths.includes('/v1/reports'))
})

t.test('an application leaves the routes out by their tag', async t => {
  t.strictSame(documentOf(await startDocumented(t, { openapi: { info: INFO, components: openapiComponents }, hiddenTag: 'auth' })).paths, {})
})

t.test('in Swagger 2.0 the routes are documented without security', async t => {
  const operations = operationsOf(documentOf(await startDocumented(t, { swagger: { info: INFO } })))

  t.equal(operations.length, 29)
  t.ok(operations.every(([, { security = [] }]) => security.length === 0))
})

t.test('what the document says is what the routes do', async t => {
  class StoreThatIsDown extends MemoryAuthStore {
    override async findCredential (): Promise<never> { throw new Error('down') }
  }
  const providers = [new OwnProvider('own'), unreachable('away')]
  const options: AuthPluginOptions = { local: withSigningKey(), dataSecret: LOCAL_SECRET, baseUrl: BASE_URL, providers }
  const openapi = { openapi: '3.1.0', info: INFO, components: openapiComponents }
  const app = await startDocumented(t, { openapi }, options)
  const [down, limited] = [
    await startDocumented(t, { openapi }, { ...options, store: new StoreThatIsDown() }),
    await startDocumented(t, { openapi }, { ...options, local: localProvider(), rateLimit: { login: 1 } })
  ]
  const document = documentOf(app)
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true }).addSchema(document, 'document')
  const schemaAt = (...path: string[]) => ({ $ref: `document#${path.map(name => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')}` })

  /** What is false in the document, as an answer shows; null when there is nothing. */
  function lie (route: string, { statusCode, headers, body }: LightMyRequestResponse): string | null {
    const [method = '', path = ''] = route.split(' ')
    const { responses = {} } = document.paths[path]?.[method] ?? {}
    const status = String(statusCode) in responses ? String(statusCode) : `${String(statusCode)[0]}XX`
    const answer = responses[status]
    if (answer === undefined) return `${statusCode} is not documented`
    const untold = ['location', 'retry-after'].filter(
      name => name in headers && !Object.keys(answer.headers ?? {}).some(
        documented => documented.toLowerCase() === name
      )
    )
    if (untold.length > 0) return `${statusCode} has ${untold}`
    if (answer.headers !== undefined && 'Location' in answer.headers && headers.location === undefined) return `${statusCode} has no Location`
    if (answer.content === undefined) return body === '' ? null : `${statusCode} has a body`
    const isJson = headers['content-type']?.toString().startsWith('application/json') === true
    const isPage = 'text/html' in answer.content && !(isJson && 'application/json' in answer.content)
    if (isPage) return headers['content-type'] === 'text/html; charset=utf-8' ? null : 'is no page'
    if (headers['content-type'] !== 'application/json; charset=utf-8') return `${statusCode} has no JSON`
    const sent: unknown = JSON.parse(body)
    if (!ajv.validate(schemaAt('paths', path, method, 'responses', status, 'content', 'application/json', 'schema'), sent)) return ajv.errorsText()
    const { code }: { code?: string } = Object(sent)
    return code === undefined || status.endsWith('XX') || answer.description.includes(`\`${code}\``) ? null : `${statusCode} has ${code}`
  }

  const ada = new Browser(app)
  const resetToken = async () => (await mails.next('reset-password')).token
  const somebody = () => new Browser(app)
  const WRONG = { ...USER, password: 'wrong horse' }
  const BLOCKED = { email: 'mallory@example.com', password: 'battery staple' }
  const EVE = { email: 'eve@example.com', password: 'battery staple' }
  const GRACE = { email: 'grace@example.com' }
  const json = { accept: 'application/json' }
  await app.auth.createUser(GRACE)

  const requests: Array<[route: string, status: number, send: () => Promise<LightMyRequestResponse>]> = [
    ['post /auth/local/register', 201, () => ada.post('/auth/local/register', USER)],
    ['post /auth/local/register', 303, () => somebody().submit('/auth/local/register', EVE)],
    ['post /auth/local/register', 303, () => somebody().submit('/auth/local/register', EVE, { referer: BASE_URL })],
    ['post /auth/local/register', 409, () => somebody().post('/auth/local/register', { ...USER, password: 'another one' })],
    ['post /auth/local/register', 400, () => somebody().post('/auth/local/register', { ...EVE, password: 'short' })],
    ['post /auth/local/register', 400, () => somebody().post('/auth/local/register', { ...EVE, email: 'eve' })],
    ['post /auth/local/register', 400, () => somebody().post('/auth/local/register', { email: EVE.email })],
    ['post /auth/local/register', 403, () => somebody().post('/auth/local/register', { ...EVE, role: 'admin' })],
    ['post /auth/local/register', 403, () => somebody().post('/auth/local/register', EVE, { origin: 'https://evil.example' })],
    ['post /auth/local/register', 413, () => somebody().post('/auth/local/register', { ...EVE, name: 'x'.repeat(1_048_577) })],
    ['post /auth/local/register', 415, () => somebody().post('/auth/local/register', EVE, { 'content-type': 'text/plain' })],
    ['post /auth/local/login', 200, () => ada.post('/auth/local/login', USER)],
    ['post /auth/local/login', 303, () => somebody().submit('/auth/local/login', { ...USER, next: '/welcome' })],
    ['post /auth/local/login', 401, () => somebody().post('/auth/local/login', WRONG)],
    ['post /auth/local/login', 401, () => new Browser(limited).post('/auth/local/login', WRONG)],
    ['post /auth/local/login', 429, () => new Browser(limited).post('/auth/local/login', WRONG)],
    ['post /auth/local/login', 503, () => new Browser(down).post('/auth/local/login', USER)],
    ['post /auth/local/forgot-password', 202, () => somebody().post('/auth/local/forgot-password', GRACE)],
    ['post /auth/local/forgot-password', 303, () => somebody().submit('/auth/local/forgot-password', EVE)],
    ['post /auth/local/forgot-password', 400, () => somebody().post('/auth/local/forgot-password', { email: 'ada' })],
    ['get /auth/local/reset-password', 200, async () => somebody().get(`/auth/local/reset-password?token=${await resetToken()}`)],
    ['get /auth/local/reset-password', 401, () => somebody().get('/auth/local/reset-password?token=x', json)],
    ['post /auth/local/reset-password', 400, () => somebody().post('/auth/local/reset-password', { token: 'x' })],
    ['post /auth/local/reset-password', 401, () => somebody().post('/auth/local/reset-password', { token: 'x', password: EVE.password })],
    ['post /auth/local/verify-email', 202, () => ada.post('/auth/local/verify-email')],
    ['post /auth/local/verify-email', 401, () => somebody().post('/auth/local/verify-email')],
    ['post /auth/local/verify-email', 401, () => ada.post('/auth/local/verify-email', { token: 'x' })],
    ['get /auth/local/verify-email', 401, () => somebody().get('/auth/local/verify-email?token=x', json)],
    ['post /auth/local/reauthenticate', 204, () => ada.post('/auth/local/reauthenticate', { password: USER.password })],
    ['post /auth/local/reauthenticate', 303, () => ada.submit('/auth/local/reauthenticate', { password: USER.password })],
    ['post /auth/local/reauthenticate', 401, () => ada.post('/auth/local/reauthenticate', { password: WRONG.password })],
    ['post /auth/local/reauthenticate', 401, () => new Browser(app).post('/auth/local/reauthenticate', { password: USER.password })],
    ['post /auth/local/token', 200, () => ada.post('/auth/local/token')],
    ['post /auth/local/token', 401, () => somebody().post('/auth/local/token')],
    ['post /auth/local/token', 403, () => ada.post('/auth/local/token', undefined, { 'sec-fetch-site': 'cross-site' })],
    ['post /auth/local/verify-token', 200, async () => ada.post('/auth/local/verify-token', { token: await app.localIdp?.issueIdToken('a program') })],
    ['post /auth/local/verify-token', 200, async () => ada.submit('/auth/local/verify-token', { token: await app.localIdp?.issueIdToken('a program') ?? '' })],
    ['post /auth/local/verify-token', 401, () => ada.post('/auth/local/verify-token', { token: 'none' })],
    ['post /auth/local/verify-token', 400, () => ada.post('/auth/local/verify-token', {})],
    ['get /auth/local/jwks.json', 200, () => somebody().get('/auth/local/jwks.json')],
    ['get /auth/own/login', 302, () => somebody().get('/auth/own/login?next=/welcome')],
    ['get /auth/own/login', 401, () => somebody().get('/auth/own/login?link=true', { ...json, 'sec-fetch-site': 'same-origin' })],
    ['get /auth/own/login', 400, () => somebody().get('/auth/own/login?link=maybe', json)],
    ['get /auth/own/login', 200, () => ada.get('/auth/own/login?link=true')],
    ['post /auth/own/login', 200, () => somebody().post('/auth/own/login', {})],
    ['post /auth/own/login', 200, () => somebody().submit('/auth/own/login', { next: '/welcome' })],
    ['post /auth/own/login', 401, () => somebody().post('/auth/own/login', { link: 'true' })],
    ['post /auth/own/login', 400, () => ada.post('/auth/own/login', { reauthenticate: 'true' })],
    ['post /auth/away/login', 503, () => somebody().post('/auth/away/login', {})],
    ['get /auth/away/login', 503, () => somebody().get('/auth/away/login', json)],
    ['get /auth/away/login', 302, () => somebody().get('/auth/away/login', { accept: 'text/html', referer: BASE_URL })],
    ['get /auth/own/callback', 302, () => signInAt(somebody(), 'own', { subject: 'grace' })],
    ['get /auth/own/callback', 409, async () => {
      const browser = somebody()
      return browser.get(await leaveFor(browser, '/auth/own/login', { subject: 'ada', email: USER.email }), json)
    }],
    ['get /auth/own/callback', 400, () => somebody().get('/auth/own/callback?state=unknown&code=1', json)],
    ['get /auth/own/callback', 502, async () => {
      const browser = somebody()
      return browser.get((await leaveFor(browser, '/auth/own/login', { subject: 'grace' })).replace(/code=.*/, 'code=nonsense'), json)
    }],
    ['post /auth/local/login', 403, async () => {
      const { userId } = (await new Browser(app).post('/auth/local/register', BLOCKED)).json()
      await app.auth.block(userId)
      return new Browser(app).post('/auth/local/login', BLOCKED)
    }],
    ['get /auth/own/login', 400, () => ada.get('/auth/own/login?reauthenticate=true', { ...json, 'sec-fetch-site': 'same-origin' })],
    ['post /auth/local/sessions/end', 401, () => somebody().post('/auth/local/sessions/end', { id: 'A'.repeat(32) })],
    ['post /auth/local/sessions/end', 404, () => ada.post('/auth/local/sessions/end', { id: 'A'.repeat(32) })],
    ['post /auth/local/sessions/end', 204, async () => {
      const browser = somebody()
      const { userId } = (await browser.post('/auth/local/login', USER)).json()
      const [last] = await app.auth.sessions(userId)
      return browser.post('/auth/local/sessions/end', { id: last?.id })
    }],
    ['post /auth/logout', 204, () => somebody().post('/auth/logout')],
    ['post /auth/logout', 303, () => somebody().submit('/auth/logout', {})],
    ['post /auth/local/revoke', 403, () => ada.post('/auth/local/revoke', undefined, { 'sec-fetch-site': 'cross-site' })],
    ['post /auth/local/revoke', 204, () => ada.post('/auth/local/revoke')],
    ['post /auth/local/revoke', 303, () => ada.submit('/auth/local/revoke', { next: '/bye' })]
  ]

  for (const [route, status, send] of requests) {
    const answer = await send()
    t.equal(answer.statusCode, status, `${route} answers ${status}`)
    t.equal(lie(route, answer), null, `${route} answers ${status} as documented`)
  }

  await t.test('a body that the document allows is taken, and no other', async t => {
    const registration = schemaAt('paths', '/auth/local/register', 'post', 'requestBody', 'content', 'application/json', 'schema')
    const registering = (index: number) => ({ ...USER, email: `somebody-${index}@example.com` })
    const bodies: Array<[fields: object, isAllowed: boolean]> = [
      [{}, true],
      [{ name: 'Eve', next: '/', error_next: '/sorry' }, true],
      [{ invitation: 'abc', seats: 2, isNew: true, comment: null }, true],
      [{ email_verified: 'off' }, true],
      [{ email_verified: 1 }, false],
      [{ email: ['eve@example.com'] }, false],
      [{ password: true }, false],
      [{ password: undefined }, false],
      [{ name: 'x'.repeat(1001) }, false],
      [{ invitation: { code: 'abc' } }, false],
      [{ invitation: 'x'.repeat(4097) }, false],
      [Object.fromEntries(Array.from({ length: 31 }, (_, index) => [`field-${index}`, index])), false]
    ]

    for (const [index, [fields, isAllowed]] of bodies.entries()) {
      const body = JSON.parse(JSON.stringify({ ...registering(index), ...fields }))
      const about = JSON.stringify(fields).slice(0, 60)
      t.equal(ajv.validate(registration, body), isAllowed, `the document on ${about}`)
      t.equal((await somebody().post('/auth/local/register', body)).statusCode, isAllowed ? 201 : 400, `the route on ${about}`)
    }
  })
})
