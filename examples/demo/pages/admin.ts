import { type Principal, type User, isBlocked } from 'fastify-svc-auth'
import { type Html, html } from '../html.js'
import { ROLES } from '../roles.js'
import { avatar } from './avatar.js'
import { type View, page, text } from './frame.js'

/** Which users the page shows. */
export interface ListQuery {
  /** How their e-mail begins. */
  email?: string | undefined
  /** The `next` of the page before. */
  after?: string | undefined
}

interface AdminView extends Omit<View, 'path'> {
  principal: Principal
  users: readonly User[]
  /** Where the next page begins; null on the last one. */
  next: string | null
  list: ListQuery
}

/** The path of a list of users. */
export function listPath (list: ListQuery): string {
  return `/admin${queryOf(list)}`
}

function queryOf ({ email = '', after = '' }: ListQuery): string {
  const query = new URLSearchParams({ ...(email !== '' && { email }), ...(after !== '' && { after }) })
  return query.size === 0 ? '' : `?${query}`
}

export function adminPage ({ users, next, list, ...view }: AdminView): Html {
  const { userId } = view.principal
  const { email = '', after } = list
  const isWhole = email === '' && after === undefined && next === null
  return page('Administration', html`
    <p class="faint">You see this page because your claim <code>role</code> is <code>admin</code>.</p>
    <section class="card" aria-labelledby="users">
      <h2 id="users">Users</h2>
      <form class="line" action="/admin" role="search">
        <input type="search" name="email" value="${email}" maxlength="254" aria-label="E-mail begins with"
          placeholder="E-mail begins with …">
        <button class="quiet">Search</button>
      </form>
      <ul class="rows">${users.map(user => row(user, user.userId === userId, queryOf(list)))}</ul>
      ${users.length === 0 && html`
        <p class="empty">
          ${email === '' ? 'There are no more users.' : html`No user has an e-mail that begins with “${email}”.`}
        </p>`}
      ${isWhole && users.every(user => user.userId === userId) && html`
        <p class="empty">There are no other users yet. Invite the first one below.</p>`}
      ${!isWhole && html`
        <nav class="choices" aria-label="Pages of users">
          ${email !== '' && html`<a class="button quiet" href="/admin">All users</a>`}
          ${after !== undefined && html`<a class="button quiet" href="${listPath({ email })}">First page</a>`}
          ${next !== null && html`<a class="button quiet" href="${listPath({ email, after: next })}">Next page</a>`}
        </nav>`}
    </section>
    <form class="card" method="post" action="/admin/invitations" aria-labelledby="invite">
      <h2 id="invite">Invite a user</h2>
      <p class="faint">Makes a link that gives this role to the first user who accepts it, within an hour.</p>
      <div class="choices">
        ${roleSelect(undefined, 'Role')}
        <button>Make a link</button>
      </div>
    </form>`, { ...view, path: '/admin' })
}

/** Administrators have no forms for themselves: a mistake could lock everyone out. */
function row (user: User, isSelf: boolean, query: string): Html {
  const { userId, email, name, claims } = user
  const who = email ?? name ?? userId
  return html`
    <li>
      ${avatar({ name, email: who })}
      <span class="grow">
        <strong>${who}</strong> ${claims.role !== undefined && html`<span class="tag">${text(claims.role)}</span>`}
        ${isBlocked(user) && html`<span class="tag alert">blocked</span>`}
        <br>${email !== null && name}
      </span>
      ${isSelf ? html`<span class="faint">This is you</span>` : formsFor(user, who, query)}
    </li>`
}

function formsFor (user: User, who: string, query: string): Html {
  const { userId, claims } = user
  const path = `/admin/users/${userId}`
  return html`
    <form method="post" action="${path}/role${query}">
      ${roleSelect(claims.role, `Role of ${who}`)}
      <button class="quiet" aria-label="Grant ${who} the role">Grant</button>
      ${claims.role !== undefined && html`
        <button class="quiet" formaction="${path}/role/withdraw${query}"
          aria-label="Withdraw the role of ${who}">Withdraw</button>`}
      ${isBlocked(user)
        ? html`
          <button class="quiet" formaction="${path}/unblock${query}" aria-label="Unblock ${who}">Unblock</button>`
        : html`
          <button class="quiet danger" formaction="${path}/block${query}" aria-label="Block ${who}">Block</button>`}
    </form>`
}

function roleSelect (selected: unknown, label: string): Html {
  const options = ROLES.map(role => html`<option${role === selected && html` selected`}>${role}</option>`)
  return html`<select name="role" aria-label="${label}">${options}</select>`
}
