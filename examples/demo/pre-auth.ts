import type { FastifyInstance } from 'fastify'
import { AuthError, type LocalIdentityProvider } from 'fastify-svc-auth'
import { html } from './html.js'
import { type LinkToken, linkToken } from './links.js'
import { redirectDone, sendPage } from './site.js'
import type { UsedTokens } from './used-tokens.js'

/** The purpose of the tokens of these links. A token with a purpose is valid for nothing else. */
export const PRE_AUTH = { purpose: 'pre-auth' }

/** The routes behind the links that examples/pre-auth-link.ts makes. Each link signs a user in, once. */
export function mountPreAuth (app: FastifyInstance, local: LocalIdentityProvider, usedTokens: UsedTokens): void {
  // Mail scanners and browsers fetch links before a user follows them, so a GET does not use the link up.
  const page = { schema: { querystring: linkToken } }
  app.get<{ Querystring: LinkToken }>('/pre-auth', page, async ({ query: { token } }, reply) => {
    const { sub } = await local.verifyIdToken(token, PRE_AUTH)
    const user = await app.auth.findUser({ userId: sub })
    if (user === null) throw new AuthError('invalid_token')
    return sendPage(reply, 'Sign in with a link', html`
    <form method="post" action="/pre-auth">
      <p>This link signs you in, once.</p>
      <input type="hidden" name="token" value="${token}">
      <button>Continue as ${user.email ?? user.name ?? user.userId}</button>
    </form>`)
  })

  app.post<{ Body: LinkToken }>('/pre-auth', { schema: { body: linkToken } }, async (request, reply) => {
    const claims = await local.verifyIdToken(request.body.token, PRE_AUTH)
    usedTokens.use(claims)
    await app.auth.signIn(request, claims.sub)
    return redirectDone(reply, '/', 'signed_in')
  })
}
