import type { Principal, User } from 'fastify-svc-auth'
import { type Html, html } from '../html.js'
import { avatar } from './avatar.js'
import { page, text } from './frame.js'

interface InvitationLink {
  principal: Principal
  role: string
  link: string
}

interface Invitation {
  principal: Principal | null
  inviter: User
  role: string
  token: string
}

interface PreAuth {
  principal: Principal | null
  user: User
  token: string
}

/** Shows an administrator the link that was made. */
export function invitationLinkPage ({ principal, role, link }: InvitationLink): Html {
  return page('Your invitation', html`
    <div class="card">
      <p>
        Send this link to the user you invite. The first user who accepts it has the role
        <strong>${role}</strong>. It is valid for an hour.
      </p>
      <pre>${link}</pre>
      <p><a class="button quiet" href="/admin">Back to the users</a></p>
    </div>`, { principal, path: '/admin/invitations' })
}

/** Offers a role to the user who followed the link. */
export function invitationPage ({ principal, inviter, role, token }: Invitation): Html {
  const present = principal?.claims.role
  return page('You are invited', html`
    <form class="card centred" method="post" action="/invitation">
      ${avatar(inviter)}
      <p><strong>${nameOf(inviter)}</strong> offers you the role <strong>${role}</strong>.</p>
      ${present !== undefined && html`<p>It takes the place of your role <strong>${text(present)}</strong>.</p>`}
      <input type="hidden" name="token" value="${token}">
      <button class="full">Accept</button>
    </form>`, { principal, path: '/invitation', layout: 'narrow' })
}

/** Offers a sign-in as the user of the link. */
export function preAuthPage ({ principal, user, token }: PreAuth): Html {
  return page('Sign in with a link', html`
    <form class="card centred" method="post" action="/pre-auth">
      ${avatar(user)}
      <p>This link signs you in, once.</p>
      <input type="hidden" name="token" value="${token}">
      <button class="full">Continue as ${nameOf(user)}</button>
    </form>`, { principal, path: '/pre-auth', layout: 'narrow' })
}

function nameOf ({ email, name, userId }: User): string {
  return email ?? name ?? userId
}
