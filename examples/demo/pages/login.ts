import { type Html, html } from '../html.js'
import { type View, inQuery, page } from './frame.js'
import { providerIcon, providerName } from './providers.js'

/** Errors of the registration form, which is folded away otherwise. */
const OF_REGISTRATION: readonly unknown[] = ['weak_password', 'invalid_email', 'claim_not_allowed']

interface LoginView extends Omit<View, 'path' | 'layout'> {
  providers: readonly string[]
  /** Where to go after the sign-in; the plugin follows it only within this application. */
  next: string
}

export function loginPage ({ providers, next, ...view }: LoginView): Html {
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
        <input type="hidden" name="next" value="${next}">
        <button class="full">Sign in</button>
      </form>
    </div>
    <details class="card"${OF_REGISTRATION.includes(view.error) && html` open`}>
      <summary>New here? Create an account</summary>
      <form method="post" action="/auth/local/register" aria-label="New here?">
        <label>Name <input name="name" autocomplete="name"></label>
        <label>E-mail <input type="email" name="email" autocomplete="username" required></label>
        <label>
          Password <small>8 characters or more</small>
          <input type="password" name="password" autocomplete="new-password" minlength="8" required>
        </label>
        <input type="hidden" name="next" value="${next}">
        <button class="full">Register</button>
      </form>
    </details>`, { ...view, path: '/login', layout: 'narrow' })
}
