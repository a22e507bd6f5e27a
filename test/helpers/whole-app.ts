/** An application with all that the plugin has, for properties over all of its acts. */
import { subscribe } from 'node:diagnostics_channel'
import type { FastifyInstance } from 'fastify'
import type { AuthPluginOptions, SendMail } from '../../lib/index.js'
import { Connections } from '../../lib/connections.js'
import { OAuthServer } from '../../lib/oauth-server.js'
import { Pages } from '../../lib/pages.js'
import { Passkeys } from '../../lib/passkeys.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { SESSION_SECRET, localProvider } from './app.js'
import { DATA_SECRET } from './factor-app.js'
import { ecKey } from './signing-key.js'

/** The routes of the application that was started last. */
let routes: string[] = []
subscribe('fastify.initialization', message => {
  routes = []
  const { fastify } = message as { fastify: FastifyInstance }
  fastify.addHook('onRoute', ({ method, url }) => { if (!url.endsWith('/*')) routes.push(...[method].flat().map(method => `${method} ${url}`)) })
})

/** What users and programs do at the application that was started last, such as `POST /auth/local/login`. */
export function actsOfLastApp (): string[] {
  return [...new Set(routes.filter(route => /^(GET|POST) \/auth\//.test(route)))].sort()
}

export function wholeApp (sendMail: SendMail): AuthPluginOptions {
  return {
    baseUrl: 'https://app.example',
    local: localProvider({ secret: undefined, signingKey: ecKey(), signInByMail: true, sendMail }),
    dataSecret: DATA_SECRET,
    session: { secret: SESSION_SECRET, remember: { days: 30 } },
    pages: new Pages({ name: 'Shop' }),
    passkeys: new Passkeys({ name: 'Shop' }),
    connections: new Connections(),
    secondFactor: new SecondFactor({ issuer: 'Shop', trustedBrowser: { days: 30 } }),
    oauthServer: new OAuthServer({
      resources: { 'https://app.example/mcp': { scopes: { read: 'Read' } } },
      clients: [{ client_id: 'tv', client_name: 'TV', redirect_uris: ['https://client.example/callback'] }],
      device: { clients: ['tv'] }
    })
  }
}
