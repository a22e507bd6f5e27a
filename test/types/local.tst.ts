import type { JsonWebKey } from 'node:crypto'
import {
  LocalIdentityProvider, type LocalIdentityProviderOptions, type Mail, type PasswordCheck, type Principal,
  type TokenClaims, TokenVerifier
} from 'fastify-svc-auth'
import type { JWK } from 'jose'
import { describe, expect, test } from 'tstyche'
import type { JsonValue } from '../../lib/claims.js'
import type { RegistrationPolicy } from '../../lib/features/local/local-identity-provider.js'
import type { Argon2Options } from '../../lib/features/password/hashing.js'
import type { Caller } from '../../lib/core/fair-queue.js'
import type { TokenUse } from '../../lib/features/tokens/token-claims.js'
import type { Jwk, PublicJwk } from '../../lib/features/tokens/token-keys.js'

const local = new LocalIdentityProvider()
declare const claims: TokenClaims
declare const jwk: Jwk
declare const joseJwk: JWK
declare const webJwk: JsonWebKey
declare const principal: Principal

/** Members that may be absent or undefined. */
type Optional<Names extends string, Value> = { [Name in Names]?: Value | undefined }

describe('LocalIdentityProvider', () => {
  test('needs no options', () => {
    expect(LocalIdentityProvider).type.toBeConstructableWith()
    expect(LocalIdentityProvider).type.toBeConstructableWith({})
  })

  test('takes options', () => {
    expect(LocalIdentityProvider).type.toBeConstructableWith({
      secret: 'secret',
      issuer: 'app',
      ttl: 60,
      argon2: { memoryCost: 19456, timeCost: 2, parallelism: 1 },
      password: { check: () => true },
      registration: { roles: ['member'], emailVerified: true }
    })
    expect(LocalIdentityProvider).type.toBeConstructableWith({ secret: ['new', 'old'] as const })
    expect(LocalIdentityProvider).type.toBeConstructableWith({ signingKey: jwk })
    expect(LocalIdentityProvider).type.toBeConstructableWith({ signingKey: [jwk, joseJwk, webJwk] })
    expect(LocalIdentityProvider).type.toBeConstructableWith({ signingKey: [{ ...jwk, notBefore: '2026-12-01T00:00:00Z' }, jwk] })
    expect(LocalIdentityProvider).type.not.toBeConstructableWith({ signingKey: { ...jwk, notBefore: new Date() } })
  })

  test('checks their types', () => {
    expect(LocalIdentityProvider).type.not.toBeConstructableWith('secret')
    expect(LocalIdentityProvider).type.not.toBeConstructableWith({ secret: 5 })
    expect(LocalIdentityProvider).type.not.toBeConstructableWith({ issuer: new URL('https://app.example') })
    expect(LocalIdentityProvider).type.not.toBeConstructableWith({ ttl: '15m' })
    expect(LocalIdentityProvider).type.not.toBeConstructableWith({ argon2: { memory: 19456 } })
    expect(LocalIdentityProvider).type.not.toBeConstructableWith({ secrets: ['new', 'old'] })
    expect<Argon2Options>().type.toBe<Optional<'memoryCost' | 'timeCost' | 'parallelism', number>>()
  })

  test('asks the application about passwords', () => {
    const check: PasswordCheck = (password, { email, issuer, language }) => {
      expect(language).type.toBe<string>()
      expect(issuer).type.toBe<string>()
      expect(password).type.toBe<string>()
      expect(email).type.toBe<string>()
      return password.includes(email) ? 'Choose one without your address.' : true
    }
    expect(LocalIdentityProvider).type.toBeConstructableWith({ password: { check } })
    expect(LocalIdentityProvider).type.toBeConstructableWith({ password: { check, minLength: 15 } })
    expect(LocalIdentityProvider).type.toBeConstructableWith({ password: { check: false } })
    expect(LocalIdentityProvider).type.not.toBeConstructableWith({ password: { check: true } })
    expect(LocalIdentityProvider).type.not.toBeConstructableWith({ password: { minLength: '15' } })
    expect(LocalIdentityProvider).type.not.toBeConstructableWith({ password: check })
    expect<PasswordCheck>().type.toBeAssignableFrom<(password: string) => Promise<boolean | string>>()
    expect<PasswordCheck>().type.not.toBeAssignableFrom<(password: string) => void>()
    expect<PasswordCheck>().type.not.toBeAssignableFrom<(password: string) => number>()
    expect<PasswordCheck>().type.not.toBeAssignableFrom<(password: Buffer) => boolean>()
  })

  test('takes the user for whose password a hash is made', () => {
    const caller: Caller = { address: '192.0.2.1', signal: AbortSignal.timeout(1000) }
    expect(local.hashPassword('password', { email: 'ada@example.com' }, caller)).type.toBe<Promise<string>>()
    expect(local.rehashPassword).type.toBeCallableWith('password', { signal: caller.signal })
    expect(local.verifyPassword).type.toBeCallableWith(null, 'password', {})
    expect(local.verifyPassword).type.not.toBeCallableWith(null, 'password', { ip: '192.0.2.1' })
  })

  test('has a registration that is on, limited or off', () => {
    expect<LocalIdentityProviderOptions['registration']>().type.toBe<boolean | RegistrationPolicy | undefined>()
    expect<RegistrationPolicy>().type.toBe<{
      roles?: readonly string[] | undefined
      emailVerified?: boolean | undefined
      verify?: 'later' | 'required' | 'first' | undefined
      passkey?: boolean | undefined
    }>()
    expect(LocalIdentityProvider).type.toBeConstructableWith({ registration: true })
    expect(LocalIdentityProvider).type.toBeConstructableWith({ registration: { verify: 'required' }, sendMail: async () => {} })
    expect(LocalIdentityProvider).type.toBeConstructableWith({ mails: { limits: false }, sendMail: async () => {} })
    expect(LocalIdentityProvider).type.toBeConstructableWith({ registration: { passkey: true }, sendMail: async () => {} })
    expect(LocalIdentityProvider).type.not.toBeConstructableWith({ registration: { passkey: 'only' } })
    expect(LocalIdentityProvider).type.not.toBeConstructableWith({ registration: { verify: true } })
    expect(LocalIdentityProvider).type.not.toBeConstructableWith({ registration: 'open' })
    expect(LocalIdentityProvider).type.not.toBeConstructableWith({ registration: { roles: 'member' } })
    expect(LocalIdentityProvider).type.not.toBeConstructableWith({ registration: { role: ['member'] } })
  })

  test('signs in by mail, with passwords or without', () => {
    expect<LocalIdentityProviderOptions['signInByMail']>().type.toBe<
      boolean | { anyBrowser?: boolean | undefined } | undefined
    >()
    const sendMail = async (): Promise<void> => {}
    expect(LocalIdentityProvider).type.toBeConstructableWith({ sendMail, signInByMail: true, password: false })
    expect(LocalIdentityProvider).type.toBeConstructableWith({ sendMail, signInByMail: { anyBrowser: true } })
    expect(LocalIdentityProvider).type.not.toBeConstructableWith({ sendMail, signInByMail: { code: true } })
    expect(LocalIdentityProvider).type.toBeConstructableWith({ sendMail, password: true })
    expect(local.signInByMail).type.toBe<{ readonly anyBrowser: boolean } | null>()
    expect<Extract<Mail, { kind: 'sign-in' }>['code']>().type.toBe<string | null>()
    expect<Extract<Mail, { kind: 'sign-in' }>['url']>().type.toBe<string>()
  })

  test('tells its settings, except for the secret', () => {
    expect(local.issuer).type.toBe<string>()
    expect(local.ttl).type.toBe<number>()
    expect(local.registration).type.toBe<{
      roles: readonly string[], emailVerified: boolean, passkey: boolean, verify: 'later' | 'required' | 'first'
    } | null>()
    expect(local.toJSON()).type.toBe<{ issuer: string, ttl: number }>()
    expect(local).type.not.toHaveProperty('secret')
    expect(() => { local.ttl = 60 }).type.toRaiseError('read-only')
  })
})

describe('tokens', () => {
  test('are issued to a user, with claims, a lifetime and a use', () => {
    expect(local.issueIdToken('id')).type.toBe<Promise<string>>()
    expect(local.issueIdToken).type.toBeCallableWith('id', { scope: 'reports' })
    expect(local.issueIdToken).type.toBeCallableWith('id', {}, 60, { purpose: 'invitation', audience: 'billing' })
    expect(local.issueIdToken).type.toBeCallableWith('id', undefined, undefined, { purpose: 'invitation' })
    expect(local.issueIdToken).type.not.toBeCallableWith()
    expect(local.issueIdToken).type.not.toBeCallableWith({ userId: 'id' })
    expect(local.issueIdToken).type.toBeCallableWith('id', principal.claims)
    expect(local.issueIdToken).type.not.toBeCallableWith('id', { sub: 5, iss: 'mine' })
    expect(local.issueIdToken).type.not.toBeCallableWith('id', { exp: 5 })
    expect(local.issueIdToken).type.not.toBeCallableWith('id', { purpose: 'invitation' })
    expect(local.issueIdToken).type.not.toBeCallableWith('id', { since: new Date() })
    expect(local.issueIdToken).type.not.toBeCallableWith('id', 'reports')
    expect(local.issueIdToken).type.not.toBeCallableWith('id', {}, '15m')
    expect(local.issueIdToken).type.not.toBeCallableWith('id', {}, 60, 'invitation')
    expect(local.issueIdToken).type.not.toBeCallableWith('id', {}, 60, { scope: 'reports' })
  })

  test('are verified, for a use if they have one', () => {
    expect(local.verifyIdToken('token')).type.toBe<Promise<TokenClaims>>()
    expect(local.verifyIdToken).type.toBeCallableWith('token', { purpose: 'invitation' })
    expect(local.verifyIdToken).type.not.toBeCallableWith(undefined)
    expect(local.verifyIdToken).type.not.toBeCallableWith('token', 'invitation')
    expect<TokenUse>().type.not.toBeAssignableFrom<{ purpose: undefined }>()
  })

  test('have the claims of the issuer, a use perhaps, and others that are JSON', () => {
    expect(claims.iss).type.toBe<string>()
    expect(claims.sub).type.toBe<string>()
    expect(claims.jti).type.toBe<string | undefined>()
    expect(claims.iat).type.toBe<number>()
    expect(claims.exp).type.toBe<number>()
    expect(claims.aud).type.toBe<string | string[] | undefined>()
    expect(claims.purpose).type.toBe<string | undefined>()
    expect(claims.scope).type.toBe<JsonValue | undefined>()
  })
})

test('a service verifies tokens by published or given keys, and issues none', () => {
  const jwksUrl = 'https://app.example/auth/local/jwks.json'
  expect(TokenVerifier).type.toBeConstructableWith({ issuer: 'app', jwksUrl, audience: 'reports' })
  expect(TokenVerifier).type.toBeConstructableWith({ issuer: 'app', keys: local.jwks?.keys })
  expect(TokenVerifier).type.toBeConstructableWith({ issuer: 'app', keys: [joseJwk] })
  expect(TokenVerifier).type.not.toBeConstructableWith({ jwksUrl })
  expect(TokenVerifier).type.not.toBeConstructableWith({ issuer: 'app', jwksUrl, secret: 'secret' })
  expect(new TokenVerifier({ issuer: 'app', jwksUrl }).verify('token')).type.toBe<Promise<TokenClaims>>()
  expect(local.jwks).type.toBe<{ readonly keys: readonly PublicJwk[] } | null>()
  expect<PublicJwk>().type.not.toHaveProperty('d')
})

test('passwords are hashed for an e-mail, and verified against a hash or none', () => {
  expect(local.hashPassword('password', { email: 'ada@example.com' })).type.toBe<Promise<string>>()
  expect(local.hashPassword).type.not.toBeCallableWith('password')
  expect(local.hashPassword).type.not.toBeCallableWith('password', 'ada@example.com')
  expect(local.rehashPassword('password')).type.toBe<Promise<string>>()
  expect(local.verifyPassword('hash', 'password')).type.toBe<Promise<{ matches: boolean, outdated: boolean }>>()
  expect(local.verifyPassword).type.toBeCallableWith(null, 'password')
  expect(local.verifyPassword).type.not.toBeCallableWith(undefined, 'password')
})
