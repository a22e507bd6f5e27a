import type { Principal } from 'fastify-svc-auth'
import { type Html, html } from '../html.js'
import { ROLES } from '../roles.js'
import type { ListedUser } from '../user-list.js'
import { alert, page, text } from './frame.js'

export function adminPage ({ principal, users, error }: { principal: Principal, users: readonly ListedUser[], error: unknown }): Html {
  return page('Administration', html`
    ${alert(error)}
    <p>You see this page because your claim <code>role</code> is <code>admin</code>.</p>
    <section aria-labelledby="users">
      <h2 id="users">Users</h2>
      <ul class="rows">${users.map(user => row(user, user.userId === principal.userId))}</ul>
    </section>
    <form method="post" action="/admin/invitations" aria-labelledby="invite">
      <h2 id="invite">Invite somebody</h2>
      <label>Role ${roleSelect()}</label>
      <button>Make a link</button>
    </form>`, { principal, path: '/admin' })
}

/** Nobody takes away his own role by mistake. */
function row ({ userId, email, name, claims }: ListedUser, isSelf: boolean): Html {
  const who = email ?? name ?? userId
  return html`
    <li>
      <span><strong>${who}</strong> ${email !== null && name} ${claims.role !== undefined && html`<span class="tag">${text(claims.role)}</span>`}</span>
      ${isSelf
        ? html`<span>This is you</span>`
        : html`
          <form method="post" action="/admin/users/${userId}/role">
            ${roleSelect(claims.role, `Role of ${who}`)}
            <button aria-label="Grant ${who} the role">Grant</button>
            ${claims.role !== undefined && html`<button class="quiet" formaction="/admin/users/${userId}/role/withdraw" aria-label="Withdraw the role of ${who}">Withdraw</button>`}
          </form>`}
    </li>`
}

function roleSelect (selected?: unknown, label?: string): Html {
  return html`<select name="role"${label !== undefined && html` aria-label="${label}"`}>${ROLES.map(role => html`<option${role === selected && html` selected`}>${role}</option>`)}</select>`
}
