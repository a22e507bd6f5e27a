/**
 * A provider that the library does not have: GitLab, also one of your own. Register the callback URL
 * http://localhost:3000/auth/gitlab/callback there. For a provider without OpenID Connect see discord-provider.ts.
 *
 *     npm install fastify fastify-svc-auth
 *     export SVC_SESSION_SECRET=$(openssl rand -hex 32) GITLAB_CLIENT_ID=... GITLAB_CLIENT_SECRET=...
 *     npx tsx 06-own-provider.ts
 */
import Fastify from 'fastify'
import authPlugin, { OidcProvider, type ProviderOptions } from 'fastify-svc-auth'

export class GitLabProvider extends OidcProvider {
  constructor ({ host = 'https://gitlab.com', ...options }: ProviderOptions & { host?: string }) {
    super({ name: 'gitlab', discoveryUrl: `${host}/.well-known/openid-configuration`, ...options })
  }
}

const { GITLAB_CLIENT_ID = '', GITLAB_CLIENT_SECRET = '' } = process.env

export const app = Fastify({ logger: true })
await app.register(authPlugin, {
  baseUrl: 'http://localhost:3000',
  providers: [new GitLabProvider({ clientId: GITLAB_CLIENT_ID, clientSecret: GITLAB_CLIENT_SECRET })],
  loginPage: '/auth/gitlab/login'
})

app.get('/', { preHandler: app.auth.requireUser }, async request => `You are ${app.auth.user(request).claims.name}.`)

await app.listen({ port: Number(process.env.PORT ?? 3000) })
