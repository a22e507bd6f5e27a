import Fastify from 'fastify'
import { Authorization, LocalIdentityProvider, MemoryAuthStore, type User, type UserPage } from 'fastify-svc-auth'
import { describe, expect, test } from 'tstyche'

const { auth } = Fastify()

describe('the users of app.auth', () => {
  test('are created from what is known about them', () => {
    expect(auth.createUser({})).type.toBe<Promise<User>>()
    expect(auth.createUser).type.toBeCallableWith({ email: 'a@example.com', emailVerified: true, claims: { role: 'admin' } })
    expect(auth.createUser).type.toBeCallableWith({ email: undefined, name: undefined, password: undefined })
    expect(auth.createUser).type.not.toBeCallableWith({ claims: { email: 'a@example.com' } })
    expect(auth.createUser).type.not.toBeCallableWith({ role: 'admin' })
    expect(auth.createUser).type.not.toBeCallableWith()
  })

  test('are changed by their ids', () => {
    expect(auth.updateUser('id', { name: null })).type.toBe<Promise<User>>()
    expect(auth.updateUser).type.toBeCallableWith('id', { email: 'a@example.com', emailVerified: true }, { actor: 'import' })
    expect(auth.updateUser).type.not.toBeCallableWith('id', { email: null })
    expect(auth.unblock).type.toBeCallableWith('id', { request: undefined, actor: undefined })
    expect(auth.unblock).type.not.toBeCallableWith('id', { by: 'import' })
    expect(auth.grant).type.toBeCallableWith('id', { role: 'admin' }, { actor: 'import' })
    expect(auth.deleteUser).type.not.toBeCallableWith('id', { actor: 1 })
    expect(auth.setPassword('id', 'password')).type.toBe<Promise<User>>()
    expect(auth.checkPassword('id', 'password')).type.toBe<Promise<boolean>>()
    expect(auth.checkPassword).type.toBeCallableWith('id', 'password', { address: '192.0.2.1' })
    expect(auth.block('id')).type.toBe<Promise<User>>()
    expect(auth.block).type.toBeCallableWith('id', { until: new Date(), reason: 'spam' })
    expect(auth.block).type.toBeCallableWith('id', { until: undefined, reason: undefined })
    expect(auth.block).type.not.toBeCallableWith('id', { until: Date.now() })
    expect(auth.unblock('id')).type.toBe<Promise<User>>()
    expect(auth.signOutEverywhere('id')).type.toBe<Promise<void>>()
  })

  test('are listed', () => {
    expect(auth.users()).type.toBe<Promise<UserPage>>()
    expect(auth.users).type.toBeCallableWith({ after: null, limit: 10, order: 'newest', search: 'a', blocked: false })
    expect(auth.users).type.toBeCallableWith({ after: undefined, limit: undefined, search: undefined, order: undefined, blocked: undefined })
    expect(auth.countUsers({ search: 'a', blocked: false })).type.toBe<Promise<number>>()
    expect(auth.users).type.not.toBeCallableWith({ offset: 10 })
    expect<UserPage['next']>().type.toBe<string | null>()
  })
})

test('the mails of the answers so far can be waited for', () => {
  expect(auth.mailsSent()).type.toBe<Promise<void>>()
  expect(auth.mailsSent).type.not.toBeCallableWith('id')
})

test('Authorization takes a local identity provider', () => {
  expect(Authorization).type.toBeConstructableWith(new MemoryAuthStore(), console, new LocalIdentityProvider())
  expect(Authorization).type.toBeConstructableWith(new MemoryAuthStore(), undefined, null)
})
