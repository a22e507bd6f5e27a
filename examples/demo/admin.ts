import type { FastifyInstance } from 'fastify'
import { type ListQuery, adminPage, listPath } from './pages/admin.js'
import { type RoleForm, roleForm } from './roles.js'
import { type PageQuery, redirectDone, sendPage, takeForms } from './site.js'

interface ChangeOfUser {
  Params: { userId: string }
  /** The list that the administrator sees, and comes back to. */
  Querystring: ListQuery
}

const USERS_ON_A_PAGE = 10

/** The administration page: users with their roles and blocks. */
export async function mountAdmin (scope: FastifyInstance): Promise<void> {
  const { auth } = scope
  await takeForms(scope)
  // Refreshed first: a role counts as soon as it is granted, and until it is withdrawn.
  scope.addHook('preHandler', auth.refresh)
  scope.addHook('preHandler', auth.requireClaims({ role: 'admin' }))

  const properties = { email: { type: 'string', maxLength: 254 }, after: { type: 'string' } }
  const list = { querystring: { type: 'object', properties } }

  scope.get<{ Querystring: PageQuery & ListQuery }>('/admin', { schema: list }, async (request, reply) => {
    const { error, done, email = '', after } = request.query
    const principal = auth.user(request)
    const { users, next } = await auth.users({
      limit: USERS_ON_A_PAGE,
      ...(email.trim() !== '' && { email }),
      ...(after !== undefined && { after })
    })
    return sendPage(reply, adminPage({ principal, users, next, list: { email: email.trim(), after }, error, done }))
  })

  const role = { schema: { ...list, body: roleForm } }
  scope.post<ChangeOfUser & { Body: RoleForm }>('/admin/users/:userId/role', role, async (request, reply) => {
    await auth.grant(request.params.userId, { role: request.body.role })
    return redirectDone(reply, listPath(request.query), 'granted')
  })

  scope.post<ChangeOfUser>('/admin/users/:userId/role/withdraw', { schema: list }, async ({ params, query }, reply) => {
    await auth.withdraw(params.userId, ['role'])
    return redirectDone(reply, listPath(query), 'withdrawn')
  })

  scope.post<ChangeOfUser>('/admin/users/:userId/block', { schema: list }, async ({ params, query }, reply) => {
    await auth.block(params.userId)
    return redirectDone(reply, listPath(query), 'blocked')
  })

  scope.post<ChangeOfUser>('/admin/users/:userId/unblock', { schema: list }, async ({ params, query }, reply) => {
    await auth.unblock(params.userId)
    return redirectDone(reply, listPath(query), 'unblocked')
  })
}
