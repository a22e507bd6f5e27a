import type { EventEmitter } from 'node:events'
import type { Http2SecureServer } from 'node:http2'
import Fastify, { type FastifyReply, type FastifyRequest, type RouteGenericInterface, type Session } from 'fastify'
import {
  type Auth, type AuthenticationState, Authorization, type AuthorizationClaims, type AuthStore, type Claims,
  type Link, type LocalIdentityProvider, MemoryAuthStore, type Principal, type TokenClaims, type User,
  type UserFactor, type UserSession
} from 'fastify-svc-auth'
import { describe, expect, test } from 'tstyche'
import type { KeptSession } from '../../lib/features/app-auth/users.js'
import type { AuthenticationMethod } from '../../lib/authentication.js'
import type { AuthEvents } from '../../lib/audit.js'
import type { FactorKind } from '../../lib/schema/extras.js'

const app = Fastify()
declare const request: FastifyRequest
declare const secureRequest: FastifyRequest<RouteGenericInterface, Http2SecureServer>
declare const reply: FastifyReply

declare module 'fastify' {
  interface Session {
    user?: { name: string }
  }
}

describe('the application', () => {
  test('has app.auth, which cannot be told from the exported class', () => {
    expect(app.auth).type.toBe<Auth>()
    expect<Auth>().type.toBeAssignableTo<Authorization>()
    expect(app.auth.store).type.toBe<AuthStore>()
    expect(() => { app.auth.store = new MemoryAuthStore() }).type.toRaiseError('read-only')
  })

  test('has the names of its providers, for reading', () => {
    expect(app.authProviders).type.toBe<readonly string[]>()
    expect(() => app.authProviders.push('google')).type.toRaiseError("'push' does not exist")
  })

  test('has the local identity provider, or null', () => {
    expect(app.localIdp).type.toBe<LocalIdentityProvider | null>()
    expect(() => app.localIdp.verifyIdToken('token')).type.toRaiseError('possibly \'null\'')
    expect(app.localIdp?.verifyIdToken('token')).type.toBe<Promise<TokenClaims> | undefined>()
  })

  test('has the same inside its plugins', () => {
    app.register(async scope => {
      expect(scope.auth).type.toBe<Auth>()
      expect(scope.authProviders).type.toBe<readonly string[]>()
      expect(scope.localIdp).type.toBe<LocalIdentityProvider | null>()
    })
  })
})

describe('a request', () => {
  test('has the principal, or null, for reading', () => {
    expect(request.principal).type.toBe<Principal | null>()
    expect(request.principal).type.not.toBeAssignableFrom<undefined>()
    expect(() => request.principal.userId).type.toRaiseError('possibly \'null\'')
    expect(() => { request.principal = null }).type.toRaiseError('read-only')
    expect<Principal>().type.toBe<{ userId: string, provider: string, claims: Claims, guest?: true, impersonator?: string }>()
  })

  test('has how and when the user authenticated, or null, for reading', () => {
    expect(request.authentication).type.toBe<AuthenticationState | null>()
    expect(() => request.authentication.at).type.toRaiseError('possibly \'null\'')
    expect(() => { request.authentication = null }).type.toRaiseError('read-only')
    expect<AuthenticationState>().type.toBe<{
      at: Date
      methods: Array<{ method: AuthenticationMethod, at: Date }>
      secondFactor: boolean
    }>()
    expect<AuthenticationMethod>().type.toBe<
      'password' | 'provider' | 'mail' | 'application' | 'passkey' | 'totp' | 'recovery'
    >()
  })

  test('has the claims of its Bearer token, or null', () => {
    expect(request.token).type.toBe<TokenClaims | null>()
    expect(() => request.token.sub).type.toRaiseError('possibly \'null\'')
    expect(request.token?.sub).type.toBe<string | undefined>()
  })

  test('leaves session.user to the application', () => {
    request.session.user = { name: 'max' }
    expect<Session['user']>().type.toBe<{ name: string } | undefined>()
    expect(request.session.svcAuth?.principal).type.toBe<Principal | undefined>()
  })

  test('of a route with types of its own has the same', () => {
    app.post<{ Body: { title: string }, Params: { id: string } }>('/posts/:id', async ({ body, params, principal, token }) => {
      expect(body).type.toBe<{ title: string }>()
      expect(params).type.toBe<{ id: string }>()
      expect(principal).type.toBe<Principal | null>()
      expect(token).type.toBe<TokenClaims | null>()
    })
  })
})

describe('app.auth', () => {
  const { auth } = app

  test('looks a user up by id, by e-mail or by provider and subject', () => {
    expect(auth.findUser({ userId: 'id' })).type.toBe<Promise<User | null>>()
    expect(auth.findUser).type.toBeCallableWith({ email: 'ada@example.com' })
    expect(auth.findUser).type.toBeCallableWith({ provider: 'google', subject: '1' })
    expect(auth.findUser).type.not.toBeCallableWith('id')
    expect(auth.findUser).type.not.toBeCallableWith({})
    expect(auth.findUser).type.not.toBeCallableWith({ userId: undefined })
    expect(auth.findUser).type.not.toBeCallableWith({ provider: 'google' })
    expect(auth.findUser).type.not.toBeCallableWith({ name: 'Ada' })
  })

  test('grants and withdraws claims', () => {
    expect(auth.grant('id', {})).type.toBe<Promise<AuthorizationClaims>>()
    expect(auth.grant).type.not.toBeCallableWith('id')
    expect(auth.grant).type.not.toBeCallableWith(1, {})
    expect(auth.withdraw('id', [])).type.toBe<Promise<AuthorizationClaims>>()
    expect(auth.withdraw).type.toBeCallableWith('id', ['role', 'teams'] as const)
    expect(auth.withdraw).type.not.toBeCallableWith('id', 'role')
    expect(auth.withdraw).type.not.toBeCallableWith('id', { role: 'admin' })
  })

  test('lists and removes sign-in methods, and deletes users', () => {
    expect(auth.links('id')).type.toBe<Promise<Link[]>>()
    expect(auth.unlink('id', 'google')).type.toBe<Promise<Link[]>>()
    expect(auth.unlink).type.toBeCallableWith('id', 'google', { except: request })
    expect(auth.unlink).type.not.toBeCallableWith('id')
    expect(auth.deleteUser('id')).type.toBe<Promise<void>>()
    expect(auth.deleteUser).type.not.toBeCallableWith({ userId: 'id' })
  })

  test('ends all sessions of a user, but for that of a request', () => {
    expect<KeptSession>().type.toBeAssignableFrom<{ except: FastifyRequest }>()
    expect(auth.signOutEverywhere).type.toBeCallableWith('id', { except: request })
    expect(auth.signOutEverywhere).type.toBeCallableWith('id', { except: secureRequest })
    expect(auth.setPassword).type.toBeCallableWith('id', 'a password', { except: request })
    expect(auth.signOutEverywhere).type.not.toBeCallableWith('id', request)
    expect(auth.signOutEverywhere).type.not.toBeCallableWith('id', { except: 'a session' })
  })

  test('lists the sessions of a user, and ends one', () => {
    expect(auth.sessions('id')).type.toBe<Promise<UserSession[]>>()
    expect(auth.sessions).type.toBeCallableWith('id', { current: request })
    expect(auth.sessions).type.toBeCallableWith('id', { current: secureRequest })
    expect(auth.sessions).type.not.toBeCallableWith('id', request)
    expect(auth.endSession('id', 'session')).type.toBe<Promise<boolean>>()
    expect(auth.endSession).type.not.toBeCallableWith('id')
    expect<UserSession['methods'][number]>().type.toBe<{ method: AuthenticationMethod, at: Date }>()
    expect<Omit<UserSession, 'methods'>>().type.toBe<{
      id: string,
      current: boolean,
      createdAt: Date,
      lastSeenAt: Date,
      userAgent: string | null,
      impersonating: string | null,
      impersonator: string | null
    }>()
  })

  test('shows the application as a user, and ends it', () => {
    expect(auth.impersonate).type.toBeCallableWith(request, 'id', { reason: 'a ticket', minutes: 10 })
    expect(auth.impersonate).type.not.toBeCallableWith(request, 'id', {})
    expect(auth.impersonate(request, 'id', { reason: 'a ticket' })).type.toBe<Promise<Principal>>()
    expect(auth.stopImpersonating(request)).type.toBe<Promise<Principal | null>>()
    expect(auth.impersonationBar(request, { next: '/' })).type.toBe<Promise<string>>()
  })

  test('makes a guest of a visitor', () => {
    expect(auth.signInGuest(request)).type.toBe<Promise<Principal>>()
    expect(auth.signInGuest).type.not.toBeCallableWith()
    expect<Principal['guest']>().type.toBe<true | undefined>()
    expect<User['guest']>().type.toBe<true | undefined>()
  })

  test('lists and resets the second factors of a user', () => {
    expect(auth.factors('id')).type.toBe<Promise<UserFactor[]>>()
    expect<UserFactor>().type.toBe<{
      id: string, kind: FactorKind, name: string | null, createdAt: Date, lastUsedAt: Date | null, codesLeft: number | null
    }>()
    expect<FactorKind>().type.toBe<'totp' | 'recovery' | 'passkey'>()
    expect(auth.resetFactors('id')).type.toBe<Promise<User>>()
    expect(auth.resetFactors).type.not.toBeCallableWith()
  })

  test('has the principal of a request, never null', () => {
    expect(auth.user(request)).type.toBe<Principal>()
    expect(auth.user).type.not.toBeCallableWith(reply)
  })

  test('makes the path of a login', () => {
    expect(auth.signInUrl('google')).type.toBe<string>()
    expect(auth.signInUrl).type.toBeCallableWith('google', {
      next: '/',
      loginHint: 'ada@example.com',
      prompt: 'consent',
      maxAge: 60,
      scopes: ['calendar'] as const,
      acrValues: ['phr'],
      link: true
    })
    expect(auth.signInUrl).type.not.toBeCallableWith('google', { acrValues: 'phr' })
    expect(auth.signInUrl).type.not.toBeCallableWith('google', { link: 'true' })
    expect(auth.signInUrl).type.toBeCallableWith('google', { loginHint: undefined })
    expect(auth.signInUrl).type.not.toBeCallableWith('google', { hint: 'ada@example.com' })
    expect(auth.signInUrl).type.not.toBeCallableWith('google', { maxAge: '60' })
  })

  test('refreshes and signs in by a request', () => {
    expect(auth.refresh(request)).type.toBe<Promise<Principal | null>>()
    expect(auth.refresh).type.not.toBeCallableWith()
    expect(auth.signIn(request, 'id')).type.toBe<Promise<Principal>>()
    expect(auth.signIn).type.not.toBeCallableWith(request)
    expect(auth.signIn).type.not.toBeCallableWith('id', request)
    expect(auth.signIn).type.not.toBeCallableWith(reply, 'id')
    expect(auth.signIn).type.toBeCallableWith(request, 'id', { remember: true })
    expect(auth.signIn).type.not.toBeCallableWith(request, 'id', { remember: 'on' })
    expect(auth.signIn).type.not.toBeCallableWith(request, 'id', { rememberMe: true })
    expect(auth.signIn).type.toBeCallableWith(request, 'id', { remember: true, secondFactor: 'skip', next: '/cart' })
    expect(auth.signIn).type.not.toBeCallableWith(request, 'id', { secondFactor: true })
  })

  test('takes the request of any route', () => {
    app.post<{ Body: { title: string }, Reply: { 200: string } }>('/', async request => {
      expect(auth.refresh).type.toBeCallableWith(request)
      expect(auth.signIn).type.toBeCallableWith(request, 'id')
    })
  })

  test('has a channel with typed events', () => {
    expect(auth.channel).type.toBe<EventEmitter<AuthEvents>>()
    expect<AuthEvents>().type.toBe<{ revoke: [userId: string] }>()
    auth.channel.on('revoke', userId => { expect(userId).type.toBe<string>() })
    expect(auth.channel.on).type.toBeCallableWith('revoke', async (userId: string) => userId)
    expect(auth.channel.on).type.not.toBeCallableWith('revoke', (userId: number) => userId)
    expect(auth.channel.on).type.not.toBeCallableWith('revoke', (userId: string, reason: string) => userId + reason)
    expect(auth.channel.emit).type.not.toBeCallableWith('revoke')
  })
})

test('Authorization needs a store, and a log only if there is one', () => {
  expect(Authorization).type.toBeConstructableWith(new MemoryAuthStore())
  expect(Authorization).type.toBeConstructableWith(new MemoryAuthStore(), app.log)
  expect(Authorization).type.toBeConstructableWith(new MemoryAuthStore(), console)
  expect(Authorization).type.not.toBeConstructableWith()
  expect(Authorization).type.not.toBeConstructableWith('./users.db')
  expect(Authorization).type.not.toBeConstructableWith(new MemoryAuthStore(), 'info')
  expect<Authorization>().type.not.toHaveProperty('requireUser')
})
