/** A service that calls another one, examples/services/reports.ts, which says how to start both. */
import Fastify from 'fastify'
import { LocalIdentityProvider } from 'fastify-svc-auth'

const port = Number(process.env.PORT ?? 4000)
const reportsUrl = process.env.REPORTS_URL ?? 'http://localhost:4001'
const local = new LocalIdentityProvider() // secret: LOCAL_IDP_SECRET

const app = Fastify({ logger: { level: 'warn' } })

app.get('/', async (request, reply) => {
  try {
    return { report: await fetchReport() }
  } catch (error) {
    request.log.error(error)
    return reply.code(502).send({ message: 'The reports are not available at the moment.' })
  }
})

/** Makes a token for each call, for one service and one minute: a stolen one does little harm. */
async function fetchReport (): Promise<unknown> {
  const token = await local.issueIdToken('dashboard', {}, 60, { audience: 'reports' })
  const headers = { authorization: `Bearer ${token}` }
  const signal = AbortSignal.timeout(5000)
  const response = await fetch(`${reportsUrl}/report`, { headers, redirect: 'error', signal })
  if (!response.ok) throw new Error(`${reportsUrl} answered ${response.status}`)
  return response.json()
}

await app.listen({ host: 'localhost', port })
console.log(`Ready: http://localhost:${port}`)
