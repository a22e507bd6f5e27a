import { brand } from '../../base/values.js'
import { type AuthorizationClaims, authorizationClaims } from '../../claims.js'
import type { PartSetup } from '../../core/feature.js'
import { AuthError, OptionsError } from '../../errors.js'
import { callHook } from '../../hooks.js'
import { type Checked, type ChecksOf, callable, checkedOptions, optional } from '../../option-checks.js'
import { Sealer } from '../../sealed.js'
import { requiredDataSecrets } from '../../secrets.js'
import { DomainChecks } from './domains.js'
import { EnforcedConnections } from './enforced.js'
import { ConnectionProviders, type ConnectionSignIn } from './provider.js'
import { ConnectionRows } from './rows.js'

export type { ConnectionSignIn } from './provider.js'

/** Options of {@link Connections}. */
export interface ConnectionsOptions {
  /**
   * Maps what a connection says of a user to claims, as `{ role: 'admin' }` for a group. They are
   * claims of the connection's sign-ins alone: each sign-in replaces them, and claims that were
   * granted come before them. Default none.
   */
  claims?: ((signIn: ConnectionSignIn) => AuthorizationClaims | Promise<AuthorizationClaims>) | undefined
}

/** What the option became: a part of the context. */
export type ConnectionsPart = ReturnType<Connections['resolve']>

declare module '../../core/context.js' {
  interface Parts {
    readonly connections: ConnectionsPart | null
  }
}

const OPTIONS = {
  claims: optional(callable<NonNullable<ConnectionsOptions['claims']>>('({ connection, identity }) => claims'), null)
} satisfies ChecksOf<ConnectionsOptions>

/**
 * The identity providers of customers, which the application adds while it runs, for the option
 * `connections` of the plugin. Needs a `dataSecret`, a `SqlAuthStore` and the package `tldts`.
 *
 * @example
 * ```ts
 * import { Connections } from 'fastify-svc-auth/connections'
 *
 * await app.register(authPlugin, { baseUrl, store, connections: new Connections() })
 * const { id, redirectUri } = await app.auth.connections.create({
 *   name: 'Acme', issuer: 'https://id.acme.example', clientId, clientSecret, domains: ['acme.example']
 * })
 * ```
 */
export class Connections {
  static { brand(this, 'Connections') }
  readonly #options: Checked<typeof OPTIONS>

  /** @throws OptionsError naming the option */
  constructor (options: ConnectionsOptions = {}) {
    this.#options = checkedOptions('Connections', options, OPTIONS, '{ claims }')
  }

  /** @hidden for the plugin */
  resolve ({ site, dataSecrets, featureTables, pathOf, providerLabels: labels }: PartSetup) {
    if (site.baseUrl === null) {
      throw new OptionsError('baseUrl is required with connections, because providers redirect users back to it; ' +
        'set it to the public URL of the application, such as https://app.example')
    }
    if (featureTables === undefined) {
      throw new OptionsError('connections needs a SqlAuthStore, whose database keeps them')
    }
    const secrets = requiredDataSecrets(dataSecrets, 'with connections, because it seals the secrets of clients')
    const rows = new ConnectionRows(featureTables)
    const sealer = new Sealer(secrets, 'connection')
    const { claims } = this.#options
    const claimsOf = async (signIn: ConnectionSignIn): Promise<AuthorizationClaims> => {
      const mapped = claims === null ? {} : await callHook(() => claims(signIn))
      try {
        return authorizationClaims(mapped)
      } catch (cause) {
        throw new AuthError('internal_error', { cause })
      }
    }
    return Object.freeze({
      rows,
      sealer,
      providers: new ConnectionProviders(rows, { sealer, claimsOf, labels }),
      checks: new DomainChecks(rows),
      rule: new EnforcedConnections(rows, pathOf),
      pages: {}
    })
  }
}
