import type { RegistrationPolicy } from 'fastify-svc-auth'
import { type Html, html } from '../html.js'
import { type View, inQuery, page } from './frame.js'
import { MAILBOX_HINT } from './mailbox.js'
import { providerIcon, providerName } from './providers.js'

/** How long a user who asks for it stays signed in. Another one is signed out when the browser is closed. */
export const REMEMBERED_DAYS = 30

/** Errors of the registration form, which is folded away otherwise. */
const OF_REGISTRATION: readonly unknown[] = ['weak_password', 'invalid_email', 'claim_not_allowed']

type Verify = Required<RegistrationPolicy>['verify']

interface LoginView extends Omit<View, 'path' | 'layout'> {
  providers: readonly string[]
  sendsMails: boolean
  verify: Verify
  /** Where to go after the sign-in; the plugin follows it only within this application. */
  next: string
}

export function loginPage ({ providers, sendsMails, verify, next, ...view }: LoginView): Html {
  return page('Sign in', html`
    <div class="card">
      ${providers.length > 0 && html`
        <nav class="providers" aria-label="Providers">
          ${providers.map(name => html`
            <a class="provider ${name}" href="/auth/${name}/login?next=${inQuery(next)}">
              ${providerIcon(name)}Continue with ${providerName(name)}</a>`)}
        </nav>
        <p class="divider">or</p>`}
      <form method="post" action="/auth/local/login" aria-label="With your password">
        <label>E-mail <input type="email" name="email" autocomplete="username" required></label>
        <label>Password <input type="password" name="password" autocomplete="current-password" required></label>
        <label class="check"><input type="checkbox" name="remember"> Keep me signed in for ${REMEMBERED_DAYS} days</label>
        <input type="hidden" name="next" value="${next}">
        <button class="full">Sign in</button>
      </form>
    </div>
    ${sendsMails && forgotForm(view.error)}
    <details class="card"${OF_REGISTRATION.includes(view.error) && html` open`}>
      <summary>New here? Create an account</summary>
      ${registrationForm(verify, next)}
    </details>
    ${sendsMails && MAILBOX_HINT}`, { ...view, path: '/login', layout: 'narrow' })
}

/** Asks for the link that chooses a new password; open for a visitor whose address has an account. */
function forgotForm (error: unknown): Html {
  return html`
    <details class="card"${error === 'account_exists' && html` open`}>
      <summary>Forgot your password?</summary>
      <form method="post" action="/auth/local/forgot-password" aria-label="Forgot your password?">
        <p class="faint">A mail with a link to choose a new one goes to your address, at most one a minute.</p>
        <label>E-mail <input type="email" name="email" autocomplete="username" required></label>
        <input type="hidden" name="next" value="/login?done=reset_requested">
        <button class="full">Send the link</button>
      </form>
    </details>`
}

/** Asks for all of a new account, or for the address alone, when the link in a mail leads to the rest. */
function registrationForm (verify: Verify, next: string): Html {
  return html`
    <form method="post" action="/auth/local/register" aria-label="New here?">
      ${verify !== 'first' && html`<label>Name <input name="name" autocomplete="name"></label>`}
      <label>E-mail <input type="email" name="email" autocomplete="username" required></label>
      ${verify !== 'first' && html`
        <label>
          Password <small>8 characters or more</small>
          <input type="password" name="password" autocomplete="new-password" minlength="8" required>
        </label>`}
      <input type="hidden" name="next" value="${verify === 'later' ? next : '/login?done=registered'}">
      <button class="full">Register</button>
    </form>`
}
