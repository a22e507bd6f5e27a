import Fastify = require('fastify')
import auth = require('fastify-svc-auth')

const app = Fastify()
const local = new auth.LocalIdentityProvider({ secret: 'a secret of more than 32 characters' })
app.register(auth.authPlugin, { local, session: { secret: 'another one of more than 32 characters' } })
app.get('/me', async request => ({ user: request.principal?.claims.email ?? null }))
app.inject({ url: '/me' }).then(response => {
  if (response.body !== '{"user":null}') throw new Error(response.body)
  console.log('CommonJS with types:', response.body)
})
