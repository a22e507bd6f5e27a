/**
 * Grants claims to a user: `npx tsx examples/grant.ts ada@example.com role=admin`. Routes that refresh the session see
 * them with the next request, others from the user's next sign-in on.
 */
import { AuthError, Authorization, OptionsError, SqlAuthStore } from 'fastify-svc-auth'

const USAGE = 'Usage: npx tsx examples/grant.ts <e-mail> <claim>=<value> [<claim>=<value> ...]'

try {
  await grant(process.argv.slice(2))
} catch (error) {
  if (!(error instanceof AuthError || error instanceof OptionsError)) throw error
  fail(error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message)
}

async function grant ([email, ...assignments]: string[]): Promise<void> {
  const claims = claimsOf(assignments)
  if (email === undefined || claims === null) return fail(USAGE)

  const store = new SqlAuthStore() // file: LOCAL_AUTH_DB
  const authorization = new Authorization(store)
  try {
    const user = await authorization.findUser({ email })
    const database = process.env.LOCAL_AUTH_DB ?? './local-auth.db'
    if (user === null) return fail(`No user in ${database} has the e-mail ${email}; register with it first.`)
    const granted = await authorization.grant(user.userId, claims)
    const claimsNow = `${email} now has the claims ${JSON.stringify(granted)}`
    console.log(`${claimsNow}; where sessions are not refreshed they take effect at the next sign-in.`)
  } finally {
    await store.close()
  }
}

/** @returns null unless there are claims, all of the form name=value */
function claimsOf (assignments: string[]): Record<string, string> | null {
  const claims = new Map<string, string>()
  for (const assignment of assignments) {
    const { name, value } = /^(?<name>[^=]+)=(?<value>.+)$/s.exec(assignment)?.groups ?? {}
    if (name === undefined || value === undefined) return null
    claims.set(name, value)
  }
  return claims.size === 0 ? null : Object.fromEntries(claims)
}

function fail (sentence: string): void {
  console.error(sentence)
  process.exitCode = 1
}
