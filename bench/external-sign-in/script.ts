import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { decodeProtectedHeader } from 'jose'
import * as oauth from 'oauth4webapi'
import { BASE_URL, CLIENT, REDIRECT_URI, SCOPES } from './authorization.js'

/** What the callback has to know of the start. */
export interface PendingSignIn {
  state: string
  nonce: string
  codeVerifier: string
}

/** Where the script keeps things. */
export interface Keeper {
  put (signIn: PendingSignIn, request: FastifyRequest, reply: FastifyReply): Promise<void>
  /** It is good for one try. */
  take (request: FastifyRequest): Promise<PendingSignIn | undefined>
  /** Keeps a user and resolves to their id. */
  keep (claims: oauth.IDToken): Promise<string>
  find (userId: string): Promise<unknown>
}

declare module 'fastify' {
  interface Session {
    userId?: string
  }
}

/** A sign-in as the examples of oauth4webapi have it, in two routes, with the checks that it leaves to its caller. */
export async function mountScript (app: FastifyInstance, issuer: string, keeper: Keeper): Promise<void> {
  const client: oauth.Client = { client_id: CLIENT.id }
  const authentication = oauth.ClientSecretPost(CLIENT.secret)
  // Not on the examples' https:. By the metadata oauth4webapi finds the keys that it has fetched.
  const http = { [oauth.allowInsecureRequests]: true, signal: () => AbortSignal.timeout(5000) }
  const server = await oauth.processDiscoveryResponse(new URL(issuer), await oauth.discoveryRequest(new URL(issuer), http))

  app.get('/login', async (request, reply) => {
    const signIn = { state: oauth.generateRandomState(), nonce: oauth.generateRandomNonce(), codeVerifier: oauth.generateRandomCodeVerifier() }
    await keeper.put(signIn, request, reply)
    const url = new URL(String(server.authorization_endpoint))
    url.searchParams.set('client_id', client.client_id)
    url.searchParams.set('redirect_uri', REDIRECT_URI)
    url.searchParams.set('response_type', 'code')
    url.searchParams.set('scope', SCOPES.join(' '))
    url.searchParams.set('code_challenge', await oauth.calculatePKCECodeChallenge(signIn.codeVerifier))
    url.searchParams.set('code_challenge_method', 'S256')
    url.searchParams.set('state', signIn.state)
    url.searchParams.set('nonce', signIn.nonce)
    return reply.redirect(url.href)
  })

  app.get('/callback', async (request, reply) => {
    const signIn = await keeper.take(request)
    if (signIn === undefined) return reply.code(400).send()
    const parameters = oauth.validateAuthResponse(server, client, new URL(request.url, BASE_URL), signIn.state)
    const response = await oauth.authorizationCodeGrantRequest(server, client, authentication, parameters, REDIRECT_URI, signIn.codeVerifier, http)
    const tokens = await oauth.processAuthorizationCodeResponse(server, client, response, { expectedNonce: signIn.nonce, requireIdToken: true })
    await oauth.validateApplicationLevelSignature(server, response, http)
    const claims = oauth.getValidatedIdTokenClaims(tokens)
    if (claims === undefined || !isOurs(claims, tokens)) return reply.code(502).send()
    const userId = await keeper.keep(claims)
    await request.session.regenerate()
    request.session.userId = userId
    return reply.redirect('/')
  })

  app.get('/me', async request => keeper.find(request.session.userId ?? ''))
}

/** What OpenID Connect Core 3.1.3.7 and 3.1.3.8 ask for besides. */
function isOurs ({ azp, iat, at_hash: accessTokenHash }: oauth.IDToken, { access_token: accessToken, id_token: idToken = '' }: oauth.TokenEndpointResponse): boolean {
  const { alg } = decodeProtectedHeader(idToken)
  const digest = createHash(`sha${alg?.slice(-3)}`).update(accessToken).digest()
  const expectedHash = digest.subarray(0, digest.length / 2).toString('base64url')
  return (azp === undefined || azp === CLIENT.id) && iat <= Date.now() / 1000 + 30 && (accessTokenHash === undefined || accessTokenHash === expectedHash)
}
