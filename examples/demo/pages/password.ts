import type { Link, Principal } from 'fastify-svc-auth'
import { type Html, html } from '../html.js'
import { page } from './frame.js'

interface PasswordView {
  principal: Principal
  /** The e-mail of the user, which a password needs. */
  email: string | null
  links: readonly Link[]
  error?: unknown
}

/** Sets the first password of a user, or another one. */
export function passwordPage ({ principal, email, links, error }: PasswordView): Html {
  const hasPassword = links.some(({ provider }) => provider === 'local')
  return page(hasPassword ? 'Change your password' : 'Set a password', html`
    ${email === null
      ? html`
        <div class="card">
          <p>A password needs an e-mail, and your account has none. Sign in once with a provider that verified it.</p>
        </div>`
      : html`
        <form class="card" method="post" action="/password">
          <p class="faint">You sign in with your e-mail and this password. You are signed out everywhere else.</p>
          <label>E-mail <input type="email" value="${email}" autocomplete="username" readonly></label>
          <label>
            New password <small>8 characters or more</small>
            <input type="password" name="password" autocomplete="new-password" minlength="8" required>
          </label>
          <button class="full">${hasPassword ? 'Change the password' : 'Set the password'}</button>
        </form>`}
    <p class="centred"><a href="/">Back to your account</a></p>`, { principal, path: '/password', layout: 'narrow', error })
}
