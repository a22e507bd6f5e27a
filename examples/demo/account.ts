import type { FastifyInstance } from 'fastify'
import { accountPage } from './pages/account.js'
import { type PageQuery, redirectDone, sendPage, takeForms } from './site.js'

/** The account page, and the removal of a sign-in method. */
export async function mountAccount (scope: FastifyInstance): Promise<void> {
  await takeForms(scope)
  // A change of the claims shows on the next request.
  scope.addHook('preHandler', scope.auth.refresh)

  scope.get<{ Querystring: PageQuery }>('/', async ({ principal, query: { error, done } }, reply) => {
    if (principal === null) return reply.redirect('/login')
    const links = await scope.auth.links(principal.userId)
    return sendPage(reply, accountPage({ principal, links, providers: scope.authProviders, error, done }))
  })

  const body = { type: 'object', required: ['provider'], properties: { provider: { type: 'string' } } }
  const forUsers = { preHandler: scope.auth.requireUser, schema: { body } }
  scope.post<{ Body: { provider: string } }>('/unlink', forUsers, async (request, reply) => {
    await scope.auth.unlink(scope.auth.user(request).userId, request.body.provider)
    return redirectDone(reply, '/', 'unlinked')
  })
}
