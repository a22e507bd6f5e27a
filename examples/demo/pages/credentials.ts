import type { Principal, User } from 'fastify-svc-auth'
import { type Html, html } from '../html.js'
import { page } from './frame.js'

export interface CredentialView {
  principal: Principal
  user: User
  hasPassword: boolean
  error?: unknown
}

/** What the codes of the sign-in page mean on these pages. */
const MEANINGS: ReadonlyMap<unknown, string> = new Map([['invalid', 'wrong_password'], ['exists', 'has_password']])

/** Sets the first password of a user, or another one. */
export function passwordPage (view: CredentialView): Html {
  const { user: { email, emailVerified }, hasPassword } = view
  if (hasPassword) {
    return credentialPage('Change your password', '/password', view, html`
      <form class="card" method="post" action="/auth/local/change-password">
        <p class="faint">You are signed out everywhere else.</p>
        ${username(email)}
        ${presentPassword()}
        ${newPassword()}
        <input type="hidden" name="next" value="/?done=password_set">
        <button class="full">Change the password</button>
      </form>`)
  }
  return credentialPage('Set a password', '/password', view, email === null || !emailVerified
    ? html`<p class="card">A password needs an e-mail address that you have confirmed, and your account has none.</p>`
    : html`
      <form class="card" method="post" action="/auth/local/set-password">
        <p class="faint">You sign in with your e-mail and this password. You are signed out everywhere else.</p>
        ${username(email)}
        ${newPassword()}
        <input type="hidden" name="next" value="/?done=password_set">
        <button class="full">Set the password</button>
      </form>`)
}

/** Asks for a new e-mail address. */
export function emailPage (view: CredentialView): Html {
  return credentialPage('Change your e-mail', '/email', view, html`
    <form class="card" method="post" action="/auth/local/change-email">
      <p class="faint">
        Your address is <strong>${view.user.email}</strong>. A mail with a link goes to the new one. Your account has
        it once you followed the link.
      </p>
      <label>New e-mail <input type="email" name="email" autocomplete="email" required></label>
      <input type="hidden" name="next" value="/?done=email_requested">
      <button class="full">Send the link</button>
    </form>`)
}

/** Asks whether to delete the account. */
export function deletePage (view: CredentialView): Html {
  return credentialPage('Delete your account', '/delete-account', view, html`
    <form class="card" method="post" action="/auth/local/delete-account">
      <p>Your account, its claims and its ways to sign in are deleted. This cannot be undone.</p>
      ${view.hasPassword && html`${username(view.user.email)}${presentPassword()}`}
      <input type="hidden" name="next" value="/login?done=deleted">
      <button class="full danger">Delete the account</button>
    </form>`)
}

function credentialPage (title: string, path: string, { principal, error }: CredentialView, content: Html): Html {
  return page(title, html`
    ${content}
    <p class="centred"><a href="/">Back to your account</a></p>`, {
    principal, path, layout: 'narrow', error: MEANINGS.get(error) ?? error
  })
}

/** The name under which a password manager keeps the password. */
function username (email: string | null): Html {
  return html`<label>E-mail <input type="email" value="${email}" autocomplete="username" readonly></label>`
}

function presentPassword (): Html {
  return html`
    <label>
      Present password <input type="password" name="current" autocomplete="current-password" required>
    </label>`
}

function newPassword (): Html {
  return html`
    <label>
      New password <small>8 characters or more</small>
      <input type="password" name="password" autocomplete="new-password" minlength="8" required>
    </label>`
}
