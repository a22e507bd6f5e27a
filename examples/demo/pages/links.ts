import type { Principal, User } from 'fastify-svc-auth'
import { type Html, html } from '../html.js'
import { page, text } from './frame.js'

export function invitationLinkPage ({ principal, role, link }: { principal: Principal, role: string, link: string }): Html {
  return page('Your invitation', html`
    <p>Send this link to the one you invite. Whoever accepts it first has the role <strong>${role}</strong>; it is good for an hour.</p>
    <pre>${link}</pre>`, { principal, path: '/admin/invitations' })
}

export function invitationPage ({ principal, inviter, role, token }: { principal: Principal | null, inviter: User, role: string, token: string }): Html {
  const present = principal?.claims.role
  return page('You are invited', html`
    <form method="post" action="/invitation">
      <p><strong>${nameOf(inviter)}</strong> offers you the role <strong>${role}</strong>.</p>
      ${present !== undefined && html`<p>It takes the place of your role <strong>${text(present)}</strong>.</p>`}
      <input type="hidden" name="token" value="${token}">
      <button>Accept</button>
    </form>`, { principal, path: '/invitation' })
}

export function preAuthPage ({ principal, user, token }: { principal: Principal | null, user: User, token: string }): Html {
  return page('Sign in with a link', html`
    <form method="post" action="/pre-auth">
      <p>This link signs you in, once.</p>
      <input type="hidden" name="token" value="${token}">
      <button>Continue as ${nameOf(user)}</button>
    </form>`, { principal, path: '/pre-auth' })
}

function nameOf ({ email, name, userId }: User): string {
  return email ?? name ?? userId
}
