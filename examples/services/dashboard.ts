/** A service that calls another, examples/services/reports.ts; there is written how to start both. */
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
    return reply.code(502).send({ message: 'The reports cannot be had at the moment.' })
  }
})

/** Every call has a token of its own, for this service and for a minute: one that gets lost does little harm. */
async function fetchReport (): Promise<unknown> {
  const token = await local.issueIdToken('dashboard', {}, 60, { audience: 'reports' })
  const response = await fetch(`${reportsUrl}/report`, { headers: { authorization: `Bearer ${token}` }, redirect: 'error', signal: AbortSignal.timeout(5000) })
  if (!response.ok) throw new Error(`${reportsUrl} answered ${response.status}`)
  return response.json()
}

await app.listen({ host: 'localhost', port })
console.log(`Ready: http://localhost:${port}`)
