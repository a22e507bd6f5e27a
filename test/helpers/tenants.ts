import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import type { ClientMetadata, Configuration } from 'oidc-provider'
import type { Test } from 'tap'
import { Connections, type Connection, type ConnectionChange, type ConnectionsOptions } from '../../lib/connections.js'
import { isPublicAddress } from '../../lib/core/public-addresses.js'
import { type AuthPluginOptions, SqlAuthStore } from '../../lib/index.js'
import { SESSION_SECRET } from './app.js'
import { Browser } from './browser.js'
import { privateAuthority } from './certificate.js'
import { DATA_SECRET } from './factor-app.js'
import { type MailApp, startMailApp } from './mail-app.js'
import { type OpenIdProvider, startOpenIdProvider } from './openid-provider.js'
import { replaceInternet, textsIn } from './public-host.js'

export const BASE_URL = 'https://app.example'

/** A customer with an OpenID provider of their own, on this machine, which passes for one of the internet. */
export interface Tenant {
  readonly idp: OpenIdProvider
  /** Those that are registered there; a connection adds its own. */
  readonly redirectUris: string[]
  /** The logout tokens that it has sent. */
  readonly logoutTokens: string[]
}

/** The customers, and the records of their domains. */
export interface Tenants {
  readonly tenants: readonly [Tenant, Tenant]
  readonly records: Map<string, readonly string[] | Error>
}

/** Starts two OpenID providers; `changes`: of the registration of their clients. */
export async function startTenants (t: Test, changes: Partial<ClientMetadata> = {}): Promise<Tenants> {
  const authority = await privateAuthority('Tests')
  const start = async (): Promise<Tenant> => {
    const redirectUris = [`${BASE_URL}/none`]
    const tls = { ...await authority.issue('localhost'), ca: authority.cert }
    const logoutTokens: string[] = []
    const configuration: Configuration = {
      ...CONFIGURATION,
      features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
      async fetch (_url, options) {
        logoutTokens.push(new URLSearchParams(String(Object(options).body)).get('logout_token') ?? '')
        return new Response()
      }
    }
    const client = { backchannel_logout_uri: `${BASE_URL}/none`, ...changes }
    return { idp: await startOpenIdProvider(t, { redirectUris, tls, client, configuration }), redirectUris, logoutTokens }
  }
  const records = new Map<string, readonly string[] | Error>()
  replaceInternet(t, {
    resolver: () => ({
      resolve4: async () => ['127.0.0.1'], resolve6: async () => [], resolveTxt: textsIn(records), cancel: () => {}
    }),
    isPublic: address => address === '127.0.0.1' || isPublicAddress(address),
    ca: authority.cert,
    timeLimit: 20_000
  })
  return { tenants: [await start(), await start()], records }
}

const CONFIGURATION = {
  claims: { openid: ['sub', 'groups', 'role'], email: ['email', 'email_verified'], profile: ['name', 'picture'] },
  conformIdTokenClaims: false
}

/** An application with connections, passwords and mails. */
export async function startConnectionApp (
  t: Test, { connections = {}, ...options }: Omit<AuthPluginOptions, 'connections'> & { connections?: ConnectionsOptions } = {},
  local: Parameters<typeof startMailApp>[2] = {}, server: Parameters<typeof startMailApp>[3] = {}
): Promise<MailApp> {
  return startMailApp(t, {
    baseUrl: BASE_URL,
    store: new SqlAuthStore(':memory:'),
    session: { secret: SESSION_SECRET },
    dataSecret: DATA_SECRET,
    connections: new Connections(connections),
    ...options
  }, local, server)
}

/** Adds a connection to the provider of a customer. */
export async function connect (
  app: FastifyInstance, { idp, redirectUris }: Tenant, change: ConnectionChange & { name?: string } = {}
): Promise<Connection> {
  const { issuer, clientId, clientSecret } = idp
  const credential = change.clientKey === undefined ? { clientSecret } : {}
  const made = await app.auth.connections.create({ name: 'Acme', issuer, clientId, ...credential, ...change })
  redirectUris.push(made.redirectUri)
  return made
}

/** Publishes the record of each domain of a connection, and has it checked. */
export async function proveAll (app: FastifyInstance, { records }: Tenants, { id, domains }: Connection): Promise<void> {
  for (const { domain, record } of domains) {
    records.set(record.name, [...textsOf(records.get(record.name)), record.value])
    const { problem } = await app.auth.connections.proveDomain(id, domain)
    if (problem !== null) throw new Error(problem)
  }
}

function textsOf (texts: readonly string[] | Error | undefined): readonly string[] {
  return texts === undefined || texts instanceof Error ? [] : texts
}

/** Signs in by a connection, as a browser does: the answer of the callback. */
export async function signInBy (
  browser: Browser, { idp }: Pick<Tenant, 'idp'>, { loginPath }: Pick<Connection, 'loginPath'>, next = '/'
): Promise<LightMyRequestResponse> {
  const url = loginPath.includes('?') ? loginPath : `${loginPath}?next=${encodeURIComponent(next)}`
  const started = await browser.get(url, { accept: 'text/html' })
  const { location } = started.headers
  if (typeof location !== 'string' || !location.startsWith(idp.issuer)) return started
  const callback = await idp.authorize(location)
  return browser.get(callback.pathname + callback.search, { accept: 'text/html' })
}

/** A browser of its own. */
export function newBrowser (app: FastifyInstance): Browser {
  return new Browser(app)
}
