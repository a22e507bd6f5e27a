/**
 * An application of fastify-cli: what is in the folders is registered.
 *
 *     npm ci && npm install fastify-svc-auth
 *     export SVC_SESSION_SECRET=$(openssl rand -hex 32) LOCAL_IDP_SECRET=$(openssl rand -hex 32)
 *     npm start
 */
import { join } from 'node:path'
import autoload from '@fastify/autoload'
import type { FastifyInstance } from 'fastify'

// fastify-cli asks for two parameters. Its options are not passed on: `--prefix` would count twice.
export default async function (app: FastifyInstance, _options: object): Promise<void> {
  await app.register(autoload, { dir: join(import.meta.dirname, 'plugins') })
  await app.register(autoload, { dir: join(import.meta.dirname, 'routes') })
}
