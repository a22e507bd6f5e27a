import Fastify from 'fastify'
import type { AuthorizationClaims, Claims, IdentityClaims, Principal } from 'fastify-svc-auth'
import { describe, expect, test } from 'tstyche'
import type { RequiredClaims } from '../../../lib/features/app-auth/guards.js'
import type { JsonValue } from '../../../lib/claims.js'

// A program of its own: nothing here declares the application's claims.

const { auth } = Fastify()
declare const principal: Principal

test('JsonValue is what JSON can say, and no more', () => {
  expect<JsonValue>().type.toBeAssignableFrom<string | number | boolean | null>()
  expect<JsonValue>().type.toBeAssignableFrom<Array<string | { name: null }>>()
  expect<JsonValue>().type.toBeAssignableFrom<{ seats: number, rooms: string[] }>()
  expect<JsonValue>().type.not.toBeAssignableFrom<undefined>()
  expect<JsonValue>().type.not.toBeAssignableFrom<bigint>()
  expect<JsonValue>().type.not.toBeAssignableFrom<Date>()
  expect<JsonValue>().type.not.toBeAssignableFrom<() => string>()
  expect<JsonValue>().type.not.toBeAssignableFrom<unknown>()
})

describe('the claims of a principal', () => {
  test('are JSON under any name, each of which may be absent', () => {
    expect<Claims>().type.toBe<IdentityClaims & AuthorizationClaims>()
    expect(principal.claims.role).type.toBe<JsonValue | undefined>()
    expect(principal.claims['https://app.example/plan']).type.toBe<JsonValue | undefined>()
    expect<AuthorizationClaims['role']>().type.toBe<JsonValue | undefined>()
  })

  test('have the types of OpenID Connect under the names of identity claims', () => {
    expect(principal.claims.sub).type.toBe<string>()
    expect(principal.claims.email).type.toBe<string | undefined>()
    expect(principal.claims.email_verified).type.toBe<boolean | undefined>()
    expect(principal.claims.name).type.toBe<string | undefined>()
    expect(principal.claims.picture).type.toBe<string | undefined>()
  })

  test('have a sub, and each other identity claim is present with its type or absent', () => {
    expect<IdentityClaims>().type.toBeAssignableFrom<{ sub: string }>()
    expect<IdentityClaims>().type.not.toBeAssignableFrom<{ email: string }>()
    expect<IdentityClaims>().type.not.toBeAssignableFrom<{ sub: number }>()
    expect<IdentityClaims>().type.not.toBeAssignableFrom<{ sub: string, email: undefined }>()
    expect<IdentityClaims>().type.not.toBeAssignableFrom<{ sub: string, email_verified: string }>()
  })
})

describe('any claim', () => {
  test('can be granted as long as it is JSON', () => {
    expect(auth.grant).type.toBeCallableWith('id', { role: 'owner', teams: ['blue'], limits: { seats: 5 } })
    expect(auth.grant).type.not.toBeCallableWith('id', { since: new Date() })
    expect(auth.grant).type.not.toBeCallableWith('id', { count: 5n })
    expect(auth.grant).type.not.toBeCallableWith('id', { role: () => 'owner' })
    expect(auth.grant).type.not.toBeCallableWith('id', 'owner')
    expect(auth.grant('id', {})).type.toBe<Promise<AuthorizationClaims>>()
  })

  test('can be withdrawn', () => {
    expect(auth.withdraw).type.toBeCallableWith('id', ['role', 'https://app.example/plan'])
    expect(auth.withdraw).type.not.toBeCallableWith('id', [5])
  })

  test('can be asked for by a guard', () => {
    expect<RequiredClaims['role']>().type.toBeAssignableFrom<JsonValue>()
    expect(auth.requireClaims).type.toBeCallableWith({ role: 'owner', level: 3, email_verified: true })
    expect(auth.requireClaims).type.toBeCallableWith({ 'https://app.example/plan': 'gold' })
    expect(auth.requireClaims).type.not.toBeCallableWith({ since: new Date() })
    expect(auth.requireClaims).type.not.toBeCallableWith({ email_verified: 'true' })
  })
})
