/** A gateway whose whole configuration is the issuer and its audience: the rest it reads from the metadata. */
import { createServer } from 'node:http'
import Fastify, { type FastifyInstance } from 'fastify'
import { auth } from 'express-oauth2-jwt-bearer'
import t, { type Test } from 'tap'
import authPlugin from '../../index.js'
import type { Jwk } from './token-keys.js'
import { SESSION_SECRET, localProvider } from '../../../test/helpers/app.js'
import { advanceClock } from '../../../test/helpers/clock.js'
import { freePort, listen } from '../../../test/helpers/loopback.js'
import { ecKey, edKey } from '../../../test/helpers/signing-key.js'

const AUDIENCE = 'reports'

for (const [where, path] of [['the application', ''], ['a path of it', '/tokens']] as const) {
  t.test(`a gateway that is told the issuer, ${where}, verifies its tokens`, async t => {
    const { app, issuer } = await startIssuer(t, ecKey(), path)
    const gateway = await startGateway(t, issuer)
    const token = async (use: object, ttl = 60) => app.localIdp?.issueIdToken('nightly-export', {}, ttl, use)

    t.strictSame(await gateway(await token({ audience: AUDIENCE })), [200, 'nightly-export'])
    t.match(await gateway(await token({ audience: 'another' })), [401])
    t.match(await gateway(await token({})), [401])
    const other = localProvider({ secret: undefined, signingKey: ecKey(), issuer })
    t.match(await gateway(await other.issueIdToken('nightly-export', {}, 60, { audience: AUDIENCE })), [401])
  })
}

t.test('a key that is published before it signs is known to the gateway when it does, whatever its kind', async t => {
  const former = ecKey()
  const coming = { ...edKey(), notBefore: new Date(Date.now() + 300_000).toISOString() }
  const { app, issuer } = await startIssuer(t, [coming, former])
  const gateway = await startGateway(t, issuer)
  const algOf = (token: string) => JSON.parse(Buffer.from(token.split('.', 1).join(), 'base64url').toString()).alg
  const issue = async () => String(await app.localIdp?.issueIdToken('nightly-export', {}, 60, { audience: AUDIENCE }))

  const before = await issue()
  t.strictSame([algOf(before), await gateway(before)], ['ES256', [200, 'nightly-export']])
  advanceClock(t, 300_000)
  const after = await issue()
  t.strictSame([algOf(after), await gateway(after)], ['EdDSA', [200, 'nightly-export']])
  t.equal(fetchesOf(app), 1, 'without fetching the keys again')
})

/** How often the keys of an application were fetched. */
function fetchesOf (app: FastifyInstance): number {
  return fetches.get(app) ?? 0
}

const fetches = new WeakMap<FastifyInstance, number>()

/** An application that issues tokens, on a port of its own. */
async function startIssuer (t: Test, signingKey: Jwk | readonly Jwk[], path = ''): Promise<{ app: FastifyInstance, issuer: string }> {
  const port = await freePort()
  const baseUrl = `http://127.0.0.1:${port}`
  const issuer = baseUrl + path
  const app: FastifyInstance = Fastify()
  t.teardown(() => app.close())
  app.addHook('onRequest', async ({ url }) => {
    if (url.endsWith('jwks.json')) fetches.set(app, fetchesOf(app) + 1)
  })
  const local = localProvider({ secret: undefined, signingKey, issuer })
  await app.register(authPlugin, { baseUrl, local, session: { secret: SESSION_SECRET } })
  await app.listen({ port, host: '127.0.0.1' })
  return { app, issuer }
}

/** A gateway, and how it answers a token: the status, and the subject that it found. */
async function startGateway (t: Test, issuerBaseURL: string) {
  const verify = auth({ issuerBaseURL, audience: AUDIENCE })
  const server = createServer((request, reply) => {
    // What Express adds to a request.
    Object.assign(request, { protocol: 'http', is: () => false, get: (name: string) => request.headers[name.toLowerCase()] })
    verify(request as never, reply as never, (error?: unknown) => {
      reply.statusCode = error === undefined ? 200 : Object(error).status ?? 500
      reply.end(error === undefined ? Object(request).auth.payload.sub : String(error))
    })
  })
  const port = await listen(t, server)
  return async (token = ''): Promise<[number, string]> => {
    const response = await fetch(`http://127.0.0.1:${port}/monthly`, { headers: { authorization: `Bearer ${token}` } })
    return [response.status, await response.text()]
  }
}
