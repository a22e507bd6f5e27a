import Fastify from 'fastify'

const app = Fastify()
await app.ready()
process.send('ready')
