import type { FastifyInstance } from 'fastify'
import { adminPage } from './pages/admin.js'
import { type RoleForm, roleForm } from './roles.js'
import { type PageQuery, redirectDone, sendPage, takeForms } from './site.js'
import type { UserList } from './user-list.js'

interface User {
  userId: string
}

/** The administration page, and the roles that it grants and withdraws. */
export async function mountAdmin (scope: FastifyInstance, users: UserList): Promise<void> {
  await takeForms(scope)
  // Refreshed first: a role counts as soon as it is granted, and until it is withdrawn.
  scope.addHook('preHandler', scope.auth.refresh)
  scope.addHook('preHandler', scope.auth.requireClaims({ role: 'admin' }))

  scope.get<{ Querystring: PageQuery }>('/admin', async (request, reply) => {
    const { error, done } = request.query
    const principal = scope.auth.user(request)
    return sendPage(reply, adminPage({ principal, users: await users.first(), error, done }))
  })

  const role = { schema: { body: roleForm } }
  scope.post<{ Params: User, Body: RoleForm }>('/admin/users/:userId/role', role, async (request, reply) => {
    await scope.auth.grant(request.params.userId, { role: request.body.role })
    return redirectDone(reply, '/admin', 'granted')
  })

  scope.post<{ Params: User }>('/admin/users/:userId/role/withdraw', async ({ params }, reply) => {
    await scope.auth.withdraw(params.userId, ['role'])
    return redirectDone(reply, '/admin', 'withdrawn')
  })
}
