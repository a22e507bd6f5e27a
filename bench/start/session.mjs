import fastifyCookie from '@fastify/cookie'
import fastifySession from '@fastify/session'
import Fastify from 'fastify'

const app = Fastify()
await app.register(fastifyCookie)
await app.register(fastifySession, { secret: 'a secret for the sessions of the benches' })
await app.ready()
process.send('ready')
