import type { Principal } from 'fastify-svc-auth'
import { type Html, html } from '../html.js'
import { errorSentence } from '../sentences.js'
import { page } from './frame.js'

const TITLES: ReadonlyMap<string | undefined, string> = new Map([
  ['unauthenticated', 'Sign in first'],
  ['forbidden', 'Not for this account'],
  ['invalid_token', 'This link does not work'],
  ['not_found', 'Page not found']
])

interface Problem {
  code: string | undefined
  principal: Principal | null
  path: string
}

/** What stopped a request, and what to do about it. */
export function problemPage ({ code, principal, path }: Problem): Html {
  return page(TITLES.get(code) ?? 'Something went wrong', html`
    <div class="card">
      <p>${errorSentence(code)}</p>
      ${code === 'forbidden' && html`
        <p>It is for users whose claim <code>role</code> is <code>admin</code>. To become one, run this and reload:</p>
        <pre>npx tsx examples/grant.ts ${principal?.claims.email ?? 'your@e-mail.example'} role=admin</pre>`}
      <p>
        ${principal === null
          ? html`<a class="button quiet" href="/login">Go to the sign-in page</a>`
          : html`<a class="button quiet" href="/">Go to your account</a>`}
      </p>
    </div>`, { principal, path, layout: 'narrow' })
}
