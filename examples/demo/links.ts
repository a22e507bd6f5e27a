import type { FastifyInstance } from 'fastify'
import { takeForms } from './site.js'

/** What a link carries in its query, and the form behind it in its body. */
export interface LinkToken {
  token: string
}

/** Its schema; what the token is good for, verifying it tells. */
export const linkToken = { type: 'object', required: ['token'], properties: { token: { type: 'string' } } }

/** Sets up routes that links with a token lead to: their page shows a form, and only the form does something. */
export async function setUpLinks (scope: FastifyInstance): Promise<void> {
  await takeForms(scope)
  // The address of the page holds a credential, so the Referer header names the origin alone.
  scope.addHook('onRequest', async (_request, reply) => { reply.header('Referrer-Policy', 'strict-origin') })
}
