import Fastify from 'fastify'
import authPlugin, { FacebookProvider, GitHubProvider, GoogleProvider, LocalIdentityProvider, MicrosoftProvider, OidcProvider, SqlAuthStore } from '../../dist/index.js'

const client = { clientId: 'the-id', clientSecret: 'the-secret' }

const app = Fastify()
await app.register(authPlugin, {
  baseUrl: 'https://app.example',
  providers: [
    new GoogleProvider(client),
    new GitHubProvider(client),
    new MicrosoftProvider(client),
    new FacebookProvider(client),
    new OidcProvider({ name: 'keycloak', discoveryUrl: 'https://id.example/realms/main/.well-known/openid-configuration', ...client })
  ],
  local: new LocalIdentityProvider({ secret: 'a secret for the tokens of the benches' }),
  store: new SqlAuthStore(':memory:'),
  session: { secret: 'a secret for the sessions of the benches' }
})
await app.ready()
process.send('ready')
