import { subscribe } from 'node:diagnostics_channel'
import type { AuditEvents, AuthorizationClaims } from 'fastify-svc-auth'
import { describe, expect, test } from 'tstyche'
import type { AuditOrigin } from '../../lib/audit.js'
import type { AuthenticationMethod } from '../../lib/authentication.js'

interface Origin { actor?: string, impersonating?: string, requestId?: string, ip?: string, userAgent?: string }

/** The members of an event, whatever types they come from. */
type Members<Event> = { [Name in keyof Event]: Event[Name] }

describe('the payload of an audit event', () => {
  test('exists for each event', () => {
    expect<keyof AuditEvents>().type.toBe<
      'registration' | 'creation' | 'sign-in' | 'failure' | 'link' | 'unlink' | 'grant' | 'withdraw' | 'password' |
      'email' | 'name' | 'recovery' | 'verification' | 'email-released' | 'block' | 'unblock' | 'sign-out-everywhere' |
      'session-end' |
      'factor-added' | 'factor-removed' | 'recovery-codes' | 'recovery-code' | 'too-many-codes' | 'passkey-cloned' |
      'secret-unreadable' | 'sign-in-link' |
      'reauthentication' | 'deletion' | 'revoke' | 'grant-given' | 'grant-ended' | 'token-replayed' |
      'connection-created' | 'connection-changed' | 'connection-removed' | 'domain-proven' | 'domain-lapsed' |
      'key-created' | 'key-ended' | 'impersonation' | 'impersonation-end' | 'back-channel-logout'
    >()
  })

  test('says to which user it happened and how', () => {
    expect<Members<AuditEvents['registration']>>().type.toBe<Members<{ userId: string, provider: string } & Origin>>()
    expect<Members<AuditEvents['sign-in']>>().type.toBe<Members<{
      userId: string, provider: string, by: 'provider' | 'application', methods: readonly AuthenticationMethod[]
    } & Origin>>()
    expect<Members<AuditEvents['factor-added']>>().type.toBe<Members<{ userId: string, method: 'totp' | 'passkey' } & Origin>>()
    expect<Members<AuditEvents['factor-removed']>>().type.toBe<
      Members<{ userId: string, method: 'totp' | 'passkey' | 'all', by: 'user' | 'application' } & Origin>
    >()
    expect<Members<AuditEvents['recovery-codes']>>().type.toBe<Members<{ userId: string } & Origin>>()
    expect<Members<AuditEvents['recovery-code']>>().type.toBe<Members<{ userId: string, left: number } & Origin>>()
    expect<Members<AuditEvents['too-many-codes']>>().type.toBe<Members<{ userId: string } & Origin>>()
    expect<Members<AuditEvents['passkey-cloned']>>().type.toBe<Members<{ userId: string } & Origin>>()
    expect<Members<AuditEvents['impersonation']>>().type.toBe<Members<{ userId: string, reason: string, until: Date } & Origin>>()
    expect<Members<AuditEvents['secret-unreadable']>>().type.toBe<Members<{ userId: string } & Origin>>()
    expect<Members<AuditEvents['failure']>>().type.toBe<Members<{ provider: string, code: string, route: string, userId?: string } & Origin>>()
    expect<Members<AuditEvents['link']>>().type.toBe<Members<{ userId: string, provider: string, by: 'email' | 'request' } & Origin>>()
    expect<Members<AuditEvents['unlink']>>().type.toBe<Members<{ userId: string, provider: string } & Origin>>()
    expect<Members<AuditEvents['grant']>>().type.toBe<Members<{ userId: string, claims: AuthorizationClaims } & Origin>>()
    expect<Members<AuditEvents['withdraw']>>().type.toBe<Members<{ userId: string, names: readonly string[] } & Origin>>()
    expect<Members<AuditEvents['creation']>>().type.toBe<Members<{ userId: string, provider: 'local' | 'application' | 'guest' } & Origin>>()
    expect<Members<AuditEvents['reauthentication']>>().type.toBe<Members<{ userId: string, method: AuthenticationMethod } & Origin>>()
    expect<Members<AuditEvents['block']>>().type.toBe<Members<{ userId: string, until: Date | null } & Origin>>()
    expect<Members<AuditEvents['password']>>().type.toBe<Members<{ userId: string } & Origin>>()
    expect<Members<AuditEvents['email']>>().type.toBe<Members<{ userId: string, verified: boolean } & Origin>>()
    expect<Members<AuditEvents['name']>>().type.toBe<Members<{ userId: string } & Origin>>()
    expect<Members<AuditEvents['recovery']>>().type.toBe<
      Members<{ userId: string, removed: readonly string[], claims: AuthorizationClaims } & Origin>
    >()
    expect<Members<AuditEvents['verification']>>().type.toBe<Members<{ userId: string, verified: boolean } & Origin>>()
    expect<Members<AuditEvents['email-released']>>().type.toBe<Members<{ userId: string, deleted: boolean } & Origin>>()
    expect<Members<AuditEvents['unblock']>>().type.toBe<Members<{ userId: string } & Origin>>()
    expect<Members<AuditEvents['sign-out-everywhere']>>().type.toBe<Members<{ userId: string } & Origin>>()
    expect<Members<AuditEvents['session-end']>>().type.toBe<Members<{ userId: string } & Origin>>()
    expect<Members<AuditEvents['deletion']>>().type.toBe<Members<{ userId: string } & Origin>>()
    expect<Members<AuditEvents['revoke']>>().type.toBe<Members<{ userId: string } & Origin>>()
  })

  test('says by which request, if there was one', () => {
    expect<AuditOrigin>().type.toBe<Origin>()
    expect<AuditEvents['grant']['requestId']>().type.toBe<string | undefined>()
  })

  test('is what a subscriber makes of a message, by a check or an assertion of its own', () => {
    subscribe('fastify-svc-auth.sign-in', message => {
      expect(message).type.toBe<unknown>()
      const { userId, provider, ip } = message as AuditEvents['sign-in']
      expect(userId).type.toBe<string>()
      expect(provider).type.toBe<string>()
      expect(ip).type.toBe<string | undefined>()
    })
    expect((event: AuditEvents['sign-in']) => event.claims).type.toRaiseError("'claims' does not exist")
  })
})
