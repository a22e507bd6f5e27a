import Fastify, {
  type FastifyBaseLogger, type FastifyInstance, type FastifyPluginAsync, type FastifyPluginCallback, type FastifyReply,
  type FastifyRequest, type FastifyTypeProvider
} from 'fastify'
import authPlugin, { type AuthenticatedCaller, type Guard, type Principal, type TokenClaims, TokenVerifier } from 'fastify-svc-auth'
import { describe, expect, test } from 'tstyche'
import { type Static, type TSchema, Type } from 'typebox'
import type { AnyReply, AnyRequest } from '../../lib/core/guard.js'
import type { RecentProof, RequiredClaims } from '../../lib/features/app-auth/guards.js'
import type { TokenUse } from '../../lib/features/tokens/token-claims.js'

// In this file good code stands as an application has it: what does not compile fails the file.

const app = Fastify()
const { auth } = app

test('guards are asynchronous hooks', () => {
  expect<Guard>().type.toBeCallableWith({} as FastifyRequest, {} as FastifyReply)
  expect<Guard>().type.toBeCallableWith({} as AnyRequest, {} as AnyReply)
  expect<Guard>().type.toBeAssignableFrom<(request: FastifyRequest, reply: FastifyReply) => Promise<void>>()
  expect<Guard>().type.not.toBeAssignableFrom<(request: FastifyRequest) => boolean>()
  expect<Guard>().type.not.toBeAssignableFrom<(request: FastifyReply) => Promise<void>>()
  expect(auth.requireUser).type.toBe<Guard>()
  expect(auth.requireVerified).type.toBe<Guard>()
  expect(auth.requireBearer).type.toBe<Guard>()
  expect(auth.requireSecondFactor).type.toBe<Guard>()
  expect(auth.refuseCrossOrigin).type.toBe<Guard>()
  expect(auth.requireClaims({ role: 'admin' })).type.toBe<Guard>()
  expect(auth.requireBearerFor({ purpose: 'invitation' })).type.toBe<Guard>()
})

describe('what a guard is made for', () => {
  test('requireClaims takes claims, none of which it must name', () => {
    expect<RequiredClaims>().type.toBeAssignableFrom<{ role: 'admin' }>()
    expect<RequiredClaims>().type.toBeAssignableFrom<{ sub: string }>()
    expect(auth.requireClaims).type.toBeCallableWith({})
    expect(auth.requireClaims).type.toBeCallableWith({}, { guests: true })
    expect(auth.requireClaims).type.not.toBeCallableWith({}, { guest: true })
    expect(auth.requireClaims).type.not.toBeCallableWith()
    expect(auth.requireClaims).type.not.toBeCallableWith('admin')
    expect(auth.requireClaims).type.not.toBeCallableWith(['admin'])
    expect(auth.requireClaims).type.not.toBeCallableWith({ sub: 5 })
  })

  test('requireBearerFor takes a purpose, an audience or both', () => {
    expect<TokenUse>().type.toBe<{ purpose?: string, audience?: string }>()
    expect(auth.requireBearerFor).type.toBeCallableWith({ purpose: 'invitation' })
    expect(auth.requireBearerFor).type.toBeCallableWith({ audience: 'billing', purpose: 'pre-auth' })
    expect(auth.requireBearerFor).type.not.toBeCallableWith()
    expect(auth.requireBearerFor).type.not.toBeCallableWith('invitation')
    expect(auth.requireBearerFor).type.not.toBeCallableWith({ audience: ['billing'] })
    expect(auth.requireBearerFor).type.not.toBeCallableWith({ purpose: undefined })
    expect(auth.requireBearerFor).type.not.toBeCallableWith({ purpos: 'invitation' })
  })

  test('requireBearerFor takes scopes, the metadata of a resource and what verifies its tokens', () => {
    const metadata = { authorization_servers: ['https://login.example'] }
    const verifier = new TokenVerifier({ issuer: 'https://login.example', keys: [], algorithms: ['RS256'] })
    expect(auth.requireBearerFor).type.toBeCallableWith({ audience: 'https://app.example/mcp', scopes: ['read'], metadata, verifier })
    expect(auth.requireBearerFor).type.not.toBeCallableWith({ audience: 'billing', scopes: 'read' })
    expect(auth.requireBearerFor).type.not.toBeCallableWith({ audience: 'billing', metadata: {} })
    expect(TokenVerifier).type.not.toBeConstructableWith({ issuer: 'https://login.example', keys: [], algorithms: ['HS256'] })
    expect<TokenClaims['aud']>().type.toBe<string | string[] | undefined>()
  })

  test('requireRecent takes a number of seconds, and whether a second factor is needed', () => {
    expect<RecentProof>().type.toBe<{ within: number, secondFactor?: boolean, impersonated?: boolean }>()
    expect(auth.requireRecent({ within: 600 })).type.toBe<Guard>()
    expect(auth.requireRecent).type.toBeCallableWith({ within: 600, secondFactor: true })
    expect(auth.requireRecent).type.not.toBeCallableWith({ secondFactor: true })
    expect(auth.requireRecent).type.not.toBeCallableWith({ within: 600, secondFactor: 'totp' })
    expect(auth.requireRecent).type.not.toBeCallableWith()
    expect(auth.requireRecent).type.not.toBeCallableWith(600)
    expect(auth.requireRecent).type.not.toBeCallableWith({ within: '10 minutes' })
    expect(auth.requireRecent).type.not.toBeCallableWith({ within: 600, method: 'password' })
  })

  test('anyOf takes guards, of the application too', () => {
    expect(auth.anyOf(auth.requireUser)).type.toBe<Guard>()
    expect(auth.anyOf).type.toBeCallableWith(
      auth.requireBearer,
      auth.requireClaims({ role: 'admin' }),
      async (request: FastifyRequest) => { request.log.info('asked') }
    )
    expect(auth.anyOf).type.not.toBeCallableWith()
    expect(auth.anyOf).type.not.toBeCallableWith(auth.requireClaims)
    expect(auth.anyOf).type.not.toBeCallableWith([auth.requireUser])
  })

  test('a guard that is made by a function is not one itself', () => {
    expect(() => app.get('/', { preHandler: auth.requireClaims }, async () => ''))
      .type.toRaiseError("'(required: RequiredClaims, options?: GuardOptions) => Guard' is not assignable")
    expect(() => app.get('/', { preHandler: auth.requireBearerFor }, async () => '')).type.toRaiseError("'(use: BearerUse) => Guard' is not assignable")
  })
})

describe('guards stand', () => {
  test('alone', () => {
    app.get('/', { preHandler: auth.requireUser }, async request => request.principal)
    app.get('/', { preHandler: auth.requireClaims({ role: 'admin' }) }, async () => '')
    app.get('/', { preHandler: auth.requireRecent({ within: 600 }) }, async request => request.authentication?.at)
    app.get('/', { preHandler: auth.requireBearer }, async request => request.token)
    app.get('/', { preHandler: auth.requireBearerFor({ audience: 'billing' }) }, async () => '')
    app.get('/', { preHandler: auth.refresh }, async () => '')
    app.route({ method: 'GET', url: '/', preHandler: auth.requireUser, handler: async () => '' })
  })

  test('in arrays, with refresh in front of them', () => {
    app.get('/', { preHandler: [auth.refresh, auth.requireUser] }, async () => '')
    app.get('/', { preHandler: [auth.refresh, auth.requireClaims({ role: 'admin' })] }, async () => '')
    app.get('/', { preHandler: [auth.requireBearer, auth.requireBearerFor({ purpose: 'invitation' })] }, async () => '')
    app.route({ method: 'GET', url: '/', preHandler: [auth.refresh, auth.requireUser], handler: async () => '' })
    const guards = [auth.refresh, auth.requireUser]
    app.get('/', { preHandler: guards }, async () => '')
  })

  test('in arrays, beside hooks of the application, whose arguments keep their types', () => {
    app.get('/', {
      preHandler: [
        auth.requireUser,
        async request => { expect(request.principal).type.toBe<Principal | null>() },
        (request, _reply, done) => {
          expect(request.token).type.toBe<TokenClaims | null>()
          done()
        }
      ]
    }, async () => '')
  })

  test('earlier in the request than preHandler', () => {
    app.get('/', { onRequest: auth.requireUser }, async () => '')
    app.get('/', { onRequest: [auth.refresh, auth.requireUser] }, async () => '')
    app.get('/', { preParsing: auth.requireUser, preValidation: [auth.requireBearer] }, async () => '')
  })

  test('as hooks of an application', () => {
    app.addHook('onRequest', auth.requireUser)
    app.addHook('onRequest', auth.refresh)
    app.addHook('preParsing', auth.requireUser)
    app.addHook('preValidation', auth.requireBearer)
    app.addHook('preHandler', auth.requireClaims({ role: 'admin' }))
    expect(() => app.addHook('onReady', auth.requireUser)).type.toRaiseError()
    expect(() => app.addHook('onRequest', auth.requireClaims)).type.toRaiseError()
  })

  test('in encapsulated plugins, however these are written', () => {
    const admin: FastifyPluginAsync<{ role: 'admin' | 'member' }> = async (scope, { role }) => {
      scope.addHook('preHandler', scope.auth.requireClaims({ role }))
    }
    const members: FastifyPluginCallback = (scope, _options, done) => {
      scope.addHook('onRequest', scope.auth.requireUser)
      done()
    }
    async function api (scope: FastifyInstance) {
      scope.get('/', { preHandler: [scope.auth.refresh, scope.auth.requireUser] }, async () => '')
    }
    app.register(admin, { role: 'admin' })
    app.register(members)
    app.register(api)
  })
})

describe('guards stand on routes', () => {
  test('with types of their own', () => {
    interface Post {
      Params: { id: string }
      Querystring: { page: number }
      Headers: { 'x-tenant': string }
      Body: { title: string }
      Reply: { 201: { id: string } }
    }
    app.post<Post>('/', { preHandler: [auth.refresh, auth.requireUser], onRequest: auth.requireBearer }, async (request, reply) => {
      expect(request.body).type.toBe<{ title: string }>()
      expect(request.query).type.toBe<{ page: number }>()
      return reply.code(201).send({ id: request.params.id })
    })
  })

  test('with a type provider, which still types the body', () => {
    const schema = { body: Type.Object({ title: Type.String() }), response: { 200: Type.Object({ id: Type.Number() }) } }
    const typed = app.withTypeProvider<TypeBoxTypeProvider>()
    typed.addHook('onRequest', typed.auth.refresh)
    typed.post('/', { schema, preHandler: typed.auth.requireUser }, async request => {
      expect(request.body).type.toBe<{ title: string }>()
      return { id: 1 }
    })
    typed.post('/', {
      schema,
      onRequest: typed.auth.requireBearer,
      preHandler: [typed.auth.refresh, typed.auth.requireClaims({ role: 'admin' })]
    }, async request => {
      expect(request.body).type.toBe<{ title: string }>()
      expect(request.principal).type.toBe<Principal | null>()
      return { id: 1 }
    })
    typed.register(async scope => {
      scope.withTypeProvider<TypeBoxTypeProvider>().post('/', { schema, preHandler: [scope.auth.requireUser] }, async ({ body }) => ({ id: body.title.length }))
    })
  })

  test('of an application with its own logger', () => {
    const logging = Fastify({ loggerInstance: ownLogger })
    logging.addHook('onRequest', logging.auth.requireUser)
    logging.get('/', { preHandler: [logging.auth.refresh, logging.auth.requireUser] }, async request => {
      request.log.metric('sign-ins', 1)
      return logging.auth.signIn(request, 'id')
    })
  })

  test('of an application with TLS', () => {
    const secure = Fastify({ https: {} })
    secure.register(authPlugin, {})
    secure.addHook('onRequest', secure.auth.requireUser)
    secure.get('/', { preHandler: [secure.auth.refresh, secure.auth.requireUser] }, async request => secure.auth.signIn(request, 'id'))
  })

  test('of an application with HTTP/2', () => {
    const plain = Fastify({ http2: true })
    plain.register(authPlugin, {})
    plain.addHook('onRequest', plain.auth.refuseCrossOrigin)
    plain.addHook('preHandler', plain.auth.anyOf(plain.auth.requireUser, plain.auth.requireBearer))
    plain.get('/', { preHandler: [plain.auth.refresh, plain.auth.requireUser] }, async request => plain.auth.signIn(request, 'id'))
    plain.get('/', { preHandler: plain.auth.requireClaims({ role: 'admin' }) }, async request => plain.auth.user(request))
  })

  test('of an application with HTTP/2 and TLS', () => {
    const secure = Fastify({ http2: true, https: {} })
    secure.register(authPlugin, {})
    secure.addHook('onRequest', secure.auth.refuseCrossOrigin)
    secure.addHook('preHandler', secure.auth.anyOf(secure.auth.requireUser, secure.auth.requireBearer))
    secure.get('/', { preHandler: [secure.auth.refresh, secure.auth.requireUser] }, async request => secure.auth.signIn(request, 'id'))
    secure.get('/', { preHandler: secure.auth.requireClaims({ role: 'admin' }) }, async request => secure.auth.user(request))
  })
})

interface TypeBoxTypeProvider extends FastifyTypeProvider {
  validator: this['schema'] extends TSchema ? Static<this['schema']> : unknown
  serializer: this['schema'] extends TSchema ? Static<this['schema']> : unknown
}

interface OwnLogger extends FastifyBaseLogger {
  metric (name: string, value: number): void
}
declare const ownLogger: OwnLogger

test('requireCaller names kinds of callers, and says who calls', () => {
  expect(auth.requireCaller({ by: ['session', 'key'], scopes: ['orders:read'] })).type.toBe<Guard>()
  expect(auth.requireCaller).type.not.toBeCallableWith({})
  expect(auth.requireCaller).type.not.toBeCallableWith({ by: ['cookie'] })
  app.get('/caller', { preHandler: auth.requireCaller({ by: ['grant'], resource: 'https://app.example/mcp' }) }, async request => {
    const { userId, scopes } = auth.caller(request)
    expect(auth.caller(request)).type.toBe<AuthenticatedCaller>()
    expect(userId).type.toBe<string | null>()
    expect(scopes).type.toBe<readonly string[] | null>()
  })
})
