import fastifySwagger from '@fastify/swagger'
import Fastify, { type FastifyInstance } from 'fastify'
import t from 'tap'
import authPlugin, { OidcProvider } from '../../lib/index.js'
import { SESSION_SECRET, localProvider } from '../helpers/app.js'

t.test('@fastify/swagger documents every route with what it takes, its success and its errors', async t => {
  const app: FastifyInstance = Fastify()
  t.teardown(() => app.close())
  await app.register(fastifySwagger, { openapi: { openapi: '3.1.0' } })
  const provider = (name: string) => new OidcProvider({ name, discoveryUrl: 'https://id.example/.well-known/openid-configuration', clientId: 'a', clientSecret: 'b' })
  await app.register(authPlugin, { local: localProvider(), baseUrl: 'https://app.example', providers: [provider('first'), provider('my-second')], session: { secret: SESSION_SECRET } })
  await app.ready()

  const { paths } = JSON.parse(JSON.stringify(app.swagger()))

  const routes = Object.entries<Record<string, { operationId: string, responses: Record<string, unknown> }>>(paths)
    .flatMap(([path, methods]) => Object.entries(methods).map(([method, { operationId, responses }]) => [`${method} ${path}`, operationId, ...Object.keys(responses)]))
  t.strictSame(routes, [
    ['get /auth/first/login', 'authFirstLogin', '302', '4XX', '5XX'],
    ['get /auth/first/callback', 'authFirstCallback', '302', '4XX', '5XX'],
    ['get /auth/my-second/login', 'authMySecondLogin', '302', '4XX', '5XX'],
    ['get /auth/my-second/callback', 'authMySecondCallback', '302', '4XX', '5XX'],
    ['post /auth/local/register', 'authLocalRegister', '201', '303', '4XX', '5XX'],
    ['post /auth/local/login', 'authLocalLogin', '200', '303', '4XX', '5XX'],
    ['post /auth/local/token', 'authLocalToken', '200', '4XX', '5XX'],
    ['post /auth/local/verify-token', 'authLocalVerifyToken', '200', '4XX', '5XX'],
    ['post /auth/local/revoke', 'authLocalRevoke', '204', '303', '4XX', '5XX']
  ])
  for (const methods of Object.values<Record<string, { summary: string, tags: string[] }>>(paths)) {
    for (const { summary, tags } of Object.values(methods)) {
      t.match(summary, /^[A-Z]/)
      t.strictSame(tags, ['auth'])
    }
  }
  const { content, required } = paths['/auth/local/register'].post.requestBody
  t.equal(required, true)
  t.strictSame(Object.keys(content), ['application/x-www-form-urlencoded', 'application/json'])
  t.strictSame(Object.keys(content['application/json'].schema.properties), ['email', 'password', 'name', 'role', 'email_verified', 'next', 'error_next'])
})
