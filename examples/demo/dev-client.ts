import { OidcProvider } from 'fastify-svc-auth'

export const CLIENT_ID = 'example'

/** The development provider as the application registers it. */
export function devClient (url: string, clientSecret: string): OidcProvider {
  return new OidcProvider({
    name: 'dev-provider',
    discoveryUrl: `${url}/.well-known/openid-configuration`,
    clientId: CLIENT_ID,
    clientSecret,
    allowInsecureRequests: true
  })
}
