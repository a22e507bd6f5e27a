import fp from 'fastify-plugin'
import authPlugin, { LocalIdentityProvider, SqlAuthStore } from 'fastify-svc-auth'
import { Pages } from 'fastify-svc-auth/pages'

// Without fastify-plugin, app.auth would be known in this file alone.
export default fp(async app => {
  await app.register(authPlugin, {
    baseUrl: `http://localhost:${process.env.PORT ?? 3000}`,
    local: new LocalIdentityProvider(), // secret: LOCAL_IDP_SECRET
    store: new SqlAuthStore(), // the SQLite file ./local-auth.db, or LOCAL_AUTH_DB
    pages: new Pages({ name: 'Autoload' })
  }) // session secret: SVC_SESSION_SECRET
}, { name: 'auth' })
