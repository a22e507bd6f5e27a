import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import authPlugin from 'fastify-svc-auth'
import { signedIn, startProvider } from 'fastify-svc-auth/testing'

test('an administrator is signed in, and a user of a provider', async t => {
  const provider = await startProvider()
  t.after(() => provider.close())
  const app = Fastify()
  t.after(() => app.close())
  await app.register(authPlugin, {
    baseUrl: 'https://app.example',
    providers: [provider.provider()],
    session: { secret: 'one of more than 32 characters, for tests' }
  })
  app.get('/admin', { preHandler: app.auth.requireClaims({ role: 'admin' }) }, async () => 'in')

  const admin = await app.inject({ url: '/admin', headers: await signedIn(app, { claims: { role: 'admin' } }) })
  const user = await app.inject({ url: '/admin', headers: (await provider.signIn(app)).headers })

  assert.deepEqual([admin.statusCode, user.statusCode], [200, 403])
})
