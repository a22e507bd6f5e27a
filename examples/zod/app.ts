/**
 * An application whose schemas are Zod's, with an OpenAPI document of all routes.
 *
 *     npm ci && npm install fastify-svc-auth
 *     export SVC_SESSION_SECRET=$(openssl rand -hex 32) LOCAL_IDP_SECRET=$(openssl rand -hex 32)
 *     npm start
 */
import swagger from '@fastify/swagger'
import Fastify from 'fastify'
import authPlugin, { LocalIdentityProvider, SqlAuthStore, openapiComponents } from 'fastify-svc-auth'
import { Pages } from 'fastify-svc-auth/pages'
import {
  type ZodTypeProvider, jsonSchemaTransform, serializerCompiler, validatorCompiler
} from 'fastify-type-provider-zod'
import { z } from 'zod'

const port = Number(process.env.PORT ?? 3000)

const app = Fastify().withTypeProvider<ZodTypeProvider>()
app.setValidatorCompiler(validatorCompiler)
app.setSerializerCompiler(serializerCompiler)
await app.register(swagger, {
  openapi: { info: { title: 'Orders', version: '1.0.0' }, components: openapiComponents },
  transform: jsonSchemaTransform
})

await app.register(authPlugin, {
  baseUrl: `http://localhost:${port}`,
  local: new LocalIdentityProvider(), // secret: LOCAL_IDP_SECRET
  store: new SqlAuthStore(), // the SQLite file ./local-auth.db, or LOCAL_AUTH_DB
  pages: new Pages({ name: 'Zod' })
}) // session secret: SVC_SESSION_SECRET

const order = z.object({ item: z.string().min(1), quantity: z.int().min(1).default(1) })
const orders = z.array(order.extend({ userId: z.uuid() }))
const refusal = z.object({ statusCode: z.int(), code: z.string(), error: z.string(), message: z.string() })
const kept: z.infer<typeof orders> = []

app.post('/orders', {
  schema: { body: order, response: { 200: orders, 401: refusal }, security: [{ session: [] }] },
  preHandler: app.auth.requireUser
}, async request => {
  const { userId } = app.auth.user(request)
  kept.push({ ...request.body, userId }) // request.body is typed
  return kept.filter(order => order.userId === userId)
})

app.get('/orders', {
  schema: { response: { 200: orders, '4xx': refusal }, security: [{ session: [] }] },
  preHandler: app.auth.requireClaims({ role: 'admin' })
}, async () => kept)

app.get('/openapi.json', { schema: { hide: true } }, async () => app.swagger())

await app.listen({ port })
