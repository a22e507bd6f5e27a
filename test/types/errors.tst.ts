import { AuthError, type AuthErrorCode, OptionsError, SignInRefused } from 'fastify-svc-auth'
import { describe, expect, test } from 'tstyche'
import type { AuthErrorOptions } from '../../lib/errors.js'

describe('AuthError', () => {
  test('has one of the codes that are documented', () => {
    expect<AuthErrorCode>().type.toBe<
      | 'invalid' | 'exists' | 'invalid_email' | 'weak_password' | 'claim_not_allowed' | 'invalid_request' | 'cross_origin' | 'rate_limited'
      | 'busy' | 'unavailable' | 'invalid_state' | 'access_denied' | 'not_allowed' | 'provider_error' | 'provider_unavailable' | 'account_exists'
      | 'already_linked' | 'choice_required' | 'invalid_token' | 'insufficient_scope' | 'unauthenticated' | 'forbidden' | 'last_link' | 'user_in_use'
      | 'second_factor_required' | 'second_factor_missing' | 'invalid_code' | 'too_many' | 'unknown_passkey' | 'internal_error' | 'email_missing'
      | 'breached_password' | 'reauthenticate' | 'blocked' | 'unverified' | 'unsupported' | 'not_found' | 'unknown_user' | 'invalid_claims' | 'invalid_ttl'
      | 'impersonating' | 'sso_required'
    >()
  })

  test('tells its code, its status and when to try again', () => {
    const error = new AuthError('busy')
    expect(error).type.toBeAssignableTo<Error>()
    expect(error.code).type.toBe<AuthErrorCode | (string & {})>()
    expect(error.statusCode).type.toBe<number>()
    expect(error.retryAfter).type.toBe<number | undefined>()
    expect(() => { error.code = 'invalid' }).type.toRaiseError('read-only')
  })

  test('is told from other errors by its class, and by its code, which may be one of the application', () => {
    const handle = (error: unknown) => {
      if (!(error instanceof AuthError)) throw error
      expect(error).type.toBe<AuthError>()
      expect(error.code).type.toBeAssignableFrom<'not_invited'>()
      return error.code === 'unauthenticated' ? '/login' : '/'
    }
    expect(handle).type.toBe<(error: unknown) => '/login' | '/'>()
  })

  test('is made of a code, and of what replaces its sentence and status', () => {
    expect(AuthError).type.toBeConstructableWith('forbidden')
    expect(AuthError).type.toBeConstructableWith('busy', { message: 'Wait.', statusCode: 503, cause: new Error('queue'), retryAfter: 3 })
    expect(AuthError).type.not.toBeConstructableWith()
    expect(AuthError).type.not.toBeConstructableWith('teapot')
    expect(AuthError).type.not.toBeConstructableWith('forbidden', 'You may not.')
    expect(AuthError).type.not.toBeConstructableWith('forbidden', { status: 403 })
    expect(AuthError).type.not.toBeConstructableWith('busy', { retryAfter: '3 s' })
    expect<AuthErrorOptions>().type.toBe<{
      message?: string, statusCode?: number, cause?: unknown, retryAfter?: number, details?: Readonly<Record<string, unknown>>
    }>()
  })
})

test('SignInRefused is an AuthError with the application\'s own code, and a sentence', () => {
  expect(SignInRefused).type.toBeConstructableWith('not_invited')
  expect(SignInRefused).type.toBeConstructableWith('not_invited', 'Ask for an invitation.')
  expect(SignInRefused).type.not.toBeConstructableWith()
  expect(SignInRefused).type.not.toBeConstructableWith(403)
  expect(SignInRefused).type.not.toBeConstructableWith('not_invited', { message: 'Ask for an invitation.' })

  const refusal = new SignInRefused('not_invited')
  expect(refusal).type.toBeAssignableTo<AuthError>()
  expect(refusal.code).type.toBe<string>()
  expect(() => { refusal.code = 'another' }).type.toRaiseError('read-only')
})

test('OptionsError is a TypeError with one code', () => {
  const mistake = new OptionsError('the option is wrong')
  expect(mistake).type.toBeAssignableTo<TypeError>()
  expect(mistake.code).type.toBe<'invalid_options'>()
  expect(mistake).type.not.toBeAssignableTo<AuthError>()
})
