import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AuthContext } from '../context.js'
import type { AuthError } from '../errors.js'

/** What users do: a form, a page or another route. */
export interface Act {
  /** Whether the options of the application ask for it; default always. */
  readonly when?: ((auth: AuthContext) => boolean) | undefined
  readonly mount: (mounting: Mounting) => void | Promise<void>
}

export interface Mounting {
  readonly scope: FastifyInstance
  readonly auth: AuthContext
  /** The pages of the plugin that show the failures of their forms, by their paths. */
  readonly failurePages: Map<string, FailurePage>
}

/** Answers a form of a page, which failed, with that page as it is with this query. */
export type FailurePage = (
  request: FastifyRequest, reply: FastifyReply, error: AuthError, query: URLSearchParams
) => Promise<FastifyReply>

export async function mountActs (scope: FastifyInstance, auth: AuthContext, acts: readonly Act[]): Promise<void> {
  const mounting = { scope, auth, failurePages: new Map() }
  for (const act of acts) if (act.when?.(auth) ?? true) await act.mount(mounting)
}

/** Returns the path of a route below the prefix, such as `logout`, as browsers see it. */
export function pathOf ({ site, prefix }: Pick<AuthContext, 'site' | 'prefix'>, route: string): string {
  return site.routePath(`${prefix}/${route}`)
}

/** Returns the public URL of a route below the prefix, as it is registered with a provider. */
export function urlOf ({ site, prefix }: Pick<AuthContext, 'site' | 'prefix'>, route: string): string {
  return `${site.baseUrl}${prefix}/${route}`
}
