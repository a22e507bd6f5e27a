import type { AuthPluginOptions, Mail, Principal } from 'fastify-svc-auth'
import { type FirstFactor, type ProviderProof, SecondFactor, type SecondFactorOptions } from 'fastify-svc-auth/second-factor'
import { type SignedInUser, totp } from 'fastify-svc-auth/testing'
import { describe, expect, test } from 'tstyche'
import type { AuthenticationMethod } from '../../lib/authentication.js'
import type { CodeMail } from '../../lib/core/mail.js'
import type { AuthenticationContext } from '../../lib/authentication.js'

describe('second factors', () => {
  test('an issuer is enough', () => {
    expect(SecondFactor).type.toBeConstructableWith({ issuer: 'Shop' })
    expect(SecondFactor).type.toBeConstructableWith({ issuer: 'Shop', tolerance: 2, trustedBrowser: { days: 30 } })
    expect(SecondFactor).type.toBeConstructableWith({ issuer: 'Shop', tolerance: undefined, required: undefined, trusts: undefined, trustedBrowser: undefined })
    expect(SecondFactor).type.not.toBeConstructableWith()
    expect(SecondFactor).type.not.toBeConstructableWith({})
    expect(SecondFactor).type.not.toBeConstructableWith({ issuer: 'Shop', digits: 8 })
    expect(SecondFactor).type.not.toBeConstructableWith({ issuer: 'Shop', trustedBrowser: 30 })
  })

  test('the plugin takes them and no other object', () => {
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ secondFactor: SecondFactor, secondFactorPage: '/second-factor' }>()
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ secondFactor: undefined, secondFactorPage: undefined }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ secondFactor: { issuer: string } }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ secondFactorPage: boolean }>()
  })

  test('required is given the user and how they authenticated', () => {
    const factor = new SecondFactor({
      issuer: 'Shop',
      required ({ principal, method }) {
        expect(principal).type.toBe<Principal>()
        expect(method).type.toBe<AuthenticationMethod>()
        return principal.claims.role === 'admin'
      }
    })
    expect(factor).type.toBe<SecondFactor>()
    expect<SecondFactorOptions['required']>().type.toBeAssignableFrom<(signIn: FirstFactor) => Promise<boolean>>()
    expect<SecondFactorOptions['required']>().type.not.toBeAssignableFrom<() => void>()
  })

  test('trusts is given what a signed ID token says', () => {
    expect<ProviderProof>().type.toBe<{ provider: string, amr: readonly string[], acr: string | null }>()
    expect<AuthenticationContext>().type.toBe<{ amr: readonly string[], acr: string | null }>()
    expect<SecondFactorOptions['trusts']>().type.toBeAssignableFrom<(proof: ProviderProof) => boolean>()
    expect<SecondFactorOptions['trusts']>().type.not.toBeAssignableFrom<(proof: { provider: number }) => boolean>()
  })

  test('a mail with a code has no link', () => {
    expect<Extract<Mail, { kind: 'enrolment' }>>().type.toBe<CodeMail>()
    expect<CodeMail['code']>().type.toBe<string>()
    expect<CodeMail['url']>().type.toBe<null>()
  })

  test('tests type a code, and sign users in by chosen methods', () => {
    expect(totp('secret')).type.toBe<string>()
    expect(totp).type.toBeCallableWith('secret', { step: 1 })
    expect<SignedInUser['methods']>().type.toBe<readonly AuthenticationMethod[] | undefined>()
  })
})
