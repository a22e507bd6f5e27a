/**
 * Tests of an application with node:test: users sign in through the real routes, without a port.
 *
 *     npm install fastify fastify-svc-auth
 *     npx tsx --test 08-tests.ts
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify, { type FastifyInstance } from 'fastify'
import authPlugin, { LocalIdentityProvider } from 'fastify-svc-auth'

async function buildApp (): Promise<FastifyInstance> {
  const secret = 'a secret for tests, 32 characters or more'
  const local = new LocalIdentityProvider({ secret, argon2: { memoryCost: 8, timeCost: 1 } }) // hashes cost next to nothing
  const app = Fastify()
  await app.register(authPlugin, { local, session: { secret }, rateLimit: false })
  app.get('/me', { preHandler: app.auth.requireUser }, async request => app.auth.user(request).claims)
  return app
}

test('only signed-in users see who they are', async t => {
  const app = await buildApp()
  t.after(() => app.close())
  const payload = { email: 'ada@example.com', password: 'correct horse' }

  const registered = await app.inject({ method: 'POST', url: '/auth/local/register', payload })
  const [session] = registered.cookies
  const me = await app.inject({ url: '/me', cookies: { [session?.name ?? '']: session?.value ?? '' } })

  assert.equal((await app.inject('/me')).statusCode, 401)
  assert.equal(me.json().email, payload.email)
})
