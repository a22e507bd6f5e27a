import Fastify from 'fastify'
import authPlugin, { type AuthStore, LocalIdentityProvider } from 'fastify-svc-auth'

/** Starts an application on the store, registers Ada, and does some work with her user id. */
export async function withAda (store: AuthStore, work: (userId: string) => Promise<void>): Promise<void> {
  const app = Fastify()
  const local = new LocalIdentityProvider({ secret: 'a secret of more than 32 characters' })
  await app.register(authPlugin, { local, store, session: { secret: 'another one of more than 32 characters' } })
  const payload = { email: 'ada@example.com', password: 'correct horse', name: 'Ada' }
  const registered = await app.inject({ method: 'POST', url: '/auth/local/register', headers: { accept: 'application/json' }, payload })
  if (registered.statusCode !== 201) throw new Error(registered.body)
  await work(registered.json().userId)
  await app.close()
}
