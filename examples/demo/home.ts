import type { FastifyInstance } from 'fastify'
import { html } from './html.js'
import { sendPage } from './site.js'

/** The page of a signed-in user: what the application knows from the plugin. */
export function mountHome (app: FastifyInstance): void {
  const { auth } = app

  // Refreshed, so that a change of the claims shows on the next request.
  app.get('/', { preHandler: [auth.refresh, auth.requireUser] }, async (request, reply) => {
    const { userId, provider, claims } = auth.user(request)
    return sendPage(reply, `Hello ${claims.name ?? claims.email ?? 'user'}`, html`
    <p>You signed in with <strong>${provider}</strong>. Your id is <code>${userId}</code>.</p>
    <p><a class="button" href="/auth/pages/account">Your account</a>
      <a class="button quiet" href="/auth/pages/factors">Sign-in security</a></p>
    <section>
      <h2>Your claims</h2>
      <dl>${Object.entries(claims).map(([name, value]) => html`
        <dt>${name}</dt><dd>${typeof value === 'string' ? value : JSON.stringify(value)}</dd>`)}
      </dl>
    </section>
    <section>
      <h2>A token for other services</h2>
      <p>Fetches a token that is valid for 15 minutes, verifies it and shows its claims.</p>
      <button type="button" class="quiet" id="token-button">Fetch and verify a token</button>
      <pre id="token-claims" role="status"></pre>
    </section>
    <script type="module" src="/token.js"></script>`)
  })
}
