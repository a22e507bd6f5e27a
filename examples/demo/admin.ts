import type { FastifyInstance } from 'fastify'
import { AuthError, type User, isBlocked } from 'fastify-svc-auth'
import type { HistoryEntry } from './history.js'
import { type Html, html } from './html.js'
import { ROLES, type RoleForm, administratorsOnly, roleForm } from './roles.js'
import { redirectDone, sendPage, takeForms } from './site.js'

/** Which users the page shows. */
interface ListQuery {
  /** How their e-mail, its domain or their name begins. */
  search?: string
  order?: 'id' | 'newest'
  /** The `next` of the page before. */
  after?: string
}

interface ChangeOfUser {
  Params: { userId: string }
  /** The list that the administrator sees, and comes back to. */
  Querystring: ListQuery
}

interface ChangeOfSession {
  Params: { userId: string, id: string }
}

const USERS_ON_A_PAGE = 10

/** The administration: users with their roles and blocks, and a page for each of them. */
export async function mountAdmin (
  scope: FastifyInstance, { historyOf }: { historyOf: (userId: string) => HistoryEntry[] }
): Promise<void> {
  const { auth } = scope
  await takeForms(scope)
  for (const guard of administratorsOnly(scope)) scope.addHook('preHandler', guard)

  const properties = {
    search: { type: 'string', maxLength: 254 }, order: { enum: ['id', 'newest'] }, after: { type: 'string' }
  }
  const list = { querystring: { type: 'object', properties } }

  scope.get<{ Querystring: ListQuery }>('/admin', { schema: list }, async (request, reply) => {
    const { search = '', order = 'newest', after } = request.query
    const [{ users, next }, count] = await Promise.all([
      auth.users({ search, order, after, limit: USERS_ON_A_PAGE }), auth.countUsers({ search })
    ])
    const { userId } = auth.user(request)
    return sendPage(reply, 'Administration', html`
    <form class="line" action="/admin" role="search">
      <input type="search" name="search" value="${search}" maxlength="254"
        aria-label="E-mail, domain or name begins with" placeholder="E-mail, domain or name …">
      <select name="order" aria-label="Order">
        <option value="newest">newest first</option>
        <option value="id"${order === 'id' && html` selected`}>by id</option>
      </select>
      <button class="quiet">Search</button>
    </form>
    <p>${count} ${count === 1 ? 'user' : 'users'}</p>
    <ul>${users.map(user => row(user, user.userId === userId, queryOf(request.query)))}</ul>
    ${users.length === 0 && html`<p>No user has an e-mail, a domain or a name that begins with “${search}”.</p>`}
    ${next !== null && html`<p><a href="${pathOf({ search, order, after: next })}">Next page</a></p>`}
    <section>
      <h2>Customers</h2>
      <p><a href="/admin/connections">Connections</a> are the identity providers of customers.</p>
    </section>
    <section>
      <h2>Invite a user</h2>
      <p>Makes a link that gives this role to the first user who accepts it, within an hour.</p>
      <form class="line" method="post" action="/admin/invitations">${roleSelect('Role')}<button>Make a link</button></form>
    </section>`)
  })

  const role = { schema: { ...list, body: roleForm } }
  scope.post<ChangeOfUser & { Body: RoleForm }>('/admin/users/:userId/role', role, async (request, reply) => {
    await auth.grant(request.params.userId, { role: request.body.role }, { request })
    return redirectDone(reply, pathOf(request.query), 'granted')
  })

  scope.post<ChangeOfUser>('/admin/users/:userId/role/withdraw', { schema: list }, async (request, reply) => {
    await auth.withdraw(request.params.userId, ['role'], { request })
    return redirectDone(reply, pathOf(request.query), 'withdrawn')
  })

  scope.post<ChangeOfUser>('/admin/users/:userId/block', { schema: list }, async (request, reply) => {
    await auth.block(request.params.userId, { request })
    return redirectDone(reply, pathOf(request.query), 'blocked')
  })

  scope.post<ChangeOfUser>('/admin/users/:userId/unblock', { schema: list }, async (request, reply) => {
    await auth.unblock(request.params.userId, { request })
    return redirectDone(reply, pathOf(request.query), 'unblocked')
  })

  const reason = { schema: { body: { type: 'object', required: ['reason'], properties: { reason: { type: 'string' } } } } }
  scope.post<ChangeOfUser & { Body: { reason: string } }>('/admin/users/:userId/see', reason, async (request, reply) => {
    await auth.impersonate(request, request.params.userId, { reason: request.body.reason })
    return reply.redirect('/', 303)
  })

  scope.get<ChangeOfUser>('/admin/users/:userId', async (request, reply) => {
    const { userId } = request.params
    const user = await auth.findUser({ userId })
    if (user === null) throw new AuthError('not_found')
    const [sessions, factors] = await Promise.all([auth.sessions(userId, { current: request }), auth.factors(userId)])
    const who = nameOf(user)
    const path = `/admin/users/${userId}`
    return sendPage(reply, who, html`
    <p>Created ${when(user.createdAt)}. The e-mail is ${!user.emailVerified && 'not'} verified.</p>
    ${auth.user(request).userId !== userId && html`
      <form class="line" method="post" action="${path}/email">
        <input type="email" name="email" value="${user.email ?? ''}" required maxlength="254" aria-label="E-mail">
        <button class="quiet">Change the e-mail</button>
      </form>
      <p><small>Only after you have made sure that it is theirs: it counts as verified.</small></p>`}
    <h2>Devices</h2>
    <ul>${sessions.map(({ id, userAgent, lastSeenAt, current }) => html`
      <li>
        <span>${userAgent ?? 'Unknown device'} <small>${when(lastSeenAt)}</small></span>
        ${current
? html`<small>This device</small>`
: html`
          <form method="post" action="${path}/sessions/${id}/end"><button class="danger">End</button></form>`}
      </li>`)}</ul>
    <h2>Second factors</h2>
    <ul>${factors.map(({ kind, name }) => html`<li>${name ?? kind}</li>`)}</ul>
    ${factors.length === 0
? html`<p>None</p>`
: html`
      <form method="post" action="${path}/factors/reset"><button class="danger">Remove all</button></form>`}
    <h2>History</h2>
    <ul>${historyOf(userId).map(entry => html`
      <li><span>${entry.event} ${entry.code}</span> <small>${when(new Date(entry.at))} ${entry.ip}
        ${entry.actor === userId ? 'by the user' : entry.actor !== null && html`by <code>${entry.actor}</code>`}
        ${entry.userId !== userId && html`to <code>${entry.userId}</code>`}</small></li>`)}</ul>
    <p><a href="/admin">All users</a></p>`)
  })

  const newEmail = { schema: { body: { type: 'object', required: ['email'], properties: { email: { type: 'string' } } } } }
  scope.post<ChangeOfUser & { Body: { email: string } }>('/admin/users/:userId/email', newEmail, async (request, reply) => {
    const { params: { userId }, body: { email } } = request
    await auth.updateUser(userId, { email, emailVerified: true }, { request })
    return redirectDone(reply, `/admin/users/${userId}`, 'changed')
  })

  scope.post<ChangeOfSession>('/admin/users/:userId/sessions/:id/end', async (request, reply) => {
    const { userId, id } = request.params
    await auth.endSession(userId, id, { request })
    return redirectDone(reply, `/admin/users/${userId}`, 'ended')
  })

  scope.post<ChangeOfUser>('/admin/users/:userId/factors/reset', async (request, reply) => {
    const { userId } = request.params
    await auth.resetFactors(userId, { request })
    return redirectDone(reply, `/admin/users/${userId}`, 'reset')
  })
}

/** Administrators have no forms for themselves: a mistake could lock everyone out. */
function row (user: User, isSelf: boolean, query: string): Html {
  const { userId, email, name, claims } = user
  const who = nameOf(user)
  const path = `/admin/users/${userId}`
  const action = isBlocked(user) ? 'Unblock' : 'Block'
  return html`
      <li>
        <span><strong><a href="${path}">${who}</a></strong> <small>${email !== null && name} ${isBlocked(user) && 'blocked'}</small></span>
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
        ${!isSelf && claims.role !== 'admin' && html`
          <form method="post" action="${path}/see">
            <input name="reason" required maxlength="200" placeholder="Reason"
              aria-label="Reason to see what ${who} sees">
            <button class="quiet" aria-label="See what this user sees: ${who}">See what this user sees</button>
          </form>`}
      </li>`
}

function roleSelect (label: string, selected?: unknown): Html {
  const options = ROLES.map(role => html`<option${role === selected && html` selected`}>${role}</option>`)
  return html`<select name="role" aria-label="${label}">${options}</select>`
}

function nameOf ({ email, name, userId }: User): string {
  return email ?? name ?? userId
}

function when (date: Date): string {
  return date.toISOString().slice(0, 16).replace('T', ' ')
}

function pathOf (list: ListQuery): string {
  return `/admin${queryOf(list)}`
}

function queryOf ({ search = '', order = 'newest', after = '' }: ListQuery): string {
  const query = new URLSearchParams({
    ...(search !== '' && { search }), ...(order === 'id' && { order }), ...(after !== '' && { after })
  })
  return query.size === 0 ? '' : `?${query}`
}
