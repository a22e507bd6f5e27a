import type { AuthPluginOptions } from 'fastify-svc-auth'
import { type ConnectedClient, OAuthServer, type OAuthServerOptions } from 'fastify-svc-auth/oauth-server'
import type { FastifyInstance } from 'fastify'
import { describe, expect, test } from 'tstyche'

const resources = { 'https://app.example/mcp': { scopes: { 'notes:read': 'Read your notes' } } }

describe('the authorization server', () => {
  test('resources are enough', () => {
    expect(OAuthServer).type.toBeConstructableWith({ resources })
    expect(OAuthServer).type.toBeConstructableWith({
      resources: { 'https://app.example/mcp': { scopes: { read: { en: 'Read', de: 'Lesen' } }, within: 600, secondFactor: true } },
      clients: [{ client_id: 'cli', client_name: 'Command line', redirect_uris: ['http://127.0.0.1/callback'], firstParty: true }],
      documents: false,
      registration: { most: 100 },
      device: { clients: ['cli'] },
      schemes: ['cursor'],
      lifetimes: { access: 300, refresh: undefined },
      replays: 'end-grant'
    })
    expect(OAuthServer).type.not.toBeConstructableWith()
    expect(OAuthServer).type.not.toBeConstructableWith({ resources: { 'https://app.example/mcp': {} } })
    expect(OAuthServer).type.not.toBeConstructableWith({ resources, replays: 'accept' })
    expect<OAuthServerOptions['clients']>().type.not.toBeAssignableFrom<Array<{ client_id: string }>>()
  })

  test('the plugin takes it and no other object', () => {
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ oauthServer: OAuthServer }>()
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ oauthServer: undefined }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ oauthServer: { resources: typeof resources } }>()
  })

  test('app.auth lists and ends grants', () => {
    const { auth } = {} as FastifyInstance
    expect(auth.grants('user')).type.toBe<Promise<ConnectedClient[]>>()
    expect(auth.endGrant('user', 'grant')).type.toBe<Promise<boolean>>()
    expect(auth.endGrant).type.toBeCallableWith('user', 'grant', { actor: 'support' })
    expect(auth.endGrant).type.not.toBeCallableWith('user')
  })
})
