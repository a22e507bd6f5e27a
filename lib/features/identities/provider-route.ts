import type { FastifyRequest } from 'fastify'
import type { AuthContext } from '../../core/context.js'
import { AuthError, type AuthErrorCode } from '../../errors.js'
import type { ExternalProvider } from '../../providers/provider.js'
import { CONNECTION } from '../connections/rows.js'

/** Where a provider has its routes, or providers that are found by the id in the path. */
export interface ProviderRoute {
  /** Below the prefix: `google`, `connections/:id`. */
  readonly path: string
  /** Names it in the document: `google`, `a connection`. */
  readonly title: string
  readonly responseMode: ExternalProvider['responseMode']
  /** The codes with which it refuses an id in the path. */
  readonly refuses: readonly AuthErrorCode[]
  /** Whether it may end sessions here. */
  readonly hasLogout: boolean
  /** Returns the name of the provider that a request is for, which there may be or not. */
  readonly nameOf: (request: FastifyRequest) => string
  /** @throws AuthError `not_found` */
  readonly providerOf: (request: FastifyRequest) => Promise<ExternalProvider>
}

/** The routes of all providers, in the order of the document. */
export function providerRoutes (auth: AuthContext): ProviderRoute[] {
  const { providers, parts: { connections } } = auth
  const routes: ProviderRoute[] = providers.map(provider => ({
    path: provider.name,
    title: provider.name,
    responseMode: provider.responseMode,
    refuses: [],
    hasLogout: provider.backChannelLogout === true,
    nameOf: () => provider.name,
    providerOf: async () => provider
  }))
  if (connections === null) return routes
  const nameOf = ({ params }: FastifyRequest): string => `${CONNECTION}${Object(params).id}`
  return [...routes, {
    path: 'connections/:id',
    title: 'a connection',
    responseMode: undefined,
    refuses: ['not_found'],
    hasLogout: true,
    nameOf,
    async providerOf (request) {
      const provider = await connections.providers.find(nameOf(request))
      if (provider === null) throw new AuthError('not_found')
      connections.checks.start(auth, request.log)
      return provider
    }
  }]
}
