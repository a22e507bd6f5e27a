/** Which connection the users of a domain must sign in by. */
import type { FastifyBaseLogger } from 'fastify'
import { type AuditSource, announceRevoke } from '../../audit.js'
import { DAY_MS } from '../../base/values.js'
import { routeOfProvider } from '../../core/act.js'
import type { AuthContext, ConnectionRule, RequiredConnection } from '../../core/context.js'
import { AuthError } from '../../errors.js'
import { forUsersOfDomain } from './for-users-of-domain.js'
import { CONNECTION, type ConnectionRows } from './rows.js'

/** Asks the rows, by one statement each: what an operator changes holds in each process at once. */
export class EnforcedConnections implements ConnectionRule {
  readonly #rows: ConnectionRows
  readonly #pathOf: (route: string) => string

  constructor (rows: ConnectionRows, pathOf: (route: string) => string) {
    this.#rows = rows
    this.#pathOf = pathOf
  }

  async requiredFor (email: string): Promise<RequiredConnection | null> {
    const row = await this.#rows.ofDomain(email.slice(email.lastIndexOf('@') + 1))
    if (row === null || row.content.enforce === null) return null
    const { connectionId, content: { name: label, enforce } } = row
    const provider = CONNECTION + connectionId
    const loginPath = this.#pathOf(routeOfProvider(provider, 'login'))
    return { provider, label, loginPath, lifetime: enforce.days * DAY_MS, except: enforce.except }
  }

  async isOpen (provider: string): Promise<boolean> {
    return !provider.startsWith(CONNECTION) || await this.#rows.find(provider.slice(CONNECTION.length)) !== null
  }
}

/** Ends the sessions of the users of domains: they sign in again, by the connection. */
export async function endSessionsOf (
  { accounts, channel }: Pick<AuthContext, 'accounts' | 'channel'>, domains: readonly string[],
  isEnded: (userId: string) => boolean, source: AuditSource & { log: FastifyBaseLogger }
): Promise<void> {
  for (const domain of domains) {
    await forUsersOfDomain(accounts, domain, async ({ userId }) => {
      if (!isEnded(userId)) return
      try {
        await accounts.changeUser(userId, { endSessions: true })
      } catch (error) {
        if (error instanceof AuthError && error.code === 'unknown_user') return
        throw error
      }
      announceRevoke(channel, userId, source)
    })
  }
}
