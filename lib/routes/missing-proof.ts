import type { FastifyRequest } from 'fastify'
import { methodsOf } from '../flows/reauthentication.js'
import { principalOf } from '../session/record.js'
import type { RouteContext } from './context.js'

/**
 * Says by which methods the signed-in user can prove who they are, if that is what a request lacks.
 *
 * @returns further members of the JSON body
 */
export async function missingProof (
  error: unknown,
  request: FastifyRequest,
  { rules: { store }, providers }: Pick<RouteContext, 'rules' | 'providers'>
): Promise<{ methods?: string[] }> {
  const { code }: { code?: unknown } = Object(error)
  const principal = code === 'reauthenticate' ? principalOf(request) : null
  return principal === null ? {} : { methods: await methodsOf(store, principal.userId, providers) }
}
