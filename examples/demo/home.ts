import type { FastifyInstance } from 'fastify'
import { html } from './html.js'
import { sendPage } from './site.js'

/** How a user authenticated, in words; by a provider, it is the name of that. */
const METHODS: ReadonlyMap<string, string> = new Map([
  ['password', 'your password'],
  ['mail', 'a mail'],
  ['passkey', 'a passkey'],
  ['totp', 'an authenticator app'],
  ['recovery', 'a recovery code'],
  ['application', 'a link']
])

const LIST = new Intl.ListFormat('en')

/** The page of a signed-in user: what the application knows from the plugin. */
export function mountHome (app: FastifyInstance, baseUrl: string): void {
  const { auth } = app

  // Refreshed, so that a change of the claims shows on the next request.
  app.get('/', { preHandler: [auth.refresh, auth.requireUser] }, async (request, reply) => {
    const { userId, provider, claims } = auth.user(request)
    const methods = request.authentication?.methods.map(({ method }) => METHODS.get(method) ?? provider) ?? []
    const hasMailbox = request.server.hasRoute({ method: 'GET', url: '/mailbox' })
    return sendPage(reply, `Hello ${claims.name ?? claims.email ?? 'user'}`, html`
    <p>You signed in with <strong>${LIST.format(methods)}</strong>. Your id is <code>${userId}</code>.</p>
    <p><a class="button" href="/auth/pages/account">Your account</a>
      <a class="button quiet" href="/auth/pages/factors">Sign-in security</a></p>
    <section>
      <h2>What to try</h2>
      <ul>
        <li><span><a href="/auth/pages/factors">Set up an authenticator app</a> or a passkey, sign out, and sign in
          again.</span></li>
        <li><span>Sign in with another browser. <a href="/auth/pages/account?open=devices">Your devices</a> has it: sign
          it out from here.</span></li>
        <li><span>Forget your password on the sign-in page${hasMailbox && ': the mail comes to the mailbox above'}.</span></li>
        <li><span><a href="/assistant">Connect an assistant</a> to your account, as an AI assistant would be.</span></li>
        <li><span><a href="/auth/pages/account?open=keys">Make an API key</a>, and let a script send it:
          <code>curl -H "Authorization: Bearer $KEY" ${baseUrl}/api/profile</code></span></li>
        <li><span>Sign out, write <a href="/notes">a note</a>, and sign in again: what a visitor writes is theirs
          afterwards.</span></li>
        <li><span>Become an administrator: the page above says how. It asks for a second factor first.</span></li>
      </ul>
    </section>
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
