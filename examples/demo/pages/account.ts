import type { Link, Principal } from 'fastify-svc-auth'
import { type Html, html } from '../html.js'
import { alert, page, text } from './frame.js'
import { usualName } from './provider-names.js'

/** @param links the ways in that the user has, @param providers those that the application offers */
export function accountPage ({ principal, links, providers, error }: { principal: Principal, links: readonly Link[], providers: readonly string[], error: unknown }): Html {
  const { claims, provider, userId } = principal
  const others = providers.filter(name => !links.some(link => link.provider === name))
  return page('Your account', html`
    ${alert(error)}
    <p>You signed in with <strong>${usualName(provider)}</strong> and are the user <code>${userId}</code>.</p>
    <section aria-labelledby="claims">
      <h2 id="claims">Your claims</h2>
      <dl>
        ${Object.entries(claims).map(([name, value]) => html`<dt>${name}</dt><dd>${name === 'picture' ? picture(value) : text(value)}</dd>`)}
      </dl>
    </section>
    <section aria-labelledby="links">
      <h2 id="links">Ways to sign in</h2>
      <ul class="rows">
        ${links.map(link => html`
          <li>
            <span><strong>${usualName(link.provider)}</strong> ${link.claims.email}</span>
            ${links.length > 1 && html`
              <form method="post" action="/unlink">
                <input type="hidden" name="provider" value="${link.provider}">
                <button class="quiet" aria-label="Remove ${usualName(link.provider)}">Remove</button>
              </form>`}
          </li>`)}
      </ul>
      <div class="choices">
        ${others.map(name => html`<a class="button quiet" href="/auth/${name}/login?link=true&next=/">Add ${usualName(name)}</a>`)}
      </div>
    </section>
    <section aria-labelledby="token">
      <h2 id="token">A token for other services</h2>
      <p>Fetches a short-lived JWT of yours, verifies it and shows what it says.</p>
      <button type="button" id="token-button">Fetch and verify a token</button>
      <pre id="token-claims" role="status"></pre>
    </section>
    <script type="module" src="/token.js"></script>`, { principal, path: '/' })
}

/** Pictures of providers are https: URLs. */
function picture (claim: unknown): Html {
  return html`<img src="${text(claim)}" alt="" width="48" height="48">`
}
