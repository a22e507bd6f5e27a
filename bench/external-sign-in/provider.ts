import { createHash, generateKeyPairSync, sign } from 'node:crypto'
import formbody from '@fastify/formbody'
import Fastify, { type FastifyRequest } from 'fastify'
import { serve } from '../parts/serve.js'
import { CLIENT, authorizationOf, challengeOf, encoded, personOf } from './authorization.js'

/**
 * An OpenID provider. What it takes is subtracted, and should be little: it signs with ES256, which takes a tenth of RS256. To each
 * application it is another issuer, by the first segment of the path, so that it can count who asks how often.
 */
interface ToApplication {
  Params: { application: string }
}

const ACCESS_TOKEN = 'the-access-token-of-'
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const KEY = { ...publicKey.export({ format: 'jwk' }), kid: 'key-1', alg: 'ES256', use: 'sig' }
const HEADER = encoded({ alg: KEY.alg, kid: KEY.kid, typ: 'JWT' })

async function provider () {
  const app = Fastify()
  const fetched = new Map<string, Record<'discovery' | 'jwks', number>>()
  const count = ({ params: { application } }: FastifyRequest<ToApplication>, document: 'discovery' | 'jwks') => {
    const counts = fetched.get(application) ?? { discovery: 0, jwks: 0 }
    counts[document]++
    fetched.set(application, counts)
  }
  await app.register(formbody)

  app.get<ToApplication>('/:application/.well-known/openid-configuration', async request => {
    count(request, 'discovery')
    return metadata(issuerOf(request))
  })

  app.get<ToApplication>('/:application/jwks', async request => {
    count(request, 'jwks')
    return { keys: [KEY] }
  })

  app.post<ToApplication & { Body: Record<string, string> }>('/:application/token', async (request, reply) => {
    const { code = '', code_verifier: verifier = '', redirect_uri: redirectUri } = request.body
    if (!isClient(request)) return reply.code(401).send({ error: 'invalid_client' })
    const { sub, nonce, challenge, redirectUri: expected } = authorizationOf(code)
    if (redirectUri !== expected || challengeOf(verifier) !== challenge) return reply.code(400).send({ error: 'invalid_grant' })
    const accessToken = ACCESS_TOKEN + sub
    const now = Math.floor(Date.now() / 1000)
    const claims = { iss: issuerOf(request), aud: CLIENT.id, iat: now, exp: now + 600, at_hash: hashOf(accessToken), ...(nonce !== null && { nonce }), ...personOf(sub) }
    return reply.header('cache-control', 'no-store').send({ access_token: accessToken, token_type: 'Bearer', expires_in: 600, scope: 'openid email profile', id_token: signed(claims) })
  })

  app.get('/:application/userinfo', async (request, reply) => {
    const [, sub] = request.headers.authorization?.split(ACCESS_TOKEN) ?? []
    return sub === undefined ? reply.code(401).send({ error: 'invalid_token' }) : personOf(sub)
  })

  app.get('/fetched', async () => Object.fromEntries(fetched))
  return app
}

function issuerOf ({ host, params: { application } }: FastifyRequest<ToApplication>): string {
  return `http://${host}/${application}`
}

function metadata (issuer: string) {
  return {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    userinfo_endpoint: `${issuer}/userinfo`,
    jwks_uri: `${issuer}/jwks`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [KEY.alg],
    token_endpoint_auth_methods_supported: ['client_secret_post', 'client_secret_basic'],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true
  }
}

/** By `client_secret_post` or `client_secret_basic` (RFC 6749 section 2.3.1). */
function isClient ({ headers, body }: FastifyRequest<{ Body: Record<string, string> }>): boolean {
  const isPosted = body.client_id === CLIENT.id && body.client_secret === CLIENT.secret
  return isPosted || headers.authorization === `Basic ${Buffer.from(`${CLIENT.id}:${CLIENT.secret}`).toString('base64')}`
}

/** The `at_hash` of an access token (OpenID Connect Core 3.1.3.6). */
function hashOf (accessToken: string): string {
  return createHash('sha256').update(accessToken).digest().subarray(0, 16).toString('base64url')
}

function signed (claims: object): string {
  const content = `${HEADER}.${encoded(claims)}`
  return `${content}.${sign('sha256', Buffer.from(content), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

await serve({ provider })
