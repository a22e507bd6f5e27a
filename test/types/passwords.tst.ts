import { LocalIdentityProvider, type PasswordCheck } from 'fastify-svc-auth'
import { type BreachedCheck, all, breached, common } from 'fastify-svc-auth/passwords'
import type { FastifyInstance } from 'fastify'
import { describe, expect, test } from 'tstyche'

declare const app: FastifyInstance

describe('checks of passwords', () => {
  test('are rules of the local identity provider', () => {
    const check = all(common({ words: ['shop'] }), breached(), password => password.length > 20)
    expect(check).type.toBe<PasswordCheck>()
    expect(LocalIdentityProvider).type.toBeConstructableWith({ password: { check } })
    expect(all).type.not.toBeCallableWith('common')
  })

  test('take their options', () => {
    expect(common).type.toBeCallableWith()
    expect(common).type.toBeCallableWith({ words: ['shop', 'acme'] as const })
    expect(common).type.not.toBeCallableWith({ words: 'shop' })
    expect(breached).type.toBeCallableWith({ timeout: 1000, fetch, log: app.log })
    expect(breached).type.toBeCallableWith({ log: console })
    expect(breached).type.not.toBeCallableWith({ timeout: '1s' })
    expect(breached).type.not.toBeCallableWith({ log: console.log })
  })

  test('tell how many passwords could not be looked up', () => {
    expect(breached()).type.toBe<BreachedCheck>()
    expect(breached().unanswered).type.toBe<number>()
    expect(() => { breached().unanswered = 0 }).type.toRaiseError('read-only')
  })
})
