import type { AuthPluginOptions, Mail } from 'fastify-svc-auth'
import { type Connection, type ConnectionPage, Connections, type DomainProof } from 'fastify-svc-auth/connections'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { describe, expect, test } from 'tstyche'

describe('connections', () => {
  test('the option needs nothing, and maps what a connection says to claims', () => {
    expect(Connections).type.toBeConstructableWith()
    expect(Connections).type.toBeConstructableWith({ claims: undefined })
    expect(Connections).type.toBeConstructableWith({
      claims: async ({ connection: { id }, identity }: { connection: { id: string }, identity: { subject: string } }) =>
        ({ role: `${id} ${identity.subject}` === 'a b' ? 'admin' : 'member' })
    })
    expect(Connections).type.not.toBeConstructableWith({ claims: () => 'admin' })
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ connections: Connections }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ connections: {} }>()
  })

  test('app.auth makes, changes, lists, tests and removes them', () => {
    const { connections } = ({} as FastifyInstance).auth
    const made = { name: 'Acme', issuer: 'https://id.example', clientId: 'a', clientSecret: 'b', domains: ['acme.example'] }
    expect(connections.create(made)).type.toBe<Promise<Connection>>()
    expect(connections.create).type.toBeCallableWith({ ...made, enforce: { days: 3, except: ['id'] } }, { request: {} as FastifyRequest })
    expect(connections.create).type.not.toBeCallableWith({ name: 'Acme' })
    expect(connections.update('id', { enforce: true })).type.toBe<Promise<Connection>>()
    expect(connections.update).type.not.toBeCallableWith('id', { issuer: 'https://id.example' })
    expect(connections.list({ after: null, limit: 5 })).type.toBe<Promise<ConnectionPage>>()
    expect(connections.test('id')).type.toBe<Promise<string>>()
    expect(connections.proveDomain('id', 'acme.example')).type.toBe<Promise<DomainProof>>()
    expect(connections.remove('id', { actor: 'support' })).type.toBe<Promise<boolean>>()
  })

  test('the mail of a domain that has lapsed names the domain', () => {
    expect<Extract<Mail, { kind: 'domain-lapsed' }>['domain']>().type.toBe<string>()
  })
})
