const Fastify = require('fastify')
const { authPlugin, LocalIdentityProvider } = require('fastify-svc-auth')
const { paths } = require('fastify-svc-auth/openapi.json')

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
    if (paths['/auth/local/register'].post.responses[201] === undefined) throw new Error('the document lacks the answer')
    console.log('require():', response.json().claims.email)
  })
