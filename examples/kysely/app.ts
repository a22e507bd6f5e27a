/**
 * Tables of Kysely beside those of the plugin, in two schemas of one Postgres database.
 *
 *     npm ci && npm install fastify-svc-auth
 *     export SVC_SESSION_SECRET=$(openssl rand -hex 32) LOCAL_IDP_SECRET=$(openssl rand -hex 32)
 *     export DATABASE_URL=postgres://localhost/shop LOCAL_AUTH_DB='postgres://localhost/shop?search_path=svc_auth'
 *     npm run migrate && npm start
 */
import Fastify from 'fastify'
import authPlugin, { LocalIdentityProvider, SqlAuthStore } from 'fastify-svc-auth'
import { Pages } from 'fastify-svc-auth/pages'
import { db } from './database.ts'

const port = Number(process.env.PORT ?? 3000)

const app = Fastify()
app.addHook('onClose', async () => db.destroy())
await app.register(authPlugin, {
  baseUrl: `http://localhost:${port}`,
  local: new LocalIdentityProvider(), // secret: LOCAL_IDP_SECRET
  store: new SqlAuthStore(), // LOCAL_AUTH_DB, whose search_path is the schema of the plugin
  pages: new Pages({ name: 'Kysely' })
}) // session secret: SVC_SESSION_SECRET

app.post<{ Body: { item: string } }>('/orders', { preHandler: app.auth.requireUser }, async request => {
  const { userId } = app.auth.user(request)
  return db.insertInto('app.orders').values({ user_id: userId, item: request.body.item }).returningAll().execute()
})

app.get('/orders', { preHandler: app.auth.requireClaims({ role: 'admin' }) }, async () => {
  return db.selectFrom('app.orders')
    .innerJoin('svc_auth.svc_auth_users as users', 'users.user_id', 'app.orders.user_id')
    .select(['app.orders.item', 'users.email'])
    .execute()
})

await app.listen({ port })
