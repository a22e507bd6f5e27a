import { hash, verify } from '@node-rs/argon2'
import { betterAuth } from 'better-auth'
import { getMigrations } from 'better-auth/db/migration'
import { toNodeHandler } from 'better-auth/node'
import Fastify from 'fastify'
import { ADA, COST, SECRET } from './ada.mjs'
import { connect } from './connect.mjs'

export async function application (database) {
  const options = {
    baseURL: 'http://127.0.0.1',
    secret: SECRET,
    database: await connect(database),
    emailAndPassword: { enabled: true, password: { hash: password => hash(password, COST), verify: ({ hash, password }) => verify(hash, password) } },
    rateLimit: { enabled: false },
    telemetry: { enabled: false }
  }
  const auth = betterAuth(options)
  const handle = toNodeHandler(auth)

  const app = Fastify()
  app.decorate('betterAuth', { auth, options })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', (_request, _payload, done) => { done(null) })
  app.all('/api/auth/*', async (request, reply) => {
    reply.hijack()
    await handle(request.raw, reply.raw)
  })
  return app
}

export async function addAda ({ betterAuth: { auth, options } }) {
  await (await getMigrations(options)).runMigrations()
  await auth.api.signUpEmail({ body: ADA })
  await (options.database.end ?? options.database.close).call(options.database)
}
