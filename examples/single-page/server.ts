/**
 * Starts a front end on http://localhost:3001, its API on http://localhost:3000, and an OpenID provider that lets
 * anyone sign in as any user: npx tsx examples/single-page/server.ts. Mails are written to the console.
 */
import { randomBytes } from 'node:crypto'
import { buildDevProvider } from '../demo/dev-provider.js'
import { listen, portFrom } from '../demo/ports.js'
import { buildApi } from './api.js'
import { buildFront } from './front.js'

const port = portFrom('PORT', 3000)
const [url, front, devUrl] = [0, 1, 2].map(offset => `http://localhost:${port + offset}`) as [string, string, string]

// A restart signs all users out.
process.env.SVC_SESSION_SECRET ??= randomBytes(32).toString('hex')
process.env.LOCAL_IDP_SECRET ??= randomBytes(32).toString('hex')

const dev = await buildDevProvider({ url: devUrl, appUrl: url })
const api = await buildApi({
  url,
  front,
  providers: [dev.provider],
  async sendMail ({ kind, to, url }) { console.log(`Mail to ${to}: ${kind} ${url ?? ''}`) }
})

await listen(dev.server, port + 2, 'PORT')
await listen(api, port, 'PORT')
await listen(buildFront({ api: url }), port + 1, 'PORT')
console.log(`Ready: ${front}`)
