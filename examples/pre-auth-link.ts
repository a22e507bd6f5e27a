/**
 * Makes a link that signs a user of the demonstration in, once:
 *
 *     npx tsx examples/pre-auth-link.ts ada@example.com --minutes 10
 *
 * It takes the settings of the demonstration; BASE_URL is the URL of the demonstration.
 */
import { parseArgs } from 'node:util'
import { AuthError, Authorization, LocalIdentityProvider, OptionsError, SqlAuthStore } from 'fastify-svc-auth'
import { openDatabase } from './demo/database.js'
import { keptSecret } from './demo/kept-secret.js'
import { PRE_AUTH } from './demo/pre-auth.js'

const USAGE = 'Usage: npx tsx examples/pre-auth-link.ts <e-mail> [--minutes <1 to 60>]'

try {
  await makeLink()
} catch (error) {
  if (!(error instanceof AuthError || error instanceof OptionsError)) throw error
  fail(error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message)
}

async function makeLink (): Promise<void> {
  const { email, minutes } = readArguments() ?? {}
  if (email === undefined || minutes === undefined) return fail(USAGE)
  if (!/^\d+$/.test(minutes) || Number(minutes) < 1 || Number(minutes) > 60) {
    return fail(`--minutes must be a whole number from 1 to 60; it is "${minutes}".`)
  }
  const { BASE_URL: baseUrl = 'http://localhost:3000' } = process.env
  if (!/^https?:/.test(baseUrl) || !URL.canParse(baseUrl)) {
    return fail(`BASE_URL must be the address of the application, such as http://localhost:3000; it is "${baseUrl}".`)
  }
  const secret = process.env.LOCAL_IDP_SECRET ?? keptSecret(openDatabase(), 'LOCAL_IDP_SECRET')

  const local = new LocalIdentityProvider({ secret })
  const store = new SqlAuthStore() // file: LOCAL_AUTH_DB
  try {
    const user = await new Authorization(store).findUser({ email })
    const database = process.env.LOCAL_AUTH_DB ?? './local-auth.db'
    if (user === null) return fail(`No user in ${database} has the e-mail ${email}; register with it first.`)
    const token = await local.issueIdToken(user.userId, {}, Number(minutes) * 60, PRE_AUTH)
    console.log(`${baseUrl.replace(/\/$/, '')}/pre-auth?token=${token}`)
  } finally {
    await store.close()
  }
}

/** @returns null when they are not as the usage says */
function readArguments (): { email: string | undefined, minutes: string } | null {
  try {
    const options = { minutes: { type: 'string', default: '10' } } as const
    const { values: { minutes }, positionals: [email, ...rest] } = parseArgs({ allowPositionals: true, options })
    return rest.length === 0 ? { email, minutes } : null
  } catch {
    return null
  }
}

function fail (sentence: string): void {
  console.error(sentence)
  process.exitCode = 1
}
