import type { FastifyInstance } from 'fastify'
import { AuthError } from 'fastify-svc-auth'
import { adminPage } from './pages/admin.js'
import { type RoleForm, roleForm } from './roles.js'
import { type PageQuery, sendPage, takeForms } from './site.js'
import type { UserList } from './user-list.js'

/** What administrators see, and may change. */
export async function mountAdmin (scope: FastifyInstance, users: UserList): Promise<void> {
  await takeForms(scope)
  // Refreshed first: a role counts from the moment it is granted, and no longer than that.
  scope.addHook('preHandler', scope.auth.refresh)
  scope.addHook('preHandler', scope.auth.requireClaims({ role: 'admin' }))

  scope.get<{ Querystring: PageQuery }>('/admin', async ({ principal, query: { error } }, reply) => {
    if (principal === null) throw new AuthError('unauthenticated')
    return sendPage(reply, adminPage({ principal, users: await users.first(), error }))
  })

  scope.post<{ Params: { userId: string }, Body: RoleForm }>('/admin/users/:userId/role', { schema: { body: roleForm } }, async ({ params, body }, reply) => {
    await scope.auth.grant(params.userId, { role: body.role })
    return reply.redirect('/admin', 303)
  })

  scope.post<{ Params: { userId: string } }>('/admin/users/:userId/role/withdraw', async ({ params }, reply) => {
    await scope.auth.withdraw(params.userId, ['role'])
    return reply.redirect('/admin', 303)
  })
}
