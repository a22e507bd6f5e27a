import type { FastifyBaseLogger } from 'fastify'
import type { AuthContext } from '../../core/context.js'
import { AuthError } from '../../errors.js'
import { type Cause, sourceOfCause } from '../app-auth/users.js'
import type { DomainProof } from './domains.js'
import type { Connection, ConnectionChange, ConnectionToCreate } from './made-connections.js'

declare module '../app-auth/auth.js' {
  interface Auth {
    /** The identity providers of customers. */
    readonly connections: ConnectionMembers
  }
}

/** Which connections `app.auth.connections.list` lists. */
export interface ConnectionList {
  /** The `next` of the page before; default the first page. */
  after?: string | null | undefined
  /** At most so many connections, 1 to 500; default 50. */
  limit?: number | undefined
}

/** A page of connections. */
export interface ConnectionPage {
  /** Ordered by id. */
  connections: Connection[]
  /** The `after` of the next page; null on the last one. */
  next: string | null
}

/**
 * `app.auth.connections`. All throw AuthError `unsupported` without the option, `not_found` for an
 * id without a connection, `invalid_request` with a sentence for what cannot be.
 */
export interface ConnectionMembers {
  /** Makes a connection, which signs users in from then on, in each process. */
  readonly create: (connection: ConnectionToCreate, cause?: Cause) => Promise<Connection>

  /** Changes a connection; what is absent stays as it is. */
  readonly update: (id: string, change: ConnectionChange, cause?: Cause) => Promise<Connection>

  /**
   * Removes a connection, ends the sessions of its users, and removes the link from them. They keep
   * their address as it was, so a mail signs them in.
   *
   * @returns false where there is none with this id
   */
  readonly remove: (id: string, cause?: Cause) => Promise<boolean>

  /** Lists connections, a page at a time. */
  readonly list: (which?: ConnectionList) => Promise<ConnectionPage>

  /**
   * Returns the path of a sign-in that signs nobody in, good for ten minutes: its last page says
   * what works and what does not, in a sentence. For an administrator, by a link or a redirect.
   */
  readonly test: (id: string) => Promise<string>

  /** Looks up the DNS record of a domain that a connection claims, and proves it. */
  readonly proveDomain: (id: string, domain: string, cause?: Cause) => Promise<DomainProof>
}

/** What they do is loaded when it is asked for. */
export function connectionMembers (auth: AuthContext, log: FastifyBaseLogger): { connections: ConnectionMembers } {
  const part = () => {
    const { connections } = auth.parts
    if (connections === null) throw new AuthError('unsupported', { message: 'The option connections is not given.' })
    return connections
  }
  const load = () => import('./made-connections.js')
  const sourceFor = (method: string, cause: Cause = {}) => {
    const source = sourceOfCause(`connections.${method}`, cause, log)
    return { ...source, log: (cause.request?.log ?? log) as FastifyBaseLogger }
  }
  const connections: ConnectionMembers = {
    async create (connection, cause) {
      const [made, source] = [part(), sourceFor('create', cause)]
      return (await load()).createConnection(made, auth, connection, source)
    },
    async update (id, change, cause) {
      const [made, source] = [part(), sourceFor('update', cause)]
      return (await load()).updateConnection(made, auth, { id, change }, source)
    },
    async remove (id, cause) {
      const [made, source] = [part(), sourceFor('remove', cause)]
      return (await load()).removeConnection(made, auth, id, source)
    },
    async list ({ after = null, limit = 50 } = {}) {
      const made = part()
      return (await load()).listConnections(made, auth, { after, limit })
    },
    async test (id) {
      const made = part()
      const { existing, shownConnection } = await load()
      const { provider, loginPath } = shownConnection(auth, await existing(made, id))
      const { withQuery } = await import('../../core/redirects.js')
      return withQuery(loginPath, { signed: auth.signedRequests.sign(provider, { isTest: true }) })
    },
    async proveDomain (id, domain, cause) {
      const [made, source] = [part(), sourceFor('proveDomain', cause)]
      const { existing } = await load()
      const { checkedDomain, proveDomain } = await import('./domains.js')
      const { row: { connectionId } } = await existing(made, id)
      return proveDomain(made.rows, auth, { connectionId, domain: await checkedDomain(domain) }, source)
    }
  }
  return { connections: Object.freeze(connections) }
}
