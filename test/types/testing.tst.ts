import { createServer } from 'node:http'
import { test as nodeTest } from 'node:test'
import Fastify, { type FastifyInstance, type LightMyRequestResponse } from 'fastify'
import { LocalIdentityProvider, type Mail, MemoryAuthStore, OidcProvider } from 'fastify-svc-auth'
import {
  type SignedInHeaders, type TestProvider, authStoreContract, mailbox, signedIn, startProvider, totp
} from 'fastify-svc-auth/testing'
import t from 'tap'
import { describe, expect, test } from 'tstyche'
import type { ProviderFault, ProviderSignIn } from '../../lib/testing/provider.js'

declare const app: FastifyInstance
declare const provider: TestProvider

describe('signedIn', () => {
  test('takes an application on any server', () => {
    expect(signedIn).type.toBeCallableWith(app)
    expect(signedIn).type.toBeCallableWith(Fastify({ http2: true }))
    expect(signedIn).type.toBeCallableWith(Fastify({ https: {} }))
    expect(signedIn).type.not.toBeCallableWith(createServer())
  })

  test('takes the user, and knows the claims that can be granted', () => {
    expect(signedIn).type.toBeCallableWith(app, { claims: { role: 'admin' }, email: 'ada@example.com', name: 'Ada', provider: 'google' })
    expect(signedIn).type.toBeCallableWith(app, { userId: 'an id', headers: { 'x-tenant': 'acme' } })
    expect(signedIn).type.not.toBeCallableWith(app, { claims: { email: 'ada@example.com' } })
    expect(signedIn).type.toBeCallableWith(app, { signedInAt: new Date() })
    expect(signedIn).type.not.toBeCallableWith(app, { signedInAt: Date.now() })
    expect(signedIn).type.not.toBeCallableWith(app, { claim: { role: 'admin' } })
  })

  test('resolves to headers for app.inject', async () => {
    expect(signedIn(app)).type.toBe<Promise<SignedInHeaders>>()
    expect(app.inject).type.toBeCallableWith({ url: '/', headers: await signedIn(app) })
    expect((await signedIn(app)).cookie).type.toBe<string>()
  })
})

describe('startProvider', () => {
  test('resolves to a provider for an application', async () => {
    expect(startProvider()).type.toBe<Promise<TestProvider>>()
    expect(startProvider).type.toBeCallableWith({ name: 'google', user: { sub: '1', locale: 'en' } })
    expect(startProvider).type.not.toBeCallableWith({ user: { email: 'ada@example.com' } })
    expect(OidcProvider).type.toBeConstructableWith(provider.settings)
    expect(provider.provider({ timeout: 100 })).type.toBe<OidcProvider>()
  })

  test('signs in, and fails as it is told', () => {
    expect(provider.signIn(app, { next: '/notes' })).type.toBe<Promise<ProviderSignIn>>()
    expect<ProviderSignIn>().type.toBe<{ response: LightMyRequestResponse, headers: SignedInHeaders }>()
    expect(() => { provider.fault = 'down' }).type.not.toRaiseError()
    expect(() => { provider.fault = null }).type.not.toRaiseError()
    expect<ProviderFault>().type.not.toBeAssignableFrom<'broken'>()
  })
})

describe('mailbox', () => {
  const mails = mailbox()

  test('receives the mails of the local provider', () => {
    expect(LocalIdentityProvider).type.toBeConstructableWith({ sendMail: mails.sendMail })
    expect(mails.all).type.toBe<readonly Mail[]>()
  })

  test('has a token in the mails with a link only', async () => {
    expect((await mails.next('reset-password')).token).type.toBe<string>()
    expect((await mails.next('reset-password')).url).type.toBe<string>()
    expect((await mails.next('reset-password')).kind).type.toBe<'reset-password'>()
    expect((await mails.next('exists', { timeout: 100 })).url).type.toBe<null>()
    expect((await mails.next()).token).type.toBe<string | null>()
    expect(mails.next).type.not.toBeCallableWith('reset')
  })
})

describe('totp', () => {
  test('takes a secret or a URI, and a step', () => {
    expect(totp('a secret')).type.toBe<string>()
    expect(totp).type.toBeCallableWith('a secret', { step: 1 })
    expect(totp).type.not.toBeCallableWith()
    expect(totp).type.not.toBeCallableWith('a secret', { steps: 1 })
    expect(totp).type.not.toBeCallableWith('a secret', { step: '1' })
  })
})

describe('authStoreContract', () => {
  test('takes the test function of node:test, of tap, and one as that of vitest', () => {
    type VitestCheck = (context: { task: object }) => Promise<void> | void
    const vitest = (_name: string, _check?: VitestCheck, _timeout?: number): void => {}

    expect(authStoreContract).type.toBeCallableWith(nodeTest, () => new MemoryAuthStore())
    expect(authStoreContract).type.toBeCallableWith(t.test, () => new MemoryAuthStore())
    expect(authStoreContract).type.toBeCallableWith(vitest, () => new MemoryAuthStore())
  })

  test('takes a function that makes a store, or two over the same data, at once or later', () => {
    const store = new MemoryAuthStore()
    expect(authStoreContract).type.toBeCallableWith(nodeTest, async () => store)
    expect(authStoreContract).type.toBeCallableWith(nodeTest, async () => ({ store, twin: store }))
    expect(authStoreContract).type.not.toBeCallableWith(nodeTest, store)
    expect(authStoreContract).type.not.toBeCallableWith(nodeTest, () => ({ store }))
  })
})
