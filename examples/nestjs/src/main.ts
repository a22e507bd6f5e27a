/**
 * NestJS on Fastify.
 *
 *     npm ci && npm install fastify-svc-auth && npm run build
 *     export SVC_SESSION_SECRET=$(openssl rand -hex 32) LOCAL_IDP_SECRET=$(openssl rand -hex 32)
 *     npm start
 */
import 'reflect-metadata'
import { NestFactory } from '@nestjs/core'
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify'
import authPlugin, { LocalIdentityProvider, SqlAuthStore } from 'fastify-svc-auth'
import { Pages } from 'fastify-svc-auth/pages'
import { AppModule } from './app.js'
import { AuthErrorFilter } from './auth.js'

const port = Number(process.env.PORT ?? 3000)

const app = await NestFactory.create<NestFastifyApplication>(AppModule, new FastifyAdapter())
app.useGlobalFilters(new AuthErrorFilter())

// Before app.init() and app.listen().
await app.getHttpAdapter().getInstance().register(authPlugin, {
  baseUrl: `http://localhost:${port}`,
  local: new LocalIdentityProvider(), // secret: LOCAL_IDP_SECRET
  store: new SqlAuthStore(), // the SQLite file ./local-auth.db, or LOCAL_AUTH_DB
  pages: new Pages({ name: 'Nest' })
}) // session secret: SVC_SESSION_SECRET

await app.listen(port)
