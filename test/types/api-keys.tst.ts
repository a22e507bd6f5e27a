import type { AuthPluginOptions } from 'fastify-svc-auth'
import { type ApiKey, ApiKeys, type CreatedKey } from 'fastify-svc-auth/api-keys'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { describe, expect, test } from 'tstyche'

const scopes = { 'notes:read': 'Read your notes' }

describe('API keys', () => {
  test('a prefix and scopes are enough', () => {
    expect(ApiKeys).type.toBeConstructableWith({ prefix: 'shop', scopes })
    expect(ApiKeys).type.toBeConstructableWith({
      prefix: 'shop', scopes: { read: { en: 'Read', de: 'Lesen' } }, selfService: true, maxAge: 90, browsers: undefined
    })
    expect(ApiKeys).type.not.toBeConstructableWith({ prefix: 'shop' })
    expect(ApiKeys).type.not.toBeConstructableWith({ prefix: 'shop', scopes: ['notes:read'] })
  })

  test('the plugin takes it and no other object', () => {
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ apiKeys: ApiKeys }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ apiKeys: { prefix: string } }>()
  })

  test('app.auth makes, lists and ends keys', () => {
    const { auth } = {} as FastifyInstance
    const key = { userId: 'user', name: 'Laptop', scopes: ['notes:read'] }
    expect(auth.createKey(key)).type.toBe<Promise<CreatedKey>>()
    expect(auth.createKey).type.toBeCallableWith(key, { request: {} as FastifyRequest })
    expect(auth.createKey).type.not.toBeCallableWith({ userId: 'user' })
    expect(auth.keys({ owner: 'job:nightly' })).type.toBe<Promise<ApiKey[]>>()
    expect(auth.endKey('id', { actor: 'support' })).type.toBe<Promise<boolean>>()
    expect(auth.signOutEverywhere).type.toBeCallableWith('user', { keys: true })
  })
})
