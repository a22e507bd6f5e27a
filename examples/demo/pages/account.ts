import type { AuthenticationMethod, AuthenticationState, Link, Principal, User, UserSession } from 'fastify-svc-auth'
import { type Html, html } from '../html.js'
import { avatar } from './avatar.js'
import { devicesSection } from './devices.js'
import { type View, inQuery, page, text, time } from './frame.js'
import { MAILBOX_HINT } from './mailbox.js'
import { providerIcon, providerName } from './providers.js'

interface AccountView extends Omit<View, 'path'> {
  principal: Principal
  /** How and when the user authenticated. */
  authentication: AuthenticationState | null
  user: User
  /** The user's sign-in methods. */
  links: readonly Link[]
  /** Those that the application offers. */
  providers: readonly string[]
  /** The user's open sessions, this one included. */
  sessions: readonly UserSession[]
  /** Whether the user authenticated recently. */
  isRecent: boolean
  sendsMails: boolean
}

const METHODS: Partial<Record<AuthenticationMethod, string>> = {
  password: 'your password',
  provider: 'a provider',
  application: 'a link'
}

export function accountPage (
  { authentication, user, links, sessions, isRecent, providers, sendsMails, ...view }: AccountView
): Html {
  const { claims, provider, userId } = view.principal
  const name = user.name ?? claims.name
  const others = providers.filter(name => !links.some(link => link.provider === name))
  const hasPassword = links.some(link => link.provider === 'local')
  return page('Your account', html`
    <div class="card profile">
      ${avatar({ ...claims, name })}
      <div>
        <p>
          <strong>${name ?? claims.email ?? 'A user without a name'}</strong>
          ${claims.role !== undefined && html`<span class="tag">${text(claims.role)}</span>`}
        </p>
        <p>You signed in with <strong>${providerName(provider)}</strong>.</p>
        ${authentication !== null && html`
          <p class="faint">
            Last confirmed by ${authentication.methods.map(proofOf(authentication.at))}, ${time(authentication.at)}
          </p>`}
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
              ? removal(link.provider, isRecent)
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
    ${devicesSection({ sessions, isRecent })}
    ${sendsMails && html`
      <section class="card" aria-labelledby="security">
        <h2 id="security">Security</h2>
        <ul class="rows">
          ${emailRow(user)}
          <li>
            <span class="grow"><strong>Password</strong><br>
              ${hasPassword ? 'The form asks for the present one.' : 'You have none yet.'}</span>
            <a class="button quiet" href="/password">${hasPassword ? 'Change password' : 'Set a password'}</a>
          </li>
          <li>
            <span class="grow"><strong>Your account</strong><br>Deleted with all that is known about you.</span>
            <a class="button quiet danger" href="/delete-account">Delete account</a>
          </li>
        </ul>
      </section>`}
    <form class="card" method="post" action="/name" aria-labelledby="name">
      <h2 id="name">Your name</h2>
      <div class="line">
        <input name="name" value="${name}" maxlength="100" autocomplete="name" aria-labelledby="name">
        <button class="quiet">Save</button>
      </div>
    </form>
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
    ${sendsMails && MAILBOX_HINT}
    <script type="module" src="/token.js"></script>`, { ...view, path: '/' })
}

/** The form that removes a sign-in method; where it needs a reauthentication, a link to that. */
function removal (provider: string, isRecent: boolean): Html {
  const name = providerName(provider)
  if (!isRecent) {
    return html`<a class="button quiet" href="/confirm?next=/" aria-label="Confirm and remove ${name}">Remove</a>`
  }
  return html`
    <form method="post" action="/unlink">
      <input type="hidden" name="provider" value="${provider}">
      <button class="quiet" aria-label="Remove ${name}">Remove</button>
    </form>`
}

/** The e-mail of a user, and whether it is known to be theirs. */
function emailRow ({ email, emailVerified }: User): Html | false {
  if (email === null) return false
  return html`
    <li>
      <span class="grow">
        <strong>E-mail</strong> <span class="tag${!emailVerified && ' alert'}">
          ${emailVerified ? 'Confirmed' : 'Not confirmed'}</span><br>${email}
      </span>
      ${!emailVerified && html`
        <form method="post" action="/auth/local/verify-email">
          <input type="hidden" name="next" value="/?done=verification_requested">
          <button class="quiet">Send the link again</button>
        </form>`}
      <a class="button quiet" href="/email">Change e-mail</a>
    </li>`
}

/** Names the method of the last authentication; earlier proofs of other methods are left out. */
function proofOf (last: Date) {
  return ({ method, at }: AuthenticationState['methods'][number]): string | false => {
    return at.getTime() === last.getTime() && (METHODS[method] ?? method)
  }
}
