/**
 * Starts the demonstration: `npm start`. It needs no settings. PORT, DEV_PROVIDER_PORT, EXAMPLE_DB, LOG_LEVEL,
 * DEMO_VERIFY (`later`, `required` or `first`: when a new user confirms their address) and the settings of the library,
 * those of providers included, can be set.
 */
import type { Database } from 'better-sqlite3'
import { OptionsError, providersFromEnv } from 'fastify-svc-auth'
import { buildApp } from './app.js'
import { openDatabase } from './database.js'
import { keptSecret } from './kept-secret.js'
import { DevMailbox } from './mailbox.js'
import { StartError, listen, portFrom } from './ports.js'

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
  for (const setting of ['SVC_SESSION_SECRET', 'LOCAL_IDP_SECRET', 'SVC_AUTH_DATA_SECRET']) {
    if (process.env[setting] !== undefined) continue
    process.env[setting] = keptSecret(database, setting)
    console.log(`${setting} is not set: a random one is used, which ${database.name} keeps.`)
  }
}

function verifyFrom (setting: string): 'later' | 'required' | 'first' {
  const verify = process.env[setting] || 'later'
  if (verify !== 'later' && verify !== 'required' && verify !== 'first') {
    throw new StartError(`${setting} must be later, required or first, for example: ${setting}=first npm start`)
  }
  return verify
}
