import { once } from 'node:events'
import { type IncomingMessage, createServer, get } from 'node:http'
import { createServer as createSecureServer, get as getSecurely } from 'node:https'
import Provider, { type ClientMetadata, type Configuration } from 'oidc-provider'
import type { Test } from 'tap'
import { OidcProvider, type OidcProviderOptions, type ProviderOptions } from '../../lib/index.js'
import { listen } from './loopback.js'

export interface Account {
  sub: string
  [claim: string]: unknown
}

/** The real `oidc-provider`, on a free loopback port, with a person behind it who answers every question at once. */
export class OpenIdProvider {
  /** Who signs in there. */
  account: Account = { sub: 'ada', email: 'ada@example.com', email_verified: true, name: 'Ada', picture: 'https://id.example/ada.png' }
  /** The authentication context class that it reports, if any. */
  acr: string | undefined
  /** Whether that person consents. */
  consents = true
  /** Tells the client that a user has signed out, if that has a `backchannel_logout_uri`. */
  tellOfLogout: (subject: string) => Promise<void> = async () => {}
  /** Paths of the requests that came in. */
  readonly requests: string[] = []
  readonly issuer: string
  readonly clientId = 'the-app'
  readonly clientSecret = 'the-client-secret-of-the-tests'

  /** Of its server, when that speaks TLS. */
  readonly certificate: string | undefined

  constructor (issuer: string, certificate?: string) {
    this.issuer = issuer
    this.certificate = certificate
  }

  provider (options: Partial<Omit<OidcProviderOptions, 'clientKey'> & ProviderOptions> = {}): OidcProvider {
    return new OidcProvider({
      name: 'dev',
      discoveryUrl: `${this.issuer}/.well-known/openid-configuration`,
      clientId: this.clientId,
      clientSecret: this.clientSecret,
      allowInsecureRequests: true,
      ...options
    })
  }

  /**
   * Follows an authorization request as a browser does, up to the redirect back to the application: returns that callback URL.
   *
   * @param cookies of the browser: with them it stays signed in there
   */
  async authorize (authorizationUrl: string, cookies = new Map<string, string>()): Promise<URL> {
    let url = new URL(authorizationUrl)
    while (url.origin === this.issuer) {
      const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
      const response = await this.#open(url, cookie)
      for (const header of response.headers['set-cookie'] ?? []) {
        const [, name, value] = /^([^=]+)=([^;]*)/.exec(header) ?? []
        if (name !== undefined && value !== undefined) cookies.set(name, value)
      }
      const { location } = response.headers
      if (location === undefined) throw new Error(`${response.statusCode} at ${url.href}`)
      url = new URL(location, url)
    }
    return url
  }

  /** Signs the browser out there, as the person who confirms it does. */
  async endSession (cookies: ReadonlyMap<string, string>): Promise<void> {
    const headers = { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') }
    const page = await (await fetch(`${this.issuer}/session/end`, { headers })).text()
    const [, xsrf = ''] = /name="xsrf" value="([^"]+)"/.exec(page) ?? []
    const { status } = await fetch(`${this.issuer}/session/end/confirm`, {
      method: 'POST', redirect: 'manual', headers, body: new URLSearchParams({ xsrf, logout: 'yes' })
    })
    if (status !== 303) throw new Error(`the sign-out there was answered ${status}`)
  }

  async #open (url: URL, cookie: string): Promise<IncomingMessage> {
    const request = this.certificate === undefined ? get(url, { headers: { cookie } }) : getSecurely(url, { headers: { cookie }, ca: this.certificate })
    const [response] = await once(request, 'response') as [IncomingMessage]
    return response.resume()
  }
}

interface OpenIdProviderOptions {
  redirectUris: string[]
  /** Changes the registration of the client. */
  client?: Partial<ClientMetadata>
  /** Changes the configuration of the provider. */
  configuration?: Configuration
  /** `ca`: who has signed the certificate, if it has not itself. */
  tls?: { key: string, cert: string, ca?: string }
}

export async function startOpenIdProvider (t: Test, { redirectUris, client, configuration, tls }: OpenIdProviderOptions): Promise<OpenIdProvider> {
  const server = tls === undefined ? createServer() : createSecureServer(tls)
  const port = await listen(t, server)
  const idp = new OpenIdProvider(`${tls === undefined ? 'http://127.0.0.1' : 'https://localhost'}:${port}`, tls?.ca ?? tls?.cert)

  const oidc = new Provider(idp.issuer, {
    clients: [{
      client_id: idp.clientId,
      client_secret: idp.clientSecret,
      redirect_uris: redirectUris,
      token_endpoint_auth_method: 'client_secret_post',
      ...client
    }],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'picture'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    findAccount: (_context, accountId) => ({ accountId, claims: () => ({ ...idp.account, sub: accountId }) }),
    ...configuration
  })
  idp.tellOfLogout = async subject => {
    const client = await oidc.Client.find(idp.clientId)
    await Object(client).backchannelLogout(subject)
  }
  // Those that are registered later, too.
  Object.assign(oidc.Client.prototype, { redirectUriAllowed: (uri: string) => redirectUris.includes(uri) })
  const handle = oidc.callback()
  server.on('request', (request, response) => {
    const path = request.url?.split('?', 1)[0] ?? ''
    idp.requests.push(path)
    if (path.startsWith('/interaction/')) answerInteraction()
    else handle(request, response)

    async function answerInteraction (): Promise<void> {
      const { prompt, grantId, params, session } = await oidc.interactionDetails(request, response)
      if (!idp.consents) {
        await oidc.interactionFinished(request, response, { error: 'access_denied', error_description: 'the person said no' })
      } else if (prompt.name === 'login') {
        await oidc.interactionFinished(request, response, {
          login: { accountId: idp.account.sub, ...(idp.acr !== undefined && { acr: idp.acr }) }
        })
      } else {
        const grant = (grantId !== undefined && await oidc.Grant.find(grantId)) || new oidc.Grant({
          accountId: session?.accountId,
          clientId: String(params.client_id)
        })
        grant.addOIDCScope(String(params.scope))
        await oidc.interactionFinished(request, response, { consent: { grantId: await grant.save() } })
      }
    }
  })
  return idp
}
