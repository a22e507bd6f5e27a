import type { FastifyInstance } from 'fastify'
import { AuthError } from 'fastify-svc-auth'
import { accountPage } from './pages/account.js'
import { type PageQuery, sendPage, takeForms } from './site.js'

/** What somebody sees of his account, and may change of it. */
export async function mountAccount (scope: FastifyInstance): Promise<void> {
  await takeForms(scope)
  // What was granted or withdrawn meanwhile is seen with the next look at the page.
  scope.addHook('preHandler', scope.auth.refresh)

  scope.get<{ Querystring: PageQuery }>('/', async ({ principal, query: { error } }, reply) => {
    if (principal === null) return reply.redirect('/login')
    const links = await scope.auth.links(principal.userId)
    return sendPage(reply, accountPage({ principal, links, providers: scope.authProviders, error }))
  })

  const provider = { type: 'object', required: ['provider'], properties: { provider: { type: 'string' } } }
  scope.post<{ Body: { provider: string } }>('/unlink', { preHandler: scope.auth.requireUser, schema: { body: provider } }, async ({ principal, body }, reply) => {
    if (principal === null) throw new AuthError('unauthenticated')
    await scope.auth.unlink(principal.userId, body.provider)
    return reply.redirect('/', 303)
  })
}
