const Fastify = require('fastify')
const { authPlugin, LocalIdentityProvider } = require('fastify-svc-auth')
const postgres = require('fastify-svc-auth/schema/postgres')
const sqlite = require('fastify-svc-auth/schema/sqlite')

const app = Fastify()
const local = new LocalIdentityProvider({ secret: 'a secret of more than 32 characters' })
app.register(authPlugin, { local, session: { secret: 'another one of more than 32 characters' } })
app.inject({
  method: 'POST',
  url: '/auth/local/register',
  payload: { email: 'ada@example.com', password: 'correct horse' },
  headers: { accept: 'application/json' }
})
  .then(response => {
    if (response.statusCode !== 201) throw new Error(response.body)
    if (postgres.users.userId.name !== 'user_id' || sqlite.users.userId.name !== 'user_id') throw new Error('a table is not the one of the schema')
    console.log('require():', response.json().claims.email)
  })
