import type { Principal } from 'fastify-svc-auth'
import { errorSentence } from '../error-sentences.js'
import { type Html, html } from '../html.js'
import { page } from './frame.js'

const TITLES: ReadonlyMap<string | undefined, string> = new Map([
  ['unauthenticated', 'Sign in first'],
  ['forbidden', 'Not for this account'],
  ['invalid_token', 'This link does not work'],
  ['not_found', 'Page not found']
])

/** What stopped a request, and what to do about it. */
export function problemPage ({ code, principal, path }: { code: string | undefined, principal: Principal | null, path: string }): Html {
  return page(TITLES.get(code) ?? 'Something went wrong', html`
    <p>${errorSentence(code)}</p>
    ${code === 'forbidden' && html`
      <p>It is for those whose claim <code>role</code> is <code>admin</code>. This is how to become one; reload the page afterwards:</p>
      <pre>npx tsx examples/grant.ts ${principal?.claims.email ?? 'your@e-mail.example'} role=admin</pre>`}`, { principal, path })
}
