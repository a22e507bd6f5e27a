import { createHash, randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import type { ClientOptions } from 'fastify-svc-auth/oauth-server'
import { html } from './html.js'
import { sendPage } from './site.js'

const CLIENT = 'demo-assistant'

/** The assistant as the authorization server knows it. */
export function assistantOf (baseUrl: string): ClientOptions {
  return { client_id: CLIENT, client_name: 'Demo assistant', redirect_uris: [`${baseUrl}/assistant/callback`] }
}

/** An API for clients of the authorization server, and a client of it, which would be a program elsewhere. */
export function mountAssistant (app: FastifyInstance, baseUrl: string): void {
  const { auth } = app
  const resource = `${baseUrl}/api`
  // The requests that were started, by their states: a program would keep its own.
  const verifiers = new Map<string, string>()

  app.get('/api/me', { preHandler: auth.requireBearerFor({ audience: resource, scopes: ['profile'] }) }, async ({ token }) => {
    const user = await auth.findUser({ userId: String(token?.sub) })
    return { name: user?.name, email: user?.email }
  })

  app.get('/assistant', async (_request, reply) => {
    const [state, verifier] = [randomBytes(16).toString('base64url'), randomBytes(32).toString('base64url')]
    verifiers.set(state, verifier)
    return reply.redirect(`/auth/oauth/authorize?${new URLSearchParams({
      response_type: 'code',
      client_id: CLIENT,
      redirect_uri: `${baseUrl}/assistant/callback`,
      scope: 'profile',
      state,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256'
    })}`)
  })

  app.get<{ Querystring: Record<string, string> }>('/assistant/callback', async ({ query: { code = '', state = '' } }, reply) => {
    const tokens = await app.inject({
      method: 'POST',
      url: '/auth/oauth/token',
      payload: {
        grant_type: 'authorization_code', client_id: CLIENT, code, code_verifier: verifiers.get(state), redirect_uri: `${baseUrl}/assistant/callback`
      }
    })
    verifiers.delete(state)
    const { access_token: token } = tokens.json()
    const answer = await app.inject({ url: '/api/me', headers: { authorization: `Bearer ${token}` } })
    return sendPage(reply, 'Demo assistant', html`
    <p>${tokens.statusCode === 200 ? 'I am connected. The API says:' : 'You did not connect me.'}</p>
    <pre>${answer.body}</pre>
    <p><a class="button quiet" href="/auth/pages/account?open=applications">Disconnect it on the page of your account</a></p>`)
  })
}
