import type { FastifyInstance } from 'fastify'
import { takeForms } from './site.js'

/** The query of a link, and the body of the form on its page. */
export interface LinkToken {
  token: string
}

/** The schema of `LinkToken`. */
export const linkToken = { type: 'object', required: ['token'], properties: { token: { type: 'string' } } }

/** Sets up routes for links with a token. The page of a link shows a form, and only the form changes anything. */
export async function setUpLinks (scope: FastifyInstance): Promise<void> {
  await takeForms(scope)
  // The address of the page holds a credential, so the Referer header names the origin alone.
  scope.addHook('onRequest', async (_request, reply) => { reply.header('Referrer-Policy', 'strict-origin') })
}
