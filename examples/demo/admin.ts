import type { FastifyInstance } from 'fastify'
import { type User, isBlocked } from 'fastify-svc-auth'
import { type Html, html } from './html.js'
import { ROLES, type RoleForm, administratorsOnly, roleForm } from './roles.js'
import { redirectDone, sendPage, takeForms } from './site.js'

/** Which users the page shows. */
interface ListQuery {
  /** How their e-mail begins. */
  email?: string
  /** The `next` of the page before. */
  after?: string
}

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
  for (const guard of administratorsOnly(scope)) scope.addHook('preHandler', guard)

  const properties = { email: { type: 'string', maxLength: 254 }, after: { type: 'string' } }
  const list = { querystring: { type: 'object', properties } }

  scope.get<{ Querystring: ListQuery }>('/admin', { schema: list }, async (request, reply) => {
    const { email = '', after } = request.query
    const { users, next } = await auth.users({
      limit: USERS_ON_A_PAGE,
      ...(email.trim() !== '' && { email }),
      ...(after !== undefined && { after })
    })
    const { userId } = auth.user(request)
    return sendPage(reply, 'Administration', html`
    <form class="line" action="/admin" role="search">
      <input type="search" name="email" value="${email}" maxlength="254" aria-label="E-mail begins with"
        placeholder="E-mail begins with …">
      <button class="quiet">Search</button>
    </form>
    <ul>${users.map(user => row(user, user.userId === userId, queryOf(request.query)))}</ul>
    ${users.length === 0 && html`<p>No user has an e-mail that begins with “${email}”.</p>`}
    ${next !== null && html`<p><a href="${pathOf({ email, after: next })}">Next page</a></p>`}
    <section>
      <h2>Invite a user</h2>
      <p>Makes a link that gives this role to the first user who accepts it, within an hour.</p>
      <form class="line" method="post" action="/admin/invitations">${roleSelect('Role')}<button>Make a link</button></form>
    </section>`)
  })

  const role = { schema: { ...list, body: roleForm } }
  scope.post<ChangeOfUser & { Body: RoleForm }>('/admin/users/:userId/role', role, async (request, reply) => {
    await auth.grant(request.params.userId, { role: request.body.role })
    return redirectDone(reply, pathOf(request.query), 'granted')
  })

  scope.post<ChangeOfUser>('/admin/users/:userId/role/withdraw', { schema: list }, async ({ params, query }, reply) => {
    await auth.withdraw(params.userId, ['role'])
    return redirectDone(reply, pathOf(query), 'withdrawn')
  })

  scope.post<ChangeOfUser>('/admin/users/:userId/block', { schema: list }, async ({ params, query }, reply) => {
    await auth.block(params.userId)
    return redirectDone(reply, pathOf(query), 'blocked')
  })

  scope.post<ChangeOfUser>('/admin/users/:userId/unblock', { schema: list }, async ({ params, query }, reply) => {
    await auth.unblock(params.userId)
    return redirectDone(reply, pathOf(query), 'unblocked')
  })
}

/** Administrators have no forms for themselves: a mistake could lock everyone out. */
function row (user: User, isSelf: boolean, query: string): Html {
  const { userId, email, name, claims } = user
  const who = email ?? name ?? userId
  const path = `/admin/users/${userId}`
  const action = isBlocked(user) ? 'Unblock' : 'Block'
  return html`
      <li>
        <span><strong>${who}</strong> <small>${email !== null && name} ${isBlocked(user) && 'blocked'}</small></span>
        ${isSelf
          ? html`<small>This is you</small>`
          : html`
            <form method="post" action="${path}/role${query}">
              ${roleSelect(`Role of ${who}`, claims.role)}
              <button class="quiet" aria-label="Grant ${who} the role">Grant</button>
              ${claims.role !== undefined && html`
                <button class="quiet" formaction="${path}/role/withdraw${query}"
                  aria-label="Withdraw the role of ${who}">Withdraw</button>`}
              <button class="danger" formaction="${path}/${action.toLowerCase()}${query}"
                aria-label="${action} ${who}">${action}</button>
            </form>`}
      </li>`
}

function roleSelect (label: string, selected?: unknown): Html {
  const options = ROLES.map(role => html`<option${role === selected && html` selected`}>${role}</option>`)
  return html`<select name="role" aria-label="${label}">${options}</select>`
}

function pathOf (list: ListQuery): string {
  return `/admin${queryOf(list)}`
}

function queryOf ({ email = '', after = '' }: ListQuery): string {
  const query = new URLSearchParams({ ...(email !== '' && { email }), ...(after !== '' && { after }) })
  return query.size === 0 ? '' : `?${query}`
}
