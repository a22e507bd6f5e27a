import type { AuthErrorCode, Principal, User } from 'fastify-svc-auth'
import { errorSentence } from './error-sentences.js'
import { type Html, html } from './html.js'
import { ROLES } from './roles.js'

/** The frame around every page. */
export function page (title: string, content: Html, navigation?: Html): Html {
  return html`<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>${title} · fastify-svc-auth</title>
  <link rel="icon" href="data:,">
  <link rel="stylesheet" href="/style.css">
</head>
<body>
  <header>
    <strong>fastify-svc-auth</strong>
    ${navigation}
  </header>
  <main>
    <h1>${title}</h1>
    ${content}
  </main>
</body>
</html>
`
}

/** @param next where to go after the sign-in; the plugin follows it only within this application */
export function loginPage ({ principal, providers, next, error }: { principal: Principal | null, providers: readonly string[], next: string, error: unknown }): Html {
  return page('Sign in', html`
    ${alert(error)}
    ${providers.length > 0 && html`
      <nav class="providers" aria-label="Providers">
        ${providers.map(name => html`<a class="button" href="/auth/${name}/login?next=${inQuery(next)}">Continue with ${USUAL_NAMES.get(name) ?? name}</a>`)}
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
    </div>`, navigation(principal))
}

export function claimsPage ({ principal, error }: { principal: Principal, error: unknown }): Html {
  const { claims, provider, userId } = principal
  return page('Your claims', html`
    ${alert(error)}
    <p>You signed in with <strong>${provider}</strong> and are the user <code>${userId}</code>.</p>
    <dl>
      ${Object.entries(claims).map(([name, value]) => html`<dt>${name}</dt><dd>${name === 'picture' ? picture(value) : text(value)}</dd>`)}
    </dl>
    <section aria-labelledby="token">
      <h2 id="token">A token for other services</h2>
      <p>Fetches a short-lived JWT of yours, verifies it and shows what it says.</p>
      <button type="button" id="token-button">Fetch and verify a token</button>
      <pre id="token-claims" role="status"></pre>
    </section>
    <script type="module" src="/token.js"></script>`, navigation(principal))
}

export function adminPage (principal: Principal | null): Html {
  return page('Administration', html`
    <p>You see this page because your claim <code>role</code> is <code>admin</code>.</p>
    <form method="post" action="/admin/invitations" aria-labelledby="invite">
      <h2 id="invite">Invite somebody</h2>
      <label>Role <select name="role">${ROLES.map(role => html`<option>${role}</option>`)}</select></label>
      <button>Make a link</button>
    </form>`, navigation(principal))
}

export function invitationLinkPage ({ principal, role, link }: { principal: Principal, role: string, link: string }): Html {
  return page('Your invitation', html`
    <p>Send this link to the one you invite. Whoever accepts it first has the role <strong>${role}</strong>; it is good for an hour.</p>
    <pre>${link}</pre>`, navigation(principal))
}

export function invitationPage ({ principal, inviter, role, token }: { principal: Principal | null, inviter: User, role: string, token: string }): Html {
  const present = principal?.claims.role
  return page('You are invited', html`
    <form method="post" action="/invitation">
      <p><strong>${nameOf(inviter)}</strong> offers you the role <strong>${role}</strong>.</p>
      ${present !== undefined && html`<p>It takes the place of your role <strong>${text(present)}</strong>.</p>`}
      <input type="hidden" name="token" value="${token}">
      <button>Accept</button>
    </form>`, navigation(principal))
}

export function preAuthPage ({ principal, user, token }: { principal: Principal | null, user: User, token: string }): Html {
  return page('Sign in with a link', html`
    <form method="post" action="/pre-auth">
      <p>This link signs you in, once.</p>
      <input type="hidden" name="token" value="${token}">
      <button>Continue as ${nameOf(user)}</button>
    </form>`, navigation(principal))
}

/** What stopped a request, and what to do about it. */
export function problemPage ({ code, principal }: { code: AuthErrorCode | 'not_found' | undefined, principal: Principal | null }): Html {
  return page(TITLES.get(code) ?? 'Something went wrong', html`
    <p>${errorSentence(code)}</p>
    ${code === 'forbidden' && html`
      <p>It is for those whose claim <code>role</code> is <code>admin</code>. This is how to become one; reload the page afterwards:</p>
      <pre>npx tsx examples/grant.ts ${principal?.claims.email ?? 'your@e-mail.example'} role=admin</pre>`}`, navigation(principal))
}

const USUAL_NAMES: ReadonlyMap<string, string> = new Map([
  ['google', 'Google'],
  ['github', 'GitHub'],
  ['microsoft', 'Microsoft'],
  ['facebook', 'Facebook'],
  ['auth0', 'Auth0']
])

const TITLES: ReadonlyMap<string | undefined, string> = new Map([
  ['unauthenticated', 'Sign in first'],
  ['forbidden', 'Not for this account'],
  ['invalid_token', 'This link does not work'],
  ['not_found', 'Page not found']
])

function navigation (principal: Principal | null): Html {
  return html`
    <nav aria-label="Pages">
      ${principal !== null && html`<a href="/">Claims</a>`}
      <a href="/admin">Administration</a>
      ${principal === null
        ? html`<a href="/login">Sign in</a>`
        : html`<form method="post" action="/auth/local/revoke"><button class="quiet">Sign out</button></form>`}
    </nav>`
}

function alert (error: unknown): Html | false {
  return error !== undefined && html`<p class="alert" role="alert">${errorSentence(error)}</p>`
}

/** A path as the value of a query parameter; slashes may stay, and are easier to read. */
function inQuery (path: string): string {
  return encodeURIComponent(path).replaceAll('%2F', '/')
}

function nameOf ({ email, name, userId }: User): string {
  return email ?? name ?? userId
}

function text (claim: unknown): string {
  return typeof claim === 'string' ? claim : JSON.stringify(claim)
}

/** As a picture if the Content-Security-Policy lets the browser load it. */
function picture (claim: unknown): Html | string {
  const address = text(claim)
  return /^(https:|data:image\/)/.test(address) ? html`<img src="${address}" alt="" width="48" height="48">` : address
}
