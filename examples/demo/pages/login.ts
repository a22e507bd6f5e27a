import type { Principal } from 'fastify-svc-auth'
import { type Html, html } from '../html.js'
import { alert, inQuery, page } from './frame.js'
import { usualName } from './provider-names.js'

/** @param next where to go after the sign-in; the plugin follows it only within this application */
export function loginPage ({ principal, providers, next, error }: { principal: Principal | null, providers: readonly string[], next: string, error: unknown }): Html {
  return page('Sign in', html`
    ${alert(error)}
    ${providers.length > 0 && html`
      <nav class="choices" aria-label="Providers">
        ${providers.map(name => html`<a class="button" href="/auth/${name}/login?next=${inQuery(next)}">Continue with ${usualName(name)}</a>`)}
      </nav>`}
    <div class="columns">
      <form method="post" action="/auth/local/login" aria-labelledby="login">
        <h2 id="login">With your password</h2>
        <label>E-mail <input type="email" name="email" autocomplete="username" required></label>
        <label>Password <input type="password" name="password" autocomplete="current-password" required></label>
        <input type="hidden" name="next" value="${next}">
        <button>Sign in</button>
      </form>
      <form method="post" action="/auth/local/register" aria-labelledby="register">
        <h2 id="register">New here?</h2>
        <label>Name <input name="name" autocomplete="name"></label>
        <label>E-mail <input type="email" name="email" autocomplete="username" required></label>
        <label>Password, 8 characters or more <input type="password" name="password" autocomplete="new-password" minlength="8" required></label>
        <input type="hidden" name="next" value="${next}">
        <button>Register</button>
      </form>
    </div>`, { principal, path: '/login' })
}
