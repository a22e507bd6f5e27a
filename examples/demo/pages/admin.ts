import type { Principal } from 'fastify-svc-auth'
import { type Html, html } from '../html.js'
import { ROLES } from '../roles.js'
import type { ListedUser } from '../user-list.js'
import { avatar } from './avatar.js'
import { type View, page, text } from './frame.js'

interface AdminView extends Omit<View, 'path'> {
  principal: Principal
  users: readonly ListedUser[]
}

export function adminPage ({ users, ...view }: AdminView): Html {
  const { userId } = view.principal
  return page('Administration', html`
    <p class="faint">You see this page because your claim <code>role</code> is <code>admin</code>.</p>
    <section class="card" aria-labelledby="users">
      <h2 id="users">Users</h2>
      <ul class="rows">${users.map(user => row(user, user.userId === userId))}</ul>
      ${users.every(user => user.userId === userId) && html`
        <p class="empty">There are no other users yet. Invite the first one below.</p>`}
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

/** Administrators have no form for their own role: withdrawn by mistake, it could lock everyone out. */
function row ({ userId, email, name, claims }: ListedUser, isSelf: boolean): Html {
  const who = email ?? name ?? userId
  return html`
    <li>
      ${avatar({ name, email: who })}
      <span class="grow">
        <strong>${who}</strong> ${claims.role !== undefined && html`<span class="tag">${text(claims.role)}</span>`}
        <br>${email !== null && name}
      </span>
      ${isSelf
        ? html`<span class="faint">This is you</span>`
        : html`
          <form method="post" action="/admin/users/${userId}/role">
            ${roleSelect(claims.role, `Role of ${who}`)}
            <button class="quiet" aria-label="Grant ${who} the role">Grant</button>
            ${claims.role !== undefined && html`
              <button class="quiet" formaction="/admin/users/${userId}/role/withdraw"
                aria-label="Withdraw the role of ${who}">Withdraw</button>`}
          </form>`}
    </li>`
}

function roleSelect (selected: unknown, label: string): Html {
  const options = ROLES.map(role => html`<option${role === selected && html` selected`}>${role}</option>`)
  return html`<select name="role" aria-label="${label}">${options}</select>`
}
