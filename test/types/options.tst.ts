import fastifySession from '@fastify/session'
import Fastify, { type FastifyPluginOptions, type FastifyRequest } from 'fastify'
import authPlugin, {
  authPlugin as namedPlugin, type AuthPluginOptions, type AuthStore, type ExternalProvider, GoogleProvider,
  type Linking, LocalIdentityProvider, MemoryAuthStore, type Principal, type ProviderIdentity, type ProviderTokens,
  type RateLimitOptions, type SessionOptions, type SignIn, SignInRefused, SqlAuthStore, type User
} from 'fastify-svc-auth'
import { SecondFactor } from 'fastify-svc-auth/second-factor'
import { describe, expect, test } from 'tstyche'
import type { LinkHook, LinkingPolicy, LinkingRule, SignInHook } from '../../lib/hooks.js'
import type { RememberOptions } from '../../lib/session/session-options.js'

const app = Fastify()
declare const provider: ExternalProvider

describe('register', () => {
  test('takes the plugin, under both its names, with options or without', () => {
    expect(app.register).type.toBeCallableWith(authPlugin)
    expect(app.register).type.toBeCallableWith(authPlugin, {})
    expect(app.register).type.toBeCallableWith(namedPlugin, {})
  })

  test('takes the plugin with every option', async () => {
    await app.register(authPlugin, {
      baseUrl: 'https://app.example',
      providers: [new GoogleProvider({ clientId: 'id', clientSecret: 'secret' }), provider],
      local: new LocalIdentityProvider(),
      store: new SqlAuthStore(),
      session: { secret: 'secret', cookieName: 'sid', cookie: { maxAge: 1000 } },
      dataSecret: ['newest', 'older'],
      prefix: '/sign-in',
      linking: 'never',
      onSignIn: ({ principal }) => { expect(principal).type.toBe<Principal>() },
      loginPage: '/login',
      registerPage: '/join',
      forgotPasswordPage: '/forgot',
      accountPage: '/account',
      reauthenticatePage: '/confirm',
      secondFactor: new SecondFactor({ issuer: 'Shop' }),
      secondFactorPage: '/second-factor',
      changePasswordPage: '/account/password',
      trustedOrigins: ['https://admin.app.example'],
      rateLimit: { timeWindow: 60_000, login: 100, account: 10, register: 10, callback: 100, reauthenticate: 5, factor: 100, challenge: 100 }
    })
  })

  test('takes undefined for an option that Fastify has too', () => {
    expect(app.register).type.toBeCallableWith(authPlugin, { prefix: undefined })
    expect(app.register).type.toBeCallableWith(authPlugin, { prefix: undefined, logLevel: 'warn' })
    expect(Fastify({ http2: true }).register).type.toBeCallableWith(authPlugin, { prefix: undefined })
    expect(app.register).type.not.toBeCallableWith(authPlugin, { prefix: 1 })
    expect(app.register(authPlugin, { prefix: undefined })).type.toBe(app.register(authPlugin, {}))
  })

  test('leaves the options of other plugins as they are', () => {
    app.register(async (_scope, options) => { expect(options).type.toBe<{ prefix: string }>() }, { prefix: '/other' })
    app.register(async (_scope, options) => { expect(options).type.toBe<FastifyPluginOptions>() })
    expect(app.register).type.not.toBeCallableWith(fastifySession, { prefix: undefined, secret: 'secret' })
  })

  test('does not take an option that does not exist, or one of the wrong type', () => {
    expect(app.register).type.not.toBeCallableWith(authPlugin, { baseURL: 'https://app.example' })
    expect(app.register).type.not.toBeCallableWith(authPlugin, { baseUrl: 443 })
    expect(app.register).type.not.toBeCallableWith(authPlugin, { linking: 'always' })
    expect(app.register).type.not.toBeCallableWith(authPlugin, { onSignIn: (user: string) => user })
  })
})

describe('the option', () => {
  test('that a setting may leave out can be undefined', () => {
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{
      baseUrl: string | undefined
      local: LocalIdentityProvider | undefined
      store: AuthStore | undefined
      loginPage: string | undefined
    }>()
    expect(LocalIdentityProvider).type.toBeConstructableWith({ secret: process.env.LOCAL_IDP_SECRET, issuer: process.env.ISSUER })
  })

  test('baseUrl is a string', () => {
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ baseUrl: string }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ baseUrl: URL }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ baseUrl: null }>()
  })

  test('providers is a list of providers, of whatever classes', () => {
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ providers: [] }>()
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ providers: readonly ExternalProvider[] }>()
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ providers: [GoogleProvider, ExternalProvider] }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ providers: ExternalProvider }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ providers: string[] }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ providers: Array<typeof GoogleProvider> }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ providers: [LocalIdentityProvider] }>()
  })

  test('local is a LocalIdentityProvider', () => {
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ local: LocalIdentityProvider }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ local: boolean }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ local: { secret: string } }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ local: null }>()
  })

  test('store is an AuthStore', () => {
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ store: AuthStore }>()
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ store: MemoryAuthStore }>()
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ store: SqlAuthStore }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ store: string }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ store: Pick<AuthStore, 'findUser'> }>()
  })

  test('prefix and the pages are strings', () => {
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ prefix: string, loginPage: string }>()
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ registerPage: string | undefined, forgotPasswordPage: string }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ registerPage: URL }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ forgotPasswordPage: URL }>()
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ accountPage: string | undefined }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ accountPage: URL }>()
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ reauthenticatePage: string | undefined }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ reauthenticatePage: URL }>()
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ changePasswordPage: string | undefined }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ changePasswordPage: URL }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ prefix: boolean }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ loginPage: URL }>()
  })

  test('rateLimit is true or false, or numbers of its own and a store class or the memory', () => {
    const store = class {
      incr (_key: string, callback: (error: Error | null, result?: { current: number, ttl: number }) => void): void { callback(null, { current: 1, ttl: 0 }) }
      child () { return this }
    }
    expect<AuthPluginOptions['rateLimit']>().type.toBeAssignableFrom<boolean>()
    expect<RateLimitOptions>().type.toBeAssignableFrom({ login: 5, store })
    expect<RateLimitOptions>().type.toBeAssignableFrom<{ store: 'memory' }>()
    expect<RateLimitOptions>().type.not.toBeAssignableFrom<{ store: 'database' }>()
    expect<AuthPluginOptions['rateLimit']>().type.not.toBeAssignableFrom<1>()
    expect<RateLimitOptions>().type.not.toBeAssignableFrom<{ logins: number }>()
    expect<RateLimitOptions>().type.not.toBeAssignableFrom<{ timeWindow: string }>()
  })

  test('trustedOrigins is a list of strings', () => {
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ trustedOrigins: readonly string[] }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ trustedOrigins: string }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ trustedOrigins: RegExp[] }>()
  })
})

describe('the option session', () => {
  test('takes what @fastify/session takes, and needs nothing of it', () => {
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ session: {} }>()
    expect<SessionOptions>().type.toBeAssignableFrom<Partial<fastifySession.FastifySessionOptions>>()
    expect<SessionOptions['store']>().type.toBeAssignableFrom<'memory'>()
    expect<SessionOptions>().type.toBeAssignableFrom<{ secret: string[], rolling: boolean, store: fastifySession.MemoryStore }>()
    expect<SessionOptions>().type.toBeAssignableFrom<{ cookie: { secure: 'auto', sameSite: 'strict' } }>()
  })

  test('takes the days of remembered sessions', () => {
    expect<SessionOptions['remember']>().type.toBe<RememberOptions | undefined>()
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ session: { remember: { days: number } } }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ session: { remember: { days: string } } }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ session: { remember: {} } }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ session: { remember: true } }>()
  })

  test('refuses options of the wrong type', () => {
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ session: string }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ session: { secret: number } }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ session: { store: Map<string, object> } }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ session: { cookie: { sameSite: 'loose' } } }>()
    expect(app.register).type.not.toBeCallableWith(authPlugin, { session: { cookieNames: 'sid' } })
  })
})

describe('the option linking', () => {
  test('is the name of a policy or a function', () => {
    expect<LinkingPolicy>().type.toBe<'verified-email' | 'never' | LinkingRule>()
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ linking: 'verified-email' | 'never' }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ linking: string }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ linking: boolean }>()
  })

  test('as a function is given the user and the identity, and says yes or no, or promises to', () => {
    app.register(authPlugin, {
      linking (existing, identity) {
        expect(existing).type.toBe<User>()
        expect(identity).type.toBe<ProviderIdentity>()
        expect(identity.provider).type.toBe<string>()
        expect(identity.emailVerified).type.toBe<boolean>()
        expect(identity.claims.email).type.toBe<string | undefined>()
        return existing.emailVerified && identity.provider === 'company'
      }
    })
    expect<LinkingRule>().type.toBeAssignableFrom<() => false>()
    expect<LinkingRule>().type.toBeAssignableFrom<(existing: User) => Promise<boolean>>()
    expect<LinkingRule>().type.not.toBeAssignableFrom<() => void>()
    expect<LinkingRule>().type.not.toBeAssignableFrom<() => Promise<void>>()
    expect<LinkingRule>().type.not.toBeAssignableFrom<() => string | undefined>()
    expect<LinkingRule>().type.not.toBeAssignableFrom<(email: string) => boolean>()
  })
})

test('the option onLink is given the linking, with the tokens of the provider', () => {
  app.register(authPlugin, {
    async onLink ({ request, userId, identity, tokens }) {
      expect(request).type.toBe<FastifyRequest>()
      expect(userId).type.toBe<string>()
      expect(identity).type.toBe<ProviderIdentity>()
      expect(tokens).type.toBe<ProviderTokens>()
      if (!identity.emailVerified) throw new SignInRefused('unverified')
    }
  })
  expect<LinkHook>().type.toBe<(linking: Linking) => void | Promise<void>>()
  expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ onLink: string }>()
})

describe('the option onSignIn', () => {
  test('is given the sign-in', () => {
    app.register(authPlugin, {
      async onSignIn ({ request, principal, identity, tokens, created }) {
        expect(request).type.toBe<FastifyRequest>()
        expect(principal).type.toBe<Principal>()
        expect(identity).type.toBe<ProviderIdentity>()
        expect(tokens).type.toBe<ProviderTokens | null>()
        expect(created).type.toBe<boolean>()
        await request.server.auth.grant(principal.userId, { role: 'member' })
        if (!identity.emailVerified) throw new SignInRefused('unverified')
      }
    })
    expect<SignInHook>().type.toBe<(signIn: SignIn) => void | Promise<void>>()
  })

  test('has the tokens of an external provider only', () => {
    expect<Pick<ProviderTokens, 'accessToken'>>().type.toBeAssignableTo<ProviderTokens>()
    expect((signIn: SignIn) => signIn.tokens.accessToken).type.toRaiseError('possibly \'null\'')
    expect<ProviderTokens>().type.toBe<{ accessToken: string, refreshToken?: string, idToken?: string, expiresIn?: number, scope?: string }>()
  })

  test('is a function of a sign-in, not of anything else', () => {
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ onSignIn: string }>()
    expect<SignInHook>().type.toBeAssignableFrom<() => void>()
    expect<SignInHook>().type.toBeAssignableFrom<(signIn: { created: boolean }) => Promise<void>>()
    expect<SignInHook>().type.not.toBeAssignableFrom<(request: FastifyRequest) => void>()
    expect<SignInHook>().type.not.toBeAssignableFrom<(signIn: { tokens: ProviderTokens }) => void>()
    expect<SignInHook>().type.not.toBeAssignableFrom<() => Promise<boolean>>()
  })
})
