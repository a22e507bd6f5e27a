/**
 * Tests of an application with node:test: signedIn signs users in, without a form, a provider or a port.
 *
 *     npm install fastify fastify-svc-auth
 *     npx tsx --test 08-tests.ts
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify, { type FastifyInstance } from 'fastify'
import authPlugin, { LocalIdentityProvider } from 'fastify-svc-auth'
import { signedIn } from 'fastify-svc-auth/testing'

async function buildApp (): Promise<FastifyInstance> {
  const secret = 'a secret for tests, 32 characters or more'
  const app = Fastify()
  await app.register(authPlugin, { local: new LocalIdentityProvider({ secret }), session: { secret } })
  app.get('/me', { preHandler: app.auth.requireUser }, async request => app.auth.user(request).claims)
  app.get('/admin', { preHandler: app.auth.requireClaims({ role: 'admin' }) }, async () => 'for administrators')
  return app
}

test('a signed-in user sees who they are, and only administrators see more', async t => {
  const app = await buildApp()
  t.after(() => app.close())
  const ada = await signedIn(app, { email: 'ada@example.com' })
  const admin = await signedIn(app, { claims: { role: 'admin' } })

  const me = await app.inject({ url: '/me', headers: ada })
  const answers = [
    await app.inject('/admin'),
    await app.inject({ url: '/admin', headers: ada }),
    await app.inject({ url: '/admin', headers: admin })
  ]

  assert.equal(me.json().email, 'ada@example.com')
  assert.deepEqual(answers.map(({ statusCode }) => statusCode), [401, 403, 200])
})
