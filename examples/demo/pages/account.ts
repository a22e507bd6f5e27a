import type { Link, Principal } from 'fastify-svc-auth'
import { type Html, html } from '../html.js'
import { avatar } from './avatar.js'
import { type View, inQuery, page, text } from './frame.js'
import { providerIcon, providerName } from './providers.js'

interface AccountView extends Omit<View, 'path'> {
  principal: Principal
  /** The user's sign-in methods. */
  links: readonly Link[]
  /** Those that the application offers. */
  providers: readonly string[]
}

export function accountPage ({ links, providers, ...view }: AccountView): Html {
  const { claims, provider, userId } = view.principal
  const others = providers.filter(name => !links.some(link => link.provider === name))
  return page('Your account', html`
    <div class="card profile">
      ${avatar(claims)}
      <div>
        <p>
          <strong>${claims.name ?? claims.email ?? 'A user without a name'}</strong>
          ${claims.role !== undefined && html`<span class="tag">${text(claims.role)}</span>`}
        </p>
        <p>You signed in with <strong>${providerName(provider)}</strong>.</p>
        <p class="faint">User <code>${userId}</code></p>
      </div>
    </div>
    <section class="card" aria-labelledby="links">
      <h2 id="links">Ways to sign in</h2>
      <ul class="rows">
        ${links.map(link => html`
          <li>
            ${providerIcon(link.provider)}
            <span class="grow"><strong>${providerName(link.provider)}</strong><br>${link.claims.email}</span>
            ${links.length > 1
              ? html`
                <form method="post" action="/unlink">
                  <input type="hidden" name="provider" value="${link.provider}">
                  <button class="quiet" aria-label="Remove ${providerName(link.provider)}">Remove</button>
                </form>`
              : html`<span class="faint">Your only one</span>`}
          </li>`)}
      </ul>
      ${others.length > 0 && html`
        <div class="choices">
          ${others.map(name => html`
            <a class="button quiet" href="/auth/${name}/login?link=true&next=${inQuery('/?done=linked')}">
              ${providerIcon(name)}Add ${providerName(name)}</a>`)}
        </div>`}
    </section>
    <section class="card" aria-labelledby="claims">
      <h2 id="claims">Your claims</h2>
      <dl>
        ${Object.entries(claims).map(([name, value]) => html`<dt>${name}</dt><dd>${text(value)}</dd>`)}
      </dl>
    </section>
    <section class="card" aria-labelledby="token">
      <h2 id="token">A token for other services</h2>
      <p class="faint">Fetches a token that is valid for 15 minutes, verifies it and shows its claims.</p>
      <button type="button" class="quiet" id="token-button">Fetch and verify a token</button>
      <pre id="token-claims" role="status"></pre>
    </section>
    <script type="module" src="/token.js"></script>`, { ...view, path: '/' })
}
