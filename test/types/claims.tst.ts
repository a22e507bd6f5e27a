import Fastify from 'fastify'
import authPlugin, {
  Accounts, type AuditEvents, type AuthorizationClaims, type AuthStore, type Claims
} from 'fastify-svc-auth'
import * as postgres from 'fastify-svc-auth/schema/postgres'
import * as sqlite from 'fastify-svc-auth/schema/sqlite'
import { describe, expect, test } from 'tstyche'
import type { AuthorizationClaimName, JsonValue } from '../../lib/claims.js'

// What an application declares, once. It holds in every file of this folder.
declare module 'fastify-svc-auth' {
  interface AuthorizationClaims {
    role?: 'admin' | 'member'
    teams?: string[]
    limits?: { seats: number }
  }
}

type Role = 'admin' | 'member' | undefined

const app = Fastify()
const { auth } = app
declare const store: AuthStore

describe('a declared claim has its type', () => {
  test('in the principal of a request', () => {
    app.get('/', async ({ principal, session }) => {
      expect(principal?.claims.role).type.toBe<Role>()
      expect(principal?.claims.teams).type.toBe<string[] | undefined>()
      expect(principal?.claims.limits).type.toBe<{ seats: number } | undefined>()
      expect(session.svcAuth?.principal.claims.role).type.toBe<Role>()
      expect(() => principal?.claims.role === 'owner').type.toRaiseError('no overlap')
    })
  })

  test('in the principal that a refresh and a sign-in resolve to', () => {
    app.get('/', async request => {
      expect((await auth.refresh(request))?.claims.role).type.toBe<Role>()
      expect((await auth.signIn(request, 'id')).claims.role).type.toBe<Role>()
    })
  })

  test('in what the functions among the options are given', () => {
    app.register(authPlugin, {
      linking (existing) {
        expect(existing.claims.role).type.toBe<Role>()
        return false
      },
      onSignIn ({ principal }) {
        expect(principal.claims.role).type.toBe<Role>()
      }
    })
  })

  test('in what app.auth and a store tell of a user', async () => {
    expect((await auth.findUser({ userId: 'id' }))?.claims.role).type.toBe<Role>()
    expect((await auth.grant('id', {})).role).type.toBe<Role>()
    expect((await auth.withdraw('id', ['teams'])).role).type.toBe<Role>()
    expect((await store.findUser({ userId: 'id' }))?.claims.role).type.toBe<Role>()
    expect((await new Accounts(store).grant('id', {})).role).type.toBe<Role>()
    expect((await new Accounts(store).withdraw('id', ['teams'])).role).type.toBe<Role>()
  })

  test('in the event of a grant', () => {
    expect<AuditEvents['grant']['claims']['role']>().type.toBe<Role>()
  })

  test('in the rows of the exported tables', () => {
    expect<typeof postgres.users.$inferSelect.claims.role>().type.toBe<Role>()
    expect<typeof sqlite.users.$inferSelect.claims.role>().type.toBe<Role>()
  })
})

describe('a declared claim', () => {
  test('is granted with a value of its type only', () => {
    expect(auth.grant).type.toBeCallableWith('id', { role: 'admin' })
    expect(auth.grant).type.toBeCallableWith('id', { role: 'member', teams: ['blue'], limits: { seats: 5 } })
    expect(auth.grant).type.not.toBeCallableWith('id', { role: 'owner' })
    expect(auth.grant).type.not.toBeCallableWith('id', { role: undefined })
    expect(auth.grant).type.not.toBeCallableWith('id', { teams: 'blue' })
    expect(auth.grant).type.not.toBeCallableWith('id', { limits: { seats: '5' } })
    expect(new Accounts(store).grant).type.not.toBeCallableWith('id', { role: 'owner' })
    expect((role: string) => auth.grant('id', { role })).type.toRaiseError("'string' is not assignable to type '\"admin\" | \"member\"'")
  })

  test('is asked for by a guard with a value of its type only', () => {
    expect(auth.requireClaims).type.toBeCallableWith({ role: 'admin' })
    expect(auth.requireClaims).type.toBeCallableWith({ role: 'member', limits: { seats: 5 } })
    expect(auth.requireClaims).type.not.toBeCallableWith({ role: 'owner' })
    expect(auth.requireClaims).type.not.toBeCallableWith({ role: ['admin'] })
    expect(auth.requireClaims).type.not.toBeCallableWith({ role: undefined })
    expect(auth.requireClaims).type.not.toBeCallableWith({ limits: { seats: '5' } })
  })

  test('that is an array is asked for by a guard as one of its members or as a whole', () => {
    expect(auth.requireClaims).type.toBeCallableWith({ teams: 'blue' })
    expect(auth.requireClaims).type.toBeCallableWith({ teams: ['blue', 'red'] })
    expect(auth.requireClaims).type.not.toBeCallableWith({ teams: 5 })
    expect(auth.requireClaims).type.not.toBeCallableWith({ teams: [5] })
  })

  test('must be JSON', () => {
    // @ts-expect-error Property 'since' of type 'Date' is not assignable to 'string' index type
    interface WithDate extends AuthorizationClaims { since?: Date }
    interface WithText extends AuthorizationClaims { since?: string }
    expect<WithDate | WithText>().type.toHaveProperty('since')
  })
})

describe('beside the declared claims', () => {
  test('identity claims cannot be granted', () => {
    expect(auth.grant).type.not.toBeCallableWith('id', { email: 'ada@example.com' })
    expect(auth.grant).type.not.toBeCallableWith('id', { role: 'admin', sub: 'ada' })
    expect((claims: Claims) => auth.grant('id', claims)).type.toRaiseError('not assignable')
  })

  test('identity claims keep their types', () => {
    expect<Claims['sub']>().type.toBe<string>()
    expect<Claims['email']>().type.toBe<string | undefined>()
    expect<Claims['email_verified']>().type.toBe<boolean | undefined>()
    expect(auth.requireClaims).type.toBeCallableWith({ role: 'admin', email_verified: true })
    expect(auth.requireClaims).type.not.toBeCallableWith({ role: 'admin', email_verified: 'true' })
  })

  test('others are read as JSON, as before', () => {
    expect<Claims['plan']>().type.toBe<JsonValue | undefined>()
  })

  test('no others are asked for, granted or withdrawn: a misspelt name does not compile', () => {
    expect(() => auth.requireClaims({ rolle: 'admin' })).type.toRaiseError("'rolle' does not exist")
    expect(() => auth.grant('id', { rolle: 'admin' })).type.toRaiseError("'rolle' does not exist")
    expect(() => auth.withdraw('id', ['rolle'])).type.toRaiseError("'\"rolle\"' is not assignable to type")
    expect(auth.withdraw).type.toBeCallableWith('id', ['role', 'teams'] as const)
    expect<AuthorizationClaimName>().type.toBe<'role' | 'teams' | 'limits'>()
    expect(auth.requireClaims).type.toBeCallableWith({ sub: '1', name: 'Ada', picture: 'https://id.example/ada.png' })
  })
})
