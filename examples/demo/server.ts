/**
 * Starts the demonstration: `npm start`. It needs no settings. PORT, DEV_PROVIDER_PORT, EXAMPLE_DB, LOG_LEVEL,
 * DEMO_VERIFY (`later`, `required` or `first`: when a new user confirms their address) and the settings of the library,
 * those of providers included, can be set.
 */
import { randomBytes } from 'node:crypto'
import type { Database } from 'better-sqlite3'
import type { FastifyInstance } from 'fastify'
import { OptionsError, type RegistrationPolicy, providersFromEnv } from 'fastify-svc-auth'
import { buildApp } from './app.js'
import { openDatabase } from './database.js'
import { keptSecret } from './kept-secret.js'
import { DevMailbox } from './mailbox.js'

/** A setting or a port in use keeps the demonstration from starting; the message says what to do. */
class StartError extends Error {}

try {
  await start()
} catch (error) {
  if (!(error instanceof StartError || error instanceof OptionsError)) throw error
  console.error(error.message)
  process.exit(1)
}

async function start (): Promise<void> {
  const port = portFrom('PORT', 3000)
  const baseUrl = `http://localhost:${port}`
  const verify = verifyFrom('DEMO_VERIFY')
  const database = openDatabase()
  inventSecrets(database)

  // In production the development provider is not even loaded, and no mail is sent.
  const isProduction = process.env.NODE_ENV === 'production'
  const dev = isProduction ? null : await devProvider(portFrom('DEV_PROVIDER_PORT', port + 1), baseUrl)
  const providers = [...providersFromEnv(), ...(dev === null ? [] : [dev.provider])]
  const app = await buildApp({ baseUrl, providers, database, mailbox: isProduction ? null : new DevMailbox(), verify })

  const close = async () => {
    await Promise.all([app.close(), dev?.server.close()])
    database.close()
  }
  process.once('SIGINT', close).once('SIGTERM', close)

  await listen(app, port, 'PORT')
  if (dev !== null) {
    await listen(dev.server, dev.port, 'DEV_PROVIDER_PORT')
    console.log(`The development provider is on port ${dev.port}: with it anyone can sign in as any user.`)
  }
  console.log(`Ready: ${baseUrl}`)
}

async function devProvider (port: number, appUrl: string) {
  const { buildDevProvider } = await import('./dev-provider.js')
  return { ...await buildDevProvider({ url: `http://localhost:${port}`, appUrl }), port }
}

/** Makes up the secrets that are not set, and says so. The library itself never does. */
function inventSecrets (database: Database): void {
  if (process.env.SVC_SESSION_SECRET === undefined) {
    process.env.SVC_SESSION_SECRET = randomBytes(32).toString('hex')
    console.log('SVC_SESSION_SECRET is not set: a random one is used, and sessions end with this process.')
  }
  if (process.env.LOCAL_IDP_SECRET === undefined) {
    process.env.LOCAL_IDP_SECRET = keptSecret(database, 'LOCAL_IDP_SECRET')
    const kept = `${database.name} keeps for examples/pre-auth-link.ts`
    console.log(`LOCAL_IDP_SECRET is not set: a random one is used, which ${kept}.`)
  }
}

function portFrom (setting: string, fallback: number): number {
  const port = Number(process.env[setting] || fallback)
  if (!Number.isInteger(port) || port < 1 || port > 65535) {
    throw new StartError(`${setting} must be a port number from 1 to 65535, for example: ${setting}=4000 npm start`)
  }
  return port
}

function verifyFrom (setting: string): Required<RegistrationPolicy>['verify'] {
  const verify = process.env[setting] || 'later'
  if (verify !== 'later' && verify !== 'required' && verify !== 'first') {
    throw new StartError(`${setting} must be later, required or first, for example: ${setting}=first npm start`)
  }
  return verify
}

/** Listens on this machine only. */
async function listen (server: FastifyInstance, port: number, setting: string): Promise<void> {
  try {
    await server.listen({ host: 'localhost', port })
  } catch (error) {
    const isInUse = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
    if (!isInUse) throw error
    const example = `${setting}=${port === 4000 ? 5000 : 4000} npm start`
    throw new StartError(`Port ${port} is in use; set ${setting} to a free one, for example: ${example}`)
  }
}
