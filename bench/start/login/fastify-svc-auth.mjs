import Fastify from 'fastify'
import authPlugin, { LocalIdentityProvider, SqlAuthStore } from '../../../dist/index.js'
import { ADA, SECRET } from './ada.mjs'

export async function application (database) {
  const app = Fastify()
  await app.register(authPlugin, {
    local: new LocalIdentityProvider({ secret: SECRET }),
    store: new SqlAuthStore(database),
    session: { secret: SECRET }
  })
  return app
}

export async function addAda (app) {
  const { statusCode, body } = await app.inject({ method: 'POST', url: '/auth/local/register', body: ADA })
  if (statusCode !== 201) throw new Error(body)
}
