import type { JWK } from 'jose'
import { BoundedMap, UUID } from '../../base/values.js'
import type { AuthorizationClaims } from '../../claims.js'
import { publicFetch } from '../../core/public-fetch.js'
import { canonicalEmail } from '../../email.js'
import type { ProviderIdentity } from '../../hooks.js'
import { checkedIdentity, claimsOfUser } from '../../providers/identity.js'
import { OidcProvider, type OidcProfile } from '../../providers/oidc.js'
import type {
  Authentication, AuthorizationRequest, AuthorizationResponse, ExternalProvider, Identity, LogoutToken,
  UncheckedIdentity
} from '../../providers/provider.js'
import type { ConnectionContent } from '../../schema/connections.js'
import type { Sealer } from '../../sealed.js'
import { CONNECTION, type ConnectionRow, type ConnectionRows, type DomainRow, type FoundConnection } from './rows.js'

/** A sign-in by a connection, whose claims are asked for. */
export interface ConnectionSignIn {
  /** The connection. */
  connection: {
    /** Names it in `app.auth.connections`. */
    id: string
    /** What people call it. */
    name: string
  }
  /**
   * The user there. Its claims are all that the connection says, such as `groups`: the customer
   * chooses them, so map those that you know, and copy none.
   */
  identity: ProviderIdentity
}

type ClaimsOf = (signIn: ConnectionSignIn) => Promise<AuthorizationClaims>

const SCOPES = ['openid', 'email', 'profile']

/** What authenticates the client of a connection. */
export type ConnectionCredential = { clientSecret: string } | { clientKey: JWK }

/** Speaks OpenID Connect with the provider of a connection. Its claims are all that it sends. */
class ConnectionClient extends OidcProvider {
  protected override identityOf (profile: OidcProfile, idToken: OidcProfile): UncheckedIdentity {
    const identity = super.identityOf(profile, idToken)
    return { ...identity, claims: { ...claimsOfUser(profile), ...identity.claims } }
  }
}

/** Makes the client of a connection; throws an OptionsError for what cannot be one. */
export function clientOf (
  { issuer, clientId, content: { name, scopes } }:
  Pick<ConnectionRow, 'issuer' | 'clientId'> & { readonly content: Pick<ConnectionContent, 'name' | 'scopes'> },
  credential: ConnectionCredential
): OidcProvider {
  return new ConnectionClient({
    name: 'connection',
    label: name,
    discoveryUrl: `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`,
    clientId,
    ...credential,
    scopes: [...new Set([...SCOPES, ...scopes])],
    backChannelLogout: true,
    // The customer has chosen the URLs.
    fetch: publicFetch
  })
}

/** For how many connections this process keeps what it knows of their providers. */
const MAX_CLIENTS = 500

/** The providers of connections, as their rows say now. */
export class ConnectionProviders {
  readonly #rows: ConnectionRows
  readonly #sealer: Sealer
  readonly #claimsOf: ClaimsOf
  readonly #labels: Map<string, string>
  /** With the metadata and keys of the provider, by the id and the version of the row. */
  readonly #clients = new BoundedMap<{ readonly version: number, readonly client: OidcProvider }>(MAX_CLIENTS)

  /** @param how `labels`: where the names of connections that were found are noted */
  constructor (rows: ConnectionRows, { sealer, claimsOf, labels }: {
    sealer: Sealer, claimsOf: ClaimsOf, labels: Map<string, string>
  }) {
    this.#rows = rows
    this.#sealer = sealer
    this.#claimsOf = claimsOf
    this.#labels = labels
  }

  /** Finds a connection by its name as a provider; null where there is none. */
  async find (name: string): Promise<ConnectionProvider | null> {
    const id = name.startsWith(CONNECTION) ? name.slice(CONNECTION.length) : ''
    const found = UUID.test(id) ? await this.#rows.find(id) : null
    if (found === null) return null
    this.#labels.set(name, found.row.content.name)
    return new ConnectionProvider(found, await this.#clientOf(found.row), this.#claimsOf)
  }

  async #clientOf (row: ConnectionRow): Promise<OidcProvider> {
    const { connectionId: id, version, content: { credential: { kind, sealed } } } = row
    const known = this.#clients.get(id)
    if (known?.version === version) return known.client
    const { text } = await this.#sealer.open(sealed, id)
    const client = clientOf(row, kind === 'secret' ? { clientSecret: text } : { clientKey: JSON.parse(text) })
    this.#clients.set(id, { version, client })
    return client
  }
}

/** A connection as a provider of the plugin: its client, under the rules of connections. */
export class ConnectionProvider implements ExternalProvider {
  readonly name: string
  readonly provesAuthTime = true
  readonly backChannelLogout = true
  readonly label: string
  readonly #found: FoundConnection
  readonly #client: OidcProvider
  readonly #claimsOf: ClaimsOf

  constructor (found: FoundConnection, client: OidcProvider, claimsOf: ClaimsOf) {
    this.name = CONNECTION + found.row.connectionId
    this.label = found.row.content.name
    this.#found = found
    this.#client = client
    this.#claimsOf = claimsOf
  }

  async authorizationUrl (request: AuthorizationRequest): Promise<URL> {
    return this.#client.authorizationUrl(request)
  }

  async verifyLogoutToken (token: string): Promise<LogoutToken> {
    return this.#client.verifyLogoutToken(token)
  }

  async authenticate (response: AuthorizationResponse): Promise<Authentication> {
    const { identity: whole, logoutHint: _, ...authentication } = await this.#client.authenticate(response)
    const { connectionId: id, content: { name } } = this.#found.row
    const domain = domainOf(whole)
    const claim = this.#found.domains.find(claim => claim.domain === domain)
    // The customer answers for its domain: an absent email_verified does not say no.
    const emailVerified = isProven(claim) && whole.claims.email_verified !== false
    const asked: ProviderIdentity = { provider: this.name, ...whole, emailVerified }
    const mapped = await this.#claimsOf({ connection: { id, name }, identity: asked })
    const { sub, email, name: fullName, picture } = whole.claims
    const own = { email, email_verified: emailVerified, name: fullName, picture, connection: id }
    const identity = checkedIdentity({ ...whole, claims: { ...mapped, ...own, sub }, emailVerified })
    // A domain that was proven and is not: another person may own it by now.
    return { ...authentication, identity, isLinkedOnly: claim?.lapsedAt != null }
  }
}

export function isProven (claim: Pick<DomainRow, 'provenAt'> | undefined): boolean {
  return claim !== undefined && claim.provenAt !== null
}

function domainOf ({ claims: { email = '' } }: Identity): string | null {
  const canonical = canonicalEmail(email)
  return canonical === null ? null : canonical.slice(canonical.indexOf('@') + 1)
}
