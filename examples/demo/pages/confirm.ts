import type { Principal } from 'fastify-svc-auth'
import { type Html, html } from '../html.js'
import { inQuery, page } from './frame.js'
import { providerIcon, providerName } from './providers.js'

/** What the codes of a sign-in mean where a user confirms who they are. */
const MEANINGS: ReadonlyMap<unknown, string> = new Map([['invalid', 'wrong_password'], ['invalid_state', 'not_confirmed']])

interface Confirmation {
  principal: Principal
  hasPassword: boolean
  /** The user's providers that prove when a user authenticated. */
  providers: readonly string[]
  /** Where to go afterwards; the plugin follows it only within this application. */
  next: string
  error?: unknown
}

/** Asks a signed-in user to reauthenticate. */
export function confirmPage ({ principal, hasPassword, providers, next, error }: Confirmation): Html {
  const hasMethod = hasPassword || providers.length > 0
  return page('Confirm that it is you', html`
    <div class="card">
      <p class="faint">
        You signed in a while ago. Before you go on, confirm that you are
        <strong>${principal.claims.email ?? principal.claims.name ?? 'the user of this account'}</strong>.
      </p>
      ${hasPassword && html`
        <form method="post" action="/auth/local/reauthenticate" aria-label="With your password">
          <label>
            Password <input type="password" name="password" autocomplete="current-password" required autofocus>
          </label>
          <input type="hidden" name="next" value="${next}">
          <button class="full">Confirm</button>
        </form>`}
      ${hasPassword && providers.length > 0 && html`<p class="divider">or</p>`}
      ${providers.length > 0 && html`
        <div class="providers">
          ${providers.map(name => html`
            <a class="provider ${name}" href="/auth/${name}/login?reauthenticate=true&next=${inQuery(next)}">
              ${providerIcon(name)}Confirm with ${providerName(name)}</a>`)}
        </div>`}
      ${!hasMethod && html`
        <p>None of your ways to sign in can confirm it here. Sign out, and sign in again.</p>`}
    </div>
    <p class="centred"><a href="/">Back to your account</a></p>`, {
    principal, path: '/confirm', layout: 'narrow', error: MEANINGS.get(error) ?? error
  })
}
