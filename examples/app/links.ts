import formbody from '@fastify/formbody'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { AuthError } from 'fastify-svc-auth'

/** What a link carries in its query, and the form behind it in its body. */
export interface LinkToken {
  token: string
}

/** Its schema; what the token is good for, verifying it tells. */
export const linkToken = { type: 'object', required: ['token'], properties: { token: { type: 'string' } } }

/** Sets up routes that links with a token lead to: their page shows a form, and only the form does something. */
export async function setUpLinks (scope: FastifyInstance, baseUrl: string): Promise<void> {
  const { origin } = new URL(baseUrl)
  await scope.register(formbody)
  scope.addHook('onRequest', async (request, reply) => {
    // The address of the page holds a credential, so the Referer header names the origin alone.
    reply.header('Referrer-Policy', 'strict-origin')
    if (request.method === 'POST') refuseOtherOrigins(request, origin)
  })
}

/**
 * A page of another site could send a form that signs its reader in as somebody else. Browsers say where a POST comes from; what says
 * nothing is no browser.
 */
function refuseOtherOrigins ({ headers }: FastifyRequest, own: string): void {
  const { origin = own, 'sec-fetch-site': site } = headers
  const isOwn = site === undefined ? origin === own : site === 'same-origin' || site === 'none'
  if (!isOwn) throw new AuthError('cross_origin')
}
