import Fastify from 'fastify'
import authPlugin, { LocalIdentityProvider, SqlAuthStore } from '../../dist/index.js'
import { ADA, SECRET } from '../login/ada.js'
import { type Make, serve } from '../parts/serve.js'

/** An application with users in an SQLite file, and hashes that cost next to nothing. `GET /heap` tells what it has in memory. */
const makers: Record<string, Make> = {
  async application (users = '', sessions = 'beside the users') {
    const app = Fastify()
    await app.register(authPlugin, {
      local: new LocalIdentityProvider({ secret: SECRET, argon2: { memoryCost: 8, timeCost: 1 } }),
      store: new SqlAuthStore(users),
      session: { secret: SECRET, ...sessions === 'memory' && { store: sessions } },
      rateLimit: false
    })
    app.get('/heap', async () => {
      globalThis.gc?.()
      return process.memoryUsage().heapUsed
    })
    await app.inject({ method: 'POST', url: '/auth/local/register', body: ADA })
    return app
  }
}

await serve(makers)
